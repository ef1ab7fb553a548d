//! Decoding by the image crate, for formats without a faster decoder here, and the headers of files.

use std::{
    fs::File,
    io::{BufReader, Cursor},
    path::Path,
};

use image::{ExtendedColorType, ImageDecoder, ImageFormat, ImageReader};

use super::{
    codec::{BoxError, Decoded},
    limits::{MOST_BESIDE, check_size},
    metadata::{Block, read_exif},
    probe::Probe,
    riff,
    tiff::exif,
};
use crate::{
    data::{
        dtype::Dtype,
        image::{Image, Metadata, Orientation},
        samples::Samples,
    },
    io::Limits,
};

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
    let icc = Block::Icc.capped(icc, &mut losses);
    let (exif, orientation) = read_exif(exif, &mut losses);
    let orientation = orientation.unwrap_or_default();
    let xmp = Block::Xmp.capped(xmp, &mut losses);
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
        let colour = decoder.color_type();
        let channels = usize::from(colour.channel_count());
        let dtype = dtype_of(usize::from(colour.bytes_per_pixel()) / channels);
        let mut samples = Samples::zeros(dtype, width * height * channels)?;
        read(decoder, samples.as_bytes_mut())?;
        let image = Image { width, height, channels, samples, is_linear: false, metadata };
        Ok(Decoded { image, orientation, losses, damage: None })
    }
}

/// The type of samples of so many bytes.
fn dtype_of(bytes: usize) -> Dtype {
    match bytes {
        1 => Dtype::U8,
        2 => Dtype::U16,
        _ => Dtype::F32,
    }
}

/// Probes the file at `path`, whose format is called `name`.
///
/// # Errors
/// If the header is broken.
pub fn probe(format: ImageFormat, name: &'static str, path: &Path) -> Result<Probe, BoxError> {
    let mut reader = ImageReader::with_format(BufReader::new(File::open(path)?), format);
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(MOST_BESIDE);
    reader.limits(limits);
    let mut decoder = reader.into_decoder()?;
    let (width, height) = decoder.dimensions();
    let (stored, read) = (decoder.original_color_type(), decoder.color_type());
    let bits = stored.bits_per_pixel() / u16::from(stored.channel_count()).max(1);
    let is_float = matches!(stored, ExtendedColorType::Rgb32F | ExtendedColorType::Rgba32F);
    let channels = usize::from(read.channel_count());
    let dtype = dtype_of(usize::from(read.bytes_per_pixel()) / channels);
    let mut probe = Probe::new(name, [width as usize, height as usize], channels, dtype);
    probe.dtype = format!("{}{bits}", if is_float { 'f' } else { 'u' });
    if stored.channel_count() == 1 && channels > 2 {
        probe.channels = "palette".to_owned();
    }
    let [icc, exif, xmp] = match format {
        // The decoder of WebP trusts the declared lengths of these chunks.
        ImageFormat::WebP => riff::metadata(BufReader::new(File::open(path)?), &mut Vec::new())?,
        _ => [decoder.icc_profile(), decoder.exif_metadata(), decoder.xmp_metadata()]
            .map(|found| found.ok().flatten()),
    };
    probe.add_block(Block::Xmp, xmp.as_deref());
    probe.add_block(Block::Icc, icc.as_deref());
    exif::add(&mut probe, exif);
    Ok(probe)
}
