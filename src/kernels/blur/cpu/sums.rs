//! Weighted sums of taps along any axis, for several neighbouring positions at once.

use bytemuck::Pod;
use pulp::Simd;

use super::{
    Arithmetic, Pass, Rounding,
    number::{NoRounding, Number, Round, Sample, ScaleF64, ShiftU32},
};

use crate::util::memory;

/// A multiple of the number of positions that are summed at once, at any SIMD level.
pub const LANES: usize = 128;
/// Number of taps of a partial sum. Long sums of floats lose less precision in parts. Shaders use the same number.
const PARTIAL: usize = 16;
/// Number of rows that are summed at once along y or z: each loaded line is added to all of them.
const ROWS: usize = 4;

/// The weighted sums of a pass.
pub trait Sums: Send + Sync {
    /// The type of products and sums.
    type Number: Number;
    /// The rounding of sums.
    type Round: Copy + Send + Sync;

    /// Number of positions that are summed at once at SIMD level `S`, a divisor of [`LANES`].
    fn lanes<S: Simd>() -> usize;

    /// Computes the sums along x of a row in `padded`, which has the radius on both sides and positions `step` samples
    /// apart. The length of `target` is a multiple of [`Sums::lanes`].
    fn along_row<S: Simd, D: Pod>(&self, padded: &[Self::Number], step: usize, target: &mut [D])
    where
        Self::Round: Round<Self::Number, D>;

    /// Computes the sums along y or z of every `stride`-th row of `rows`. The window of the n-th of these begins at
    /// line n of `lines`. Lines are padded to a multiple of [`Sums::lanes`], or as long as rows and no shorter than
    /// [`LANES`].
    fn across_lines<S: Simd, T: Sample<Self::Number>, D: Pod>(
        &self,
        lines: &[&[T]],
        rows: &mut [&mut [D]],
        stride: usize,
    ) where
        Self::Round: Round<Self::Number, D>;
}

/// Sums along several axes in tiles.
pub trait Tiled: Sums<Round: Round<Self::Number, Self::Intermediate>> + Sized {
    /// The type of values between passes.
    type Intermediate: Sample<Self::Number>;

    /// Number of values of an image's tile between passes, which should stay in the cache.
    const CACHE: usize = 1 << 17;

    /// Whether `pass` can be computed by these sums.
    fn fits(pass: &Pass) -> bool;

    /// The sums of `pass`, which must fit.
    fn for_pass(pass: &Pass) -> Self;
}

/// Sums of floats, in the same order on every device: products are added tap by tap, each with a single rounding, to
/// partial sums of [`PARTIAL`] taps, and these are added one by one.
pub struct FloatSums<N> {
    /// Weights of the whole window.
    weights: Vec<N>,
}

impl<N: Number> FloatSums<N> {
    /// The sums of a pass of floats.
    pub fn new(pass: &Pass) -> Self {
        let half = &pass.float_weights;
        let sign = if pass.is_odd { -1.0 } else { 1.0 };
        let before = half[1..].iter().rev().map(|weight| sign * weight);
        let all = before.chain(half.iter().copied()).take(pass.taps.count());
        Self { weights: all.map(N::from_f64).collect() }
    }

    /// The sums of `W` lanes. `tap(i)` returns the samples of tap i.
    #[inline(always)]
    fn sums<'t, T: Sample<N> + 't, const W: usize>(
        &self,
        tap: impl Fn(usize) -> &'t [T],
    ) -> [N; W] {
        let mut sums = [N::default(); W];
        for (part, weights) in self.weights.chunks(PARTIAL).enumerate() {
            let mut partial = [N::default(); W];
            for (i, &weight) in weights.iter().enumerate() {
                let samples = &tap(part * PARTIAL + i)[..W];
                for lane in 0..W {
                    partial[lane] = samples[lane].widen().fused(weight, partial[lane]);
                }
            }
            sums.iter_mut().zip(partial).for_each(|(sum, partial)| *sum = sum.add(partial));
        }
        sums
    }

    #[inline(always)]
    fn row<D, const W: usize>(&self, padded: &[N], step: usize, target: &mut [D])
    where
        NoRounding: Round<N, D>,
    {
        for (chunk, target) in target.chunks_exact_mut(W).enumerate() {
            let sums = self.sums::<_, W>(|i| &padded[chunk * W + i * step..]);
            store(&sums, target, NoRounding);
        }
    }

    #[inline(always)]
    fn lines<T: Sample<N>, D, const W: usize>(
        &self,
        lines: &[&[T]],
        rows: &mut [&mut [D]],
        stride: usize,
    ) where
        NoRounding: Round<N, D>,
    {
        let width = rows[0].len();
        for start in starts::<W>(width, lines[0].len()) {
            for (number, row) in rows.iter_mut().step_by(stride).enumerate() {
                let sums = self.sums::<_, W>(|i| &lines[number + i][start..]);
                store(&sums, &mut row[start..(start + W).min(width)], NoRounding);
            }
        }
    }
}

impl<N: Number> Sums for FloatSums<N> {
    type Number = N;
    type Round = NoRounding;

    #[inline(always)]
    fn lanes<S: Simd>() -> usize {
        // Eight vectors.
        (8 * size_of::<S::f32s>() / size_of::<N>()).max(32)
    }

    #[inline(always)]
    fn along_row<S: Simd, D: Pod>(&self, padded: &[N], step: usize, target: &mut [D])
    where
        NoRounding: Round<N, D>,
    {
        match Self::lanes::<S>() {
            128.. => self.row::<D, 128>(padded, step, target),
            64.. => self.row::<D, 64>(padded, step, target),
            _ => self.row::<D, 32>(padded, step, target),
        }
    }

    #[inline(always)]
    fn across_lines<S: Simd, T: Sample<N>, D: Pod>(
        &self,
        lines: &[&[T]],
        rows: &mut [&mut [D]],
        stride: usize,
    ) where
        NoRounding: Round<N, D>,
    {
        match Self::lanes::<S>() {
            128.. => self.lines::<T, D, 128>(lines, rows, stride),
            64.. => self.lines::<T, D, 64>(lines, rows, stride),
            _ => self.lines::<T, D, 32>(lines, rows, stride),
        }
    }
}

impl Tiled for FloatSums<f32> {
    type Intermediate = f32;

    fn fits(pass: &Pass) -> bool {
        pass.is_float() && !pass.is_long_float_box()
    }

    fn for_pass(pass: &Pass) -> Self {
        Self::new(pass)
    }
}

/// Sums of integers in f64, which is exact for integers below 2^53, in any order.
pub struct ExactSums {
    /// The weights of the whole window, with [`ROWS`] - 1 zeros on both sides.
    weights: Vec<f64>,
    round: ScaleF64,
}

impl ExactSums {
    #[inline(always)]
    fn row<S: Simd, D, const W: usize>(&self, padded: &[f64], step: usize, target: &mut [D])
    where
        ScaleF64: Round<f64, D>,
    {
        let weights = &self.weights[ROWS - 1..][..self.weights.len() - 2 * (ROWS - 1)];
        for (chunk, target) in target.chunks_exact_mut(W).enumerate() {
            let mut sums = [0.0; W];
            for (tap, &weight) in weights.iter().enumerate() {
                let samples = &padded[chunk * W + tap * step..][..W];
                for lane in 0..W {
                    sums[lane] = samples[lane].exact::<S>(weight, sums[lane]);
                }
            }
            store(&sums, target, self.round);
        }
    }

    #[inline(always)]
    fn lines<S: Simd, T: Sample<f64>, D, const W: usize>(
        &self,
        lines: &[&[T]],
        rows: &mut [&mut [D]],
        stride: usize,
    ) where
        ScaleF64: Round<f64, D>,
    {
        let width = rows[0].len();
        for (number, rows) in rows.chunks_mut(ROWS * stride).enumerate() {
            // The last rows may be fewer than [`ROWS`], and so may their lines.
            let lines = &lines[number * ROWS..];
            for start in starts::<W>(width, lines[0].len()) {
                let mut sums = [[0.0; W]; ROWS];
                for (line, weights) in lines.iter().zip(self.weights.windows(ROWS)) {
                    let line = &line[start..][..W];
                    for (sums, &weight) in sums.iter_mut().zip(weights.iter().rev()) {
                        for lane in 0..W {
                            sums[lane] = line[lane].widen().exact::<S>(weight, sums[lane]);
                        }
                    }
                }
                let end = (start + W).min(width);
                for (row, sums) in rows.iter_mut().step_by(stride).zip(&sums) {
                    store(sums, &mut row[start..end], self.round);
                }
            }
        }
    }
}

impl Sums for ExactSums {
    type Number = f64;
    type Round = ScaleF64;

    #[inline(always)]
    fn lanes<S: Simd>() -> usize {
        // Eight vectors.
        size_of::<S::f64s>().max(16)
    }

    #[inline(always)]
    fn along_row<S: Simd, D: Pod>(&self, padded: &[f64], step: usize, target: &mut [D])
    where
        ScaleF64: Round<f64, D>,
    {
        match Self::lanes::<S>() {
            64.. => self.row::<S, D, 64>(padded, step, target),
            32.. => self.row::<S, D, 32>(padded, step, target),
            _ => self.row::<S, D, 16>(padded, step, target),
        }
    }

    #[inline(always)]
    fn across_lines<S: Simd, T: Sample<f64>, D: Pod>(
        &self,
        lines: &[&[T]],
        rows: &mut [&mut [D]],
        stride: usize,
    ) where
        ScaleF64: Round<f64, D>,
    {
        // Two vectors of each row.
        match size_of::<S::f64s>() {
            64.. => self.lines::<S, T, D, 16>(lines, rows, stride),
            32.. => self.lines::<S, T, D, 8>(lines, rows, stride),
            _ => self.lines::<S, T, D, 4>(lines, rows, stride),
        }
    }
}

impl Tiled for ExactSums {
    type Intermediate = u32;

    fn fits(pass: &Pass) -> bool {
        matches!(pass.arithmetic, Arithmetic::U48 | Arithmetic::U20U28)
    }

    fn for_pass(pass: &Pass) -> Self {
        let Rounding::Shift(shift) = pass.rounding else { unreachable!("such passes shift") };
        let radius = pass.taps.radius;
        let mut weights = memory::filled(0.0, 2 * (radius + ROWS) - 1);
        for tap in 0..=2 * radius {
            weights[ROWS - 1 + tap] = pass.integer_weights[tap.abs_diff(radius)].into();
        }
        Self { weights, round: ScaleF64::shift(shift) }
    }
}

/// Starts of chunks of `W` lanes in lines of `len` samples. The last chunk ends with the line at the latest, so it may
/// overlap the one before.
fn starts<const W: usize>(width: usize, len: usize) -> impl Iterator<Item = usize> {
    (0..width).step_by(W).map(move |start| start.min(len - W))
}

/// Sums of integers below 2^32. The two samples at each distance are added before they are weighted. `N` is u32, or f32
/// if sums are below 2^24.
pub struct PairedSums<N> {
    /// Weights of taps 0 to the radius.
    pub weights: Vec<N>,
    pub round: ShiftU32,
}

impl<N: Number> PairedSums<N> {
    /// The sums of `W` lanes. `tap(i)` returns the samples at distance i.
    #[inline(always)]
    fn sums<'t, S: Simd, T: Sample<N> + 't, const W: usize>(
        &self,
        tap: impl Fn(isize) -> &'t [T],
    ) -> [N; W] {
        let mut sums = [N::default(); W];
        for (i, &weight) in (1..).zip(&self.weights[1..]) {
            let (before, after) = (&tap(-i)[..W], &tap(i)[..W]);
            for lane in 0..W {
                let both = before[lane].widen().add(after[lane].widen());
                sums[lane] = both.exact::<S>(weight, sums[lane]);
            }
        }
        let centre = &tap(0)[..W];
        for lane in 0..W {
            sums[lane] = centre[lane].widen().exact::<S>(self.weights[0], sums[lane]);
        }
        sums
    }
}

impl<N: Number> Sums for PairedSums<N> {
    type Number = N;
    type Round = ShiftU32;

    #[inline(always)]
    fn lanes<S: Simd>() -> usize {
        64
    }

    #[inline(always)]
    fn along_row<S: Simd, D: Pod>(&self, padded: &[N], step: usize, target: &mut [D])
    where
        ShiftU32: Round<N, D>,
    {
        for (chunk, target) in target.chunks_exact_mut(64).enumerate() {
            let centre = chunk * 64 + (self.weights.len() - 1) * step;
            let tap = |i: isize| &padded[centre.wrapping_add_signed(i * step as isize)..];
            store(&self.sums::<S, _, 64>(tap), target, self.round);
        }
    }

    #[inline(always)]
    fn across_lines<S: Simd, T: Sample<N>, D: Pod>(
        &self,
        lines: &[&[T]],
        rows: &mut [&mut [D]],
        stride: usize,
    ) where
        ShiftU32: Round<N, D>,
    {
        let width = rows[0].len();
        for start in starts::<64>(width, lines[0].len()) {
            for (number, row) in rows.iter_mut().step_by(stride).enumerate() {
                let centre = number + self.weights.len() - 1;
                let tap = |i: isize| &lines[centre.wrapping_add_signed(i)][start..];
                let sums = self.sums::<S, _, 64>(tap);
                store(&sums, &mut row[start..(start + 64).min(width)], self.round);
            }
        }
    }
}

/// Rounds the sums for which `target` has room.
#[inline(always)]
pub fn store<N: Copy, D, R: Round<N, D>, const W: usize>(
    sums: &[N; W],
    target: &mut [D],
    round: R,
) {
    // If there is room for all lanes, the loop has a fixed length and is vectorized.
    match <&mut [D; W]>::try_from(&mut *target) {
        Ok(target) => {
            for lane in 0..W {
                target[lane] = round.round(sums[lane]);
            }
        }
        Err(_) => target.iter_mut().zip(sums).for_each(|(to, &sum)| *to = round.round(sum)),
    }
}
