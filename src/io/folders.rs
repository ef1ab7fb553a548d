//! Folders that are created together with the first output in them: a run that fails before leaves none.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// Folders that may be created. There are as many as outputs name.
static WANTED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Forgets the folders of an earlier run in this process.
pub fn forget_wanted() {
    WANTED.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// Lets the first output in `folder` create it.
pub fn want(folder: &Path) {
    if !folder.exists() {
        WANTED.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned());
    }
}

/// Creates `folder` if it is wanted.
///
/// # Errors
/// Those of the operating system.
pub fn create_wanted(folder: &Path) -> io::Result<()> {
    let mut wanted = WANTED.lock().unwrap_or_else(PoisonError::into_inner);
    if wanted.contains(folder) {
        fs::create_dir_all(folder)?;
        wanted.remove(folder);
    }
    Ok(())
}
