//! Decoding and encoding by the image crate, for formats without a faster decoder or encoder here.

use std::io::Cursor;

use image::{ColorType, ExtendedColorType, ImageDecoder, ImageFormat, ImageReader};

use super::{
    codec::{BoxError, Decoded},
    limits::check_size,
    metadata::{capped_icc, capped_xmp, read_exif},
    riff,
};
use crate::{
    data::{
        dtype::Dtype,
        image::{Image, Metadata, Orientation},
        samples::Samples,
    },
    io::Limits,
};

/// Maximum memory in bytes for what is read with a header, such as profiles and texts.
pub const MOST_BESIDE: u64 = 32 << 20;

/// A file whose header and metadata are read, and whose size is within limits.
pub struct Opened<'a> {
    decoder: Box<dyn ImageDecoder + 'a>,
    orientation: Orientation,
    metadata: Metadata,
    losses: Vec<String>,
}

/// Reads the header and the metadata of a file.
///
/// # Errors
/// If the header is broken, or the image exceeds `limits`.
pub fn open(format: ImageFormat, bytes: &[u8], limits: Limits) -> Result<Opened<'_>, BoxError> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut allowed = image::Limits::default();
    allowed.max_alloc = Some(limits.bytes);
    reader.limits(allowed);
    let mut decoder = reader.into_decoder()?;
    let (width, height) = decoder.dimensions();
    check_size(limits, [width as usize, height as usize], decoder.total_bytes())?;
    let mut losses = Vec::new();
    let [icc, exif, xmp] = match format {
        // The decoder of WebP trusts the declared lengths of these chunks.
        ImageFormat::WebP => riff::metadata(Cursor::new(bytes), &mut losses)?,
        _ => [decoder.icc_profile()?, decoder.exif_metadata()?, decoder.xmp_metadata()?],
    };
    let icc = capped_icc(icc, &mut losses);
    let (exif, orientation) = read_exif(exif, &mut losses);
    let orientation = orientation.unwrap_or_default();
    let xmp = capped_xmp(xmp, &mut losses);
    let metadata = Metadata { icc, exif, xmp, ..Metadata::default() };
    Ok(Opened { decoder: Box::new(decoder), orientation, metadata, losses })
}

impl Opened<'_> {
    /// Decodes the samples.
    ///
    /// # Errors
    /// If the file is broken.
    pub fn decode(self) -> Result<Decoded, BoxError> {
        self.decode_by(|decoder, samples| Ok(decoder.read_image_boxed(samples)?))
    }

    /// What the file holds besides samples: metadata, orientation, and losses in words.
    pub fn described(self) -> (Metadata, Orientation, Vec<String>) {
        (self.metadata, self.orientation, self.losses)
    }

    /// Bytes of the decoded samples.
    pub fn bytes(&self) -> u64 {
        self.decoder.total_bytes()
    }

    /// Decodes the samples with `read`, which fills the buffer that it is given.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn decode_by(
        self,
        read: impl FnOnce(Box<dyn ImageDecoder + '_>, &mut [u8]) -> Result<(), BoxError>,
    ) -> Result<Decoded, BoxError> {
        let Self { decoder, orientation, metadata, losses } = self;
        let (width, height) = decoder.dimensions();
        let (width, height) = (width as usize, height as usize);
        let (channels, dtype) = match decoder.color_type() {
            ColorType::L8 => (1, Dtype::U8),
            ColorType::La8 => (2, Dtype::U8),
            ColorType::Rgb8 => (3, Dtype::U8),
            ColorType::Rgba8 => (4, Dtype::U8),
            ColorType::L16 => (1, Dtype::U16),
            ColorType::La16 => (2, Dtype::U16),
            ColorType::Rgb16 => (3, Dtype::U16),
            ColorType::Rgba16 => (4, Dtype::U16),
            ColorType::Rgb32F => (3, Dtype::F32),
            ColorType::Rgba32F => (4, Dtype::F32),
            other => return Err(format!("{other:?} samples are not supported").into()),
        };
        let mut samples = Samples::zeros(dtype, width * height * channels)?;
        read(decoder, samples.as_bytes_mut())?;
        let image = Image { width, height, channels, samples, is_linear: false, metadata };
        Ok(Decoded { image, orientation, losses, damage: None })
    }
}

/// Encodes the samples of an image, without metadata.
///
/// # Errors
/// If the format does not support these samples or channels.
pub fn encode(format: ImageFormat, image: &Image) -> Result<Vec<u8>, BoxError> {
    let mut bytes = Vec::new();
    image::write_buffer_with_format(
        &mut Cursor::new(&mut bytes),
        image.samples.as_bytes(),
        image.width as u32,
        image.height as u32,
        colour_type(image),
        format,
    )?;
    Ok(bytes)
}

/// The image crate's type for the samples and channels of an image.
pub fn colour_type(image: &Image) -> ExtendedColorType {
    use ExtendedColorType as C;
    match (&image.samples, image.channels) {
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
