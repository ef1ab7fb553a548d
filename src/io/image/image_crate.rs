//! Decoding and headers by the image crate, for formats without a separate decoder.

use std::io::{BufRead, BufReader, Cursor, Seek};

use image::{ExtendedColorType, ImageDecoder, ImageFormat, ImageReader};

use super::{
    error::BoxError,
    limits::{MAX_METADATA_BYTES, check_size},
    metadata::MetadataBlock,
    pages::DecodedPage,
    probe::Probe,
    riff,
    tiff::exif::{self, read_exif},
};
use crate::{
    data::{dtype::Dtype, image::Metadata},
    io::{Limits, RegularFile},
};

/// A file whose header and metadata have been read and are within limits.
pub struct OpenedImage<'a> {
    decoder: Box<dyn ImageDecoder + 'a>,
    pub page: DecodedPage,
}

pub fn open(
    format: ImageFormat,
    bytes: &[u8],
    limits: Limits,
) -> Result<OpenedImage<'_>, BoxError> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut allowed = image::Limits::default();
    allowed.max_alloc = Some(limits.bytes());
    reader.limits(allowed);
    let mut decoder = reader.into_decoder()?;
    let (size, channels, dtype) = layout(&decoder);
    check_size(limits, size, decoder.total_bytes())?;
    let mut losses = Vec::new();
    let [icc, exif, xmp] = match format {
        // The decoder of WebP trusts the stated lengths of these chunks.
        ImageFormat::WebP => riff::metadata(bytes, &mut losses)?,
        _ => [decoder.icc_profile()?, decoder.exif_metadata()?, decoder.xmp_metadata()?],
    };
    let icc = MetadataBlock::Icc.capped(icc, &mut losses);
    let (exif, orientation) = read_exif(exif, &mut losses);
    let orientation = orientation.unwrap_or_default();
    let xmp = MetadataBlock::Xmp.capped(xmp, &mut losses);
    let metadata = Metadata { icc, exif, xmp, ..Metadata::default() };
    let page = DecodedPage::header(size, channels, dtype, metadata, orientation, losses)?;
    Ok(OpenedImage { decoder: Box::new(decoder), page })
}

impl OpenedImage<'_> {
    pub fn decode(self) -> Result<DecodedPage, BoxError> {
        self.decode_by(|decoder, samples| Ok(decoder.read_image_boxed(samples)?))
    }

    pub fn bytes(&self) -> u64 {
        self.decoder.total_bytes()
    }

    /// Decodes the samples with `read`, which fills the buffer that it is given.
    pub fn decode_by(
        self,
        read: impl FnOnce(Box<dyn ImageDecoder + '_>, &mut [u8]) -> Result<(), BoxError>,
    ) -> Result<DecodedPage, BoxError> {
        let mut samples = self.page.zeros()?;
        read(self.decoder, samples.as_bytes_mut())?;
        Ok(self.page.with_samples(samples))
    }
}

/// Size, channels and type of the decoded image.
fn layout(decoder: &impl ImageDecoder) -> ([usize; 2], usize, Dtype) {
    let ((width, height), colour) = (decoder.dimensions(), decoder.color_type());
    let dtype = match colour.bytes_per_pixel() / colour.channel_count() {
        1 => Dtype::U8,
        2 => Dtype::U16,
        _ => Dtype::F32,
    };
    ([width as usize, height as usize], colour.channel_count().into(), dtype)
}

/// Probes `file`, whose format is called `name`. The metadata of a WebP file are only read if its `bytes`
/// are given.
pub fn probe(
    format: ImageFormat,
    name: &'static str,
    file: &RegularFile,
    bytes: Option<&[u8]>,
) -> Result<Probe, BoxError> {
    probe_input(format, name, BufReader::new(file.reader(0)), bytes)
}

/// As [`probe`], for a file that is read from `input`.
pub fn probe_input(
    format: ImageFormat,
    name: &'static str,
    input: impl BufRead + Seek,
    bytes: Option<&[u8]>,
) -> Result<Probe, BoxError> {
    let mut reader = ImageReader::with_format(input, format);
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(MAX_METADATA_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder()?;
    let stored = decoder.original_color_type();
    let bits = stored.bits_per_pixel() / u16::from(stored.channel_count()).max(1);
    let is_float = matches!(stored, ExtendedColorType::Rgb32F | ExtendedColorType::Rgba32F);
    let (size, channels, dtype) = layout(&decoder);
    let mut probe = Probe::new(name, size, channels, dtype);
    probe.dtype = format!("{}{bits}", if is_float { 'f' } else { 'u' });
    if stored.channel_count() == 1 && channels > 2 {
        probe.channels = "palette".to_owned();
    }
    let [icc, exif, xmp] = match format {
        ImageFormat::WebP => riff::metadata(bytes.unwrap_or_default(), &mut Vec::new())?,
        _ => [decoder.icc_profile(), decoder.exif_metadata(), decoder.xmp_metadata()]
            .map(|found| found.ok().flatten()),
    };
    probe.add_block(MetadataBlock::Xmp, xmp.as_deref());
    probe.add_block(MetadataBlock::Icc, icc.as_deref());
    exif::add_to_probe(&mut probe, exif);
    Ok(probe)
}
