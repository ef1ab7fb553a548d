//! Weighted sums along y or z, of any format: the route of a pass along y or z by itself.
//!
//! Taps are lines of contiguous samples; each chunk of 64 lanes goes down a block of rows, so that the
//! lines of one row are still in the cache for the next.

use super::{
    lines::Lines,
    number::{Number, Round, Sample},
    weighted::{LANES, store, sums},
};
use crate::{error::Result, memory, parallel::Parallel, simd};
use bytemuck::Zeroable;
use pulp::{Simd, WithSimd};

/// The weighted sums of `source` along the axis; `weights` are those of taps 0 to radius.
///
/// # Errors
/// [`Kind::Failure`](crate::error::Kind::Failure) when there is no memory for the result.
pub fn blur<T: Sample<N>, N: Number, D: Zeroable + Copy + Send>(
    lines: &Lines<'_>,
    source: &[T],
    weights: &[N],
    round: impl Round<N, D>,
) -> Result<Vec<D>> {
    let (inner, radius) = (lines.inner, lines.radius());
    let fill = lines.fill();
    let rows = lines.len.div_ceil(4 * rayon::current_num_threads()).clamp(1, 64);
    let mut target = memory::zeros(source.len())?;
    let outer = target.chunks_mut(lines.block()).zip(source.chunks(lines.block()));
    outer.par_each(|(target, source)| {
        target.chunks_mut(rows * inner).enumerate().par_each(|(task, target)| {
            let first = (task * rows) as isize - radius as isize;
            let end = first + (target.len() / inner + 2 * radius) as isize;
            let taps: Vec<&[T]> = (first..end).map(|at| lines.line(source, at, &fill)).collect();
            simd::dispatch(Columns { taps: &taps, weights, round, target });
        });
    });
    Ok(target)
}

struct Columns<'a, T, N, D, R> {
    /// The lines of `target`, and `radius` more on either side.
    taps: &'a [&'a [T]],
    weights: &'a [N],
    round: R,
    target: &'a mut [D],
}

impl<T: Sample<N>, N: Number, D, R: Round<N, D>> WithSimd for Columns<'_, T, N, D, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        match self.taps[0].len() {
            LANES.. => self.run::<S, LANES>(),
            _ => self.run::<S, 1>(),
        }
    }
}

impl<T: Sample<N>, N: Number, D, R: Round<N, D>> Columns<'_, T, N, D, R> {
    #[inline(always)]
    fn run<S: Simd, const W: usize>(self) {
        let Self { taps, weights, round, target } = self;
        let radius = weights.len() - 1;
        let inner = taps[0].len();
        for chunk in 0..inner.div_ceil(W) {
            // The last chunk ends with the line, and repeats a part of the chunk before.
            let x = (chunk * W).min(inner - W);
            for (row, target) in target.chunks_exact_mut(inner).enumerate() {
                let tap = |i: isize| &taps[(row + radius).wrapping_add_signed(i)][x..];
                store::<_, _, _, W>(
                    &sums::<S, _, _, W>(weights, tap),
                    &mut target[x..][..W],
                    round,
                );
            }
        }
    }
}
