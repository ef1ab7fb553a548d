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
use tempfile::{Builder, NamedTempFile};

/// The paths of unfinished files and folders, for [`remove_unfinished_outputs`].
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes all unfinished files and folders, for a process that is about to be stopped. From then on no thread can
/// begin or complete an output, since the lock is never released.
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
    std::mem::forget(unfinished);
}

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file being written. Unless it is renamed, no trace of it remains.
#[derive(Debug)]
pub struct UnfinishedFile(State);

#[derive(Debug)]
enum State {
    #[cfg(target_os = "linux")]
    Nameless(File),
    Named(Named),
}

impl UnfinishedFile {
    /// Creates an empty unfinished file on the file system of `folder`, to be renamed into `folder`.
    pub fn create(folder: &Path) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Ok(file) = nameless::create(folder) {
            return Ok(Self(State::Nameless(file)));
        }
        Named::create(folder).map(State::Named).map(Self)
    }

    /// Sets the permissions of the file, to those of the file that it will replace.
    pub fn set_permissions(&self, permissions: fs::Permissions) -> io::Result<()> {
        self.file().set_permissions(permissions)
    }

    /// Gives the file the name `path`. If that fails, nothing of the file remains.
    pub fn rename(self, path: &Path, no_clobber: bool) -> io::Result<()> {
        match self.0 {
            #[cfg(target_os = "linux")]
            State::Nameless(file) => nameless::rename(file, path, no_clobber),
            State::Named(named) => named.rename(path, no_clobber),
        }
    }

    fn file(&self) -> &File {
        match &self.0 {
            #[cfg(target_os = "linux")]
            State::Nameless(file) => file,
            State::Named(named) => named.file(),
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

/// A folder being written. Unless it is renamed, it is removed again. If the process is killed or the machine stops, it
/// is left as `.gpuproc-*.part`, and the next process that writes the same output removes it.
///
/// The process that writes a folder holds a lock on it, which ends with the process.
#[derive(Debug)]
pub struct UnfinishedFolder {
    path: Option<PathBuf>,
    /// `None` if the file system has no locks for folders.
    _lock: Option<File>,
}

impl UnfinishedFolder {
    /// Creates an empty unfinished folder next to `target`, to be renamed to `target`. First removes unfinished folders
    /// for the same target that killed processes have left.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn create(target: &Path) -> io::Result<Self> {
        let parent = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let prefix = prefix_for(target);
        remove_left_behind(parent, &prefix);
        loop {
            let path = parent.join(temporary_name().replacen(".gpuproc", &prefix, 1));
            let mut unfinished = unfinished();
            fs::create_dir(&path)?;
            let lock = File::open(&path).ok();
            let locked = lock.as_ref().map(File::try_lock);
            // Before it was locked, another process may have taken the folder for one that a killed process left.
            if matches!(locked, Some(Err(TryLockError::WouldBlock))) || !path.is_dir() {
                continue;
            }
            unfinished.push(path.clone());
            return Ok(Self { path: Some(path), _lock: lock });
        }
    }

    /// The path of the unfinished folder.
    pub fn path(&self) -> &Path {
        self.path.as_deref().expect("there until it is renamed")
    }

    /// Gives the folder the name `path`. An existing folder of this name is replaced: on Linux atomically, elsewhere
    /// the existing folder is moved away first.
    ///
    /// # Errors
    /// Those of the operating system, and [`io::ErrorKind::AlreadyExists`] if `path` exists and `no_clobber` is set.
    pub fn rename(mut self, path: &Path, no_clobber: bool) -> io::Result<()> {
        let own = self.path().to_owned();
        // The lock is held, so that no output appears after `remove_unfinished_outputs`.
        let mut unfinished = unfinished();
        let old = match fs::symlink_metadata(path) {
            Ok(_) if no_clobber => return Err(exists_already()),
            Ok(_) => Some(swap(&own, path)?),
            Err(_) => {
                fs::rename(&own, path)?;
                None
            }
        };
        unfinished.retain(|other| *other != own);
        self.path = None;
        drop(unfinished);
        // The output is complete; remains of the replaced folder do no harm.
        let _ = old.map(fs::remove_dir_all);
        Ok(())
    }
}

impl Drop for UnfinishedFolder {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            let _ = fs::remove_dir_all(&path);
            unfinished().retain(|other| *other != path);
        }
    }
}

/// Prefix of the names of unfinished folders for `target`. Other targets in the same folder have other prefixes.
fn prefix_for(target: &Path) -> String {
    let mut hasher = FnvHasher::default();
    hasher.write(target.file_name().unwrap_or_default().as_encoded_bytes());
    format!(".gpuproc-{:016x}", hasher.finish())
}

/// Removes unfinished folders in `parent` whose names begin with `prefix` and that no process has locked.
fn remove_left_behind(parent: &Path, prefix: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
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

/// Moves the folder `new` to the path `old`. Returns the path at which the replaced folder is afterwards.
fn swap(new: &Path, old: &Path) -> io::Result<PathBuf> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        if renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE).is_ok() {
            return Ok(new.to_owned());
        }
    }
    let trash = old.with_file_name(temporary_name());
    fs::rename(old, &trash)?;
    match fs::rename(new, old) {
        Ok(()) => Ok(trash),
        Err(error) => {
            fs::rename(&trash, old)?;
            Err(error)
        }
    }
}

/// The folder for temporary files that belong to no output: `TMPDIR`, else the default of the system. An empty `TMPDIR`
/// counts as unset.
pub fn temporary_folder() -> PathBuf {
    let folder = std::env::temp_dir();
    if folder.as_os_str().is_empty() { PathBuf::from("/tmp") } else { folder }
}

/// Creates a temporary file in `folder`, which is deleted when it is closed.
///
/// # Errors
/// Those of the operating system; the message names the folder, and `TMPDIR` if the folder comes from it.
pub fn temporary_file(folder: &Path) -> io::Result<File> {
    tempfile::tempfile_in(folder).map_err(|error| no_temporary_file(folder, error))
}

/// The error if no temporary file can be made in `folder`.
pub fn no_temporary_file(folder: &Path, error: io::Error) -> io::Error {
    let chosen = if folder == temporary_folder() { " (TMPDIR)" } else { "" };
    let folder = folder.display();
    let what = format!("cannot create a temporary file in {folder}{chosen}: {error}");
    io::Error::new(error.kind(), what)
}

/// The error for an output that exists and must not be replaced.
pub fn exists_already() -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, "it exists already")
}

/// A name for an unfinished file or folder, unique among all processes.
pub fn temporary_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!(".gpuproc-{}-{now:x}-{count}.part", std::process::id())
}

/// Prefix, suffix and permissions of named unfinished files.
fn builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(".gpuproc-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As for any new file, the umask is applied to this mode.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder
}

/// The error of the operating system on creating a file, without the file's temporary name.
fn without_name(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path ") {
        Some((plain, _)) => io::Error::new(error.kind(), plain),
        None => error,
    }
}

/// An unfinished file with a temporary name, listed in [`UNFINISHED`] while it exists.
#[derive(Debug)]
struct Named(Option<NamedTempFile>);

impl Named {
    fn create(folder: &Path) -> io::Result<Self> {
        // The lock is held, so that `remove_unfinished_outputs` finds either no file, or a file that is listed.
        let mut unfinished = unfinished();
        let file = builder().tempfile_in(folder).map_err(without_name)?;
        unfinished.push(file.path().to_owned());
        Ok(Self(Some(file)))
    }

    fn file(&self) -> &File {
        self.0.as_ref().expect("there until it is renamed").as_file()
    }

    fn rename(mut self, path: &Path, no_clobber: bool) -> io::Result<()> {
        let file = self.0.take().expect("renamed once");
        // The lock is held, so that no output appears after `remove_unfinished_outputs`.
        let mut unfinished = unfinished();
        unfinished.retain(|path| path != file.path());
        let renamed = match no_clobber {
            true => file.persist_noclobber(path),
            false => file.persist(path),
        };
        renamed.map(drop).map_err(|error| error.error)
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        if let Some(file) = self.0.take() {
            unfinished().retain(|path| path != file.path());
        }
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

    use rustix::{
        fs::{AtFlags, CWD, OFlags, linkat},
        io::Errno,
    };

    use super::*;

    /// Creates a file on the file system of `folder` that has no name.
    pub fn create(folder: &Path) -> io::Result<File> {
        let flags = OFlags::TMPFILE.bits() as i32;
        OpenOptions::new().read(true).write(true).mode(0o666).custom_flags(flags).open(folder)
    }

    /// Gives the file the name `path`. `linkat` fails for a name that exists, so to replace a file, the new file is
    /// linked as `.gpuproc-*.part` and renamed.
    pub fn rename(file: File, path: &Path, no_clobber: bool) -> io::Result<()> {
        // The lock is held, so that no output appears after `remove_unfinished_outputs`.
        let unfinished = unfinished();
        match link(&file, path) {
            Err(Errno::EXIST) if no_clobber => return Err(exists_already()),
            Err(Errno::EXIST) => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let folder = folder.unwrap_or(Path::new("."));
                let link = |name: &Path| link(&file, name).map_err(io::Error::from);
                let linked = builder().make_in(folder, link)?;
                return linked.persist(path).map(drop).map_err(|error| error.error);
            }
            Ok(()) => return Ok(()),
            // There is no /proc, or the file system supports O_TMPFILE but cannot link such files.
            Err(_) => drop(unfinished),
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let named = Named::create(folder.unwrap_or(Path::new(".")))?;
        named.file().set_permissions(file.metadata()?.permissions())?;
        (&file).rewind()?;
        io::copy(&mut &file, &mut named.file())?;
        named.rename(path, no_clobber)
    }

    fn link(file: &File, name: &Path) -> Result<(), Errno> {
        let open = format!("/proc/self/fd/{}", file.as_raw_fd());
        linkat(CWD, open, CWD, name, AtFlags::SYMLINK_FOLLOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One unfinished file of each kind: the one chosen on this system, and a named one.
    fn parts(folder: &Path) -> Vec<UnfinishedFile> {
        let named = UnfinishedFile(State::Named(Named::create(folder).unwrap()));
        vec![UnfinishedFile::create(folder).unwrap(), named]
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
        let errors =
            [Named::create(&missing).map(drop), UnfinishedFolder::create(&target).map(drop)];
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
            let mut part = UnfinishedFolder::create(target).unwrap();
            let left = part.path.take().unwrap();
            fs::create_dir(left.join("0")).unwrap();
            fs::write(left.join("0/chunk"), "x").unwrap();
            unfinished().retain(|other| *other != left);
            left
        };
        let (own, other) = (leave(&path), leave(&folder.path().join("other")));
        let link = folder.path().join(prefix_for(&path) + "-1-1-1.part");
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
