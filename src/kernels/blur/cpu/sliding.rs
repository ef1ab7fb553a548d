//! A box filter by sliding sums, for single passes and for the routes of two passes.
//!
//! The sum of a window is the sum of the window before, plus the entering sample, minus the leaving one. The cost does
//! not depend on the radius. Along y and z there is a sum for each column:
//!
//! ```text
//! row y - radius       -   leaves after row y is stored
//! ...                  |   stays in the sums
//! row y + radius       +   enters before row y is stored
//! ```

use super::{
    lines::Lines,
    number::{Number, Round, Sample},
    sums::store,
};
use crate::util::{error::Result, memory, parallel::Parallel, simd};
use bytemuck::Pod;

/// Number of positions that are summed at once.
pub const LANES: usize = 64;
/// Maximum number of taps along x that are added one by one, in less time than a sum slides: each of those waits for the
/// one before.
pub const FEW_TAPS: usize = 15;

/// Computes the rounded sums of `source` along the axis.
pub fn blur<T: Sample<N>, N: Number, D: Pod + Send>(
    lines: &Lines<'_>,
    source: &[T],
    round: impl Round<N, D>,
) -> Result<Vec<D>> {
    let mut target = memory::zeros(source.len())?;
    if lines.pass.axis == 0 {
        let row = lines.block();
        target.chunks_mut(row).zip(source.chunks(row)).par_fold(
            || memory::filled(N::default(), row + 2 * lines.radius() * lines.inner + LANES),
            |padded, (target, source)| sum_row(lines, source, padded, target, round),
        );
    } else {
        slide(lines, source, &mut target, || {
            move |window: Window<'_, T, N>, target: &mut [D]| window.advance(round, target)
        });
    }
    Ok(target)
}

/// Computes the rounded sums of one row. `padded` is scratch memory for the row, the radius on both sides, and
/// [`LANES`] samples.
pub fn sum_row<T: Sample<N>, N: Number, D>(
    lines: &Lines<'_>,
    source: &[T],
    padded: &mut [N],
    target: &mut [D],
    round: impl Round<N, D>,
) {
    let (row, step, taps) = (lines.block(), lines.inner, lines.pass.taps.count());
    let before_last = taps - 1;
    lines.pad(source, padded);
    if taps <= FEW_TAPS {
        return simd::vectorize(
            #[inline(always)]
            || add_taps(padded, [taps, step], round, target),
        );
    }
    for channel in 0..step {
        let first = padded.iter().skip(channel).step_by(step);
        let mut sum = first.take(before_last).fold(N::default(), |sum, &sample| sum.add(sample));
        for i in (channel..row).step_by(step) {
            let full = sum.add(padded[i + before_last * step]);
            let leaving = std::mem::replace(&mut padded[i], full);
            sum = full.sub(leaving);
        }
    }
    // A separate loop is vectorized; above, each sum depends on the one before.
    simd::vectorize(
        #[inline(always)]
        || target.iter_mut().zip(&*padded).for_each(|(to, &sum)| *to = round.round(sum)),
    );
}

/// Stores the rounded sums of `count` samples each, `step` apart, of `padded`, which has [`LANES`] samples more than these.
#[inline(always)]
pub fn add_taps<N: Number, D>(
    padded: &[N],
    [count, step]: [usize; 2],
    round: impl Round<N, D>,
    target: &mut [D],
) {
    for (chunk, target) in target.chunks_mut(LANES).enumerate() {
        let mut sums = [N::default(); LANES];
        for tap in 0..count {
            let samples = &padded[chunk * LANES + tap * step..][..LANES];
            for lane in 0..LANES {
                sums[lane] = sums[lane].add(samples[lane]);
            }
        }
        store(&sums, target, round);
    }
}

/// Slides a window down the lines of `source`. Calls `start` for each strip of lines, and the returned function
/// for each line of the strip, with the window and the line of `target`.
pub fn slide<T: Sample<N>, N: Number, D: Send, F: FnMut(Window<'_, T, N>, &mut [D])>(
    lines: &Lines<'_>,
    source: &[T],
    target: &mut [D],
    start: impl Fn() -> F + Sync,
) {
    let (inner, radius) = (lines.inner, lines.radius());
    let before_last = lines.pass.taps.count() - 1;
    let fill = lines.fill();
    // Each strip of lines begins with the sum of its first window, so strips must not be short.
    let rows = lines.len.div_ceil(2 * rayon::current_num_threads()).max(16);
    let outer = target.chunks_mut(lines.block()).zip(source.chunks(lines.block()));
    outer.par_each(|(target, source)| {
        let line = |at: isize| lines.line(source, at, &fill);
        target.chunks_mut(rows * inner).enumerate().par_each(|(strip, target)| {
            let mut each = start();
            let mut sums = memory::filled(N::default(), inner);
            let first = (strip * rows) as isize - radius as isize;
            for at in first..first + before_last as isize {
                simd::vectorize(
                    #[inline(always)]
                    || add(&mut sums, line(at)),
                );
            }
            for (i, target) in target.chunks_exact_mut(inner).enumerate() {
                let leaving = line(first + i as isize);
                let entering = line(first + (i + before_last) as isize);
                each(Window { entering, leaving, sums: &mut sums }, target);
            }
        });
    });
}

/// A window of lines.
pub struct Window<'a, T, N> {
    pub entering: &'a [T],
    pub leaving: &'a [T],
    /// Sums of all lines in the window except the entering one.
    pub sums: &'a mut [N],
}

impl<T: Sample<N>, N: Number> Window<'_, T, N> {
    /// Stores the rounded sums of the window in `target`, and moves the window on by a line.
    pub fn advance<D>(self, round: impl Round<N, D>, target: &mut [D]) {
        let Self { entering, leaving, sums } = self;
        simd::vectorize(
            #[inline(always)]
            || {
                let ends = entering.iter().zip(leaving);
                for ((sum, to), (entering, leaving)) in sums.iter_mut().zip(&mut *target).zip(ends)
                {
                    let full = sum.add(entering.widen());
                    *to = round.round(full);
                    *sum = full.sub(leaving.widen());
                }
            },
        );
    }
}

#[inline(always)]
fn add<T: Sample<N>, N: Number>(sums: &mut [N], line: &[T]) {
    sums.iter_mut().zip(line).for_each(|(sum, value)| *sum = sum.add(value.widen()));
}
