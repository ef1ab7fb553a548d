//! Percentiles of windows of medium size by binary search: the bits of results, the highest first, from counts of smaller
//! samples, in SIMD lanes.

use super::window::{Part, Window};
use crate::{
    data::grid::Shape,
    kernels::ordered_keys::{Key, Value},
    util::{error::Result, memory},
};

/// Results that are computed at a time. Loops over fewer are not vectorised.
const LANES: usize = 64;

/// The percentiles of a grid. The length of the window must be a value of the type.
pub fn run<T: Value>(source: &[T], shape: Shape, window: &Window) -> Result<Vec<T>> {
    let width = shape.dims[0] * shape.channels;
    window.in_parts(
        source,
        shape,
        [shape.dims[0], ((1 << 16) / width).max(1), 1],
        #[inline(always)]
        |part, target| compute(part, target),
    )
}

#[inline(always)]
fn compute<T: Value>(part: &Part<'_, T>, target: &mut [T]) {
    let (window, channels) = (part.window, part.shape.channels);
    let [across, down, deep] = window.dims();
    let after = window.size() - 1 - window.rank;
    let pitch = part.width().next_multiple_of(LANES) + (across - 1) * channels;
    let mut lines = memory::zeros(pitch * down * deep).unwrap_or_else(memory::raise);
    for z in part.spans[2].clone() {
        for y in part.spans[1].clone() {
            for (row, line) in part.rows(y, z).zip(lines.chunks_exact_mut(pitch)) {
                part.copy_keys(row, line);
            }
            let target = part.target(target, y, z).chunks_mut(LANES).enumerate();
            for (number, target) in target {
                let lines = lines.chunks_exact(pitch).map(|line| &line[number * LANES..]);
                let found = search(lines, across, channels, after);
                for (result, key) in target.iter_mut().zip(found) {
                    *result = T::from_key(key);
                }
            }
        }
    }
}

/// The samples number `rank` of `LANES` neighbouring windows.
#[inline(always)]
fn search<'a, T: Key>(
    lines: impl Iterator<Item = &'a [T]> + Clone,
    across: usize,
    channels: usize,
    after: usize,
) -> [T; LANES] {
    // The largest values that are not greater than the result and the `after` samples after it.
    let after = T::MIN.plus(after as i64);
    let mut found = [T::MIN; LANES];
    for bit in (0..8 * size_of::<T>()).rev() {
        let mut candidates = found;
        for candidate in &mut candidates {
            *candidate = candidate.plus(1 << bit);
        }
        // Numbers of samples that are not smaller.
        let mut counts = [T::MIN; LANES];
        for line in lines.clone() {
            for x in 0..across {
                let samples = &line[x * channels..][..LANES];
                for i in 0..LANES {
                    counts[i] = counts[i].plus(i64::from(samples[i] >= candidates[i]));
                }
            }
        }
        for i in 0..LANES {
            found[i] = found[i].max(if counts[i] > after { candidates[i] } else { T::MIN });
        }
    }
    found
}
