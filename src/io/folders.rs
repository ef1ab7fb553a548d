//! Folders that are created together with the first output in them: a run that fails before leaves none.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// Folders that may be created. There are as many as outputs name.
static WANTED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Folders that this run has created.
static CREATED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Forgets the folders of an earlier run in this process.
pub fn forget_folders() {
    for folders in [&WANTED, &CREATED] {
        folders.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Removes the folders that this run has created and that are empty, because an output in them was not completed.
pub fn remove_empty() {
    let created = std::mem::take(&mut *CREATED.lock().unwrap_or_else(PoisonError::into_inner));
    // A folder comes before those in it. The system refuses to remove a folder that is not empty.
    created.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
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
        let missing = folder.ancestors().take_while(|folder| !folder.exists());
        let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        fs::create_dir_all(folder)?;
        CREATED.lock().unwrap_or_else(PoisonError::into_inner).extend(missing);
        wanted.remove(folder);
    }
    Ok(())
}
