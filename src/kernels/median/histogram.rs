//! Percentiles of bytes in the same time for every radius, from sliding histograms (Perreault and Hébert, Median
//! Filtering in Constant Time, 2007). Counts are cumulative, so that a bin is found without a branch.

use super::window::Window;
use crate::{
    data::grid::Shape,
    util::{error::Result, memory, parallel::Parallel, simd::vectorize},
};

/// Counts of the samples with at most 0, 1, .. 15 in half a byte, 16 bits each. Four are added at once: no count
/// overflows into the next one.
type Counts = [u64; 4];

/// Columns whose histograms stay in the cache of a core.
const STRIP: usize = 512;

/// Windows of more samples overflow the counts.
pub const MAX_WINDOW: usize = u16::MAX as usize;

/// What a sample adds to counts.
const ONE: [Counts; 16] = {
    let mut all = [[0; 4]; 16];
    let mut value = 0;
    while value < 16 {
        let mut at = value;
        while at < 16 {
            all[value][at / 4] |= 1 << (16 * (at % 4));
            at += 1;
        }
        value += 1;
    }
    all
};

/// The histogram of a column of samples, or of a window.
#[derive(Clone)]
struct Histogram {
    /// Counts of the upper halves of samples.
    upper: Counts,
    /// Counts of the lower halves for each upper half.
    lower: [Counts; 16],
}

const EMPTY: Histogram = Histogram { upper: [0; 4], lower: [[0; 4]; 16] };

#[inline(always)]
fn add(counts: &mut Counts, more: &Counts) {
    for i in 0..4 {
        counts[i] = counts[i].wrapping_add(more[i]);
    }
}

#[inline(always)]
fn subtract(counts: &mut Counts, less: &Counts) {
    for i in 0..4 {
        counts[i] = counts[i].wrapping_sub(less[i]);
    }
}

/// The bin with the sample number `rank`, and the number of samples in the bins before it.
#[inline(always)]
fn find(counts: &Counts, rank: u16) -> (usize, u16) {
    let counts: &[u16; 16] = bytemuck::cast_ref(counts);
    let mut bin = 0;
    for &count in counts {
        bin += u16::from(count <= rank);
    }
    let bin = usize::from(bin);
    (bin, if bin == 0 { 0 } else { counts[bin - 1] })
}

/// The percentiles of a grid, for a window of at most [`MAX_WINDOW`] samples.
///
/// # Errors
/// When memory is exhausted.
pub fn run(source: &[u8], shape: Shape, window: &Window) -> Result<Vec<u8>> {
    let [nx, ny, _] = shape.dims;
    let width = nx * shape.channels;
    let mut target = memory::zeros(source.len())?;
    // Each band starts with new histograms.
    let band = (4 * window.radius[1] + 64).min(ny.div_ceil(rayon::current_num_threads()));
    let slices = target.chunks_exact_mut(width * ny).enumerate();
    let bands: Vec<_> = slices
        .flat_map(|(z, slice)| {
            let bands = slice.chunks_mut(band * width).enumerate();
            bands.map(move |(number, target)| ([number * band, z], target))
        })
        .collect();
    bands.into_iter().par_each(|([y, z], target)| {
        let strip = STRIP.max(4 * window.radius[0] * shape.channels) / shape.channels;
        for from in (0..nx).step_by(strip) {
            let columns = strip.min(nx - from);
            let mut strip = Strip::new(source, shape, window, from, columns);
            vectorize(
                #[inline(always)]
                || strip.run(target, y, z),
            );
        }
    });
    Ok(target)
}

/// Neighbouring columns of a band of rows.
struct Strip<'a> {
    source: &'a [u8],
    shape: Shape,
    window: &'a Window,
    /// The first column.
    from: usize,
    /// Histograms of the columns, the halo included, for each channel.
    columns: Vec<Histogram>,
    /// Indices in a row of the samples of `columns`.
    indices: Vec<usize>,
}

impl<'a> Strip<'a> {
    fn new(source: &'a [u8], shape: Shape, window: &'a Window, from: usize, len: usize) -> Self {
        let radius = window.radius[0];
        let x = (0..len + 2 * radius)
            .map(|at| (from + at).saturating_sub(radius).min(shape.dims[0] - 1));
        let channels = shape.channels;
        let indices: Vec<_> =
            x.flat_map(|x| (0..channels).map(move |channel| x * channels + channel)).collect();
        let columns = vec![EMPTY; indices.len()];
        Self { source, shape, window, from, columns, indices }
    }

    /// Computes the columns in rows of `target`, the first of which is row `first` of slice `z`.
    #[inline(always)]
    fn run(&mut self, target: &mut [u8], first: usize, z: usize) {
        let Self { shape: Shape { dims: [nx, ny, nz], channels }, window, .. } = *self;
        let [rx, ry, rz] = window.radius;
        let row = |y: usize, dz: usize| {
            let z = (z + dz).saturating_sub(rz).min(nz - 1);
            z * ny + y.saturating_sub(ry).min(ny - 1)
        };
        for dz in 0..2 * rz + 1 {
            for y in first..=first + 2 * ry {
                self.count::<true>(row(y, dz));
            }
        }
        for (y, target) in (first..).zip(target.chunks_exact_mut(nx * channels)) {
            if y > first {
                for dz in 0..2 * rz + 1 {
                    self.count::<false>(row(y - 1, dz));
                    self.count::<true>(row(y + 2 * ry, dz));
                }
            }
            let len = self.indices.len() - 2 * rx * channels;
            let target = &mut target[self.from * channels..][..len];
            for channel in 0..channels {
                self.slide(target, channel);
            }
        }
    }

    /// Adds a row to the histograms of columns, or subtracts it.
    #[inline(always)]
    fn count<const ADD: bool>(&mut self, row: usize) {
        let width = self.shape.dims[0] * self.shape.channels;
        let row = &self.source[row * width..][..width];
        for (column, &index) in self.columns.iter_mut().zip(&self.indices) {
            let (upper, lower) = (usize::from(row[index] >> 4), usize::from(row[index] & 15));
            if ADD {
                add(&mut column.upper, &ONE[upper]);
                add(&mut column.lower[upper], &ONE[lower]);
            } else {
                subtract(&mut column.upper, &ONE[upper]);
                subtract(&mut column.lower[upper], &ONE[lower]);
            }
        }
    }

    /// Moves the window along a row of results.
    #[inline(always)]
    fn slide(&self, target: &mut [u8], channel: usize) {
        let (channels, columns) = (self.shape.channels, &self.columns[channel..]);
        let (across, rank) = (2 * self.window.radius[0] + 1, self.window.rank as u16);
        let mut sum = EMPTY;
        // Number of the window of each part of `sum.lower`, plus 1; 0 if it is empty.
        let mut current = [0; 16];
        for at in 0..across - 1 {
            add(&mut sum.upper, &columns[at * channels].upper);
        }
        let mut at = 0;
        while at * channels + channel < target.len() {
            add(&mut sum.upper, &columns[(at + across - 1) * channels].upper);
            let (upper, before) = find(&sum.upper, rank);
            let lower = &mut sum.lower[upper];
            let last = current[upper];
            if last == 0 || last + across <= at {
                *lower = [0; 4];
                for at in at..at + across {
                    add(lower, &columns[at * channels].lower[upper]);
                }
            } else {
                for at in last..=at {
                    subtract(lower, &columns[(at - 1) * channels].lower[upper]);
                    add(lower, &columns[(at + across - 1) * channels].lower[upper]);
                }
            }
            current[upper] = at + 1;
            target[at * channels + channel] = (upper << 4 | find(lower, rank - before).0) as u8;
            subtract(&mut sum.upper, &columns[at * channels].upper);
            at += 1;
        }
    }
}
