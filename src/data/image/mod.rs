//! An image in memory, and conversions of its samples between the conventions of file formats.

mod metadata;
mod orientation;

pub use self::{
    metadata::{AncillaryData, Density, DensityUnit, Metadata, StackDescription, Text},
    orientation::Orientation,
};
use super::{
    dtype::Dtype,
    samples::Samples,
    srgb::{from_linear, to_linear},
};
use crate::{
    for_samples,
    util::{
        error::Result,
        memory,
        parallel::{self, Parallel},
    },
};

/// An image in memory: rows from the top, pixels from the left, channels interleaved.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// Pixels per row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Samples per pixel: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA.
    pub channels: usize,
    /// `width * height * channels` samples: u8 and u16, or f32 and f64 with 1 for full intensity. Samples of i8, i16,
    /// u32 and i32 are numbers without a full intensity; such an image has no alpha.
    pub samples: Samples,
    /// Whether samples are linear light as f32 with premultiplied alpha (the convention of OpenEXR). Otherwise alpha is
    /// straight, and u8 and u16 samples are encoded with the sRGB transfer function.
    pub is_linear: bool,
    /// Metadata of the file.
    pub metadata: Metadata,
}

/// Builds [`Samples`] of the same type from the vector of an image's samples.
macro_rules! map_samples {
    ($samples:expr, $values:ident => $body:expr) => {
        for_samples!($samples, $values => Samples::from($body))
    };
}

impl Image {
    /// Whether the last channel is alpha.
    pub fn has_alpha(&self) -> bool {
        matches!(self.channels, 2 | 4)
    }

    /// Whether all pixels are fully opaque. Samples without a full intensity are not.
    pub fn is_opaque(&self) -> bool {
        fn full<T: PartialEq>(values: &[T], channels: usize, max: T) -> bool {
            values.iter().skip(channels - 1).step_by(channels).all(|alpha| *alpha == max)
        }
        !self.has_alpha()
            || match &self.samples {
                Samples::U8(values) => full(values, self.channels, u8::MAX),
                Samples::U16(values) => full(values, self.channels, u16::MAX),
                Samples::F32(values) => full(values, self.channels, 1.0),
                Samples::F64(values) => full(values, self.channels, 1.0),
                _ => false,
            }
    }

    /// Channels without alpha.
    fn colours(&self) -> usize {
        self.channels - usize::from(self.has_alpha())
    }

    /// Copies the image; an error if memory runs short.
    pub fn copy(&self) -> Result<Self> {
        Ok(self.with_samples(self.samples.copy()?))
    }

    fn with_samples(&self, samples: Samples) -> Self {
        Self { samples, metadata: self.metadata.clone(), ..*self }
    }

    /// Converts to linear light with premultiplied alpha. u8 and u16 samples are decoded from sRGB; the other types are
    /// linear already.
    pub fn to_linear(&self) -> Result<Self> {
        let (channels, colours) = (self.channels, self.colours());
        let curve = |max: u16| {
            let light = |v: usize| to_linear(v as f64 / f64::from(max)) as f32;
            parallel::generated(usize::from(max) + 1, light)
        };
        let mut light: Vec<f32> = match &self.samples {
            Samples::U8(values) => {
                let curve = curve(255)?;
                parallel::mapped(values, |&v| curve[usize::from(v)])?
            }
            Samples::U16(values) => {
                let curve = curve(65535)?;
                parallel::mapped(values, |&v| curve[usize::from(v)])?
            }
            other => as_floats(other)?,
        };
        if self.has_alpha() {
            each_pixel(&mut light, channels, |at, pixel| {
                let at = at * channels + colours;
                // Alpha is linear in every format.
                pixel[colours] = match &self.samples {
                    Samples::U8(values) => f32::from(values[at]) / 255.0,
                    Samples::U16(values) => f32::from(values[at]) / 65535.0,
                    _ => pixel[colours],
                };
                let alpha = pixel[colours];
                pixel[..colours].iter_mut().for_each(|v| *v *= alpha);
            });
        }
        Ok(Self { is_linear: true, ..self.with_samples(Samples::F32(light)) })
    }

    /// Converts a linear image to straight alpha: f32 samples stay linear, u8 and u16 samples are encoded as sRGB.
    ///
    /// # Panics
    /// When the image is not linear.
    pub fn to_straight(&self, dtype: Dtype) -> Result<Self> {
        let (channels, colours) = (self.channels, self.colours());
        let Samples::F32(light) = &self.samples else { unreachable!("linear light is f32") };
        let mut straight = memory::copied(light)?;
        each_pixel(&mut straight, channels, |_, pixel| {
            // Colours of alpha 0 (light without coverage, such as a flame) are kept.
            let alpha = pixel.get(colours).copied().filter(|&alpha| alpha > 0.0).unwrap_or(1.0);
            for v in &mut pixel[..colours] {
                *v /= alpha;
                if dtype != Dtype::F32 {
                    *v = from_linear(f64::from(*v).clamp(0.0, 1.0)) as f32;
                }
            }
        });
        let straight = Samples::F32(straight);
        let samples = if dtype == Dtype::F32 { straight } else { narrowed(&straight, dtype)? };
        Ok(Self { is_linear: false, ..self.with_samples(samples) })
    }

    /// Converts to a type with fewer bits. Full intensity stays full intensity; types without a full intensity keep
    /// their values, rounded and clamped to the range of `dtype`.
    pub fn narrowed(&self, dtype: Dtype) -> Result<Self> {
        Ok(self.with_samples(narrowed(&self.samples, dtype)?))
    }

    /// Converts to f32. Full intensity becomes 1; types without a full intensity keep their values.
    pub fn to_floats(&self) -> Result<Self> {
        let floats = match &self.samples {
            Samples::U8(values) => parallel::mapped(values, |&v| f32::from(v) / 255.0)?,
            Samples::U16(values) => parallel::mapped(values, |&v| f32::from(v) / 65_535.0)?,
            other => as_floats(other)?,
        };
        Ok(self.with_samples(Samples::F32(floats)))
    }

    /// Drops the alpha channel.
    pub fn without_alpha(&self) -> Result<Self> {
        fn cut<T: Copy>(v: &[T], from: usize, to: usize) -> Result<Vec<T>> {
            let mut colours = memory::room(v.len() / from * to)?;
            v.chunks_exact(from).for_each(|pixel| colours.extend_from_slice(&pixel[..to]));
            Ok(colours)
        }
        let colours = self.colours();
        let samples = map_samples!(&self.samples, v => cut(v, self.channels, colours)?);
        Ok(Self { channels: colours, ..self.with_samples(samples) })
    }

    /// Converts grey and alpha to RGBA.
    pub fn to_rgba(&self) -> Result<Self> {
        fn spread<T: Copy>(v: &[T]) -> Result<Vec<T>> {
            let mut wide = memory::room(2 * v.len())?;
            v.as_chunks().0.iter().for_each(|&[g, a]| wide.extend_from_slice(&[g, g, g, a]));
            Ok(wide)
        }
        let samples = map_samples!(&self.samples, v => spread(v)?);
        Ok(Self { channels: 4, ..self.with_samples(samples) })
    }

    /// Rotates and mirrors an image that is stored in `orientation` to its upright position.
    pub fn upright(self, orientation: Orientation) -> Result<Self> {
        if orientation == Orientation::default() {
            return Ok(self);
        }
        let (size, channels) = ([self.width, self.height], self.channels);
        let samples = map_samples!(&self.samples, v => match channels {
            1 => orientation.apply::<_, 1>(v, size)?,
            2 => orientation.apply::<_, 2>(v, size)?,
            3 => orientation.apply::<_, 3>(v, size)?,
            _ => orientation.apply::<_, 4>(v, size)?,
        });
        let [width, height] = orientation.size(size);
        let mut metadata = self.metadata;
        metadata.swap_density(orientation.transposed);
        Ok(Self { width, height, samples, metadata, ..self })
    }
}

/// Values of samples as f32.
fn as_floats(samples: &Samples) -> Result<Vec<f32>> {
    #[allow(
        clippy::unnecessary_cast,
        clippy::cast_lossless,
        reason = "one of the types is f32 itself"
    )]
    let floats = for_samples!(samples, values => parallel::mapped(values, |&v| v as f32)?);
    Ok(floats)
}

fn narrowed(samples: &Samples, dtype: Dtype) -> Result<Samples> {
    Ok(match (samples, dtype) {
        (Samples::F64(_), _) => {
            let floats = Samples::F32(as_floats(samples)?);
            if dtype == Dtype::F32 { floats } else { narrowed(&floats, dtype)? }
        }
        (Samples::I8(_) | Samples::I16(_) | Samples::U32(_) | Samples::I32(_), _) => {
            samples.converted(dtype)?
        }
        (Samples::U16(v), _) => {
            let narrow = |&v: &u16| ((u32::from(v) + 128) / 257) as u8;
            Samples::U8(parallel::mapped(v, narrow)?)
        }
        (Samples::F32(v), Dtype::U16) => {
            let narrow = |v: &f32| (v.clamp(0.0, 1.0) * 65535.0).round() as u16;
            Samples::U16(parallel::mapped(v, narrow)?)
        }
        (Samples::F32(v), _) => {
            let narrow = |v: &f32| (v.clamp(0.0, 1.0) * 255.0).round() as u8;
            Samples::U8(parallel::mapped(v, narrow)?)
        }
        (other, _) => other.copy()?,
    })
}

/// Calls `change` with the number and the samples of each pixel.
fn each_pixel(samples: &mut [f32], channels: usize, change: impl Fn(usize, &mut [f32]) + Sync) {
    const PIXELS: usize = 1 << 14;
    samples.chunks_mut(PIXELS * channels).enumerate().par_each(|(number, samples)| {
        for (pixel, at) in samples.chunks_exact_mut(channels).zip(number * PIXELS..) {
            change(at, pixel);
        }
    });
}
