//! Images: decoded to flat samples with their metadata, encoded by extension.

use std::{
    borrow::Cow,
    io::{Cursor, Write},
    panic::catch_unwind,
};

use image::{
    DynamicImage, ExtendedColorType, ImageBuffer, ImageDecoder, ImageEncoder, ImageFormat,
    ImageReader, codecs::webp::WebPEncoder, metadata::Orientation,
};
use rayon::prelude::*;

use super::{
    Limits, Sink, Source, exr,
    jpeg::{self, Jpeg},
    png::Png,
    tiff::{self, TiffFile},
};
use crate::{
    data::samples::{Dtype, Samples},
    data::srgb::{from_linear, to_linear},
    error::{Error, Result},
    memory::{self, raise},
    timings::Timings,
};

/// An image in memory: rows from the top, pixels from the left, channels interleaved.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// Pixels a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Samples a pixel: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA. Alpha is not premultiplied, but for
    /// [`Image::is_light`].
    pub channels: usize,
    /// `width * height * channels` samples: u8, u16, or f32 with 1 for full intensity.
    pub samples: Samples,
    /// The ICC profile that gives the samples their meaning.
    pub icc: Option<Vec<u8>>,
    /// Whether samples are what OpenEXR holds: linear light as f32, colours multiplied with alpha.
    pub is_light: bool,
}

impl Image {
    /// Whether the last channel is alpha.
    pub fn has_alpha(&self) -> bool {
        matches!(self.channels, 2 | 4)
    }

    /// Reads and decodes `source`, whatever its name says of its format. A picture stored turned
    /// comes out upright. The file and its pixels each take at most `limits`.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::error::Kind::Io) when it cannot be read, [`Kind::BadInput`](crate::error::Kind::BadInput)
    /// when it is no image, a broken one, or too large.
    pub fn read(source: &Source, limits: impl Into<Limits>, timings: &Timings) -> Result<Self> {
        Self::read_with_exif(source, limits, timings).map(|(image, _)| image)
    }

    /// [`Image::read`], with the picture's EXIF, whose orientation is taken out because it is done.
    ///
    /// # Errors
    /// As [`Image::read`].
    pub fn read_with_exif(
        source: &Source,
        limits: impl Into<Limits>,
        timings: &Timings,
    ) -> Result<(Self, Option<Vec<u8>>)> {
        let limits = limits.into();
        let bytes = timings.time("read", || source.read_all(limits.bytes))?;
        timings.time("decode", || {
            // Decoders panic on some broken files.
            catch_unwind(|| decode(&bytes, source, limits))
                .unwrap_or_else(|panic| match memory::raised(panic) {
                    Ok(error) => Err(error.into()),
                    Err(_) => Err("the decoder crashed on it".into()),
                })
                .map_err(|error| {
                    Error::bad_input(format_args!("cannot decode {source}")).caused_by(error)
                })
        })
    }

    /// Encodes to `sink` in the format of its extension.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::error::Kind::Io) when it cannot be written.
    pub fn write(&self, sink: &Sink, no_clobber: bool, timings: &Timings) -> Result<()> {
        self.write_as(sink, &Encoding::default(), no_clobber, timings)
    }

    /// [`Image::write`] with `encoding`.
    ///
    /// # Errors
    /// As [`Image::write`].
    pub fn write_as(
        &self,
        sink: &Sink,
        encoding: &Encoding,
        no_clobber: bool,
        timings: &Timings,
    ) -> Result<()> {
        let format = output_format(sink)?;
        let bytes = timings.time("encode", || self.encode(format, encoding)).map_err(|error| {
            Error::new(crate::error::Kind::Failure, format_args!("cannot encode {sink}"))
                .caused_by(error)
        })?;
        timings.time("write", || sink.write_with(no_clobber, |output| output.write_all(&bytes)))
    }

    /// What of this image and of its EXIF `format` cannot hold, in words; nothing when it holds all.
    pub fn losses(&self, format: ImageFormat, exif: Option<&[u8]>) -> Option<String> {
        let (dtype, alpha) = self.fitting(format);
        let mut losses = Vec::new();
        if dtype.size() < self.samples.dtype().size() {
            losses.push(format!("{} samples become {dtype}", self.samples.dtype()));
        }
        if self.has_alpha() && !alpha {
            losses.push("alpha is dropped".to_owned());
        }
        let holds_metadata = matches!(
            format,
            ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::WebP | ImageFormat::Tiff
        );
        if self.icc.is_some() && !holds_metadata {
            losses.push("the colour profile is dropped".to_owned());
        }
        if exif.is_some() && !holds_metadata {
            losses.push("EXIF is dropped".to_owned());
        }
        (!losses.is_empty()).then(|| losses.join(" and "))
    }

    /// The type of samples that `format` holds these in, and whether it holds alpha.
    fn fitting(&self, format: ImageFormat) -> (Dtype, bool) {
        match (format, self.samples.dtype()) {
            (ImageFormat::Jpeg, _) => (Dtype::U8, false),
            (ImageFormat::WebP | ImageFormat::Bmp, _) => (Dtype::U8, true),
            (ImageFormat::Png | ImageFormat::Pnm, Dtype::F32) => (Dtype::U16, true),
            (ImageFormat::OpenExr, _) => (Dtype::F32, true),
            (_, dtype) => (dtype, true),
        }
    }

    fn encode(&self, format: ImageFormat, encoding: &Encoding) -> Result<Vec<u8>, BoxError> {
        let (dtype, alpha) = self.fitting(format);
        let mut picture = Cow::Borrowed(self);
        match format {
            ImageFormat::OpenExr if !self.is_light => picture = Cow::Owned(self.as_light()),
            ImageFormat::OpenExr => {}
            _ if self.is_light => picture = Cow::Owned(self.as_stored(dtype)),
            _ if dtype != self.samples.dtype() => {
                let samples = narrowed(&self.samples, dtype);
                picture = Cow::Owned(Self { samples, icc: self.icc.clone(), ..*self });
            }
            _ => {}
        }
        if self.has_alpha() && !alpha {
            picture = Cow::Owned(picture.without_alpha());
        }
        if picture.channels == 2 && format == ImageFormat::Bmp {
            picture = Cow::Owned(picture.as_rgba());
        }
        picture.encode_fitting(format, encoding)
    }

    /// Encodes samples that `format` can hold.
    fn encode_fitting(
        &self,
        format: ImageFormat,
        encoding: &Encoding,
    ) -> Result<Vec<u8>, BoxError> {
        // Encoders would end the process where there is no memory; what they make may be as long as the
        // samples, and lies in two places at times.
        drop(memory::room::<u8>(2 * self.samples.as_bytes().len())?);
        let mut bytes = Vec::new();
        let (width, height) = (self.width as u32, self.height as u32);
        let (icc, exif) = (self.icc.clone(), encoding.exif.clone());
        match format {
            ImageFormat::Png => {
                let sample_bytes = self.samples.dtype().size() as u8;
                let mut samples = Cow::Borrowed(&self.samples);
                if cfg!(target_endian = "little") && sample_bytes == 2 {
                    let mut swapped = self.samples.copy()?;
                    swapped.swap_bytes();
                    samples = Cow::Owned(swapped);
                }
                let png = Png {
                    width,
                    height,
                    channels: self.channels as u8,
                    sample_bytes,
                    icc: icc.as_deref(),
                    exif: exif.as_deref(),
                    compression: encoding.compression,
                };
                png.write(samples.as_bytes(), &mut bytes)?;
            }
            ImageFormat::Jpeg => {
                let too_large = |_| "JPEG pictures have at most 65,535 pixels a side";
                let jpeg = Jpeg {
                    width: u16::try_from(width).map_err(too_large)?,
                    height: u16::try_from(height).map_err(too_large)?,
                    channels: self.channels,
                    quality: encoding.quality,
                    // As most programs do: colour at half the resolution but at the highest qualities.
                    half_colour: encoding.quality < FULL_CHROMA,
                    icc: icc.as_deref(),
                    exif: exif.as_deref(),
                };
                bytes = jpeg.encode(self.samples.as_bytes())?;
            }
            ImageFormat::WebP => {
                let mut encoder = WebPEncoder::new_lossless(&mut bytes);
                if let Some(icc) = icc {
                    encoder.set_icc_profile(icc)?;
                }
                if let Some(exif) = exif {
                    encoder.set_exif_metadata(exif)?;
                }
                encoder.write_image(self.samples.as_bytes(), width, height, self.color_type())?;
            }
            ImageFormat::Tiff => bytes = tiff::encode(self, exif.as_deref())?,
            ImageFormat::OpenExr => bytes = exr::encode(self)?,
            other => image::write_buffer_with_format(
                &mut Cursor::new(&mut bytes),
                self.samples.as_bytes(),
                width,
                height,
                self.color_type(),
                other,
            )?,
        }
        Ok(bytes)
    }

    /// A copy.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn copy(&self) -> Result<Self> {
        Ok(Self { samples: self.samples.copy()?, icc: self.icc.clone(), ..*self })
    }

    /// The same as linear light, colours multiplied with alpha. Floats are light already, whole numbers
    /// are on sRGB's curve.
    pub(crate) fn as_light(&self) -> Self {
        let (channels, colours) = (self.channels, self.channels - usize::from(self.has_alpha()));
        let curve = |most: u16| -> Vec<f32> {
            let light = |v| to_linear(f64::from(v) / f64::from(most)) as f32;
            (0..=most).into_par_iter().map(light).collect()
        };
        let mut light: Vec<f32> = match &self.samples {
            Samples::U8(values) => {
                let curve = curve(255);
                collect(values.par_iter().map(|&v| curve[usize::from(v)]))
            }
            Samples::U16(values) => {
                let curve = curve(65535);
                collect(values.par_iter().map(|&v| curve[usize::from(v)]))
            }
            Samples::F32(values) => memory::copied(values).unwrap_or_else(raise),
            other => unreachable!("images hold no {}", other.dtype()),
        };
        if self.has_alpha() {
            light.par_chunks_exact_mut(channels).enumerate().for_each(|(at, pixel)| {
                let at = at * channels + colours;
                pixel[colours] = match &self.samples {
                    Samples::U8(values) => f32::from(values[at]) / 255.0,
                    Samples::U16(values) => f32::from(values[at]) / 65535.0,
                    _ => pixel[colours],
                };
                let alpha = pixel[colours];
                pixel[..colours].iter_mut().for_each(|v| *v *= alpha);
            });
        }
        Self { samples: Samples::F32(light), icc: self.icc.clone(), is_light: true, ..*self }
    }

    /// What is light as `dtype`: as f32 light still, else on sRGB's curve; not multiplied with alpha.
    pub(crate) fn as_stored(&self, dtype: Dtype) -> Self {
        let (channels, colours) = (self.channels, self.channels - usize::from(self.has_alpha()));
        let Samples::F32(light) = &self.samples else { unreachable!("light is f32") };
        let mut stored = memory::copied(light).unwrap_or_else(raise);
        stored.par_chunks_exact_mut(channels).for_each(|pixel| {
            // What shines through and covers nothing cannot be told otherwise.
            let alpha = pixel.get(colours).copied().filter(|&alpha| alpha > 0.0).unwrap_or(1.0);
            for v in &mut pixel[..colours] {
                *v /= alpha;
                if dtype != Dtype::F32 {
                    *v = from_linear(f64::from(*v).clamp(0.0, 1.0)) as f32;
                }
            }
        });
        let stored = Samples::F32(stored);
        let samples = if dtype == Dtype::F32 { stored } else { narrowed(&stored, dtype) };
        Self { samples, icc: self.icc.clone(), is_light: false, ..*self }
    }

    /// The colours alone.
    fn without_alpha(&self) -> Self {
        fn cut<T: Copy>(v: &[T], from: usize, to: usize) -> Vec<T> {
            let mut colours = memory::room(v.len() / from * to).unwrap_or_else(raise);
            v.chunks_exact(from).for_each(|pixel| colours.extend_from_slice(&pixel[..to]));
            colours
        }
        let (from, to) = (self.channels, self.channels - 1);
        let samples = match &self.samples {
            Samples::U8(v) => Samples::U8(cut(v, from, to)),
            Samples::U16(v) => Samples::U16(cut(v, from, to)),
            other => other.copy().unwrap_or_else(raise),
        };
        Self { channels: to, samples, icc: self.icc.clone(), ..*self }
    }

    /// Grey and alpha as RGBA.
    fn as_rgba(&self) -> Self {
        fn spread<T: Copy>(v: &[T]) -> Vec<T> {
            let mut wide = memory::room(2 * v.len()).unwrap_or_else(raise);
            v.chunks_exact(2).for_each(|p| wide.extend_from_slice(&[p[0], p[0], p[0], p[1]]));
            wide
        }
        let samples = match &self.samples {
            Samples::U8(v) => Samples::U8(spread(v)),
            Samples::U16(v) => Samples::U16(spread(v)),
            other => other.copy().unwrap_or_else(raise),
        };
        Self { channels: 4, samples, icc: self.icc.clone(), ..*self }
    }

    fn color_type(&self) -> ExtendedColorType {
        use ExtendedColorType as C;
        match (&self.samples, self.channels) {
            (Samples::U8(_), 1) => C::L8,
            (Samples::U8(_), 2) => C::La8,
            (Samples::U8(_), 3) => C::Rgb8,
            (Samples::U8(_), _) => C::Rgba8,
            (Samples::U16(_), 1) => C::L16,
            (Samples::U16(_), 2) => C::La16,
            (Samples::U16(_), 3) => C::Rgb16,
            (Samples::U16(_), _) => C::Rgba16,
            (_, 3) => C::Rgb32F,
            (_, _) => C::Rgba32F,
        }
    }
}

/// The JPEG quality from which on colour is stored at full resolution.
const FULL_CHROMA: u8 = 95;

/// How an image is encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// JPEG quality, 1 to 100. Below 95 colour is stored at half the resolution (4:2:0).
    pub quality: u8,
    /// PNG effort, 0 (none) to 9.
    pub compression: u8,
    /// EXIF, beginning with its TIFF header; kept by PNG, JPEG, WebP and TIFF.
    pub exif: Option<Vec<u8>>,
}

impl Default for Encoding {
    fn default() -> Self {
        Self { quality: 90, compression: 1, exif: None }
    }
}

fn collect<I: IndexedParallelIterator>(values: I) -> Vec<I::Item> {
    memory::collect(values).unwrap_or_else(raise)
}

/// Samples of fewer bits, the full range to the full range.
fn narrowed(samples: &Samples, dtype: Dtype) -> Samples {
    match (samples, dtype) {
        (Samples::U16(v), _) => {
            Samples::U8(collect(v.par_iter().map(|&v| ((u32::from(v) + 128) / 257) as u8)))
        }
        (Samples::F32(v), Dtype::U16) => Samples::U16(collect(
            v.par_iter().map(|v| (v.clamp(0.0, 1.0) * 65535.0).round() as u16),
        )),
        (Samples::F32(v), _) => {
            Samples::U8(collect(v.par_iter().map(|v| (v.clamp(0.0, 1.0) * 255.0).round() as u8)))
        }
        (other, _) => other.copy().unwrap_or_else(raise),
    }
}

/// The image format that the extension of `sink` names.
///
/// # Errors
/// [`Kind::Usage`](crate::error::Kind::Usage) when it names none that can be written.
pub fn output_format(sink: &Sink) -> Result<ImageFormat> {
    let extension = sink.extension();
    let is_written =
        |format: &ImageFormat| *format == ImageFormat::OpenExr || format.writing_enabled();
    ImageFormat::from_extension(&extension).filter(is_written).ok_or_else(|| {
        Error::usage(format_args!(
            "{sink}: no image format is known by the extension `{extension}`; \
             use .png, .jpg, .tif, .exr, .webp, .bmp or .pnm"
        ))
    })
}

fn as_dynamic(picture: jpeg::Picture) -> Option<DynamicImage> {
    let (width, height) = (picture.width as u32, picture.height as u32);
    match picture.channels {
        1 => ImageBuffer::from_raw(width, height, picture.pixels).map(DynamicImage::ImageLuma8),
        _ => ImageBuffer::from_raw(width, height, picture.pixels).map(DynamicImage::ImageRgb8),
    }
}

/// Whatever a decoder or an encoder fails with.
pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// More than this is no colour profile, and no description of a camera.
pub(super) const LONGEST_ICC: usize = 4 << 20;
/// What one JPEG segment holds.
pub(super) const LONGEST_EXIF: usize = 65_533 - 6;

/// `data` unless it is absurdly long; a picture is no worse without it.
pub(super) fn capped(
    data: Option<Vec<u8>>,
    longest: usize,
    what: &str,
    source: &Source,
) -> Option<Vec<u8>> {
    data.filter(|data| {
        let fits = data.len() <= longest;
        if !fits {
            log::warn!("{source}: {what} of {} bytes is left out", data.len());
        }
        fits
    })
}

/// Refuses a picture of `sides` whose samples take `bytes`, before memory is taken for it: one that has
/// more pixels than allowed, or more bytes than allowed or there.
pub(super) fn check_room(
    source: &Source,
    allowed: Limits,
    sides @ [width, height]: [usize; 2],
    bytes: u64,
) -> Result<(), BoxError> {
    if width == 0 || height == 0 {
        return Err(format!("{width} x {height} pixels are no picture").into());
    }
    allowed.check(source, &sides)?;
    if bytes > allowed.bytes {
        return Err(format!(
            "{width} x {height} pixels take {bytes} bytes, more than the {} that --max-memory allows here",
            allowed.bytes
        )
        .into());
    }
    // Decoders would end the process where there is no memory.
    Vec::<u8>::new()
        .try_reserve_exact(bytes.try_into()?)
        .map_err(|_| format!("there is no memory for {width} x {height} pixels").into())
}

fn decode(
    bytes: &[u8],
    source: &Source,
    allowed: Limits,
) -> Result<(Image, Option<Vec<u8>>), BoxError> {
    if bytes.is_empty() {
        return Err("the file is empty".into());
    }
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format()?;
    let format = reader.format().ok_or("this is no image format that is known here")?;
    match format {
        ImageFormat::OpenExr => return Ok((exr::decode(bytes, source, allowed)?, None)),
        ImageFormat::Tiff => {
            if let Some(file) = TiffFile::open(bytes) {
                return Ok((decode_tiff(file, source, allowed)?, tiff_exif(bytes, source)));
            }
        }
        _ => {}
    }
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(allowed.bytes);
    reader.limits(limits);
    let mut decoder = reader.into_decoder()?;
    let (width, height) = decoder.dimensions();
    check_room(source, allowed, [width as usize, height as usize], decoder.total_bytes())?;
    // Of all that a file may hold besides pixels, these two are kept, and the orientation is obeyed.
    let icc = capped(decoder.icc_profile()?, LONGEST_ICC, "a colour profile", source);
    let orientation = decoder.orientation()?;
    let exif = match format {
        ImageFormat::Tiff => tiff_exif(bytes, source),
        _ => capped(decoder.exif_metadata()?, LONGEST_EXIF, "EXIF", source).map(|mut exif| {
            // Without the tag no viewer turns the picture a second time.
            let _done = Orientation::remove_from_exif_chunk(&mut exif);
            exif
        }),
    };
    let fast = match format {
        ImageFormat::Jpeg => jpeg::decode(bytes, allowed.bytes).and_then(as_dynamic),
        _ => None,
    };
    let mut picture = match fast {
        Some(picture) => picture,
        None => DynamicImage::from_decoder(decoder)?,
    };
    picture.apply_orientation(orientation);
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    let (channels, samples) = match picture {
        DynamicImage::ImageLuma8(p) => (1, Samples::U8(p.into_raw())),
        DynamicImage::ImageLumaA8(p) => (2, Samples::U8(p.into_raw())),
        DynamicImage::ImageRgb8(p) => (3, Samples::U8(p.into_raw())),
        DynamicImage::ImageRgba8(p) => (4, Samples::U8(p.into_raw())),
        DynamicImage::ImageLuma16(p) => (1, Samples::U16(p.into_raw())),
        DynamicImage::ImageLumaA16(p) => (2, Samples::U16(p.into_raw())),
        DynamicImage::ImageRgb16(p) => (3, Samples::U16(p.into_raw())),
        DynamicImage::ImageRgba16(p) => (4, Samples::U16(p.into_raw())),
        DynamicImage::ImageRgb32F(p) => (3, Samples::F32(p.into_raw())),
        DynamicImage::ImageRgba32F(p) => (4, Samples::F32(p.into_raw())),
        other => return Err(format!("{:?} samples are not supported", other.color()).into()),
    };
    Ok((Image { width, height, channels, samples, icc, is_light: false }, exif))
}

/// Decodes what the image crate does not.
fn decode_tiff(
    mut file: TiffFile<'_>,
    source: &Source,
    allowed: Limits,
) -> Result<Image, BoxError> {
    let TiffFile { width, height, channels, .. } = file;
    check_room(source, allowed, [width, height], file.bytes())?;
    let icc = capped(file.icc(), LONGEST_ICC, "a colour profile", source);
    let orientation = file.orientation();
    let samples = file.read(allowed.bytes)?;
    let samples = match samples {
        Samples::U8(v) => Samples::U8(upright(v, [width, height], channels, orientation)),
        Samples::U16(v) => Samples::U16(upright(v, [width, height], channels, orientation)),
        Samples::F32(v) => Samples::F32(upright(v, [width, height], channels, orientation)),
        other => unreachable!("no {} is decoded", other.dtype()),
    };
    let (width, height) = if turns(orientation)[0] { (height, width) } else { (width, height) };
    Ok(Image { width, height, channels, samples, icc, is_light: false })
}

/// Whether rows become columns; whether stored rows, and whether stored columns, are read backwards.
fn turns(orientation: Orientation) -> [bool; 3] {
    match orientation {
        Orientation::NoTransforms => [false, false, false],
        Orientation::FlipHorizontal => [false, true, false],
        Orientation::FlipVertical => [false, false, true],
        Orientation::Rotate180 => [false, true, true],
        Orientation::Rotate90FlipH => [true, false, false],
        Orientation::Rotate270 => [true, true, false],
        Orientation::Rotate90 => [true, false, true],
        Orientation::Rotate270FlipH => [true, true, true],
    }
}

/// The samples of a picture of `sides`, stored turned, as it is to be seen.
fn upright<T: Copy>(
    values: Vec<T>,
    [width, height]: [usize; 2],
    channels: usize,
    orientation: Orientation,
) -> Vec<T> {
    let [swapped, across, down] = turns(orientation);
    if orientation == Orientation::NoTransforms {
        return values;
    }
    let [columns, rows] = if swapped { [height, width] } else { [width, height] };
    let mut upright = Vec::with_capacity(values.len());
    for row in 0..rows {
        for column in 0..columns {
            let [x, y] = if swapped { [row, column] } else { [column, row] };
            let x = if across { width - 1 - x } else { x };
            let y = if down { height - 1 - y } else { y };
            upright.extend_from_slice(&values[(y * width + x) * channels..][..channels]);
        }
    }
    upright
}

fn tiff_exif(bytes: &[u8], source: &Source) -> Option<Vec<u8>> {
    let (exif, is_part) = tiff::exif(bytes)?;
    if is_part {
        log::warn!("{source}: EXIF that cannot be read, or is too long, is left out");
    }
    capped(Some(exif), LONGEST_EXIF, "EXIF", source)
}
