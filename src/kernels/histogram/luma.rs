//! Luminance: weighted sums of red, green and blue. Those of integers are exact.

use std::borrow::Cow;

use serde::Serialize;

use crate::{
    data::{division::Ratio, dtype::Dtype, number::Number, samples::Samples, srgb},
    for_samples,
    gpu::Shader,
    util::{error::Result, parallel},
};

/// Weights of red, green and blue, and whether samples are converted to linear light first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Luma {
    /// 0.2126 R + 0.7152 G + 0.0722 B of the stored values (ITU-R BT.709).
    #[default]
    Bt709,
    /// 0.299 R + 0.587 G + 0.114 B of the stored values (ITU-R BT.601).
    Bt601,
    /// The BT.709 sum in linear light: unsigned values of 8 and 16 bits are converted by the sRGB curve
    /// (IEC 61966-2-1); values of other types are linear.
    Linear,
}

impl Luma {
    /// Integer weights of red, green and blue, and their sum.
    pub fn weights(self) -> ([u32; 3], u32) {
        match self {
            Self::Bt709 | Self::Linear => ([1063, 3576, 361], 5000),
            Self::Bt601 => ([299, 587, 114], 1000),
        }
    }

    /// `shader` with the integer weights as its constants.
    pub fn weighted(self, shader: &Shader) -> Shader {
        let [red, green, blue] = self.weights().0;
        shader.with(&[("RED", red), ("GREEN", green), ("BLUE", blue)])
    }

    /// For each value of an 8-bit or 16-bit unsigned sample its linear light as an integer, and the number of units of
    /// light in a step of a sample. `None` if light is the sample itself.
    pub(super) fn light(self, dtype: Dtype) -> Option<(Vec<u32>, u32)> {
        let max = match dtype {
            Dtype::U8 => 255,
            Dtype::U16 => 65535,
            _ => return None,
        };
        // 5000, the sum of the weights, times the maximum light is below 2^30.
        let fine = 200_000 / max;
        let full = f64::from(max * fine);
        let decode = |value| (srgb::to_linear(f64::from(value) / f64::from(max)) * full).round();
        (self == Self::Linear)
            .then(|| ((0..=max).map(|value| decode(value) as u32).collect(), fine))
    }

    /// The luminance of integer pixels in integer units, and the number of these units in a step of a sample. All sums
    /// are below 2^53, so f64 holds them exactly.
    pub(super) fn integer<T: Number + Into<f64>>(self) -> (impl Fn(&[T]) -> f64, f64) {
        let (weights, sum) = self.weights();
        let weights = weights.map(f64::from);
        let (light, fine) = self.light(T::DTYPE).unwrap_or_default();
        let value = move |pixel: &[T]| {
            let light =
                |sample: f64| if light.is_empty() { sample } else { light[sample as usize].into() };
            weighted_sum(weights, [pixel[0], pixel[1], pixel[2]].map(|sample| light(sample.into())))
        };
        (value, f64::from(sum) * f64::from(fine.max(1)))
    }

    /// The luminance of integer pixels, rounded to a sample, halves up.
    pub(super) fn rounded<T: Number + Into<f64>>(self) -> impl Fn(&[T]) -> T {
        let (value, unit) = self.integer::<T>();
        // The fractions are multiples of 1 / unit, so the quotient does not round to another integer.
        move |pixel: &[T]| T::from_f64(((value(pixel) + unit / 2.0) / unit).floor())
    }

    /// The luminance of a float pixel: summed in f64, in the order red, green, blue, divided once, and rounded to the
    /// type. If all three are equal, it is their value.
    pub(super) fn float<T: Number + Into<f64>>(self, pixel: &[T]) -> T {
        /// A power of two by which the weights are divided, so that the largest numbers do not overflow.
        const SCALE: f64 = 8192.0;
        if pixel[0] == pixel[1] && pixel[1] == pixel[2] {
            return pixel[0];
        }
        let (weights, sum) = self.weights();
        let weights = weights.map(|weight| f64::from(weight) / SCALE);
        let rgb = [pixel[0], pixel[1], pixel[2]].map(Into::into);
        T::from_f64(weighted_sum(weights, rgb) / (f64::from(sum) / SCALE))
    }

    /// The luminance of each pixel, as a sample of the same type: by [`Luma::rounded`] for integers, by
    /// [`Luma::float`] for floats. For pixels of one or two channels it is the first channel.
    pub fn grey(self, samples: &Samples, channels: usize) -> Result<Cow<'_, Samples>> {
        if channels == 1 {
            return Ok(Cow::Borrowed(samples));
        }
        Ok(Cow::Owned(for_samples!(samples, samples => self.plane(samples, channels)?.into())))
    }

    fn plane<T: Number + Into<f64>>(self, samples: &[T], channels: usize) -> Result<Vec<T>> {
        let pixels = samples.len() / channels;
        let pixel = |at: usize| &samples[at * channels..][..channels];
        if channels == 2 {
            parallel::generated(pixels, |at| pixel(at)[0])
        } else if T::DTYPE.is_float() {
            parallel::generated(pixels, |at| self.float(pixel(at)))
        } else {
            let luminance = self.rounded::<T>();
            parallel::generated(pixels, |at| luminance(pixel(at)))
        }
    }
}

fn weighted_sum([red, green, blue]: [f64; 3], [r, g, b]: [f64; 3]) -> f64 {
    red * r + green * g + blue * b
}

/// Bins of equal width over 0..=255 for the luminance of u8 pixels, by one exact division:
///
/// ```text
/// bin = floor(weights . (red, green, blue) * times / divisor),   all of it below 2^32
/// ```
/// Full white gets bin `count`, which does not exist: it belongs to the last bin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LumaBins {
    /// Below 2^16.
    pub weights: [u32; 3],
    /// Bins per unit of the weighted sum.
    pub ratio: Ratio,
    pub count: usize,
}

impl LumaBins {
    /// `count` bins, at most 256.
    pub fn new(luma: Luma, count: usize) -> Self {
        let (weights, sum) = luma.weights();
        Self { weights, ratio: Ratio::new(count as u32, sum * 255), count }
    }
}
