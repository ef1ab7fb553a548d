//! An image in memory, and conversions of its samples between the conventions of file formats.

use std::sync::Arc;

use super::{
    dtype::Dtype,
    samples::Samples,
    srgb::{from_linear, to_linear},
};
use crate::{
    error::Result,
    for_samples, memory,
    parallel::{self, Parallel},
};

/// An image in memory: rows from the top, pixels from the left, channels interleaved.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// Pixels a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Samples a pixel: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA.
    pub channels: usize,
    /// `width * height * channels` samples: u8, u16, or f32 and f64 with 1 for full intensity. Those of i8, i16, u32 and
    /// i32 are numbers without a full intensity, and have no alpha beside them.
    pub samples: Samples,
    /// Linear light as f32, colours premultiplied with alpha: OpenEXR's convention. All others hold
    /// straight alpha, and u8 and u16 on the sRGB curve.
    pub is_linear: bool,
    /// What the file holds besides samples.
    pub metadata: Metadata,
}

/// What a file says of its image besides the samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// The ICC profile: the colour space of the samples.
    pub icc: Option<Vec<u8>>,
    /// EXIF without orientation, beginning with its TIFF header.
    pub exif: Option<Vec<u8>>,
    /// XMP: the text of an XML packet (ISO 16684-1).
    pub xmp: Option<Vec<u8>>,
    /// IPTC's data sets (IIM 4.2), without what files put around them.
    pub iptc: Option<Vec<u8>>,
    /// How large pixels are.
    pub density: Option<Density>,
    /// Texts about the picture.
    pub texts: Vec<Text>,
    /// What a file of several pages says of all of them together.
    pub pages: Option<PagesText>,
    /// What only files of one format hold.
    pub parts: Vec<Part>,
}

/// A text about a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// What it is: `Description`, `Author` (PNG, third edition, 11.3.3.1), or any other word.
    pub keyword: String,
    /// The text.
    pub text: String,
}

/// What a file says of all its pages together, in the words of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagesText {
    /// The whole text.
    pub text: Arc<str>,
    /// The pages that it tells of, and the type of their samples.
    pub pages: usize,
    /// The type of their samples.
    pub dtype: Dtype,
    /// Whether it can be told of fewer pages; else it is true of all of them alone.
    pub is_divisible: bool,
    /// What is lost without it, in words.
    pub loss: Option<&'static str>,
}

impl PagesText {
    /// Whether it can be told of `count` pages of samples of type `dtype`.
    pub fn fits(&self, count: usize, dtype: Dtype) -> bool {
        self.is_divisible || (count, dtype) == (self.pages, self.dtype)
    }
}

/// What only files of one format hold, as they hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The format.
    pub format: &'static str,
    /// Its name there.
    pub name: String,
    /// Its bytes there.
    pub bytes: Vec<u8>,
    /// What is lost without it, in words.
    pub loss: Option<&'static str>,
}

/// How many pixels there are along a length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Density {
    /// Pixels across and down along one unit; more than 0.
    pub pixels: [f64; 2],
    /// The unit.
    pub unit: DensityUnit,
}

/// The length along which pixels are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DensityUnit {
    /// None: the two numbers tell the shape of pixels alone.
    Aspect,
    /// An inch.
    Inch,
    /// A centimetre.
    Centimetre,
}

impl Density {
    /// A density of finite numbers above 0.
    pub fn new(pixels: [f64; 2], unit: DensityUnit) -> Option<Self> {
        pixels.iter().all(|v| v.is_finite() && *v > 0.0).then_some(Self { pixels, unit })
    }

    /// Whether pixels are as wide as high.
    pub fn is_square(&self) -> bool {
        self.pixels[0] == self.pixels[1]
    }

    /// The same per `unit`; nothing where only one of both is a length.
    pub fn per(self, unit: DensityUnit) -> Option<[f64; 2]> {
        const CENTIMETRES: f64 = 2.54;
        match (self.unit, unit) {
            (DensityUnit::Inch, DensityUnit::Centimetre) => {
                Some(self.pixels.map(|pixels| pixels / CENTIMETRES))
            }
            (DensityUnit::Centimetre, DensityUnit::Inch) => {
                Some(self.pixels.map(|pixels| pixels * CENTIMETRES))
            }
            (own, unit) => (own == unit).then_some(self.pixels),
        }
    }
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

    /// Whether no pixel is transparent, not even in part.
    pub fn is_opaque(&self) -> bool {
        fn full<T: PartialEq>(values: &[T], channels: usize, most: T) -> bool {
            values.iter().skip(channels - 1).step_by(channels).all(|alpha| *alpha == most)
        }
        !self.has_alpha()
            || match &self.samples {
                Samples::U8(values) => full(values, self.channels, u8::MAX),
                Samples::U16(values) => full(values, self.channels, u16::MAX),
                Samples::F32(values) => full(values, self.channels, 1.0),
                Samples::F64(values) => full(values, self.channels, 1.0),
                other => unreachable!("no alpha is of {}", other.dtype()),
            }
    }

    /// Channels without alpha.
    fn colours(&self) -> usize {
        self.channels - usize::from(self.has_alpha())
    }

    /// A copy.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn copy(&self) -> Result<Self> {
        Ok(self.with_samples(self.samples.copy()?))
    }

    fn with_samples(&self, samples: Samples) -> Self {
        Self { samples, metadata: self.metadata.clone(), ..*self }
    }

    /// Linear light, premultiplied with alpha. u8 and u16 are on the sRGB curve, all others are linear light already.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn to_linear(&self) -> Result<Self> {
        let (channels, colours) = (self.channels, self.colours());
        let curve = |most: u16| {
            let light = |v: usize| to_linear(v as f64 / f64::from(most)) as f32;
            parallel::generated(usize::from(most) + 1, light)
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

    /// A linear image with straight alpha: as f32 still linear light, as integers on the sRGB curve.
    ///
    /// # Errors
    /// When there is no memory for it.
    ///
    /// # Panics
    /// When the image is not linear.
    pub fn to_straight(&self, dtype: Dtype) -> Result<Self> {
        let (channels, colours) = (self.channels, self.colours());
        let Samples::F32(light) = &self.samples else { unreachable!("linear light is f32") };
        let mut straight = memory::copied(light)?;
        each_pixel(&mut straight, channels, |_, pixel| {
            // Where alpha is 0 (light without cover, such as a flame) colours stay as they are.
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

    /// Samples of fewer bits, the full range mapped to the full range; those without a full intensity keep their values, or
    /// become the nearest that `dtype` holds.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn narrowed(&self, dtype: Dtype) -> Result<Self> {
        Ok(self.with_samples(narrowed(&self.samples, dtype)?))
    }

    /// Samples as f32, full intensity as 1; those without a full intensity keep their values.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn to_floats(&self) -> Result<Self> {
        let floats = match &self.samples {
            Samples::U8(values) => parallel::mapped(values, |&v| f32::from(v) / 255.0)?,
            Samples::U16(values) => parallel::mapped(values, |&v| f32::from(v) / 65_535.0)?,
            other => as_floats(other)?,
        };
        Ok(self.with_samples(Samples::F32(floats)))
    }

    /// The colours alone.
    ///
    /// # Errors
    /// When there is no memory for them.
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

    /// Grey with alpha as RGBA.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn to_rgba(&self) -> Result<Self> {
        fn spread<T: Copy>(v: &[T]) -> Result<Vec<T>> {
            let mut wide = memory::room(2 * v.len())?;
            v.as_chunks().0.iter().for_each(|&[g, a]| wide.extend_from_slice(&[g, g, g, a]));
            Ok(wide)
        }
        let samples = map_samples!(&self.samples, v => spread(v)?);
        Ok(Self { channels: 4, ..self.with_samples(samples) })
    }

    /// The image as it is to be seen, from one whose rows are stored in `orientation`.
    ///
    /// # Errors
    /// When there is no memory for it.
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
        if let Some(density) = metadata.density.as_mut().filter(|_| orientation.transposed) {
            density.pixels.reverse();
        }
        Ok(Self { width, height, samples, metadata, ..self })
    }
}

/// The values of samples as f32.
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

/// How a picture is stored: with `transposed`, its rows are columns to the eye; then stored columns,
/// and stored rows, are in reverse order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orientation {
    transposed: bool,
    reversed_x: bool,
    reversed_y: bool,
}

impl Orientation {
    /// From the value of EXIF's tag 274 (EXIF 2.32, 4.6.4).
    pub fn from_exif(value: u8) -> Option<Self> {
        let [transposed, reversed_x, reversed_y] = match value {
            1 => [false, false, false],
            2 => [false, true, false],
            3 => [false, true, true],
            4 => [false, false, true],
            5 => [true, false, false],
            6 => [true, false, true],
            7 => [true, true, true],
            8 => [true, true, false],
            _ => return None,
        };
        Some(Self { transposed, reversed_x, reversed_y })
    }

    /// Width and height to the eye of a picture stored with `size`.
    fn size(self, [width, height]: [usize; 2]) -> [usize; 2] {
        if self.transposed { [height, width] } else { [width, height] }
    }

    /// The samples, `N` a pixel, in the order of the upright picture.
    fn apply<T, const N: usize>(self, stored: &[T], size: [usize; 2]) -> Result<Vec<T>>
    where
        T: bytemuck::Pod + Send + Sync,
    {
        let [width, height] = size;
        let [columns, _] = self.size(size);
        let stored = stored.as_chunks::<N>().0;
        let mut upright = memory::zeros(stored.len() * N)?;
        upright.chunks_exact_mut(columns * N).enumerate().par_each(|(row, pixels)| {
            for (column, pixel) in pixels.as_chunks_mut::<N>().0.iter_mut().enumerate() {
                let [x, y] = if self.transposed { [row, column] } else { [column, row] };
                let x = if self.reversed_x { width - 1 - x } else { x };
                let y = if self.reversed_y { height - 1 - y } else { y };
                *pixel = stored[y * width + x];
            }
        });
        Ok(upright)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture of 3 x 2 pixels under every orientation, written out by hand.
    #[test]
    fn every_orientation_comes_upright() {
        let image = |width, height, samples: &[u8]| Image {
            width,
            height,
            channels: 1,
            samples: Samples::U8(samples.to_vec()),
            is_linear: false,
            metadata: Metadata::default(),
        };
        for (value, width, expected) in [
            (1, 3, [0, 1, 2, 3, 4, 5]),
            (2, 3, [2, 1, 0, 5, 4, 3]),
            (3, 3, [5, 4, 3, 2, 1, 0]),
            (4, 3, [3, 4, 5, 0, 1, 2]),
            (5, 2, [0, 3, 1, 4, 2, 5]),
            (6, 2, [3, 0, 4, 1, 5, 2]),
            (7, 2, [5, 2, 4, 1, 3, 0]),
            (8, 2, [2, 5, 1, 4, 0, 3]),
        ] {
            let orientation = Orientation::from_exif(value).unwrap();
            let upright = image(3, 2, &[0, 1, 2, 3, 4, 5]).upright(orientation).unwrap();
            assert_eq!(upright, image(width, 6 / width, &expected), "{value}");
        }
        assert_eq!(Orientation::from_exif(0), None);
    }

    #[test]
    fn alpha_and_channels_convert() {
        let metadata = Metadata { icc: Some(vec![1]), ..Metadata::default() };
        let grey = Image {
            width: 2,
            height: 1,
            channels: 2,
            samples: Samples::U16(vec![65535, 65535, 257, 0]),
            is_linear: false,
            metadata,
        };
        assert_eq!(grey.narrowed(Dtype::U8).unwrap().samples, Samples::U8(vec![255, 255, 1, 0]));
        assert_eq!(grey.without_alpha().unwrap().samples, Samples::U16(vec![65535, 257]));
        let rgba = grey.to_rgba().unwrap();
        assert_eq!((rgba.channels, rgba.samples.len()), (4, 8));
        let linear = grey.to_linear().unwrap();
        assert_eq!(linear.samples, Samples::F32(vec![1.0, 1.0, 0.0, 0.0]));
        assert_eq!(linear.metadata, grey.metadata);
        // Under alpha 0 there is no colour to return to.
        let back = linear.to_straight(Dtype::U16).unwrap();
        assert_eq!(back.samples, Samples::U16(vec![65535, 65535, 0, 0]));
    }
}
