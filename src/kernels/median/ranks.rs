//! Percentiles of large windows of any type: samples of a block are replaced by their ranks, and a histogram of the ranks
//! slides along each row (Huang, Yang and Tang, A Fast Two-Dimensional Median Filtering Algorithm, 1979).

use super::window::Window;
use crate::{
    data::{
        blocks::{Block, Blocks, Split},
        grid::Shape,
    },
    kernels::ordered_keys::Value,
    util::{error::Result, memory, parallel::Parallel},
};

/// Ranks in a bin of the coarse histogram.
const BIN: usize = 64;

/// The percentiles of a grid.
///
/// # Errors
/// When memory is exhausted.
pub fn run<T: Value>(source: &[T], shape: Shape, window: &Window) -> Result<Vec<T>> {
    // Larger blocks share more of their halos, and take more memory.
    let sizes = match shape.dims[2] {
        1 => window.radius.map(|radius| (4 * radius).max(128)),
        _ => [64, 16, 16],
    };
    let split = |axis: usize| Split { block: sizes[axis], ..Split::whole(shape.dims[axis]) };
    let blocks = Blocks(std::array::from_fn(split));
    let all: Vec<Block> = blocks.iter().collect();
    let mut target = memory::zeros(source.len())?;
    for some in all.chunks(4 * rayon::current_num_threads()) {
        let results = some.iter().par_map(|block| {
            let mut result =
                memory::zeros(block.padded().iter().product::<usize>() * shape.channels)
                    .unwrap_or_else(memory::raise);
            for channel in 0..shape.channels {
                compute(source, (shape, channel), window, block, &mut result);
            }
            result
        });
        for (block, result) in some.iter().zip(results) {
            blocks.scatter(block, shape.channels, &result, &mut target);
        }
    }
    Ok(target)
}

/// Computes a channel of a block.
fn compute<T: Value>(
    source: &[T],
    (shape, channel): (Shape, usize),
    window: &Window,
    block: &Block,
    result: &mut [T],
) {
    let [nx, _, _] = shape.dims;
    let [x, y, z] = block.0.each_ref().map(|span| span.core.clone());
    let [rx, ry, rz] = window.radius;
    // The samples of the block and its halo, in rows.
    let mut values = memory::room((x.len() + 2 * rx) * (y.len() + 2 * ry) * (z.len() + 2 * rz))
        .unwrap_or_else(memory::raise);
    for z in z.start..z.end + 2 * rz {
        for y in y.start..y.end + 2 * ry {
            let inside =
                |at: usize, radius: usize, len: usize| at.saturating_sub(radius).min(len - 1);
            let row = inside(z, rz, shape.dims[2]) * shape.dims[1] + inside(y, ry, shape.dims[1]);
            let x = (x.start..x.end + 2 * rx).map(|x| inside(x, rx, nx));
            values.extend(x.map(|x| source[(row * nx + x) * shape.channels + channel]));
        }
    }
    let (ranks, sorted) = ranks(&values);
    let mut histogram = Histogram::new(sorted.len());
    let (across, pitch) = (2 * rx + 1, x.len() + 2 * rx);
    let slice = pitch * (y.len() + 2 * ry);
    for (row, result) in result.chunks_exact_mut(x.len() * shape.channels).enumerate() {
        let (y, z) = (row % y.len(), row / y.len());
        let change = |histogram: &mut Histogram, at: usize, by: u32| {
            for z in z..z + 2 * rz + 1 {
                for y in y..y + 2 * ry + 1 {
                    histogram.change(ranks[z * slice + y * pitch + at], by);
                }
            }
        };
        (0..across - 1).for_each(|at| change(&mut histogram, at, 1));
        for (at, result) in result.iter_mut().skip(channel).step_by(shape.channels).enumerate() {
            change(&mut histogram, at + across - 1, 1);
            *result = sorted[histogram.find(window.rank as u32)];
            change(&mut histogram, at, REMOVE);
        }
        (pitch + 1 - across..pitch).for_each(|at| change(&mut histogram, at, REMOVE));
    }
}

/// The rank of each value among the different values, and these in ascending order.
fn ranks<T: Value>(values: &[T]) -> (Vec<u32>, Vec<T>) {
    let mut order: Vec<(T, u32)> = values.iter().copied().zip(0..).collect();
    order.sort_unstable();
    let mut ranks = vec![0; values.len()];
    let mut sorted: Vec<T> = Vec::new();
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
        Self { fine: vec![0; bins * BIN], coarse: vec![0; bins], bin: 0, before: 0 }
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
