//! Luminance: weighted sums of red, green and blue, in integers if the samples are integers.

use std::borrow::Cow;

use serde::Serialize;

use crate::{
    data::{division::Ratio, samples::Samples, srgb},
    for_samples,
    util::{error::Result, memory::raise, parallel},
};

/// Weights of red, green and blue, and whether samples are converted to linear light first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Luma {
    /// 0.2126 R + 0.7152 G + 0.0722 B of the stored values (ITU-R BT.709).
    #[default]
    Bt709,
    /// 0.299 R + 0.587 G + 0.114 B of the stored values (ITU-R BT.601).
    Bt601,
    /// The BT.709 sum in linear light: stored values are converted by the sRGB curve (IEC 61966-2-1).
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

    /// For each sample value from 0 to `max` its light as an integer, and the number of units of light in a step of a
    /// sample. [`Luma::Linear`] has units that are fine enough for the curve. Otherwise light is the sample itself.
    pub(super) fn light(self, max: u32) -> (Vec<u32>, u32) {
        match self {
            Self::Bt709 | Self::Bt601 => ((0..=max).collect(), 1),
            Self::Linear => {
                // 5000, the sum of the weights, times the maximum light is below 2^30.
                let fine = 200_000 / max;
                let full = f64::from(max * fine);
                let decode = |value| {
                    (srgb::to_linear(f64::from(value) / f64::from(max)) * full).round() as u32
                };
                ((0..=max).map(decode).collect(), fine)
            }
        }
    }

    /// The luminance of integer pixels with samples up to `max`, in integer units, and the number of these units in a
    /// step of a sample.
    pub(super) fn integer<T: Copy + Into<u32>>(self, max: u32) -> (impl Fn(&[T]) -> u32, f64) {
        let ([red, green, blue], sum) = self.weights();
        let (light, fine) = self.light(max);
        let value = move |pixel: &[T]| {
            // Without a curve, light is the sample itself: reading it from the table would be slower.
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

    /// The luminance of a float pixel: summed in f64, in the order red, green, blue, and rounded once.
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

    /// The luminance of each pixel: rounded for u8 and u16 samples, f32 for other types. For pixels of one or two
    /// channels it is the first channel.
    ///
    /// # Errors
    /// If there is no memory for it.
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
