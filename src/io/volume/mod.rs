//! Volumes: files of all formats are read slice by slice, and written.
//!
//! Each format is one file with one `format::Format`: a parser of the header, which says what the samples are and where
//! they begin. `file` chooses the format; `reader` then streams the samples of all formats. Raw volumes have no
//! header: flags, the name or the size of the file replace it. Volumes in slices (images, DICOM, TIFF, Zarr) come
//! through `slices`.

mod convert;
mod data;
mod dicom;
mod fields;
mod file;
mod format;
mod formats;
mod members;
mod meta_image;
mod mrc;
mod nifti;
mod npy;
mod nrrd;
mod parts;
mod raw;
mod reader;
mod rotation;
mod slices;
mod text;
mod write;
mod zarr;

pub use dicom::Series;
pub use file::{VolumeFile, can_reopen, files_of};
pub use format::{Endian, Scale, Stored};
pub use formats::is_volume;
pub use parts::{Part, Parts};
pub use raw::Layout;
pub use reader::VolumeReader;
pub use slices::names::are_many;
pub use write::{VolumeFormat, VolumeTarget, VolumeWriter};
pub use zarr::{
    Pyramid, PyramidOptions, PyramidWriter, is_named_so as is_zarr_output, is_store as is_zarr,
    state as state_of_address,
};
