//! A box filter of floats along any axis, whose cost hardly depends on the radius. Chosen for long box filters (see
//! [`Pass::is_long_float_box`](super::Pass::is_long_float_box)) of f32 and f64.
//!
//! Sliding sums of floats would keep the rounding errors, NaN and infinities of samples that have left the window.
//! Therefore nothing is subtracted. Sums of 2, 4, 8, .. neighbours are computed from each other, and the sum of a
//! window from sums whose lengths add up to its length.
//!
//! ```text
//! window of 13      | 1 |       4       |               8               |
//! ```
//!
//! All windows are summed in the same order, so results do not depend on the number of threads or blocks.

use super::{
    lines::Lines,
    number::{NoRounding, Round, Sample},
};
use crate::util::{error::Result, memory, parallel::Parallel, simd};

/// Number of rows that are processed at once along x, as lanes.
const ROWS: usize = 8;
/// Maximum bytes of the sums of a block, which should stay in the cache.
const CACHE: usize = 1 << 18;
/// Minimum number of neighbouring samples that are processed at once along y or z.
const MIN_WIDTH: usize = 16;
/// Minimum number of windows of a block.
const MIN_OUTPUTS: usize = 64;

/// Computes the means of `source` along the axis.
pub fn blur<T: Sample<f64>>(lines: &Lines<'_>, source: &[T]) -> Result<Vec<T>>
where
    NoRounding: Round<f64, T>,
{
    let mut target = memory::zeros(source.len())?;
    match lines.pass.axis {
        0 => along_rows(lines, source, &mut target),
        _ => along_columns(lines, source, &mut target),
    }
    Ok(target)
}

fn along_columns<T: Sample<f64>>(lines: &Lines<'_>, source: &[T], target: &mut [T])
where
    NoRounding: Round<f64, T>,
{
    let (inner, window) = (lines.inner, Window::new(lines));
    let fill = lines.fill();
    // Each strip of rows repeats most of the work of the strip above for its first block.
    let rows = lines.len.div_ceil(2 * rayon::current_num_threads()).max(16);
    let outputs = rows.min(window.len.max(MIN_OUTPUTS));
    let width = (CACHE / size_of::<f64>() / (outputs + window.len)).next_multiple_of(MIN_WIDTH);
    let outer = target.chunks_mut(lines.block()).zip(source.chunks(lines.block()));
    outer.par_each(|(target, source)| {
        target.chunks_mut(rows * inner).enumerate().par_each(|(strip, target)| {
            let mut sums = Sums::default();
            let first = (strip * rows) as isize - lines.radius() as isize;
            for left in (0..inner).step_by(width) {
                let lanes = width.min(inner - left);
                for (number, target) in target.chunks_mut(outputs * inner).enumerate() {
                    let start = first + (number * outputs) as isize;
                    let line = |at: usize| {
                        &lines.line(source, start + at as isize, &fill)[left..left + lanes]
                    };
                    let rows = target.chunks_exact_mut(inner);
                    let rows = rows.map(|row| &mut row[left..left + lanes]);
                    window.block(&mut sums, line, rows);
                }
            }
        });
    });
}

fn along_rows<T: Sample<f64>>(lines: &Lines<'_>, source: &[T], target: &mut [T])
where
    NoRounding: Round<f64, T>,
{
    let (row, window) = (lines.block(), Window::new(lines));
    let lanes = ROWS * lines.inner;
    let outputs = lines.len.min(window.len.max(MIN_OUTPUTS));
    let fill: Vec<T> = lines.fill();
    let scratch = || {
        let padded = memory::filled(T::zeroed(), ROWS * (row + 2 * lines.radius() * lines.inner));
        (padded, memory::filled(T::zeroed(), ROWS * row), Sums::default())
    };
    let tiles = target.chunks_mut(ROWS * row).zip(source.chunks(ROWS * row));
    tiles.par_fold(scratch, |(padded, blurred, sums), (target, source)| {
        transpose(lines, source, &fill, padded);
        for (number, blurred) in blurred.chunks_mut(outputs * lanes).enumerate() {
            let start = number * outputs;
            let line = |at: usize| &padded[(start + at) * lanes..][..lanes];
            window.block(sums, line, blurred.chunks_exact_mut(lanes));
        }
        for (lane, target) in target.chunks_exact_mut(row).enumerate() {
            let blurred = blurred.chunks_exact(ROWS);
            target.iter_mut().zip(blurred).for_each(|(to, lanes)| *to = lanes[lane]);
        }
    });
}

/// Writes up to [`ROWS`] rows, with the radius on both sides, so that samples of the same position are neighbours.
fn transpose<T: Sample<f64>>(lines: &Lines<'_>, source: &[T], fill: &[T], padded: &mut [T]) {
    let (inner, radius) = (lines.inner, lines.radius());
    for (lane, source) in source.chunks_exact(lines.block()).enumerate() {
        let (left, rest) = padded.split_at_mut(radius * inner * ROWS);
        let (middle, right) = rest.split_at_mut(source.len() * ROWS);
        let samples = middle.chunks_exact_mut(ROWS).zip(source);
        samples.for_each(|(lanes, &sample)| lanes[lane] = sample);
        for i in 0..radius {
            for (side, at) in [
                (&mut *left, i as isize - radius as isize),
                (&mut *right, (lines.len + i) as isize),
            ] {
                let position = lines.line(source, at, fill);
                let lanes = side[i * inner * ROWS..].chunks_exact_mut(ROWS);
                lanes.zip(position).for_each(|(lanes, &sample)| lanes[lane] = sample);
            }
        }
    }
}

/// The sums of a thread's block.
#[derive(Default)]
struct Sums {
    /// The sum of 2^k samples from each position on. The other buffer takes the sums of 2^(k+1) samples.
    powers: [Vec<f64>; 2],
    /// The sum of each window so far.
    windows: Vec<f64>,
}

#[derive(Clone, Copy)]
struct Window {
    /// Number of positions.
    len: usize,
    /// A factor for samples, a power of two, with which no sum of finite samples is infinite; and the factor that turns
    /// such a sum into a mean.
    scales: [f64; 2],
}

impl Window {
    fn new(lines: &Lines<'_>) -> Self {
        let len = lines.pass.taps.count();
        let scale = len.next_power_of_two() as f64;
        Self { len, scales: [1.0 / scale, scale / len as f64] }
    }

    /// Writes the means of successive windows to `targets`. The first window begins at `line(0)`.
    #[inline]
    fn block<'s, 't, T: Sample<f64> + 's + 't>(
        self,
        Sums { powers: [powers, next], windows }: &mut Sums,
        line: impl Fn(usize) -> &'s [T],
        targets: impl ExactSizeIterator<Item = &'t mut [T]>,
    ) where
        NoRounding: Round<f64, T>,
    {
        let Self { len, scales: [scale, mean] } = self;
        let (lanes, outputs) = (line(0).len(), targets.len());
        memory::resize(powers, (outputs + len - 1) * lanes).unwrap_or_else(memory::raise);
        for (at, powers) in powers.chunks_exact_mut(lanes).enumerate() {
            simd::vectorize(
                #[inline(always)]
                || powers.iter_mut().zip(line(at)).for_each(|(to, v)| *to = v.widen() * scale),
            );
        }
        // The length is odd, so each window begins with one sample.
        windows.clear();
        windows.extend_from_slice(&powers[..outputs * lanes]);
        let mut summed = 1;
        for bit in 1..=len.ilog2() {
            let half = lanes << (bit - 1);
            memory::resize(next, powers.len() - half).unwrap_or_else(memory::raise);
            simd::vectorize(
                #[inline(always)]
                || add(powers, &powers[half..], next),
            );
            std::mem::swap(powers, next);
            if len >> bit & 1 == 1 {
                simd::vectorize(
                    #[inline(always)]
                    || {
                        let powers = &powers[summed * lanes..];
                        windows.iter_mut().zip(powers).for_each(|(to, v)| *to += v);
                    },
                );
                summed += 1 << bit;
            }
        }
        for (target, windows) in targets.zip(windows.chunks_exact(lanes)) {
            simd::vectorize(
                #[inline(always)]
                || {
                    for (to, v) in target.iter_mut().zip(windows) {
                        *to = NoRounding.round(v * mean);
                    }
                },
            );
        }
    }
}

#[inline(always)]
fn add(a: &[f64], b: &[f64], sums: &mut [f64]) {
    sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum = a + b);
}
