//! The arithmetic of Gaussians along all axes at once, tile by tile: [`Float`] or [`Exact`].

use bytemuck::Zeroable;
use pulp::{Simd, WithSimd};

use super::{
    Arithmetic, Pass, Rounding, box_floats,
    number::{Keep, Number, Round, Sample, ScaleF64},
    rows::Row,
    weighted::{LANES, store, sums},
};

/// The arithmetic of a tile's sums.
pub trait Tiled: Send + Sync + Sized {
    /// The type of products and sums.
    type Wide: Number;
    /// The type of values between passes.
    type Kept: Sample<Self::Wide> + Zeroable;
    /// How sums are rounded.
    type Round: Round<Self::Wide, Self::Kept>;

    /// Whether `pass` is of this arithmetic.
    fn fits(pass: &Pass) -> bool;

    /// The weights and the rounding of a pass that fits.
    fn new(pass: &Pass) -> Self;

    /// Sums along x of a row in `padded`, whose positions are `step` apart, with as many on either side as the weights
    /// reach. `target` is a whole number of [`LANES`].
    fn along_row<S: Simd>(
        &self,
        simd: S,
        padded: &[Self::Wide],
        step: usize,
        target: &mut [Self::Kept],
    );

    /// Sums along y or z of `lines` for every `stride`th of `rows`: row number n takes the lines from n on. Lines are
    /// whole numbers of [`LANES`].
    fn across_lines<S: Simd, D>(
        &self,
        lines: &[&[Self::Kept]],
        rows: &mut [&mut [D]],
        stride: usize,
    ) where
        Self::Round: Round<Self::Wide, D>;
}

/// Sums in f32, of the same products in the same order as in a pass by itself: the results are the same bits.
pub struct Float(Vec<f32>);

impl Tiled for Float {
    type Wide = f32;
    type Kept = f32;
    type Round = Keep;

    fn fits(pass: &Pass) -> bool {
        pass.arithmetic == Arithmetic::F32 && !box_floats::fits(pass)
    }

    fn new(pass: &Pass) -> Self {
        Self(pass.float_weights.clone())
    }

    #[inline(always)]
    fn along_row<S: Simd>(&self, simd: S, padded: &[f32], step: usize, target: &mut [f32]) {
        Row { padded, weights: &self.0, step, round: Keep, target }.with_simd(simd);
    }

    #[inline(always)]
    fn across_lines<S: Simd, D>(&self, lines: &[&[f32]], rows: &mut [&mut [D]], stride: usize)
    where
        Keep: Round<f32, D>,
    {
        let (width, radius) = (rows[0].len(), self.0.len() - 1);
        for (start, end) in (0..width).step_by(LANES).map(|start| (start, start + LANES)) {
            for (number, row) in rows.iter_mut().step_by(stride).enumerate() {
                let tap = |i: isize| &lines[(number + radius).wrapping_add_signed(i)][start..];
                let sums = sums::<S, _, _, LANES>(&self.0, tap);
                store::<_, _, _, LANES>(&sums, &mut row[start..end.min(width)], Keep);
            }
        }
    }
}

/// Sums of integers in f64, which holds integers below 2^53 exactly: the same in any order.
pub struct Exact {
    /// The weights of the whole window, with [`ROWS`] - 1 zeros before and behind.
    weights: Vec<f64>,
    round: ScaleF64,
}

/// Rows that are summed together along y or z: each loaded line goes into all of them.
const ROWS: usize = 4;

impl Tiled for Exact {
    type Wide = f64;
    type Kept = u32;
    type Round = ScaleF64;

    fn fits(pass: &Pass) -> bool {
        matches!(pass.arithmetic, Arithmetic::U48 | Arithmetic::U20U28)
    }

    fn new(pass: &Pass) -> Self {
        let Rounding::Shift(shift) = pass.rounding else { unreachable!("such passes shift") };
        let radius = pass.taps.radius;
        let mut weights = vec![0.0; 2 * (radius + ROWS) - 1];
        for tap in 0..=2 * radius {
            weights[ROWS - 1 + tap] = pass.integer_weights[tap.abs_diff(radius)].into();
        }
        Self { weights, round: ScaleF64::shift(shift) }
    }

    #[inline(always)]
    fn along_row<S: Simd>(&self, _: S, padded: &[f64], step: usize, target: &mut [u32]) {
        // As many sums as eight vectors hold.
        match size_of::<S::f64s>() {
            64.. => self.row::<S, 64>(padded, step, target),
            32.. => self.row::<S, 32>(padded, step, target),
            _ => self.row::<S, 16>(padded, step, target),
        }
    }

    #[inline(always)]
    fn across_lines<S: Simd, D>(&self, lines: &[&[u32]], rows: &mut [&mut [D]], stride: usize)
    where
        ScaleF64: Round<f64, D>,
    {
        // Two vectors of each row.
        match size_of::<S::f64s>() {
            64.. => self.lines::<S, D, 16>(lines, rows, stride),
            32.. => self.lines::<S, D, 8>(lines, rows, stride),
            _ => self.lines::<S, D, 4>(lines, rows, stride),
        }
    }
}

impl Exact {
    #[inline(always)]
    fn row<S: Simd, const W: usize>(&self, padded: &[f64], step: usize, target: &mut [u32]) {
        let weights = &self.weights[ROWS - 1..][..self.weights.len() - 2 * (ROWS - 1)];
        for (chunk, target) in target.chunks_exact_mut(W).enumerate() {
            let mut sums = [0.0; W];
            for (tap, &weight) in weights.iter().enumerate() {
                let samples = &padded[chunk * W + tap * step..][..W];
                for lane in 0..W {
                    sums[lane] = samples[lane].multiply_add::<S>(weight, sums[lane]);
                }
            }
            store::<_, _, _, W>(&sums, target, self.round);
        }
    }

    #[inline(always)]
    fn lines<S: Simd, D, const W: usize>(
        &self,
        lines: &[&[u32]],
        rows: &mut [&mut [D]],
        stride: usize,
    ) where
        ScaleF64: Round<f64, D>,
    {
        let width = rows[0].len();
        for (number, rows) in rows.chunks_mut(ROWS * stride).enumerate() {
            // The last rows may be fewer, and so the lines.
            let lines = &lines[number * ROWS..];
            for start in (0..width).step_by(W) {
                let mut sums = [[0.0; W]; ROWS];
                for (line, weights) in lines.iter().zip(self.weights.windows(ROWS)) {
                    let line = &line[start..][..W];
                    for (sums, &weight) in sums.iter_mut().zip(weights.iter().rev()) {
                        for lane in 0..W {
                            let sample: f64 = line[lane].widen();
                            sums[lane] = sample.multiply_add::<S>(weight, sums[lane]);
                        }
                    }
                }
                let end = (start + W).min(width);
                for (row, sums) in rows.iter_mut().step_by(stride).zip(&sums) {
                    store::<_, _, _, W>(sums, &mut row[start..end], self.round);
                }
            }
        }
    }
}
