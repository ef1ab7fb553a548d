//! Images to files: in the samples and channels that the format holds.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use super::{
    ImageFormat,
    codec::{BoxError, Encoding, Holds, PageWriter, Series},
    jpeg,
};
use crate::{
    data::{
        image::{Image, Metadata},
        jpeg::SparseCoefficients,
    },
    error::{Error, Kind, Result},
    io::Sink,
    memory,
    timings::Timings,
};

/// Writes a JPEG file of `coefficients`.
///
/// # Errors
/// [`Kind::Io`] when it cannot be written.
pub fn write_jpeg(
    coefficients: &SparseCoefficients,
    metadata: &Metadata,
    sink: &Sink,
    no_clobber: bool,
    timings: &Timings,
) -> Result<()> {
    let encode = || jpeg::encode_coefficients(coefficients, metadata);
    let bytes = timings.time("encode", encode).map_err(|cause| cannot_encode(sink, cause))?;
    write_bytes(&bytes, sink, no_clobber, timings)
}

fn cannot_encode(sink: &Sink, cause: impl Into<BoxError>) -> Error {
    Error::new(Kind::Failure, format_args!("cannot encode {sink}")).caused_by(cause)
}

fn write_bytes(bytes: &[u8], sink: &Sink, no_clobber: bool, timings: &Timings) -> Result<()> {
    timings.time("write", || sink.write_with(no_clobber, |output| output.write_all(bytes)))
}

/// Encodes `image` to `sink` in the format of its extension.
///
/// # Errors
/// [`Kind::Usage`] when the extension names no format, [`Kind::Io`] when it cannot be written.
pub fn write_image(
    image: &Image,
    sink: &Sink,
    encoding: &Encoding,
    no_clobber: bool,
    timings: &Timings,
) -> Result<()> {
    let codec = ImageFormat::of_output(sink)?.codec();
    let encode = || -> Result<Vec<u8>, BoxError> {
        let fitted = fitted(image, &codec.holds)?;
        // Encoders abort the process where an allocation fails; their output may be as long as the
        // samples, and lies in two places at times.
        drop(memory::room::<u8>(2 * fitted.samples.as_bytes().len())?);
        (codec.encode)(&fitted, encoding)
    };
    let bytes = timings.time("encode", encode).map_err(|cause| cannot_encode(sink, cause))?;
    write_bytes(&bytes, sink, no_clobber, timings)
}

/// A file of several pages being written.
pub struct PagesWriter<'a> {
    pages: Box<dyn PageWriter + 'a>,
    holds: &'static Holds,
    sink: &'a Sink,
    timings: &'a Timings,
}

impl std::fmt::Debug for PagesWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PagesWriter").field("sink", self.sink).finish_non_exhaustive()
    }
}

impl PagesWriter<'_> {
    /// Writes the next page.
    ///
    /// # Errors
    /// When it cannot be written, or does not go with the pages before it.
    pub fn page(&mut self, image: &Image) -> Result<()> {
        let Self { pages, holds, sink, timings } = self;
        let write = || -> Result<(), BoxError> {
            let fitted = fitted(image, holds)?;
            drop(memory::room::<u8>(2 * fitted.samples.as_bytes().len())?);
            pages.page(&fitted)
        };
        timings.time("encode", write).map_err(|cause| cannot_write(sink, cause))
    }
}

/// What an encoder failed with that writes to `sink` itself.
fn cannot_write(sink: &Sink, cause: BoxError) -> Error {
    match cause.downcast::<io::Error>() {
        Ok(cause) => Error::io("write", sink.to_string(), *cause),
        Err(cause) => cannot_encode(sink, cause),
    }
}

/// Writes a file of `series.count` pages to `sink`, which `fill` hands over one by one.
///
/// # Errors
/// [`Kind::Usage`] when `format` has no pages, [`Kind::Io`] when it cannot be written, and those of `fill`.
pub fn write_pages(
    format: ImageFormat,
    series: Series,
    sink: &Sink,
    encoding: &Encoding,
    no_clobber: bool,
    timings: &Timings,
    fill: impl FnOnce(&mut PagesWriter<'_>) -> Result<()>,
) -> Result<()> {
    let codec = format.codec();
    let Some(encode_pages) = codec.encode_pages else {
        return Err(Error::usage(format_args!("{sink}: this format holds one page")));
    };
    let failed = |cause| cannot_write(sink, cause);
    let mut output = sink.create(no_clobber)?;
    {
        let pages = encode_pages(&mut output, series, encoding).map_err(failed)?;
        let mut writer = PagesWriter { pages, holds: &codec.holds, sink, timings };
        fill(&mut writer)?;
        writer.pages.finish().map_err(failed)?;
    }
    timings.time("write", || output.commit())
}

/// `image` with the samples and channels that a format holds.
fn fitted<'a>(image: &'a Image, holds: &Holds) -> Result<Cow<'a, Image>> {
    let dtype = holds.nearest(image.samples.dtype());
    let mut fitted = match (image.is_linear, holds.linear) {
        (false, true) => Cow::Owned(image.to_linear()?),
        (true, false) => Cow::Owned(image.to_straight(dtype)?),
        _ if dtype != image.samples.dtype() => Cow::Owned(image.narrowed(dtype)?),
        _ => Cow::Borrowed(image),
    };
    if image.has_alpha() && !holds.alpha {
        fitted = Cow::Owned(fitted.without_alpha()?);
    }
    Ok(fitted)
}

/// What of `image` a file of `format` cannot hold, in words; nothing when it holds all.
pub fn losses(image: &Image, format: ImageFormat) -> Option<String> {
    let (holds, own) = (&format.codec().holds, image.samples.dtype());
    let dtype = holds.nearest(own);
    let mut losses = Vec::new();
    if dtype.size() < own.size() {
        losses.push(format!("{own} samples become {dtype}"));
    }
    if image.has_alpha() && !holds.alpha {
        losses.push("alpha is dropped".to_owned());
    }
    let (metadata, kept) = (&image.metadata, holds.metadata);
    for (is_there, is_kept, loss) in [
        (metadata.icc.is_some(), kept.icc, "the colour profile is dropped"),
        (metadata.exif.is_some(), kept.exif, "EXIF is dropped"),
        (metadata.xmp.is_some(), kept.xmp, "XMP is dropped"),
        (metadata.iptc.is_some(), kept.iptc, "IPTC is dropped"),
        (metadata.density.is_some(), kept.density, "the size of pixels is dropped"),
    ] {
        if is_there && !is_kept {
            losses.push(loss.to_owned());
        }
    }
    (!losses.is_empty()).then(|| losses.join(" and "))
}
