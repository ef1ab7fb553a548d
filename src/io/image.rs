//! Images: decoded to flat samples with their metadata, encoded by extension.

use std::{
    io::{Cursor, Write},
    panic::catch_unwind,
};

use image::{
    DynamicImage, ExtendedColorType, ImageDecoder, ImageEncoder, ImageFormat, ImageReader,
    codecs::{jpeg::JpegEncoder, png::PngEncoder},
    error::{ImageError, UnsupportedError},
};

use super::{Sink, Source};
use crate::{
    error::{Error, Result},
    samples::Samples,
    timings::Timings,
};

/// An image in memory: rows from the top, pixels from the left, channels interleaved.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// Pixels a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Samples a pixel: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA. Alpha is not premultiplied.
    pub channels: usize,
    /// `width * height * channels` samples: u8, u16, or f32 with 1 for full intensity.
    pub samples: Samples,
    /// The ICC profile that gives the samples their meaning.
    pub icc: Option<Vec<u8>>,
}

impl Image {
    /// Whether the last channel is alpha.
    pub fn has_alpha(&self) -> bool {
        matches!(self.channels, 2 | 4)
    }

    /// Reads and decodes `source`, whatever its name says of its format. A picture stored turned
    /// comes out upright. At most `limit` bytes are allocated.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::error::Kind::Io) when it cannot be read, [`Kind::BadInput`](crate::error::Kind::BadInput)
    /// when it is no image, a broken one, or too large.
    pub fn read(source: &Source, limit: u64, timings: &Timings) -> Result<Self> {
        let bytes = timings.time("read", || source.read_all(limit))?;
        timings.time("decode", || {
            // Decoders panic on some broken files.
            catch_unwind(|| decode(&bytes, limit))
                .unwrap_or_else(|_| Err("the decoder crashed on it".into()))
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
        let format = output_format(sink)?;
        let bytes = timings.time("encode", || self.encode(format)).map_err(|error| {
            Error::new(crate::error::Kind::Failure, format_args!("cannot encode {sink}"))
                .caused_by(error)
        })?;
        timings.time("write", || sink.write_with(no_clobber, |output| output.write_all(&bytes)))
    }

    fn encode(&self, format: ImageFormat) -> image::ImageResult<Vec<u8>> {
        let mut bytes = Vec::new();
        let (width, height) = (self.width as u32, self.height as u32);
        let color = self.color_type();
        let icc = self.icc.clone();
        match format {
            ImageFormat::Png => {
                let mut encoder = PngEncoder::new(&mut bytes);
                if let Some(icc) = icc {
                    encoder.set_icc_profile(icc).map_err(unsupported)?;
                }
                encoder.write_image(self.samples.as_bytes(), width, height, color)?;
            }
            ImageFormat::Jpeg => {
                let mut encoder = JpegEncoder::new_with_quality(&mut bytes, 90);
                if let Some(icc) = icc {
                    encoder.set_icc_profile(icc).map_err(unsupported)?;
                }
                let (samples, color) = self.narrowed();
                encoder.write_image(&samples, width, height, color)?;
            }
            other => {
                let mut cursor = Cursor::new(&mut bytes);
                image::write_buffer_with_format(
                    &mut cursor,
                    self.samples.as_bytes(),
                    width,
                    height,
                    color,
                    other,
                )?;
            }
        }
        Ok(bytes)
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

    /// 8-bit samples without alpha, as JPEG wants them.
    fn narrowed(&self) -> (Vec<u8>, ExtendedColorType) {
        let bytes: Vec<u8> = match &self.samples {
            Samples::U8(values) => values.clone(),
            Samples::U16(values) => {
                values.iter().map(|&v| ((u32::from(v) + 128) / 257) as u8).collect()
            }
            Samples::F32(values) => {
                values.iter().map(|&v| (v.clamp(0.0, 1.0) * 255.0).round() as u8).collect()
            }
            other => unreachable!("images hold no {}", other.dtype()),
        };
        let colour = self.channels - usize::from(self.has_alpha());
        let bytes = match self.has_alpha() {
            true => bytes.chunks_exact(self.channels).flat_map(|p| &p[..colour]).copied().collect(),
            false => bytes,
        };
        (bytes, if colour == 1 { ExtendedColorType::L8 } else { ExtendedColorType::Rgb8 })
    }
}

fn unsupported(error: UnsupportedError) -> ImageError {
    ImageError::Unsupported(error)
}

/// The image format that the extension of `sink` names.
///
/// # Errors
/// [`Kind::Usage`](crate::error::Kind::Usage) when it names none that can be written.
pub fn output_format(sink: &Sink) -> Result<ImageFormat> {
    let extension = sink.extension();
    ImageFormat::from_extension(&extension).filter(ImageFormat::can_write).ok_or_else(|| {
        Error::usage(format_args!(
            "{sink}: no image format is known by the extension `{extension}`; \
             use .png, .jpg, .tif, .webp, .bmp or .pnm"
        ))
    })
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

fn decode(bytes: &[u8], limit: u64) -> Result<Image, BoxError> {
    if bytes.is_empty() {
        return Err("the file is empty".into());
    }
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format()?;
    if reader.format().is_none() {
        return Err("this is no image format that is known here".into());
    }
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(limit);
    reader.limits(limits.clone());
    let mut decoder = reader.into_decoder()?;
    let (width, height) = decoder.dimensions();
    limits.reserve(decoder.total_bytes()).map_err(|_| {
        format!(
            "{width} x {height} pixels take {} bytes, more than --max-memory allows",
            decoder.total_bytes()
        )
    })?;
    let icc = decoder.icc_profile()?;
    let orientation = decoder.orientation()?;
    let mut picture = DynamicImage::from_decoder(decoder)?;
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
    Ok(Image { width, height, channels, samples, icc })
}
