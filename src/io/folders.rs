//! Folders that are created together with the first output in them: a run that fails before leaves none.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The folders of the outputs of this run.
#[derive(Debug)]
pub struct Folders {
    /// Folders that may be created. There are as many as outputs name.
    wanted: BTreeSet<PathBuf>,
    /// Folders that this run has created.
    created: BTreeSet<PathBuf>,
}

static FOLDERS: Mutex<Folders> =
    Mutex::new(Folders { wanted: BTreeSet::new(), created: BTreeSet::new() });

fn folders() -> MutexGuard<'static, Folders> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forgets the folders of an earlier run in this process.
pub fn forget_folders() {
    let mut folders = folders();
    folders.wanted.clear();
    folders.created.clear();
}

/// Removes the folders that this run has created and that are empty, because an output in them was not completed. While
/// the returned lock is held, no folder is created.
pub fn remove_empty() -> MutexGuard<'static, Folders> {
    let mut folders = folders();
    // A folder comes before those in it. The system refuses to remove a folder that is not empty.
    std::mem::take(&mut folders.created)
        .iter()
        .rev()
        .for_each(|folder| drop(fs::remove_dir(folder)));
    folders
}

/// Lets outputs in `folder` create it. It may exist now, and be removed by another process that fails.
pub fn want(folder: &Path) {
    folders().wanted.insert(folder.to_owned());
}

/// Calls `create`, which creates a file or folder in `folder`. If `folder` is missing and wanted, it is created first.
/// Unnamed files do not keep it: another process that fails may find it empty and remove it at any time.
pub fn create_in<T>(folder: &Path, create: impl Fn() -> io::Result<T>) -> io::Result<T> {
    /// Maximum number of processes that may remove the folder in between.
    const ATTEMPTS: usize = 10;
    for _ in 0..ATTEMPTS {
        match create() {
            Err(error) if error.kind() == io::ErrorKind::NotFound && create_wanted(folder)? => {}
            created => return created,
        }
    }
    create()
}

/// Creates `folder` if it is wanted. Returns whether it is.
fn create_wanted(folder: &Path) -> io::Result<bool> {
    let mut folders = folders();
    let is_wanted = folders.wanted.contains(folder);
    if is_wanted {
        let missing = folder.ancestors().take_while(|folder| !folder.exists());
        let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        fs::create_dir_all(folder)?;
        folders.created.extend(missing);
    }
    Ok(is_wanted)
}
