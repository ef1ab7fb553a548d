//! Weighted sums along x, of any format: the route of a pass along x by itself.
//!
//! Each row is widened and padded once; then taps are neighbours, a position apart:
//!
//! ```text
//! padded   | left edge | row ........................ | right edge |
//! tap -i        [ 64 lanes ]
//! tap  0                 [ 64 lanes ]        a sum for each lane
//! tap  i                           [ 64 lanes ]
//! ```

use super::{
    lines::Lines,
    number::{Number, Round, Sample},
    weighted::{LANES, store, sums},
};
use crate::{error::Result, memory, parallel::Parallel, simd};
use bytemuck::Zeroable;
use pulp::{Simd, WithSimd};

/// The fewest samples that a thread takes at a time, so that small images are not split too finely.
const TASK: usize = 4096;

/// The weighted sums of `source` along x; `weights` are those of taps 0 to radius.
///
/// # Errors
/// [`Kind::Failure`](crate::error::Kind::Failure) when there is no memory for the result.
pub fn blur<T: Sample<N>, N: Number, D: Zeroable + Copy + Send>(
    lines: &Lines<'_>,
    source: &[T],
    weights: &[N],
    round: impl Round<N, D>,
) -> Result<Vec<D>> {
    let row = lines.block();
    let task = (TASK / row).max(1) * row;
    let padded_len = row + 2 * lines.radius() * lines.inner + LANES;
    let mut target = memory::zeros(source.len())?;
    target.chunks_mut(task).zip(source.chunks(task)).par_fold(
        || vec![N::default(); padded_len],
        |padded, (target, source)| {
            for (target, source) in target.chunks_exact_mut(row).zip(source.chunks_exact(row)) {
                lines.pad(source, padded);
                simd::dispatch(Row { padded, weights, step: lines.inner, round, target });
            }
        },
    );
    Ok(target)
}

/// A row, or a part of one.
pub struct Row<'a, N, D, R> {
    /// Its samples, and as many on either side as the weights reach.
    pub padded: &'a [N],
    pub weights: &'a [N],
    /// Samples from position to position.
    pub step: usize,
    pub round: R,
    pub target: &'a mut [D],
}

impl<N: Number, D, R: Round<N, D>> WithSimd for Row<'_, N, D, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { padded, weights, step, round, target } = self;
        let radius = weights.len() - 1;
        for (chunk, target) in target.chunks_mut(LANES).enumerate() {
            let centre = chunk * LANES + radius * step;
            let tap = |i: isize| &padded[centre.wrapping_add_signed(i * step as isize)..];
            store::<_, _, _, LANES>(&sums::<S, _, _, LANES>(weights, tap), target, round);
        }
    }
}
