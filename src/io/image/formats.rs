//! Table of image formats, and functions that choose a format.

use std::io;

#[cfg(feature = "jxl")]
use super::jxl;
use super::{
    bmp,
    codec::Codec,
    consistency::adapt,
    error::BoxError,
    exr, gif, jpeg,
    pages::Encoding,
    pfm, png, pnm,
    rows::{ReadRows, WriteRows},
    tiff, unsupported, webp,
};
use crate::{
    data::{dtype::Dtype, image::Image},
    io::{Limits, Output, Sink, Source},
    util::error::{Error, Result},
};

/// An image format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "names of formats")]
pub enum ImageFormat {
    Png,
    Jpeg,
    Tiff,
    OpenExr,
    WebP,
    Gif,
    Bmp,
    Pnm,
    Pfm,
    #[cfg(feature = "jxl")]
    JpegXl,
}

/// All formats, in the order in which signatures are tried.
const FORMATS: &[(ImageFormat, &Codec)] = &[
    (ImageFormat::Png, &png::CODEC),
    (ImageFormat::Jpeg, &jpeg::CODEC),
    (ImageFormat::Tiff, &tiff::CODEC),
    (ImageFormat::OpenExr, &exr::CODEC),
    (ImageFormat::WebP, &webp::CODEC),
    (ImageFormat::Gif, &gif::CODEC),
    (ImageFormat::Bmp, &bmp::CODEC),
    (ImageFormat::Pnm, &pnm::CODEC),
    (ImageFormat::Pfm, &pfm::CODEC),
    #[cfg(feature = "jxl")]
    (ImageFormat::JpegXl, &jxl::CODEC),
];

impl ImageFormat {
    pub(super) fn codec(self) -> &'static Codec {
        FORMATS[self as usize].1
    }

    /// The usual file name extension of the format, in lower case.
    pub fn extension(self) -> &'static str {
        self.codec().extensions[0]
    }

    /// Format that belongs to the extension of `sink`.
    pub fn for_output(sink: &Sink) -> Result<Self> {
        let extension = sink.extension();
        let format = by_extension(&extension).filter(|format| format.codec().can_write);
        format.ok_or_else(|| {
            let cause = match extension.is_empty() {
                true => "cannot infer the image format: the name has no extension".to_owned(),
                false if extension == "jxl" => "JPEG XL cannot be written".to_owned(),
                false => format!("no image format has the extension `{extension}`"),
            };
            Error::usage(format_args!(
                "{sink}: {cause}; use .png, .jpg, .tif, .exr, .webp, .gif, .bmp, .pnm or .pfm"
            ))
        })
    }

    /// Format of a file that begins with `bytes`, by its signature. The extension only helps to recognize unsupported
    /// formats.
    pub(super) fn from_bytes(bytes: &[u8], extension: &str) -> Result<Self, BoxError> {
        if bytes.is_empty() {
            return Err("the file is empty".into());
        }
        if let Some(refusal) = unsupported::message(bytes, extension) {
            return Err(refusal.into());
        }
        Self::from_signature(bytes).ok_or_else(|| match image::guess_format(bytes) {
            Ok(other) => format!("the image format {other:?} is not supported").into(),
            Err(_) => "not an image of a known format".into(),
        })
    }

    fn from_signature(bytes: &[u8]) -> Option<Self> {
        let found = FORMATS.iter().find(|(_, codec)| (codec.has_signature)(bytes))?;
        Some(found.0)
    }

    /// Format of the file `source`, by its signature; `None` for pipes, and if the format is unknown or the file cannot be
    /// read.
    pub fn of(source: &Source) -> Option<Self> {
        Self::from_signature(&source.regular().ok()??.first)
    }
}

fn by_extension(extension: &str) -> Option<ImageFormat> {
    FORMATS.iter().find(|(_, codec)| codec.extensions.contains(&extension)).map(|found| found.0)
}

/// Whether the extension of `source` is that of an image format, supported or not. `.hdr`, of the unsupported Radiance
/// HDR, counts as NIfTI.
pub fn has_image_name(source: &Source) -> bool {
    let extension = source.extension();
    let known = image::ImageFormat::from_extension(&extension);
    known.is_some_and(|format| format.can_read() && format != image::ImageFormat::Hdr)
        || by_extension(&extension).is_some()
}

/// Whether the extension of `source` is that of JPEG.
pub fn has_jpeg_name(source: &Source) -> bool {
    by_extension(&source.extension()) == Some(ImageFormat::Jpeg)
}

/// Opens a file for reading by rows; `None` if that is not possible or the header is broken.
pub fn open_rows(source: &Source, limits: Limits) -> Result<Option<Box<dyn ReadRows>>> {
    let Some(file) = source.regular()? else { return Ok(None) };
    let rows = ImageFormat::from_signature(&file.first).and_then(|format| format.codec().rows);
    rows.map_or(Ok(None), |rows| (rows.open)(source, &file, limits))
}

/// Whether a file of `format` with samples of type `dtype` can be written by rows.
pub fn can_write_rows(format: ImageFormat, dtype: Dtype) -> bool {
    format.codec().rows.is_some() && format.codec().capabilities.dtypes.contains(&dtype)
}

/// Creates a file of `format` that is written by rows ([`can_write_rows`]). `head` is the image without samples.
pub fn create_rows(
    format: ImageFormat,
    mut head: Image,
    encoding: &Encoding,
    output: Output,
) -> io::Result<Box<dyn WriteRows>> {
    let rows = format.codec().rows.ok_or(io::ErrorKind::Unsupported)?;
    adapt(&mut head.metadata, [head.width, head.height], head.channels);
    (rows.create)(&head, encoding, output)
}
