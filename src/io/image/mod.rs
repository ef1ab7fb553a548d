//! Image formats: files are read into an [`Image`](crate::data::image::Image), and written in the format that the
//! extension names.
//!
//! Each format is one module with one `codec::Codec`; this module chooses among them.

pub mod apart;
mod bmp;
mod canvas;
mod codec;
mod exr;
mod foreign;
mod gif;
mod image_crate;
pub mod jpeg;
mod limits;
mod metadata;
mod page_range;
mod pfm;
pub mod png;
mod pnm;
mod probe;
mod read;
mod riff;
mod rows;
pub mod tiff;
mod webp;
mod write;

pub use codec::{Animation, Delay, Encoding, Series};
pub use foreign::refusal as foreign_refusal;
pub use page_range::PageRange;
pub use probe::{Probe, has_image_name, is_jpeg, is_tiff, probe, probe_piped, sample_bytes};
pub(super) use read::caught;
pub use read::{ImageFile, ImagePages, read_image};
pub use rows::{ReadRows, RowsInfo, RowsReader, WriteRows, can_write_rows, create_rows, open_rows};
pub use write::{ImageTarget, PagesWriter, write_image};

use self::codec::{BoxError, Codec};
use super::Sink;
use crate::util::error::{Error, Result};

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
    Pfm,
    Gif,
}

impl ImageFormat {
    const ALL: [Self; 9] = [
        Self::Png,
        Self::Jpeg,
        Self::Tiff,
        Self::OpenExr,
        Self::WebP,
        Self::Gif,
        Self::Bmp,
        Self::Pnm,
        Self::Pfm,
    ];

    fn codec(self) -> &'static Codec {
        match self {
            Self::Png => &png::CODEC,
            Self::Jpeg => &jpeg::CODEC,
            Self::Tiff => &tiff::CODEC,
            Self::OpenExr => &exr::CODEC,
            Self::WebP => &webp::CODEC,
            Self::Bmp => &bmp::CODEC,
            Self::Pnm => &pnm::CODEC,
            Self::Pfm => &pfm::CODEC,
            Self::Gif => &gif::CODEC,
        }
    }

    /// The usual file name extension of the format, in lower case.
    pub fn extension(self) -> &'static str {
        self.codec().extensions[0]
    }

    /// The format named by the extension of `sink`.
    ///
    /// # Errors
    /// [`Kind::Usage`] if the extension names no image format.
    pub fn of_output(sink: &Sink) -> Result<Self> {
        let extension = sink.extension();
        let named = |format: &Self| format.codec().extensions.contains(&extension.as_str());
        Self::ALL.into_iter().find(named).ok_or_else(|| {
            let what = match extension.is_empty() {
                true => "a name without an extension tells no image format".to_owned(),
                false => format!("no image format is known by the extension `{extension}`"),
            };
            Error::usage(format_args!(
                "{sink}: {what}; use .png, .jpg, .tif, .exr, .webp, .gif, .bmp, .pnm or .pfm"
            ))
        })
    }

    /// The format of a file that begins with `bytes`, found by its signature. The extension only helps to recognize
    /// formats that are not supported.
    fn of_file(bytes: &[u8], extension: &str) -> Result<Self, BoxError> {
        if bytes.is_empty() {
            return Err("the file is empty".into());
        }
        if let Some(refusal) = foreign::refusal(bytes, extension) {
            return Err(refusal.into());
        }
        let begins = |format: &Self| (format.codec().has_signature)(bytes);
        Self::ALL.into_iter().find(begins).ok_or_else(|| match image::guess_format(bytes) {
            Ok(other) => format!("The image format {other:?} is not supported").into(),
            Err(_) => "this is no image format that is known here".into(),
        })
    }
}
