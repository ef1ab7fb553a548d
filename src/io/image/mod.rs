//! Image formats. Files are read into an [`Image`](crate::data::image::Image), and written in the format of the file
//! name extension.
//!
//! Each format is a module with a `codec::Codec`; `formats` has the table of all formats.

mod bmp;
mod canvas;
mod codec;
mod consistency;
mod error;
mod exr;
mod formats;
mod gif;
mod image_crate;
mod inspect;
pub mod jpeg;
#[cfg(feature = "jxl")]
mod jxl;
mod limits;
mod metadata;
mod page_range;
mod pages;
mod pfm;
pub mod png;
mod pnm;
mod probe;
mod read;
mod riff;
mod rows;
pub mod sandbox;
pub mod tiff;
mod unsupported;
#[cfg(feature = "webp-lossy")]
mod vp8;
mod webp;
mod write;
mod xmp;

pub(super) use error::catch_panic;
pub use formats::{
    ImageFormat, can_write_rows, create_rows, has_image_name, has_jpeg_name, open_rows,
};
pub use inspect::{
    PlannedSize, has_planes, has_slices, is_jpeg, page_kind, planned_size, probe, probe_piped,
    sample_bytes, smaller_sizes,
};
pub use page_range::PageRange;
pub use pages::{Animation, Delay, Encoding, Picture, Series};
pub use probe::Probe;
pub use read::{ImageFile, ImagePages, read_image};
pub use rows::{ReadRows, RowsHeader, RowsReader, WriteRows};
pub use tiff::PageKind;
pub use unsupported::message as unsupported_format;
pub use write::{ImageTarget, PagesWriter};
