//! Percentiles of bytes in the same time for every radius, from sliding histograms (Perreault and Hébert, Median
//! Filtering in Constant Time, 2007). Counts are cumulative, so that a bin is found without a branch.

use super::window::{Part, Window};
use crate::{
    data::grid::Shape,
    util::{error::Result, memory},
};

/// Numbers of samples with at most 0, 1, .. 15 in half a byte.
type Counts = [u16; 16];

/// Columns whose histograms stay in the cache of a core.
const STRIP: usize = 512;

/// Windows of more samples overflow the counts.
pub const MAX_WINDOW: usize = u16::MAX as usize;

/// The histogram of a column of samples, or of a window.
#[derive(Clone)]
struct Histogram {
    /// Counts of the upper halves of samples.
    upper: Counts,
    /// Counts of the lower halves for each upper half.
    lower: [Counts; 16],
}

const EMPTY: Histogram = Histogram { upper: [0; 16], lower: [[0; 16]; 16] };

/// Sums modulo 2^16. Sums in place would not be vectorised.
#[inline(always)]
fn plus(counts: &Counts, more: &Counts) -> Counts {
    let mut sums = [0; 16];
    for i in 0..16 {
        sums[i] = counts[i].wrapping_add(more[i]);
    }
    sums
}

#[inline(always)]
fn minus(counts: &Counts, less: &Counts) -> Counts {
    let mut rest = [0; 16];
    for i in 0..16 {
        rest[i] = counts[i].wrapping_sub(less[i]);
    }
    rest
}

/// The bin with the sample number `rank`, and the number of samples in the bins before it.
#[inline(always)]
fn find(counts: &Counts, rank: u16) -> (usize, u16) {
    let mut bin = 0;
    for &count in counts {
        bin += u16::from(count <= rank);
    }
    let bin = usize::from(bin);
    (bin, if bin == 0 { 0 } else { counts[bin - 1] })
}

/// The percentiles of a grid, for a window of at most [`MAX_WINDOW`] samples.
pub fn run(source: &[u8], shape: Shape, window: &Window) -> Result<Vec<u8>> {
    let ([_, ny, nz], [rx, ry, _]) = (shape.dims, window.radius);
    let strip = STRIP.max(4 * rx * shape.channels) / shape.channels;
    // Each band starts with new histograms.
    let band = (8 * ry + 64).min(ny.div_ceil(rayon::current_num_threads()));
    window.in_parts(
        source,
        shape,
        [strip, if nz == 1 { band } else { ny }, 1],
        #[inline(always)]
        |part, target| Columns::new(part).run(target),
    )
}

/// The histograms of columns of windows.
struct Columns<'a> {
    part: &'a Part<'a, u8>,
    histograms: Vec<Histogram>,
    line: Vec<u8>,
    /// What each half of a byte adds to counts. A constant table would be loaded in several parts.
    ones: [Counts; 16],
}

impl<'a> Columns<'a> {
    #[inline(always)]
    fn new(part: &'a Part<'a, u8>) -> Self {
        let len = part.width() + 2 * part.window.radius[0] * part.shape.channels;
        let ones = std::array::from_fn(|half| std::array::from_fn(|i| u16::from(i >= half)));
        Self { part, histograms: memory::filled(EMPTY, len), line: memory::filled(0, len), ones }
    }

    #[inline(always)]
    fn run(&mut self, target: &mut [u8]) {
        let (part, [_, down, deep]) = (self.part, self.part.window.dims());
        let [_, rows, slices] = part.spans.clone();
        let z = slices.start;
        for row in part.rows(rows.start, z) {
            self.count::<true>(row);
        }
        for y in rows.clone() {
            if y > rows.start {
                for z in z..z + deep {
                    self.count::<false>(part.row(y - 1, z));
                    self.count::<true>(part.row(y + down - 1, z));
                }
            }
            let target = part.target(target, y, z);
            for channel in 0..part.shape.channels {
                self.slide(target, channel);
            }
        }
    }

    /// Adds a row to the histograms of columns, or subtracts it.
    #[inline(always)]
    fn count<const ADD: bool>(&mut self, row: &[u8]) {
        self.part.copy_keys(row, &mut self.line);
        for (column, &value) in self.histograms.iter_mut().zip(&self.line) {
            let (upper, lower) = (usize::from(value >> 4), usize::from(value & 15));
            let counts = &mut column.lower[upper];
            let change = if ADD { plus } else { minus };
            *counts = change(counts, &self.ones[lower]);
            column.upper = change(&column.upper, &self.ones[upper]);
        }
    }

    /// Moves the window along a row of results.
    #[inline(always)]
    fn slide(&self, target: &mut [u8], channel: usize) {
        let (channels, columns) = (self.part.shape.channels, &self.histograms[channel..]);
        let (across, rank) = (self.part.window.dims()[0], self.part.window.rank as u16);
        let mut sum = EMPTY;
        // Number of the window of each part of `sum.lower`, plus 1; 0 if it is empty.
        let mut current = [0; 16];
        for at in 0..across - 1 {
            sum.upper = plus(&sum.upper, &columns[at * channels].upper);
        }
        for (at, target) in target[channel..].iter_mut().step_by(channels).enumerate() {
            sum.upper = plus(&sum.upper, &columns[(at + across - 1) * channels].upper);
            let (upper, before) = find(&sum.upper, rank);
            let lower = &mut sum.lower[upper];
            let last = current[upper];
            if last == 0 || last + across <= at {
                *lower = [0; 16];
                for at in at..at + across {
                    *lower = plus(lower, &columns[at * channels].lower[upper]);
                }
            } else {
                for at in last..=at {
                    *lower = minus(lower, &columns[(at - 1) * channels].lower[upper]);
                    *lower = plus(lower, &columns[(at + across - 1) * channels].lower[upper]);
                }
            }
            current[upper] = at + 1;
            *target = (upper << 4 | find(lower, rank - before).0) as u8;
            sum.upper = minus(&sum.upper, &columns[at * channels].upper);
        }
    }
}
