//! Weighted sums along one axis, for single passes of any format.
//!
//! Along x, each row is converted and padded first. Along y and z, taps are lines of contiguous samples; a block of
//! rows is summed in spans of columns, so that the lines of one row are still in the cache for the next row.

use bytemuck::Pod;
use pulp::{Simd, WithSimd};

use super::{
    lines::Lines,
    number::{Round, Sample},
    sums::{LANES, Sums},
};
use crate::util::{error::Result, memory, parallel::Parallel, simd};

/// Minimum number of samples in the rows that a thread takes at a time.
const TASK: usize = 4096;
/// Maximum number of samples in the lines of a block of rows, which should stay in the cache.
const CACHE: usize = 1 << 17;

/// Computes the weighted sums of `source` along the axis.
pub fn blur<A: Sums, T: Sample<A::Number>, D: Pod + Send>(
    lines: &Lines<'_>,
    source: &[T],
    sums: &A,
) -> Result<Vec<D>>
where
    A::Round: Round<A::Number, D>,
{
    let mut target = memory::zeros(source.len())?;
    match lines.pass.axis {
        0 => along_rows(lines, source, sums, &mut target),
        _ => along_columns(lines, source, sums, &mut target),
    }
    Ok(target)
}

fn along_rows<A: Sums, T: Sample<A::Number>, D: Pod + Send>(
    lines: &Lines<'_>,
    source: &[T],
    sums: &A,
    target: &mut [D],
) where
    A::Round: Round<A::Number, D>,
{
    let row = lines.block();
    let task = (TASK / row).max(1) * row;
    let padded_len = row + 2 * lines.radius() * lines.inner + LANES;
    let scratch = || {
        (
            memory::filled(A::Number::default(), padded_len),
            memory::filled(D::zeroed(), row.next_multiple_of(LANES)),
        )
    };
    target.chunks_mut(task).zip(source.chunks(task)).par_fold(
        scratch,
        |(padded, summed), (target, source)| {
            for (target, source) in target.chunks_exact_mut(row).zip(source.chunks_exact(row)) {
                lines.pad(source, padded);
                simd::dispatch(Row { sums, padded, step: lines.inner, target: summed });
                target.copy_from_slice(&summed[..row]);
            }
        },
    );
}

struct Row<'a, A: Sums, D> {
    sums: &'a A,
    padded: &'a [A::Number],
    step: usize,
    target: &'a mut [D],
}

impl<A: Sums, D: Pod> WithSimd for Row<'_, A, D>
where
    A::Round: Round<A::Number, D>,
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        self.sums.along_row::<S, D>(self.padded, self.step, self.target);
    }
}

fn along_columns<A: Sums, T: Sample<A::Number>, D: Pod + Send>(
    lines: &Lines<'_>,
    source: &[T],
    sums: &A,
    target: &mut [D],
) where
    A::Round: Round<A::Number, D>,
{
    let (inner, radius) = (lines.inner, lines.radius());
    let fill = lines.fill();
    let rows = lines.len.div_ceil(4 * rayon::current_num_threads()).clamp(1, 64);
    let span = (CACHE / (rows + 2 * radius)).next_multiple_of(LANES);
    let outer = target.chunks_mut(lines.block()).zip(source.chunks(lines.block()));
    outer.par_each(|(target, source)| {
        target.chunks_mut(rows * inner).enumerate().par_each(|(task, target)| {
            let first = (task * rows) as isize - radius as isize;
            let end = first + (target.len() / inner + 2 * radius) as isize;
            let whole: Vec<&[T]> = (first..end).map(|at| lines.line(source, at, &fill)).collect();
            let mut rests: Vec<_> = target.chunks_exact_mut(inner).collect();
            // Lines that are too short are padded.
            let short: Vec<T> = match inner < LANES {
                true => whole.iter().flat_map(|line| padded::<A::Number, T>(line)).collect(),
                false => Vec::new(),
            };
            // The last span takes all remaining samples, so no span is too short.
            let count = (inner / span).max(1);
            for number in 0..count {
                let end = if number + 1 == count { inner } else { (number + 1) * span };
                let part = number * span..end;
                let lines = match short.is_empty() {
                    true => whole.iter().map(|line| &line[part.clone()]).collect(),
                    false => short.chunks_exact(LANES).collect(),
                };
                let rows =
                    rests.iter_mut().filter_map(|rest| rest.split_off_mut(..part.len())).collect();
                simd::dispatch(Columns { sums, lines, rows });
            }
        });
    });
}

/// A line, padded to [`LANES`] samples.
fn padded<N, T: Sample<N>>(line: &[T]) -> impl Iterator<Item = T> {
    line.iter().copied().chain(std::iter::repeat(T::from_f64(0.0))).take(LANES)
}

struct Columns<'a, A, T, D> {
    sums: &'a A,
    /// The lines of `rows`, with the radius on both sides.
    lines: Vec<&'a [T]>,
    rows: Vec<&'a mut [D]>,
}

impl<A: Sums, T: Sample<A::Number>, D: Pod> WithSimd for Columns<'_, A, T, D>
where
    A::Round: Round<A::Number, D>,
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        self.sums.across_lines::<S, T, D>(&self.lines, &mut self.rows, 1);
    }
}
