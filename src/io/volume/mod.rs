//! Volumes: reads files of all formats slice by slice, and writes them.
//!
//! `formats` is the table of formats. Each format is one file or folder with one `format::Format`, most of them with a
//! parser of the header, which states the type and the offset of the samples. `file` chooses the format; `reader` then
//! streams the samples of all formats. Raw volumes have no header: flags, the name or the size of the file replace it.
//! Volumes in slices (images, DICOM, TIFF, Zarr) come through `slices`.

mod batches;
mod convert;
mod dicom;
mod fields;
mod file;
mod format;
mod formats;
mod gz;
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
pub use dicom::{SeriesId, is_dicom};
pub use file::{VolumeFile, can_reopen, files_of};
pub use format::{Endian, Scale, StoredType};
pub use formats::{has_volume_extension, is_image as is_picture, is_volume};
pub use raw::Layout;
pub use reader::VolumeReader;
pub use slices::names::{folders_in, is_multi_file};
pub use write::{VolumeFormat, VolumeTarget, VolumeWriter};
pub use zarr::{
    Pyramid, PyramidOptions, PyramidWriter, address_state, is_address, is_store as is_zarr,
    is_zarr_path,
};
