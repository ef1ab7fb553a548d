//! Volumes: reads files of all formats slice by slice, and writes them.
//!
//! `formats` is the table of formats, and chooses one. Each format is one file or folder with one `format::Format`, whose
//! function `open` returns a `header::Description` and the location of the samples; `reader` then streams them. Raw volumes
//! have no header: flags, the name or the size of the file replace it. Volumes in slices (images, DICOM, TIFF, Zarr) are
//! read through `slices::stack::Slices`.

mod batches;
mod convert;
mod dicom;
mod fields;
mod file;
mod format;
mod formats;
mod gz;
pub(in crate::io) mod header;
mod interleaved;
mod layout;
mod meta_image;
mod mrc;
mod nifti;
mod npy;
mod nrrd;
mod raw;
mod reader;
mod rotation;
mod slices;
mod stream;
mod text;
mod write;
mod zarr;

pub use batches::{BatchReader, SampleBatch};
pub use dicom::is_dicom;
pub use file::{VolumeFile, can_reopen, source_files};
pub use formats::{has_volume_extension, is_volume};
pub use header::{Endian, Scale, StoredType};
pub use layout::{Layout, SeriesId};
pub use reader::VolumeReader;
pub use slices::names::{folder_or_pattern, folders_in, is_multi_file};
pub use slices::stack::Slices;
pub use write::{VolumeFormat, VolumeTarget, VolumeWriter, check_labels};
pub use zarr::{
    EXTENSION as ZARR_EXTENSION, Pyramid, PyramidOptions, PyramidWriter, address_state,
    check_store_path, is_address, is_store as is_zarr, is_zarr_path,
};
