//! A box filter along x by a sliding sum: the route of a pass along x by itself.
//!
//! The sum of a window is that of the window before, plus the sample that enters on the right, minus
//! the one that leaves on the left, whatever the radius.

use super::{
    lines::Lines,
    number::{Round, Sample},
};
use crate::{error::Result, memory, parallel::Parallel};
use bytemuck::Zeroable;

/// The rounded sums of `source` along x.
pub fn blur<T: Sample<u32>, D: Zeroable + Copy + Send>(
    lines: &Lines<'_>,
    source: &[T],
    round: impl Round<u32, D>,
) -> Result<Vec<D>> {
    let (row, step) = (lines.block(), lines.inner);
    let before_last = 2 * lines.radius();
    let mut target = memory::zeros(source.len())?;
    target.chunks_mut(row).zip(source.chunks(row)).par_fold(
        || vec![0; row + before_last * step],
        |padded, (target, source)| {
            lines.pad(source, padded);
            for channel in 0..step {
                let first = padded.iter().skip(channel).step_by(step);
                let mut sum: u32 = first.take(before_last).sum();
                for i in (channel..row).step_by(step) {
                    sum = sum.wrapping_add(padded[i + before_last * step]);
                    target[i] = round.round(sum);
                    sum = sum.wrapping_sub(padded[i]);
                }
            }
        },
    );
    Ok(target)
}
