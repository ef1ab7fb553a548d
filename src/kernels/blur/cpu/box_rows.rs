//! A box filter along x by a sliding sum: the route of a pass along x by itself.
//!
//! The sum of a window is that of the window before, plus the sample that enters on the right, minus
//! the one that leaves on the left, whatever the radius.

use super::{
    lines::Lines,
    number::{Round, Sample},
};
use crate::{error::Result, memory, parallel::Parallel, simd};
use bytemuck::Zeroable;

/// The rounded sums of `source` along x.
pub fn blur<T: Sample<u32>, D: Zeroable + Copy + Send>(
    lines: &Lines<'_>,
    source: &[T],
    round: impl Round<u32, D>,
) -> Result<Vec<D>> {
    let row = lines.block();
    let mut target = memory::zeros(source.len())?;
    target.chunks_mut(row).zip(source.chunks(row)).par_fold(
        || vec![0; row + 2 * lines.radius() * lines.inner],
        |padded, (target, source)| sum(lines, source, padded, target, round),
    );
    Ok(target)
}

/// The rounded sums of one row, by way of `padded`, which is longer by the radius on both sides.
pub fn sum<T: Sample<u32>, D>(
    lines: &Lines<'_>,
    source: &[T],
    padded: &mut [u32],
    target: &mut [D],
    round: impl Round<u32, D>,
) {
    let (row, step) = (lines.block(), lines.inner);
    let before_last = 2 * lines.radius();
    lines.pad(source, padded);
    for channel in 0..step {
        let first = padded.iter().skip(channel).step_by(step);
        let mut sum: u32 = first.take(before_last).sum();
        for i in (channel..row).step_by(step) {
            let full = sum.wrapping_add(padded[i + before_last * step]);
            let leaving = std::mem::replace(&mut padded[i], full);
            sum = full.wrapping_sub(leaving);
        }
    }
    // Apart from the sums, each of which waits for the one before.
    simd::vectorize(
        #[inline(always)]
        || target.iter_mut().zip(&*padded).for_each(|(to, &sum)| *to = round.round(sum)),
    );
}
