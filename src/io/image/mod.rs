//! Image formats: files are read into an [`Image`](crate::data::image::Image), and written in the format that the
//! extension names.
//!
//! Each format is one module with one `codec::Codec`; `formats` lists them.

pub mod apart;
mod bmp;
mod canvas;
mod codec;
mod exr;
mod foreign;
mod formats;
mod gif;
mod image_crate;
mod inspect;
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

pub(super) use codec::caught;
pub use codec::{Animation, Delay, Encoding, Series};
pub use foreign::refusal as foreign_refusal;
pub use formats::{ImageFormat, can_write_rows, create_rows, has_image_name, open_rows};
pub use inspect::{is_jpeg, is_tiff, probe, probe_piped, sample_bytes};
pub use page_range::PageRange;
pub use probe::Probe;
pub use read::{ImageFile, ImagePages, read_image};
pub use rows::{ReadRows, RowsInfo, RowsReader, WriteRows};
pub use write::{ImageTarget, PagesWriter};
