//! Images: files of every format read into an [`Image`], and written in the format of their extension.
//!
//! A format is one file with one `codec::Codec`; this one chooses among them.

pub mod apart;
mod bmp;
mod codec;
mod exr;
mod image_crate;
pub mod jpeg;
mod limits;
mod metadata;
pub mod png;
mod pnm;
mod probe;
mod tiff;
mod webp;

pub use codec::Encoding;
pub use probe::{Probe, has_image_name, probe, sample_bytes};

use std::{
    borrow::Cow,
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
};

use self::codec::{BoxError, Codec, Decoded, Holds};
use super::{Limits, Sink, Source};
use crate::{
    data::{
        image::{Image, Metadata},
        jpeg::SparseCoefficients,
    },
    error::{Error, Kind, Result},
    memory,
    timings::Timings,
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
    Bmp,
    Pnm,
}

impl ImageFormat {
    const ALL: [Self; 7] =
        [Self::Png, Self::Jpeg, Self::Tiff, Self::OpenExr, Self::WebP, Self::Bmp, Self::Pnm];

    fn codec(self) -> &'static Codec {
        match self {
            Self::Png => &png::CODEC,
            Self::Jpeg => &jpeg::CODEC,
            Self::Tiff => &tiff::CODEC,
            Self::OpenExr => &exr::CODEC,
            Self::WebP => &webp::CODEC,
            Self::Bmp => &bmp::CODEC,
            Self::Pnm => &pnm::CODEC,
        }
    }

    /// The format that the extension of `sink` names.
    ///
    /// # Errors
    /// [`Kind::Usage`] when it names none.
    pub fn of_output(sink: &Sink) -> Result<Self> {
        let extension = sink.extension();
        let named = |format: &Self| format.codec().extensions.contains(&extension.as_str());
        Self::ALL.into_iter().find(named).ok_or_else(|| {
            Error::usage(format_args!(
                "{sink}: no image format is known by the extension `{extension}`; \
                 use .png, .jpg, .tif, .exr, .webp, .bmp or .pnm"
            ))
        })
    }

    /// The format of a file that begins with `bytes`.
    fn of_file(bytes: &[u8]) -> Result<Self, BoxError> {
        if bytes.is_empty() {
            return Err("the file is empty".into());
        }
        let begins = |format: &Self| (format.codec().has_signature)(bytes);
        Self::ALL.into_iter().find(begins).ok_or_else(|| match image::guess_format(bytes) {
            Ok(other) => format!("The image format {other:?} is not supported").into(),
            Err(_) => "this is no image format that is known here".into(),
        })
    }
}

/// Reads and decodes `source`, whatever its name says of its format. A picture stored rotated comes
/// out upright. The file and its samples each take at most `limits`.
///
/// # Errors
/// [`Kind::Io`] when it cannot be read, [`Kind::BadInput`] when it is no image, a broken one, or too
/// large.
pub fn read_image(source: &Source, limits: impl Into<Limits>, timings: &Timings) -> Result<Image> {
    ImageFile::read(source, limits, timings)?.decode(timings)
}

/// A file that is read but not decoded.
#[derive(Debug)]
pub struct ImageFile<'a> {
    source: &'a Source,
    bytes: Vec<u8>,
    limits: Limits,
}

impl<'a> ImageFile<'a> {
    /// Reads `source`. The file and its samples each take at most `limits`.
    ///
    /// # Errors
    /// [`Kind::Io`] when it cannot be read.
    pub fn read(source: &'a Source, limits: impl Into<Limits>, timings: &Timings) -> Result<Self> {
        let limits = limits.into();
        let bytes = timings.time("read", || source.read_all(limits.bytes))?;
        Ok(Self { source, bytes, limits })
    }

    /// Decodes the file, whatever its name says of its format. A picture stored rotated comes out upright.
    ///
    /// # Errors
    /// [`Kind::BadInput`] when it is no image, a broken one, or too large.
    pub fn decode(&self, timings: &Timings) -> Result<Image> {
        let Self { source, bytes, limits } = self;
        self.catching(timings, || {
            let Decoded { image, orientation, losses, damage } =
                (ImageFormat::of_file(bytes)?.codec().decode)(bytes, *limits)?;
            self.tell_damage(damage)?;
            losses.iter().for_each(|loss| log::warn!("{source}: {loss}"));
            Ok(image.upright(orientation)?)
        })
    }

    /// The coefficients of a JPEG file; nothing of other files, nor where its pixels have to be turned.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn jpeg(&self, timings: &Timings) -> Result<Option<jpeg::Picture>> {
        self.catching(timings, || {
            let Some(picture) = jpeg::read_coefficients(&self.bytes, self.limits) else {
                return Ok(None);
            };
            self.tell_damage(picture.damage.clone())?;
            picture.losses.iter().for_each(|loss| log::warn!("{}: {loss}", self.source));
            Ok(Some(picture))
        })
    }

    /// Warns of what is missing of the picture, or refuses it.
    fn tell_damage(&self, damage: Option<String>) -> Result<(), BoxError> {
        match damage {
            Some(damage) if self.limits.strict => Err(damage.into()),
            Some(damage) => {
                log::warn!("{}: {damage}", self.source);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Runs `decode`. Decoders panic on some broken files.
    fn catching<T>(
        &self,
        timings: &Timings,
        decode: impl FnOnce() -> Result<T, BoxError>,
    ) -> Result<T> {
        let decoded = timings.time("decode", || catch_unwind(AssertUnwindSafe(decode)));
        let decoded = decoded.unwrap_or_else(|panic| {
            Err(match memory::raised(panic) {
                Ok(error) => error.into(),
                Err(_) => "the decoder crashed on it".into(),
            })
        });
        decoded.map_err(|error| {
            Error::bad_input(format_args!("cannot decode {}", self.source)).caused_by(error)
        })
    }
}

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
    if image.metadata.icc.is_some() && !holds.metadata {
        losses.push("the colour profile is dropped".to_owned());
    }
    if image.metadata.exif.is_some() && !holds.metadata {
        losses.push("EXIF is dropped".to_owned());
    }
    (!losses.is_empty()).then(|| losses.join(" and "))
}
