//! Percentiles of large windows of any type: samples of a part are replaced by their ranks, and a histogram of the ranks
//! slides along each row (Huang, Yang and Tang, A Fast Two-Dimensional Median Filtering Algorithm, 1979).

use super::window::{Part, Window};
use crate::{
    data::grid::Shape,
    kernels::ordered_keys::Value,
    util::{error::Result, memory},
};

/// Ranks in a bin of the coarse histogram.
const BIN: usize = 64;

/// Size of a part. Larger ones share more of the samples around them, and take more memory.
fn part_dims(shape: Shape, window: &Window) -> [usize; 3] {
    match shape.dims[2] {
        1 => window.radius.map(|radius| (4 * radius).max(128)),
        _ => [64, 16, 16],
    }
}

/// Bytes in memory while [`run`] computes parts of a grid with samples of `size` bytes.
pub fn working_bytes(shape: Shape, window: &Window, size: usize) -> usize {
    let dims = part_dims(shape, window);
    let side = |axis: usize| dims[axis].min(shape.dims[axis]) + 2 * window.radius[axis];
    let padded: usize = (0..3).map(side).product();
    // Samples, their order, ranks and histogram.
    let parts = if shape.dims[2] == 1 {
        shape.dims[1].div_ceil(dims[1])
    } else {
        shape.dims[2].div_ceil(dims[2])
    };
    padded * shape.channels * (4 * size + 16) * rayon::current_num_threads().min(parts)
}

/// The percentiles of a grid.
pub fn run<T: Value>(source: &[T], shape: Shape, window: &Window) -> Result<Vec<T>> {
    let dims = part_dims(shape, window);
    window.in_parts(source, shape, dims, |part, target| compute(part, target))
}

fn compute<T: Value>(part: &Part<'_, T>, target: &mut [T]) {
    let (channels, [across, down, deep]) = (part.shape.channels, part.window.dims());
    let [_, rows, slices] = part.spans.clone();
    // The samples of the part, and those around it, in rows.
    let pitch = part.width() + (across - 1) * channels;
    let slice = pitch * (rows.len() + down - 1);
    let mut keys = memory::zeros(slice * (slices.len() + deep - 1)).unwrap_or_else(memory::raise);
    let mut lines = keys.chunks_exact_mut(pitch);
    for z in slices.start..slices.end + deep - 1 {
        for (y, line) in (rows.start..rows.end + down - 1).zip(&mut lines) {
            part.copy_keys(part.row(y, z), line);
        }
    }
    let (ranks, sorted) = ranks(&keys);
    let mut histogram = Histogram::new(sorted.len());
    for (z, y) in slices.clone().flat_map(|z| rows.clone().map(move |y| (z, y))) {
        let start = (z - slices.start) * slice + (y - rows.start) * pitch;
        // Adds a column of the window to the histogram `by` times.
        let change = |histogram: &mut Histogram, at: usize, by: u32| {
            for z in 0..deep {
                for y in 0..down {
                    histogram.change(ranks[start + z * slice + y * pitch + at], by);
                }
            }
        };
        let target = part.target(target, y, z);
        for channel in 0..channels {
            let column = |x: usize| x * channels + channel;
            (0..across - 1).for_each(|x| change(&mut histogram, column(x), 1));
            for x in 0..target.len() / channels {
                change(&mut histogram, column(x + across - 1), 1);
                let rank = histogram.find(part.window.rank as u32);
                target[column(x)] = T::from_key(sorted[rank]);
                change(&mut histogram, column(x), REMOVE);
            }
            let last = target.len() / channels;
            (last..last + across - 1).for_each(|x| change(&mut histogram, column(x), REMOVE));
        }
    }
}

/// The rank of each value among the different values, and these in ascending order.
fn ranks<T: Ord + Copy>(values: &[T]) -> (Vec<u32>, Vec<T>) {
    let mut order: Vec<(T, u32)> = memory::collected(values.iter().copied().zip(0..));
    order.sort_unstable();
    let mut ranks = memory::filled(0, values.len());
    let mut sorted: Vec<T> = memory::room(values.len()).unwrap_or_else(memory::raise);
    for (value, index) in order {
        if sorted.last() != Some(&value) {
            sorted.push(value);
        }
        ranks[index as usize] = sorted.len() as u32 - 1;
    }
    (ranks, sorted)
}

/// Adds -1 to a count, modulo 2^32.
const REMOVE: u32 = u32::MAX;

/// Counts of ranks.
struct Histogram {
    fine: Vec<u32>,
    coarse: Vec<u32>,
    /// The bin of the last result, and the number of ranks in the bins before it.
    bin: usize,
    before: u32,
}

impl Histogram {
    fn new(ranks: usize) -> Self {
        let bins = ranks.div_ceil(BIN);
        Self {
            fine: memory::filled(0, bins * BIN),
            coarse: memory::filled(0, bins),
            bin: 0,
            before: 0,
        }
    }

    #[inline(always)]
    fn change(&mut self, rank: u32, by: u32) {
        let bin = rank as usize / BIN;
        self.fine[rank as usize] = self.fine[rank as usize].wrapping_add(by);
        self.coarse[bin] = self.coarse[bin].wrapping_add(by);
        self.before = self.before.wrapping_add(if bin < self.bin { by } else { 0 });
    }

    /// The rank of sample number `number` of all that are counted, in ascending order.
    fn find(&mut self, number: u32) -> usize {
        while self.before > number {
            self.bin -= 1;
            self.before -= self.coarse[self.bin];
        }
        while self.before + self.coarse[self.bin] <= number {
            self.before += self.coarse[self.bin];
            self.bin += 1;
        }
        let mut before = self.before;
        let bin = &self.fine[self.bin * BIN..][..BIN];
        let found = bin.iter().position(|&count| {
            before += count;
            before > number
        });
        self.bin * BIN + found.expect("the bin holds the sample")
    }
}
