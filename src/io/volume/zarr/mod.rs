//! Zarr 2 and 3, and OME-NGFF images in them: folders of compressed chunks.
//!
//! `store` reads files from folders, ZIP files and web addresses. `group` finds the array and the axes of an image,
//! `array` parses the metadata of an array, `codec` and `blosc` decompress chunks, `reader` and `slices` copy their
//! samples into slices, `existing` lists the chunks that exist, and `pyramid` and `write` make pyramids. The crate
//! `zarrs` does all this and more, but needs 72 crates beyond those in use here, and a C and a C++ compiler.

mod array;
mod blosc;
mod chunks;
mod codec;
mod existing;
mod fetch;
mod fill;
mod group;
mod pyramid;
mod reader;
mod shard;
mod slices;
mod slicing;
mod stack;
mod store;
mod unpack;
mod write;

pub use group::Image;
pub use pyramid::{EXTENSION, Pyramid, PyramidOptions, check_store_path, is_zarr_path};
pub use stack::{FORMAT, address_state, files};
pub use store::{is_address, is_address_or_zip, is_store};
pub use write::PyramidWriter;
