//! Outputs that are still being written.
//!
//! On Linux an unfinished file has no name (`O_TMPFILE`, supported by ext4, XFS, Btrfs and tmpfs): however the process
//! ends, nothing of the file stays behind. Elsewhere an unfinished file is named `.gpuproc-*.part`, and is removed when
//! the process is about to end.

use std::{
    fs::{self, File, TryLockError},
    hash::Hasher,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use fnv::FnvHasher;
use tempfile::{Builder, NamedTempFile, TempDir};

/// The paths of unfinished files and folders, for [`remove_unfinished_outputs`].
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes all unfinished files and folders, for a process that is about to be stopped. From then on no thread can
/// begin or complete an output, since the locks are never released.
pub fn remove_unfinished_outputs() {
    let mut unfinished = unfinished();
    for path in unfinished.drain(..) {
        // A file that cannot be removed stays behind: the process ends.
        if path.is_dir() {
            // Other threads may still create files in the folder, so removal is tried three times.
            (0..3).find(|_| fs::remove_dir_all(&path).is_ok());
        } else {
            let _ = fs::remove_file(path);
        }
    }
    std::mem::forget((unfinished, super::folders::remove_empty()));
}

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Entry in [`UNFINISHED`], which ends when this is dropped.
#[derive(Debug)]
pub struct Listed(PathBuf);

impl Listed {
    fn new(path: &Path, unfinished: &mut Vec<PathBuf>) -> Self {
        unfinished.push(path.to_owned());
        Self(path.to_owned())
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        unfinished().retain(|path| *path != self.0);
    }
}

/// A file being written. Unless it is renamed, no trace of it remains.
#[derive(Debug)]
pub enum UnfinishedFile {
    /// A file without a name.
    #[cfg(target_os = "linux")]
    Nameless(File),
    /// A file with a temporary name.
    Named(NamedTempFile, Listed),
}

impl UnfinishedFile {
    /// Creates an empty unfinished file on the file system of `folder`, to be renamed into `folder`.
    pub fn create(folder: &Path) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Ok(file) = nameless::create(folder) {
            return Ok(Self::Nameless(file));
        }
        Self::named(folder)
    }

    fn named(folder: &Path) -> io::Result<Self> {
        // The lock is held, so that `remove_unfinished_outputs` finds either no file, or a file that is listed.
        let mut unfinished = unfinished();
        let file = builder(".gpuproc-", 0o666).tempfile_in(folder).map_err(without_name)?;
        let listed = Listed::new(file.path(), &mut unfinished);
        Ok(Self::Named(file, listed))
    }

    /// Gives the file the name `path`. If that fails, nothing of the file remains.
    pub fn rename(self, path: &Path, no_clobber: bool) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Nameless(file) => nameless::rename(file, path, no_clobber),
            Self::Named(file, _listed) => {
                // The lock is held, so that no output appears after `remove_unfinished_outputs`.
                let _lock = unfinished();
                persist(file, path, no_clobber)
            }
        }
    }

    /// The open file.
    pub fn file(&self) -> &File {
        match self {
            #[cfg(target_os = "linux")]
            Self::Nameless(file) => file,
            Self::Named(file, _) => file.as_file(),
        }
    }
}

impl Write for UnfinishedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

fn persist<F>(file: NamedTempFile<F>, path: &Path, no_clobber: bool) -> io::Result<()> {
    let renamed = if no_clobber { file.persist_noclobber(path) } else { file.persist(path) };
    renamed.map(drop).map_err(|error| error.error)
}

/// A folder being written. Unless it is renamed, it is removed again. If the process is killed or the machine stops, it
/// is left as `.gpuproc-*.part`, and the next process that writes the same output removes it.
///
/// The process that writes a folder holds a lock on it, which ends with the process.
#[derive(Debug)]
pub struct UnfinishedFolder {
    folder: TempDir,
    _listed: Listed,
    /// `None` if the file system has no locks for folders.
    _lock: Option<File>,
}

impl UnfinishedFolder {
    /// Creates an empty unfinished folder next to `target`, to be renamed to `target`. First removes unfinished folders
    /// for the same target that killed processes have left.
    pub fn create(target: &Path) -> io::Result<Self> {
        let (parent, prefix) = (parent_folder(target), prefix_for(target));
        clean_up(target);
        loop {
            let mut unfinished = unfinished();
            let create = || builder(&prefix, 0o777).tempdir_in(parent).map_err(without_name);
            let folder = super::folders::create_in(&link_target(parent), create)?;
            let lock = File::open(folder.path()).ok();
            let locked = lock.as_ref().map(File::try_lock);
            // Before it was locked, another process may have taken the folder for one that a killed process left.
            if matches!(locked, Some(Err(TryLockError::WouldBlock))) || !folder.path().is_dir() {
                continue;
            }
            let listed = Listed::new(folder.path(), &mut unfinished);
            return Ok(Self { folder, _listed: listed, _lock: lock });
        }
    }

    /// Leaves the folder behind, as a process does that is killed.
    #[cfg(test)]
    pub fn leave(self) -> PathBuf {
        self.folder.keep()
    }

    /// The path of the unfinished folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Gives the folder the name `path`. An existing folder of this name is replaced: on Linux atomically, elsewhere
    /// the existing folder is moved away first. With `no_clobber`, an existing folder is an error
    /// ([`io::ErrorKind::AlreadyExists`]).
    pub fn rename(self, path: &Path, no_clobber: bool) -> io::Result<()> {
        // The lock is held, so that no output appears after `remove_unfinished_outputs`.
        let _lock = unfinished();
        match fs::symlink_metadata(path) {
            _ if no_clobber => rename_new(self.path(), path),
            // The replaced folder has the temporary name then, and is removed with `self`.
            Ok(_) => swap(self.path(), path),
            Err(_) => fs::rename(self.path(), path),
        }
    }
}

/// The folder that contains `path`.
pub fn parent_folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The file to which `path` leads by symbolic links, also if that is missing.
pub fn link_target(path: &Path) -> PathBuf {
    /// Maximum number of symbolic links in a row, as in Linux.
    const LINKS: usize = 40;
    let mut target = path.to_owned();
    for _ in 0..LINKS {
        match target.read_link() {
            Ok(next) => target = parent_folder(&target).join(next),
            Err(_) => break,
        }
    }
    target
}

/// Prefix of the names of unfinished folders for `target`. Other targets in the same folder have other prefixes.
fn prefix_for(target: &Path) -> String {
    let mut hasher = FnvHasher::default();
    hasher.write(target.file_name().unwrap_or_default().as_encoded_bytes());
    format!(".gpuproc-{:016x}-", hasher.finish())
}

/// Removes the folder `target`. It is renamed first, so that no process takes a partly removed folder for a complete one. If
/// the process is killed meanwhile, [`clean_up`] removes the rest.
pub fn remove_folder(target: &Path) -> io::Result<()> {
    let trash = target.with_file_name(trash_name(target));
    fs::rename(target, &trash)?;
    fs::remove_dir_all(trash)
}

/// The name of the folder `target` while it is removed. [`clean_up`] recognizes it.
pub fn trash_name(target: &Path) -> String {
    prefix_for(target) + &temporary_name()
}

/// Renames `from` to `to`, unless that exists.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::{
            fs::{CWD, RenameFlags, renameat_with},
            io::Errno,
        };
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            // The file system does not support this kind of renaming.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            Err(Errno::EXIST) => return Err(already_exists()),
            renamed => return renamed.map_err(io::Error::from),
        }
    }
    match fs::symlink_metadata(to) {
        Ok(_) => Err(already_exists()),
        Err(_) => fs::rename(from, to),
    }
}

/// Removes unfinished folders for `target` that killed processes have left: those that no process has locked.
pub fn clean_up(target: &Path) {
    let prefix = prefix_for(target);
    for entry in fs::read_dir(parent_folder(target)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        let is_unfinished = name.starts_with(prefix.as_bytes()) && name.ends_with(b".part");
        // The type of the entry itself: links are not followed.
        if is_unfinished && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let lock = File::open(entry.path());
            if lock.is_ok_and(|lock| {
                lock.try_lock().is_ok() && fs::remove_dir_all(entry.path()).is_ok()
            }) {
                log::info!("{}: removed, because a killed process left it", entry.path().display());
            }
        }
    }
}

/// Exchanges two folders.
pub fn swap(new: &Path, old: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        if renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE).is_ok() {
            return Ok(());
        }
    }
    swap_in_steps(new, old)
}

/// As [`swap`], but no folder has the name `old` in between.
pub fn swap_in_steps(new: &Path, old: &Path) -> io::Result<()> {
    let trash = old.with_file_name(trash_name(old));
    // Another process that calls `clean_up` leaves a locked folder alone.
    let _lock = File::open(old).inspect(|old| drop(old.lock()));
    fs::rename(old, &trash)?;
    if let Err(error) = fs::rename(new, old) {
        return fs::rename(&trash, old).and(Err(error));
    }
    // The new folder is in place. `clean_up` removes an old one that cannot be renamed.
    let _ = fs::rename(&trash, new);
    Ok(())
}

/// The error for an output that exists and must not be replaced.
pub fn already_exists() -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, "it exists already")
}

/// A name for an unfinished file or folder, unique among all processes.
pub fn temporary_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!(".gpuproc-{}-{now:x}-{count}.part", std::process::id())
}

/// Builder of unfinished files and folders. As for any new file, the umask is applied to `mode`.
fn builder(prefix: &str, #[cfg_attr(not(unix), expect(unused))] mode: u32) -> Builder<'_, 'static> {
    let mut builder = Builder::new();
    builder.prefix(prefix).suffix(".part");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    builder
}

/// The error of the operating system on creating a file, without the file's temporary name.
fn without_name(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path ") {
        Some((plain, _)) => io::Error::new(error.kind(), plain),
        None => error,
    }
}

/// Unfinished files without a name.
#[cfg(target_os = "linux")]
mod nameless {
    use std::{
        fs::OpenOptions,
        io::Seek,
        os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    };

    use rustix::fs::{AtFlags, CWD, OFlags, linkat};

    use super::*;
    use crate::io::folders;

    /// Creates a file on the file system of `folder` that has no name.
    pub fn create(folder: &Path) -> io::Result<File> {
        let flags = OFlags::TMPFILE.bits() as i32;
        OpenOptions::new().read(true).write(true).mode(0o666).custom_flags(flags).open(folder)
    }

    /// Gives the file the name `path`. `linkat` fails for a name that exists, so to replace a file, the new file is
    /// linked as `.gpuproc-*.part` and renamed.
    pub fn rename(file: File, path: &Path, no_clobber: bool) -> io::Result<()> {
        let folder = parent_folder(path);
        // The lock is held, so that no output appears after `remove_unfinished_outputs`.
        let unfinished = unfinished();
        match folders::create_in(&link_target(folder), || link(&file, path)) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if no_clobber {
                    return Err(already_exists());
                }
                let link = |name: &Path| link(&file, name);
                return persist(builder(".gpuproc-", 0).make_in(folder, link)?, path, false);
            }
            // There is no /proc, or the file system supports O_TMPFILE but cannot link such files.
            Err(_) => drop(unfinished),
        }
        let mut named = UnfinishedFile::named(folder)?;
        named.file().set_permissions(file.metadata()?.permissions())?;
        (&file).rewind()?;
        io::copy(&mut &file, &mut named)?;
        named.rename(path, no_clobber)
    }

    fn link(file: &File, name: &Path) -> io::Result<()> {
        let open = format!("/proc/self/fd/{}", file.as_raw_fd());
        linkat(CWD, open, CWD, name, AtFlags::SYMLINK_FOLLOW).map_err(io::Error::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Unfinished files: the kind that this system chooses, and a named one.
    fn parts(folder: &Path) -> Vec<UnfinishedFile> {
        vec![UnfinishedFile::create(folder).unwrap(), UnfinishedFile::named(folder).unwrap()]
    }

    #[test]
    fn a_name_is_given_once_the_file_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let count = || fs::read_dir(&folder).unwrap().count();
        for kind in 0..2 {
            for content in ["first", "replaced"] {
                let mut part = parts(folder.path()).swap_remove(kind);
                part.write_all(content.as_bytes()).unwrap();
                part.rename(&path, false).unwrap();
                assert_eq!((fs::read_to_string(&path).unwrap().as_str(), count()), (content, 1));
            }
            let part = parts(folder.path()).swap_remove(kind);
            let error = part.rename(&path, true).unwrap_err();
            assert_eq!((error.kind(), count()), (io::ErrorKind::AlreadyExists, 1));
            drop(parts(folder.path()));
            assert_eq!(count(), 1);
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn failures_name_no_file_that_is_there_for_a_short_time() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let target = missing.join("out");
        let errors = [
            UnfinishedFile::named(&missing).map(drop),
            UnfinishedFolder::create(&target).map(drop),
        ];
        for error in errors {
            assert!(!error.unwrap_err().to_string().contains(".gpuproc-"));
        }
    }

    #[test]
    fn folders_are_whole_or_absent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let names = || fs::read_dir(&folder).unwrap().count();
        drop(UnfinishedFolder::create(&path).unwrap());
        assert_eq!(
            (names(), unfinished().iter().any(|path| path.starts_with(&folder))),
            (0, false)
        );
        for content in ["first", "replaced"] {
            let part = UnfinishedFolder::create(&path).unwrap();
            fs::write(part.path().join("file"), content).unwrap();
            part.rename(&path, false).unwrap();
            assert_eq!(fs::read_to_string(path.join("file")).unwrap(), content);
            assert_eq!(names(), 1);
        }
        let part = UnfinishedFolder::create(&path).unwrap();
        let error = part.rename(&path, true).unwrap_err();
        assert_eq!((error.kind(), names()), (io::ErrorKind::AlreadyExists, 1));
    }

    /// Only unlocked folders for the same target are removed: nobody holds the lock of a killed process.
    #[cfg(target_os = "linux")]
    #[test]
    fn folders_that_were_left_behind_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let leave = |target: &Path| {
            let left = UnfinishedFolder::create(target).unwrap().leave();
            fs::create_dir(left.join("0")).unwrap();
            fs::write(left.join("0/chunk"), "x").unwrap();
            left
        };
        let (own, other) = (leave(&path), leave(&folder.path().join("other")));
        let link = folder.path().join(prefix_for(&path) + "1.part");
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let in_use = UnfinishedFolder::create(&path).unwrap();
        assert!(!own.exists() && other.exists() && link.exists() && in_use.path().exists());
        let next = UnfinishedFolder::create(&path).unwrap();
        assert!(in_use.path().exists() && next.path().exists());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_is_not_whole_has_no_name() {
        // Only if the file system of the temporary folder supports O_TMPFILE.
        let folder = tempfile::tempdir().unwrap();
        if nameless::create(folder.path()).is_ok() {
            let _part = UnfinishedFile::create(folder.path()).unwrap();
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        }
    }
}
