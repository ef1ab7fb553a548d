//! A blur as a list of passes, each along one axis and exact where the samples are whole numbers.
//!
//! 8-bit samples times weights that sum to 2^16 stay below 2^24, so f32 computes them exactly, fused
//! or not, in any order; later passes work on 16-bit values in u32. That is why the CPU, SIMD of any
//! width and every GPU agree to the bit.

use std::ops::Range;

use super::{Axis, Blur, Method};

/// How the samples between two passes are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// u8.
    Bytes,
    /// u16, with `fraction` bits behind the point when they stand for bytes.
    Halves,
    /// u32 below 2^24.
    Words,
    /// f32.
    Floats,
}

/// What the numbers are multiplied and added as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Math {
    /// f32 that holds whole numbers below 2^24.
    Exact,
    /// u32.
    Whole,
    /// Sums of 48 bits.
    Wide,
    /// f32 with its rounding.
    Float,
}

/// How a sum becomes a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// floor((sum + 2^(shift-1)) / 2^shift); the sum itself with shift 0.
    Shift(u32),
    /// floor((sum * 2^up + divisor / 2) / divisor).
    Divide {
        /// What earlier passes have shifted away, and what the result has more behind the point.
        up: u32,
        /// The taps of this pass and of those that only shifted.
        divisor: u32,
    },
    /// The sum itself.
    Keep,
}

impl Finish {
    /// The sample that a sum of whole numbers becomes.
    pub fn apply(self, sum: u64) -> u64 {
        match self {
            Self::Shift(shift) => (sum + (1 << shift >> 1)) >> shift,
            Self::Divide { up, divisor } => {
                ((sum << up) + u64::from(divisor) / 2) / u64::from(divisor)
            }
            Self::Keep => sum,
        }
    }
}

/// F = ceil(2^k / divisor) and k, the last in `powers` with which floor(n F / 2^k) is floor(n / divisor)
/// for each n up to `most` and F is at most `largest`.
///
/// With F = (2^k + e) / divisor, that holds while n e < 2^k, since n / divisor lies at least 1 / divisor
/// below the next whole number.
pub fn reciprocal(
    divisor: u64,
    most: u64,
    largest: u64,
    mut powers: Range<u32>,
) -> Option<(u64, u32)> {
    let factor = |k: u32| (1u64 << k).div_ceil(divisor);
    let power = powers.rfind(|&k| {
        let excess = factor(k) * divisor - (1 << k);
        let exact = u128::from(most) * u128::from(excess) < 1 << k;
        factor(k) <= largest && exact
    })?;
    Some((factor(power), power))
}

/// One pass along one axis.
#[derive(Clone, Debug)]
pub struct Pass {
    /// 0 for x, 1 for y, 2 for z.
    pub axis: usize,
    /// Radius and standard deviation.
    pub shape: Axis,
    /// What it reads.
    pub from: Format,
    /// What it writes.
    pub to: Format,
    /// How it computes.
    pub math: Math,
    /// How it rounds.
    pub finish: Finish,
    /// Whole weights of taps 0 to radius; empty for [`Math::Float`] and where all weigh 1.
    pub whole: Vec<u32>,
    /// Real weights of taps 0 to radius, for [`Math::Float`].
    pub real: Vec<f32>,
    /// What lies outside with [`Edge::Constant`](super::Edge::Constant), one
    /// a channel, in units of what the pass reads.
    pub fill: [f64; 4],
}

/// What kind of numbers a blur works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// 8-bit samples, each channel for itself.
    Bytes,
    /// 16-bit samples, each channel for itself, all taps alike.
    Halves,
    /// 24-bit samples: 8-bit colours times alpha, or in linear light.
    Words,
    /// Everything else.
    Floats,
}

/// From this radius on, weights of 16 bits are too coarse.
const LONG: usize = 192;
/// Devices divide by numbers below this.
const MOST_TAPS: u64 = 1 << 28;

impl Blur {
    /// The passes over samples of `depth`; none where nothing is to be done. `outside` is what lies
    /// there with [`Edge::Constant`](super::Edge::Constant), one a channel, in units of the samples.
    pub fn plan(&self, depth: Depth, outside: [f64; 4]) -> Vec<Pass> {
        let mut axes: Vec<usize> = (0..3).filter(|&axis| self.axes[axis].radius > 0).collect();
        if self.method == Method::Box {
            // Running sums read most along y and z: those passes read bytes, and x the wider values.
            axes.reverse();
        }
        let count = axes.len() * self.iterations;
        let long = axes.iter().any(|&axis| self.axes[axis].radius >= LONG);
        // Bits behind the point, and bits of the weights, between the first pass and the last.
        let (fraction, later_bits) = match self.method {
            Method::Box => (8, 16),
            // Devices add two such values within 16 bits.
            Method::Gaussian if long => (6, 18),
            Method::Gaussian => (7, 16),
        };
        (0..count)
            .map(|number| {
                let axis = axes[number % axes.len()];
                let shape = self.axes[axis];
                let (first, last) = (number == 0, number + 1 == count);
                let whole = |bits| shape.whole_half_weights(self.method, bits);
                let pass = |from, to, math, finish, whole, real, fill| Pass {
                    axis,
                    shape,
                    from,
                    to,
                    math,
                    finish,
                    whole,
                    real,
                    fill,
                };
                let from = if first { Format::Bytes } else { Format::Halves };
                let to = if last { Format::Bytes } else { Format::Halves };
                let taps = shape.taps() as u32;
                match (depth, self.method) {
                    (Depth::Floats, method) => {
                        let real = shape.half_weights(method).iter().map(|&w| w as f32).collect();
                        let format = Format::Floats;
                        pass(format, format, Math::Float, Finish::Keep, vec![], real, outside)
                    }
                    (Depth::Words, _) => {
                        let format = Format::Words;
                        let finish = Finish::Shift(24);
                        pass(format, format, Math::Wide, finish, whole(24), vec![], outside)
                    }
                    (Depth::Halves, _) => {
                        let format = Format::Halves;
                        let finish = Finish::Divide { up: 0, divisor: taps };
                        pass(format, format, Math::Whole, finish, vec![], vec![], outside)
                    }
                    (Depth::Bytes, method) => {
                        let (before, after) =
                            (if first { 0 } else { fraction }, if last { 0 } else { fraction });
                        let fill = outside.map(|value| value * f64::from(1 << before));
                        if method == Method::Box {
                            let index = number % axes.len();
                            let before = if number < axes.len() { 0 } else { fraction };
                            let after = if number + axes.len() >= count { 0 } else { fraction };
                            let finishes = self.box_finishes(&axes, before, after);
                            let mut fill = outside.map(|value| value * f64::from(1 << before));
                            for (earlier, &axis) in finishes[..index].iter().zip(&axes) {
                                let taps = self.axes[axis].taps() as u64;
                                fill = fill.map(|value| earlier.apply(value as u64 * taps) as f64);
                            }
                            let finish = finishes[index];
                            return pass(from, to, Math::Whole, finish, vec![], vec![], fill);
                        }
                        let (bits, math) = match (first, long) {
                            (true, false) => (16, Math::Exact),
                            (true, true) => (24, Math::Whole),
                            (false, _) => (later_bits, Math::Whole),
                        };
                        let finish = Finish::Shift(bits + before - after);
                        pass(from, to, math, finish, whole(bits), vec![], fill)
                    }
                }
            })
            .collect()
    }

    /// How the passes of one iteration of a box blur of bytes round; `before` and `after` bits are
    /// behind the point at its start and end.
    ///
    /// Sums are only shifted until they fit 16 bits again; the last pass divides by all taps at once.
    fn box_finishes(&self, axes: &[usize], before: u32, after: u32) -> Vec<Finish> {
        let taps = |&axis: &usize| self.axes[axis].taps() as u64;
        let product: u64 = axes.iter().map(taps).product();
        let (mut finishes, mut shifts, mut most) = (Vec::new(), 0, 255u64 << before);
        for (i, axis) in axes.iter().enumerate() {
            let last = i + 1 == axes.len();
            if product >= MOST_TAPS {
                // Too many for one division: each pass divides by its own.
                let (up, down) = if last { (after, before) } else { (0, 0) };
                let common = up.min(down);
                let divisor = (taps(axis) << (down - common)) as u32;
                finishes.push(Finish::Divide { up: up - common, divisor });
            } else if last {
                let (up, down) = (shifts + after, before);
                let common = up.min(down);
                let divisor = (product << (down - common)) as u32;
                finishes.push(Finish::Divide { up: up - common, divisor });
            } else {
                most *= taps(axis);
                let fits = |shift: &u32| (most + (1 << shift >> 1)) >> shift <= u64::from(u16::MAX);
                let shift = (0..64).find(fits).expect("everything fits when shifted far enough");
                most = (most + (1 << shift >> 1)) >> shift;
                shifts += shift;
                finishes.push(Finish::Shift(shift));
            }
        }
        finishes
    }

    /// How far, in samples along `axis`, one sample reaches in all iterations together.
    pub fn reach(&self, axis: usize) -> usize {
        self.axes[axis].radius * self.iterations
    }
}
