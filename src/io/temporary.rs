//! Temporary files that belong to no output.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

/// The folder for temporary files that belong to no output: `TMPDIR`, else the default of the system. An empty `TMPDIR`
/// counts as unset.
pub fn temporary_folder() -> PathBuf {
    let folder = std::env::temp_dir();
    if folder.as_os_str().is_empty() { PathBuf::from("/tmp") } else { folder }
}

/// Creates a temporary file in `folder`, which is deleted when it is closed. The error names the folder, and `TMPDIR`
/// if the folder comes from it.
pub fn temporary_file(folder: &Path) -> io::Result<File> {
    tempfile::tempfile_in(folder).map_err(|error| {
        let variable = if folder == temporary_folder() { " (TMPDIR)" } else { "" };
        let folder = folder.display();
        let message = format!("cannot create a temporary file in {folder}{variable}: {error}");
        io::Error::new(error.kind(), message)
    })
}
