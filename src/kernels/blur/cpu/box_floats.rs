//! A box filter of floats along any axis at a cost that does not depend on the radius. Chosen for f32 and f64 from a
//! radius of 32 on.
//!
//! Sums of integers slide: a sample enters, another leaves. Sums of floats would keep the rounding, the NaN and the
//! infinity of samples that have left. So nothing is subtracted: with blocks as long as a window, every window is the
//! end of one block and the beginning of the next (van Herk, A fast algorithm for local minimum and maximum filters,
//! 1992; Gil and Werman, 1993).
//!
//! ```text
//! |........ block ........|........ block ........|
//!          [=== suffix ===|== prefix ==)               the window from i on: suffix[i] + prefix[i]
//! ```
//!
//! Each sum is a pair of f64, the second of which gathers the exact errors of the first (Knuth's TwoSum): 106 bits, in
//! which sums are exact unless the samples of a window are 2^67 (f64: 2^38) apart. Therefore results do not depend on
//! where blocks begin, and so neither on how many threads or bands there are.

use bytemuck::Zeroable;

use super::{
    Pass,
    lines::Lines,
    number::{Keep, Round, Sample},
};
use crate::{error::Result, memory, parallel::Parallel, simd};

/// The least radius of this route: below it, adding weighted taps of f32 one by one is as fast.
const RADIUS: usize = 32;
/// Rows that go along x together, as lanes.
const ROWS: usize = 8;
/// Bytes of a block's suffix sums along y or z, which are to stay in the cache.
const CACHE: usize = 1 << 18;
/// The most bytes of a block's suffix sums. Blocks of very long windows are shorter than the window; the samples
/// between two blocks are then added up for each block.
const MOST: usize = 1 << 20;
/// The least number of samples side by side along y or z.
const LEAST: usize = 64;
/// Bytes of a sum: a pair of f64.
const SUM: usize = 16;

/// Whether a pass over floats is of this kind.
pub fn fits(pass: &Pass) -> bool {
    pass.is_float_box() && pass.taps.radius >= RADIUS
}

/// The means of `source` along the axis.
///
/// # Errors
/// When there is no memory.
pub fn blur<T: Sample<f64> + Zeroable>(lines: &Lines<'_>, source: &[T]) -> Result<Vec<T>>
where
    Keep: Round<f64, T>,
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
    Keep: Round<f64, T>,
{
    let (inner, window) = (lines.inner, Window::new(lines));
    let fill = lines.fill();
    // Each thread's share begins with a block of its own, most of which the share above sums as well.
    let rows = lines.len.div_ceil(2 * rayon::current_num_threads()).max(16);
    let outputs = rows.min(window.len).min(MOST / SUM / LEAST);
    let width = (CACHE / SUM / outputs).next_multiple_of(LEAST);
    let outer = target.chunks_mut(lines.block()).zip(source.chunks(lines.block()));
    outer.par_each(|(target, source)| {
        target.chunks_mut(rows * inner).enumerate().par_each(|(share, target)| {
            let mut sums = Sums::new(outputs, width.min(inner));
            let first = (share * rows) as isize - lines.radius() as isize;
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

fn along_rows<T: Sample<f64> + Zeroable>(lines: &Lines<'_>, source: &[T], target: &mut [T])
where
    Keep: Round<f64, T>,
{
    let (row, window) = (lines.block(), Window::new(lines));
    let lanes = ROWS * lines.inner;
    let outputs = lines.len.min(window.len).min(MOST / SUM / lanes);
    let fill: Vec<T> = lines.fill();
    let scratch = || {
        let padded = vec![T::zeroed(); ROWS * (row + 2 * lines.radius() * lines.inner)];
        (padded, vec![T::zeroed(); ROWS * row], Sums::new(outputs, lanes))
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

/// Writes up to [`ROWS`] rows, with the radius on both sides, sample by sample next to each other.
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

/// Sums in some lanes, each as a pair of f64.
struct Pair {
    high: Vec<f64>,
    low: Vec<f64>,
}

/// The sums of a thread's block.
struct Sums {
    /// For each position of the block, the sum from there to the block's end.
    suffixes: Pair,
    /// The sum of the next block up to the current position.
    prefix: Pair,
}

impl Sums {
    /// For blocks of `outputs` positions of `lanes`.
    fn new(outputs: usize, lanes: usize) -> Self {
        let pair = |len| Pair { high: vec![0.0; len], low: vec![0.0; len] };
        Self { suffixes: pair((outputs + 1) * lanes), prefix: pair(lanes) }
    }
}

/// `a + b` rounded, and the exact rounding error; the error is NaN unless the sum is finite.
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let rest = sum - a;
    (sum, (a - (sum - rest)) + (b - rest))
}

#[derive(Clone, Copy)]
struct Window {
    /// Positions.
    len: usize,
    /// The factor of samples before they are summed, a power of two, so that no sum is infinite unless a sample is; and
    /// the factor that turns such a sum into a mean.
    scales: [f64; 2],
}

impl Window {
    fn new(lines: &Lines<'_>) -> Self {
        let len = lines.pass.taps.count();
        let most = len.next_power_of_two() as f64;
        Self { len, scales: [1.0 / most, most / len as f64] }
    }

    /// Writes the means of successive windows to `targets`. The first window begins at `line(0)`, each of the others
    /// one position later. There are no more windows than a window has positions.
    #[inline]
    fn block<'s, 't, T: Sample<f64> + 's + 't>(
        self,
        sums: &mut Sums,
        line: impl Fn(usize) -> &'s [T],
        targets: impl ExactSizeIterator<Item = &'t mut [T]>,
    ) where
        Keep: Round<f64, T>,
    {
        let Self { len, scales: [scale, mean] } = self;
        let lanes = line(0).len();
        self.fill_suffixes(&mut sums.suffixes, &line, targets.len());
        let Sums { suffixes: Pair { high, low }, prefix } = sums;
        let [prefix_high, prefix_low] =
            [&mut prefix.high, &mut prefix.low].map(|sums| &mut sums[..lanes]);
        prefix_high.fill(0.0);
        prefix_low.fill(0.0);
        for (at, target) in targets.enumerate() {
            let suffix = at * lanes..(at + 1) * lanes;
            let (high, low) = (&high[suffix.clone()], &low[suffix]);
            simd::vectorize(
                #[inline(always)]
                || {
                    if at > 0 {
                        add(prefix_high, prefix_low, line(len + at - 1), scale);
                    }
                    let suffix = high.iter().zip(low);
                    let sums = prefix_high.iter().zip(&*prefix_low).zip(suffix);
                    for (to, ((&high, &low), (&suffix_high, &suffix_low))) in
                        target.iter_mut().zip(sums)
                    {
                        let (sum, rest) = two_sum(high, suffix_high);
                        let exact = sum + (low + suffix_low + rest);
                        let sum = if sum.is_finite() { exact } else { sum };
                        *to = Keep.round(sum * mean);
                    }
                },
            );
        }
    }
    /// Sets `suffixes` to the sums from each of the first `outputs` positions of a block to its end.
    #[inline]
    fn fill_suffixes<'s, T: Sample<f64> + 's>(
        self,
        suffixes: &mut Pair,
        line: &impl Fn(usize) -> &'s [T],
        outputs: usize,
    ) {
        let Self { len, scales: [scale, _] } = self;
        let lanes = line(0).len();
        let [high, low] =
            [&mut suffixes.high, &mut suffixes.low].map(|sums| &mut sums[..(outputs + 1) * lanes]);
        high[outputs * lanes..].fill(0.0);
        low[outputs * lanes..].fill(0.0);
        for at in (outputs..len).rev() {
            simd::vectorize(
                #[inline(always)]
                || add(&mut high[outputs * lanes..], &mut low[outputs * lanes..], line(at), scale),
            );
        }
        for at in (0..outputs).rev() {
            let (high, high_after) = high[at * lanes..].split_at_mut(lanes);
            let (low, low_after) = low[at * lanes..].split_at_mut(lanes);
            simd::vectorize(
                #[inline(always)]
                || {
                    let after = high_after.iter().zip(&*low_after).zip(line(at));
                    let sums = high.iter_mut().zip(&mut *low);
                    for ((high, low), ((&high_after, &low_after), sample)) in sums.zip(after) {
                        let (sum, rest) = two_sum(high_after, sample.widen() * scale);
                        (*high, *low) = (sum, low_after + rest);
                    }
                },
            );
        }
    }
}

/// Adds a line's samples times `scale` to the sums.
#[inline(always)]
fn add<T: Sample<f64>>(high: &mut [f64], low: &mut [f64], line: &[T], scale: f64) {
    for ((high, low), sample) in high.iter_mut().zip(low).zip(line) {
        let (sum, rest) = two_sum(*high, sample.widen() * scale);
        (*high, *low) = (sum, *low + rest);
    }
}
