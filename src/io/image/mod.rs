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
mod read;
mod rows;
mod tiff;
mod webp;
mod write;

pub use codec::{Animation, Delay, Encoding, Series};
pub use probe::{Probe, has_image_name, probe, sample_bytes};
pub use read::{ImageFile, ImagePages, decode_jpeg, read_image};
pub use rows::{ReadRows, RowsInfo, WriteRows, can_write_rows, create_rows, open_rows};
pub use write::{PagesWriter, losses, write_image, write_jpeg, write_pages};

use self::codec::{BoxError, Codec};
use super::Sink;
use crate::error::{Error, Result};

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
