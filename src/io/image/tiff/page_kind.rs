//! Meaning of the pages of a file: images, or slices of a volume.

use super::{directory::TiffFile, planes::Planes, stack, tag};
use crate::io::{RegularFile, image::error::BoxError};

/// Meaning of the pages of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// There is one page.
    One,
    /// There are several pages, whose meaning the file does not state.
    Several,
    /// The file states that its pages are slices of volumes.
    Slices,
}

impl PageKind {
    /// Reads the directories of the file `input`.
    pub fn read(input: &RegularFile) -> Result<Self, BoxError> {
        Ok(match has_slices(input)? {
            true => Self::Slices,
            false if TiffFile::open_file(input)?.pages()?.offsets.len() > 1 => Self::Several,
            false => Self::One,
        })
    }
}

/// Whether the file `input` states that its pages are slices of volumes, by its first directory.
pub fn has_slices(input: &RegularFile) -> Result<bool, BoxError> {
    let file = TiffFile::open_file(input)?;
    let directory = file.directory(file.first_directory)?;
    let description = file.text(&directory, tag::DESCRIPTION).unwrap_or_default();
    let has_more = || -> Result<bool, BoxError> {
        // Slices without directories follow the first one.
        Ok(directory.next != 0 || Planes::open(input, 1)?.description.dims[2] > 1)
    };
    Ok(stack::states_slices(&description) && has_more()?)
}
