//! Luminance of red, green and blue: weighted sums, in integers where the samples are integers.

use std::borrow::Cow;

use serde::Serialize;

use crate::{
    data::{division::Ratio, samples::Samples, srgb},
    for_samples,
    util::{error::Result, memory::raise, parallel},
};

/// Weights of red, green and blue in luminance, and whether light is decoded first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Luma {
    /// 0.2126 R + 0.7152 G + 0.0722 B of the stored values (ITU-R BT.709).
    #[default]
    Bt709,
    /// 0.299 R + 0.587 G + 0.114 B of the stored values (ITU-R BT.601).
    Bt601,
    /// The BT.709 sum in linear light: stored values are decoded by the sRGB curve (IEC 61966-2-1).
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

    /// For each sample value from 0 to `max` its light as an integer to be weighted, and how many units of light make
    /// one step of a sample. [`Luma::Linear`] has units fine enough for the curve; otherwise light is the sample
    /// itself.
    pub(super) fn light(self, max: u32) -> (Vec<u32>, u32) {
        match self {
            Self::Bt709 | Self::Bt601 => ((0..=max).collect(), 1),
            Self::Linear => {
                // The weights' sum of 5000 times the greatest light stays below 2^30.
                let fine = 200_000 / max;
                let full = f64::from(max * fine);
                let decode = |value| {
                    (srgb::to_linear(f64::from(value) / f64::from(max)) * full).round() as u32
                };
                ((0..=max).map(decode).collect(), fine)
            }
        }
    }

    /// The luminance of integer pixels whose greatest sample is `max`, in integer units, and how many of
    /// those one sample step has.
    pub(super) fn integer<T: Copy + Into<u32>>(self, max: u32) -> (impl Fn(&[T]) -> u32, f64) {
        let ([red, green, blue], sum) = self.weights();
        let (light, fine) = self.light(max);
        let value = move |pixel: &[T]| {
            // Without a curve the table would only repeat the samples, out of a slower cache.
            let light = |sample: T| match fine > 1 {
                true => light[sample.into() as usize],
                false => sample.into(),
            };
            red * light(pixel[0]) + green * light(pixel[1]) + blue * light(pixel[2])
        };
        (value, f64::from(sum) * f64::from(fine))
    }

    /// The luminance of integer pixels in units of the samples.
    pub(super) fn in_samples<T: Copy + Into<u32>>(self, max: u32) -> impl Fn(&[T]) -> f64 {
        let (value, unit) = self.integer(max);
        move |pixel| f64::from(value(pixel)) / unit
    }

    /// The luminance of a float pixel: summed in f64, red first, and rounded once.
    pub(super) fn float<T: Copy + Into<f64>>(self, pixel: &[T]) -> f32 {
        let (weights, sum) = self.weights();
        let [red, green, blue] = weights.map(|weight| f64::from(weight) / f64::from(sum));
        let [r, g, b] = [pixel[0], pixel[1], pixel[2]].map(Into::into);
        (red * r + green * g + blue * b) as f32
    }

    /// [`Luma::float`] of every pixel.
    pub(super) fn float_plane(self, samples: &Samples, channels: usize) -> Vec<f32> {
        for_samples!(samples, samples => {
            let pixel = |at: usize| self.float(&samples[at * channels..][..channels]);
            parallel::generated(samples.len() / channels, pixel).unwrap_or_else(raise)
        })
    }
}

impl Luma {
    /// The luminance of each pixel: of u8 and u16 samples rounded to the nearest sample, of other types as f32. Pixels of
    /// one or two channels have that of the first one.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn grey(self, samples: &Samples, channels: usize) -> Result<Cow<'_, Samples>> {
        fn plane<T: Copy + Send + Sync>(
            samples: &[T],
            channels: usize,
            value: impl Fn(&[T]) -> T + Sync,
        ) -> Result<Vec<T>> {
            let pixel = |at: usize| value(&samples[at * channels..][..channels]);
            parallel::generated(samples.len() / channels, pixel)
        }
        if channels == 1 {
            return Ok(Cow::Borrowed(samples));
        }
        if channels == 2 {
            return Ok(Cow::Owned(
                for_samples!(samples, samples => plane(samples, 2, |pixel| pixel[0])?.into()),
            ));
        }
        Ok(Cow::Owned(match samples {
            Samples::U8(samples) => {
                let luminance = self.in_samples(255);
                Samples::U8(plane(samples, channels, |pixel| (luminance(pixel) + 0.5) as u8)?)
            }
            Samples::U16(samples) => {
                let luminance = self.in_samples(65535);
                Samples::U16(plane(samples, channels, |pixel| (luminance(pixel) + 0.5) as u16)?)
            }
            other => Samples::F32(self.float_plane(other, channels)),
        }))
    }
}

/// Bins of equal width over 0..=255 for the luminance of u8 pixels, by one exact division:
///
/// ```text
/// bin = floor(weights . (red, green, blue) * times / divisor),   all of it below 2^32
/// ```
/// Full white alone gets bin `count`, one too many: it belongs to the last bin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LumaBins {
    /// Below 2^16.
    pub weights: [u32; 3],
    /// Bins a unit of the weighted sum.
    pub ratio: Ratio,
    pub count: usize,
}

impl LumaBins {
    /// `count` bins, 256 at most.
    pub fn new(luma: Luma, count: usize) -> Self {
        let (weights, sum) = luma.weights();
        Self { weights, ratio: Ratio::new(count as u32, sum * 255), count }
    }
}
