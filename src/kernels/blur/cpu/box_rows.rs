//! A box filter along x by a sliding sum: the route of a pass along x by itself.
//!
//! The sum of a window is that of the window before, plus the sample that enters on the right, minus
//! the one that leaves on the left, whatever the radius.

use super::{
    lines::Lines,
    number::{Number, Round, Sample},
};
use crate::{error::Result, memory, parallel::Parallel, simd};
use bytemuck::Zeroable;

/// The rounded sums of `source` along x.
///
/// # Errors
/// [`Kind::Failure`](crate::error::Kind::Failure) when there is no memory for the result.
pub fn blur<T: Sample<N>, N: Number, D: Zeroable + Copy + Send>(
    lines: &Lines<'_>,
    source: &[T],
    round: impl Round<N, D>,
) -> Result<Vec<D>> {
    let row = lines.block();
    let mut target = memory::zeros(source.len())?;
    target.chunks_mut(row).zip(source.chunks(row)).par_fold(
        || vec![N::default(); row + 2 * lines.radius() * lines.inner],
        |padded, (target, source)| sum(lines, source, padded, target, round),
    );
    Ok(target)
}

/// The rounded sums of one row, by way of `padded`, which is longer by the radius on both sides.
pub fn sum<T: Sample<N>, N: Number, D>(
    lines: &Lines<'_>,
    source: &[T],
    padded: &mut [N],
    target: &mut [D],
    round: impl Round<N, D>,
) {
    let (row, step) = (lines.block(), lines.inner);
    let before_last = 2 * lines.radius();
    lines.pad(source, padded);
    for channel in 0..step {
        let first = padded.iter().skip(channel).step_by(step);
        let mut sum = first.take(before_last).fold(N::default(), |sum, &sample| sum.add(sample));
        for i in (channel..row).step_by(step) {
            let full = sum.add(padded[i + before_last * step]);
            let leaving = std::mem::replace(&mut padded[i], full);
            sum = full.sub(leaving);
        }
    }
    // In a loop of its own, in lanes: above, each sum depends on the one before.
    simd::vectorize(
        #[inline(always)]
        || target.iter_mut().zip(&*padded).for_each(|(to, &sum)| *to = round.round(sum)),
    );
}
