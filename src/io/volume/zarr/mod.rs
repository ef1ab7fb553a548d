//! Zarr 2 and 3, and OME-NGFF images in them: folders of compressed chunks.
//!
//! `store` reads files from folders, ZIP files and web addresses. `group` finds the array and the axes of an image,
//! `array` parses the metadata of an array, `codec` and `blosc` decompress chunks, `view` and `read` copy their samples
//! into slices, `present` finds out which chunks exist, and `pyramid` and `write` make pyramids. The crate `zarrs` does all this and
//! more, but needs 72 crates beyond those in use here, and a C and a C++ compiler.

mod array;
mod blosc;
mod chunks;
mod codec;
mod fill;
mod group;
mod present;
mod pyramid;
mod read;
mod requests;
mod shard;
mod slicing;
mod stack;
mod store;
mod unpack;
mod view;
mod write;

pub use pyramid::{Pyramid, PyramidOptions, is_named_so};
pub use stack::{NAMES, files, stack, state};
pub use store::{is_address_or_zip, is_store};
pub use write::PyramidWriter;
