//! Volumes whose slices are read one at a time, in any order and by several threads at once: a folder of images, a
//! DICOM series, the pages of a TIFF, a Zarr store.
//!
//! Each of these makes a [`Stack`]: a header, and the [`stack::Slices`] themselves. The `VolumeReader` then asks for as
//! many slices as it needs next.

mod grey;
mod images;
pub mod names;
pub mod stack;
pub mod tiff;

use std::path::PathBuf;

use self::{
    names::{display_name, is_multi_file, skipped},
    stack::Stack,
};
use super::{dicom, formats::is_image, raw::Layout, zarr};
use crate::{
    io::{Source, image::has_planes},
    util::error::{Error, Result},
};

/// Opens `source` as a stack, if it is a folder, a pattern of names, a Zarr store, a DICOM file, or an image; `None` for
/// any other file.
///
/// # Errors
/// When the folder contains no slices, or slices that do not belong together.
pub fn find(source: &Source, layout: &Layout) -> Result<Option<Stack>> {
    let Some(path) = source.path().filter(|_| !layout.is_raw()) else { return Ok(None) };
    if !is_multi_file(source) {
        if dicom::is_dicom(path) && source.size()?.is_some() {
            let files = [path.to_owned()];
            return dicom::stack(source, &files, layout.series.as_ref(), Vec::new()).map(Some);
        }
        let is_image = is_image(path) && source.size()?.is_some();
        let one = || match has_planes(path) {
            true => tiff::stack(source, path),
            false => images::stack(source, vec![path.to_owned()], Vec::new()),
        };
        return is_image.then(one).transpose();
    }
    if zarr::is_store(path) {
        return zarr::stack(source, path, layout).map(Some);
    }
    let files = names::files(source, path)?;
    let (dicom, files): (Vec<PathBuf>, Vec<PathBuf>) =
        files.into_iter().partition(|file| !is_image(file) && dicom::is_dicom(file));
    if !dicom.is_empty() {
        return dicom::stack(source, &dicom, layout.series.as_ref(), skipped(&files)).map(Some);
    }
    let (images, others): (Vec<PathBuf>, Vec<PathBuf>) =
        files.into_iter().partition(|file| is_image(file));
    if images.is_empty() {
        let folders = names::folders_in(path);
        let only = folders
            .first()
            .map(|folder| format!(", only folders such as {}", display_name(folder)));
        let only = only.unwrap_or_default();
        return Err(Error::bad_input(format_args!("{source}: contains no image slices{only}")));
    }
    images::stack(source, images, skipped(&others)).map(Some)
}
