//! A blur as a list of passes, each along one axis. Passes over integers are exact up to the rounding of their results.
//!
//! Sums of 8-bit samples with weights that sum to 2^16 are below 2^24, so f32 computes them exactly, fused or not, in
//! any order. Later passes compute with 16-bit values in u32. Therefore the CPU at any SIMD level and every GPU give
//! the same bits.
//!
//! 16-bit samples have up to 8 fraction bits between passes. The error of a result, in units of the samples, is at most
//!
//! ```text
//! 1/2                      rounding of the last pass
//! + (passes - 1) 2^-(f+1)  rounding of the other passes, to f fraction bits
//! + E                      rounding of weights: 65535 * sum of max(0, product of w_i / 2^b - product of exact w_i)
//! ```
//! Gaussian: f = 4, and b is 22 to 28, more for longer windows. E < 0.38 for images and 0.46 for volumes, up to a
//! radius of 3 sigma. So the error is below 1 for images and at most 1.02 for volumes. f64 sums the products, below
//! 2^48, exactly in any order; shaders sum them in u32, in two parts of 10 bits. Box: E = 0; f is 8 for up to 256 taps, and one less
//! each time the number of taps doubles, so that sums fit u32.
//!
//! 16-bit samples with alpha or in linear light, and f32, are summed in f32 in a fixed order, with a single rounding
//! for each product and sum. 32-bit integers and f64 are summed in f64.

use super::{
    params::Blur,
    taps::{Method, Taps},
};

/// The format of samples before, between and after passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassFormat {
    /// u8.
    U8,
    /// u16: 16-bit samples, or 8-bit ones with fraction bits between two passes.
    U16,
    /// u32 below 2^24: 8-bit colours times alpha or in linear light, or 16-bit samples with fraction bits between two
    /// passes.
    U24,
    /// f32.
    F32,
    /// f64: 32-bit integers and f64. Only on the CPU, since WGSL has no f64.
    F64,
}

/// The arithmetic of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// f32 holding integers below 2^24: exact.
    ExactF32,
    /// u32: exact.
    U32,
    /// Integers below 2^39, sums of samples below 2^24: exact.
    U39,
    /// Integers below 2^48, of samples below 2^24 and weights that sum to 2^24: exact.
    U48,
    /// Integers below 2^48, of samples below 2^20 and weights whose sum is at most 2^28 and of which any 16
    /// consecutive ones sum to at most 2^22: exact.
    U20U28,
    /// f32 or f64, with a single rounding for each product and sum.
    Float,
}

/// The rule by which a pass rounds a sum to a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// floor((sum + 2^(shift-1)) / 2^shift); the sum itself with shift 0.
    Shift(u32),
    /// floor((sum * 2^up + divisor / 2) / divisor).
    Divide {
        /// Bits shifted out by earlier passes, plus additional fraction bits of the result.
        up: u32,
        /// Number of taps of this pass, times those of the passes before that only shifted.
        divisor: u32,
    },
    /// The sum itself.
    None,
}

impl Rounding {
    /// Division by `taps` of a sum with `down` fraction bits, for a result with `up` fraction bits.
    fn divide(taps: u64, up: u32, down: u32) -> Self {
        let common = up.min(down);
        Self::Divide { up: up - common, divisor: (taps << (down - common)) as u32 }
    }

    /// Rounds a sum of integers.
    pub fn apply(self, sum: u64) -> u64 {
        match self {
            Self::Shift(shift) => (sum + (1 << shift >> 1)) >> shift,
            Self::Divide { up, divisor } => {
                ((sum << up) + u64::from(divisor) / 2) / u64::from(divisor)
            }
            Self::None => sum,
        }
    }
}

/// One pass along one axis.
#[derive(Clone, Debug)]
pub struct Pass {
    /// 0 for x, 1 for y, 2 for z.
    pub axis: usize,
    /// Radius and standard deviation.
    pub taps: Taps,
    /// Format of the input.
    pub from: PassFormat,
    /// Format of the results.
    pub to: PassFormat,
    /// Numbers that are multiplied and added.
    pub arithmetic: Arithmetic,
    /// Rounding of the sums.
    pub rounding: Rounding,
    /// Weights of taps 0 to radius; empty for [`Arithmetic::Float`] and where all are 1.
    pub integer_weights: Vec<u32>,
    /// Weights of taps 0 to radius for [`Arithmetic::Float`]; f32 values for [`PassFormat::F32`]. Empty for other
    /// arithmetic.
    pub float_weights: Vec<f64>,
    /// Whether the taps before the centre have the negated weights of those after it; for [`Arithmetic::Float`].
    pub is_odd: bool,
    /// The value outside for each channel, with [`Edge::Constant`](super::Edge::Constant), in units of the input.
    pub fill: [f64; 4],
}

impl Pass {
    /// A pass without weights.
    fn new(
        axis: usize,
        taps: Taps,
        [from, to]: [PassFormat; 2],
        arithmetic: Arithmetic,
        rounding: Rounding,
        fill: [f64; 4],
    ) -> Self {
        Self {
            axis,
            taps,
            from,
            to,
            arithmetic,
            rounding,
            integer_weights: Vec::new(),
            float_weights: Vec::new(),
            is_odd: false,
            fill,
        }
    }

    /// A pass over floats with the weights of taps 0 (the centre) to the radius.
    pub(super) fn weighted(
        axis: usize,
        format: PassFormat,
        weights: Vec<f64>,
        is_odd: bool,
    ) -> Self {
        let taps = Taps { sigma: 1.0, radius: weights.len() - 1, is_even: false };
        let pass = Self::new(axis, taps, [format; 2], Arithmetic::Float, Rounding::None, [0.0; 4]);
        Self { float_weights: weights, is_odd, ..pass }
    }

    /// A pass of exact sums, which are below 2^32.
    pub(super) fn exact_sums(axis: usize, radius: usize, formats: [PassFormat; 2]) -> Self {
        let taps = Taps::box_filter(radius);
        Self::new(axis, taps, formats, Arithmetic::U32, Rounding::Shift(0), [0.0; 4])
    }

    /// Whether the samples are floats.
    pub fn is_float(&self) -> bool {
        self.arithmetic == Arithmetic::Float
    }

    /// Whether this is a box filter of floats whose radius is so large that sums of blocks cost less than the sum of
    /// all taps. Only the CPU computes these, in f64.
    pub fn is_long_float_box(&self) -> bool {
        let is_long = self.taps.radius >= LONG_FLOAT_BOX && !self.taps.is_even;
        self.is_float() && self.taps.sigma == 0.0 && is_long
    }
}

/// See [`Pass::is_long_float_box`].
const LONG_FLOAT_BOX: usize = 32;
/// From this radius on, Gaussian weights of 16 bits are too coarse.
const LONG_RADIUS: usize = 192;
/// Shaders divide by numbers below this.
const DIVISOR_LIMIT: u64 = 1 << 28;
/// Maximum number of fraction bits of a box filter: between two iterations for 8 bits, between any two passes for 16
/// bits.
const BOX_FRACTION: u32 = 8;
/// Fraction bits between two passes of a Gaussian of 16-bit samples.
const FRACTION_U16: u32 = 4;

impl Blur {
    /// The passes over samples of `format`, in order; none for the identity. `fill` is the value outside for each
    /// channel, with [`Edge::Constant`](super::Edge::Constant), in units of the samples.
    pub fn plan(&self, format: PassFormat, fill: [f64; 4]) -> Vec<Pass> {
        let mut axes: Vec<usize> = (0..3).filter(|&axis| self.axes[axis].radius > 0).collect();
        if (format, self.method) == (PassFormat::U8, Method::Box) {
            // Sliding sums along y and z read each sample twice, so they come first, while samples are u8. Wider
            // samples begin with x: the sums along x of 16-bit samples take little memory, and are still in the cache
            // for y.
            axes.reverse();
        }
        match (format, self.method) {
            (PassFormat::U8, Method::Gaussian) => self.gaussian_u8(&axes, fill),
            (PassFormat::U8, Method::Box) => self.box_u8(&axes, fill),
            (PassFormat::U16, Method::Gaussian) => self.gaussian_u16(&axes, fill),
            (PassFormat::U16, Method::Box) => self.box_u16(&axes, fill),
            _ => (0..self.iterations)
                .flat_map(|_| &axes)
                .map(|&axis| self.wide(format, axis, fill))
                .collect(),
        }
    }

    /// A pass over samples wider than u16, whose results have the same format.
    fn wide(&self, format: PassFormat, axis: usize, fill: [f64; 4]) -> Pass {
        let taps = self.axes[axis];
        let is_float = matches!(format, PassFormat::F32 | PassFormat::F64);
        let (arithmetic, rounding) = match self.method {
            _ if is_float => (Arithmetic::Float, Rounding::None),
            Method::Box => {
                // Sums of up to 256 samples below 2^24 fit u32.
                let is_short = taps.count() <= 256;
                let arithmetic = if is_short { Arithmetic::U32 } else { Arithmetic::U39 };
                (arithmetic, Rounding::divide(taps.count() as u64, 0, 0))
            }
            Method::Gaussian => (Arithmetic::U48, Rounding::Shift(24)),
        };
        let mut pass = Pass::new(axis, taps, [format; 2], arithmetic, rounding, fill);
        if is_float {
            pass.float_weights = taps.half_weights(self.method);
        } else if self.method == Method::Gaussian {
            pass.integer_weights = taps.integer_half_weights(Method::Gaussian, 24);
        }
        if format == PassFormat::F32 {
            let weights = &mut pass.float_weights;
            weights.iter_mut().for_each(|weight| *weight = f64::from(*weight as f32));
            // Makes the sum of the weights as close to 1 as f32 allows.
            let others: f64 = weights[1..].iter().sum();
            let missing = if taps.is_even { weights[taps.radius] } else { 0.0 };
            weights[0] = f64::from((1.0 - 2.0 * others + missing) as f32);
        }
        pass
    }

    /// Passes of a Gaussian from u8 to u8, with u16 and fraction bits in between.
    fn gaussian_u8(&self, axes: &[usize], fill: [f64; 4]) -> Vec<Pass> {
        let long = axes.iter().any(|&axis| self.axes[axis].radius >= LONG_RADIUS);
        // 7 fraction bits: shaders add two such values within 16 bits.
        let (fraction, first_bits, later_bits) = if long { (6, 24, 18) } else { (7, 16, 16) };
        let formats = [PassFormat::U8, PassFormat::U16];
        self.with_fraction(axes, fill, fraction, formats, |taps, is_first, [before, after]| {
            let bits = if is_first { first_bits } else { later_bits };
            let exact = is_first && !long;
            let arithmetic = if exact { Arithmetic::ExactF32 } else { Arithmetic::U32 };
            let weights = taps.integer_half_weights(Method::Gaussian, bits);
            (arithmetic, Rounding::Shift(bits + before - after), weights)
        })
    }

    /// Passes of a Gaussian from u16 to u16, with fraction bits in between.
    fn gaussian_u16(&self, axes: &[usize], fill: [f64; 4]) -> Vec<Pass> {
        let formats = [PassFormat::U16, PassFormat::U24];
        self.with_fraction(axes, fill, FRACTION_U16, formats, |taps, _, [before, after]| {
            let bits = taps.fine_bits();
            let weights = taps.integer_half_weights(Method::Gaussian, bits);
            (Arithmetic::U20U28, Rounding::Shift(bits + before - after), weights)
        })
    }

    /// Passes of a box filter from u16 to u16, with fraction bits in between.
    fn box_u16(&self, axes: &[usize], fill: [f64; 4]) -> Vec<Pass> {
        // 2^(16 + fraction) times the taps is 2^32 at most.
        let taps = axes.iter().map(|&axis| self.axes[axis].count() as u32).max().unwrap_or(1);
        let fraction = (16 - taps.next_power_of_two().ilog2()).min(BOX_FRACTION);
        let formats = [PassFormat::U16, PassFormat::U24];
        self.with_fraction(axes, fill, fraction, formats, |taps, _, [before, after]| {
            let rounding = Rounding::divide(taps.count() as u64, after, before);
            (Arithmetic::U32, rounding, Vec::new())
        })
    }

    /// Passes that read and write the first of two formats, with values of the second format and `fraction` fraction
    /// bits in between. `sums` gets the taps of a pass, whether it is the first, and the fraction bits before and after
    /// it, and returns arithmetic, rounding and weights.
    fn with_fraction(
        &self,
        axes: &[usize],
        fill: [f64; 4],
        fraction: u32,
        [outer, inner]: [PassFormat; 2],
        sums: impl Fn(Taps, bool, [u32; 2]) -> (Arithmetic, Rounding, Vec<u32>),
    ) -> Vec<Pass> {
        let count = axes.len() * self.iterations;
        let pass = |number: usize| {
            let axis = axes[number % axes.len()];
            let taps = self.axes[axis];
            let ends = [number == 0, number + 1 == count];
            let [before, after] = ends.map(|end| if end { 0 } else { fraction });
            let [from, to] = ends.map(|end| if end { outer } else { inner });
            let (arithmetic, rounding, integer_weights) = sums(taps, ends[0], [before, after]);
            let fill = fill.map(|value| value * f64::from(1 << before));
            let pass = Pass::new(axis, taps, [from, to], arithmetic, rounding, fill);
            Pass { integer_weights, ..pass }
        };
        (0..count).map(pass).collect()
    }

    /// Passes of a box filter from u8 to u8, with u16 in between.
    fn box_u8(&self, axes: &[usize], fill: [f64; 4]) -> Vec<Pass> {
        let mut passes = Vec::new();
        for iteration in 1..=self.iterations {
            let before = if iteration == 1 { 0 } else { BOX_FRACTION };
            let after = if iteration == self.iterations { 0 } else { BOX_FRACTION };
            let mut fill = fill.map(|value| value * f64::from(1 << before));
            for (&axis, rounding) in axes.iter().zip(self.box_roundings(axes, before, after)) {
                let taps = self.axes[axis];
                let formats = [PassFormat::U16; 2];
                passes.push(Pass::new(axis, taps, formats, Arithmetic::U32, rounding, fill));
                // The constant outside is blurred as well.
                fill = fill.map(|v| rounding.apply(v as u64 * taps.count() as u64) as f64);
            }
        }
        if let [first, ..] = &mut passes[..] {
            first.from = PassFormat::U8;
        }
        if let [.., last] = &mut passes[..] {
            last.to = PassFormat::U8;
        }
        passes
    }

    /// Rounding of the passes of one iteration of a box filter of u8, from values with `before` fraction bits to values
    /// with `after`.
    ///
    /// All passes but the last only shift sums so that they fit 16 bits, and the last divides by the product of all
    /// numbers of taps. If shaders cannot divide by that product, each pass divides by its own number of taps.
    fn box_roundings(&self, axes: &[usize], before: u32, after: u32) -> Vec<Rounding> {
        let taps = |&axis: &usize| self.axes[axis].count() as u64;
        let product: u64 = axes.iter().map(taps).product();
        let (mut shifted, mut largest) = (0, 255u64 << before);
        let rounding = |(i, axis): (usize, &usize)| {
            let last = i + 1 == axes.len();
            if product >= DIVISOR_LIMIT {
                let before = if i == 0 { before } else { BOX_FRACTION };
                let after = if last { after } else { BOX_FRACTION };
                return Rounding::divide(taps(axis), after, before);
            }
            if last {
                return Rounding::divide(product, shifted + after, before);
            }
            largest *= taps(axis);
            let fits = |&shift: &u32| Rounding::Shift(shift).apply(largest) <= u64::from(u16::MAX);
            let shift = (0..64).find(fits).expect("0 fits");
            largest = Rounding::Shift(shift).apply(largest);
            shifted += shift;
            Rounding::Shift(shift)
        };
        axes.iter().enumerate().map(rounding).collect()
    }

    /// Number of samples before and after a position along `axis` that the result there depends on, after all
    /// iterations.
    pub fn halo(&self, axis: usize) -> usize {
        self.axes[axis].radius * self.iterations
    }
}
