//! Volumes whose slices are read one at a time, in any order and by several threads at once: a folder of images, a
//! DICOM series, the pages of a TIFF, a Zarr store.
//!
//! Each of these makes a header and [`stack::Slices`]. The `VolumeReader` then asks for as many slices as it needs next.

pub mod grey;
pub mod images;
pub mod names;
pub mod stack;
pub mod tiff;
