//! Meaning of the pages of a file: images, or slices of a volume.

use std::path::Path;

use super::{directory::TiffFile, planes::Planes, stack, tag};
use crate::io::image::error::BoxError;

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
    /// Reads the directories of the file at `path`.
    pub fn read(path: &Path) -> Result<Self, BoxError> {
        let file = TiffFile::open_path(path)?;
        let directory = file.directory(file.first_directory)?;
        let description = file.text(&directory, tag::DESCRIPTION).unwrap_or_default();
        let states_slices = stack::states_slices(&description);
        Ok(match directory.next {
            0 if states_slices && Planes::open(path, 1)?.description.dims[2] > 1 => Self::Slices,
            0 => Self::One,
            _ if states_slices => Self::Slices,
            _ if file.pages()?.offsets.len() == 1 => Self::One,
            _ => Self::Several,
        })
    }
}
