//! Files that are not whole yet.
//!
//! On Linux such a file has no name until it is whole (`O_TMPFILE`, of which ext4, XFS, Btrfs and tmpfs know): however
//! the process ends, nothing of it stays. Elsewhere it is named `.gpuproc-*.part`, and removed when the process is
//! about to end.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use tempfile::{Builder, NamedTempFile};

/// The names of unfinished files, for [`abandon_outputs`].
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes all unfinished files, for a process about to be stopped. From then on no thread can begin or complete an
/// output.
pub fn abandon_outputs() {
    let mut unfinished = unfinished();
    for path in unfinished.drain(..) {
        // What cannot be removed stays behind: the process ends.
        if path.is_dir() {
            // Other threads may still write into it.
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

/// A file being written. Unless it is given its name, no trace of it remains.
#[derive(Debug)]
pub struct Part(State);

#[derive(Debug)]
enum State {
    #[cfg(target_os = "linux")]
    Nameless(File),
    Named(Named),
}

impl Part {
    /// An empty file, which will have its name in `folder`.
    pub fn create(folder: &Path) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Ok(file) = nameless::create(folder) {
            return Ok(Self(State::Nameless(file)));
        }
        Named::create(folder).map(State::Named).map(Self)
    }

    /// Sets its mode, that of a file that is to be replaced.
    pub fn set_permissions(&self, permissions: fs::Permissions) -> io::Result<()> {
        self.file().set_permissions(permissions)
    }

    /// Gives it its name. When that fails, nothing remains.
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

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

/// A folder being written. Unless it is given its name, no trace of it remains; only when the process is killed, or the machine
/// stops, it stays, as `.gpuproc-*.part`.
#[derive(Debug)]
pub struct PartFolder {
    path: Option<PathBuf>,
}

impl PartFolder {
    /// An empty folder, which will have its name in `parent`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn create(parent: &Path) -> io::Result<Self> {
        let path = parent.join(temporary_name());
        let mut unfinished = unfinished();
        fs::create_dir(&path)?;
        unfinished.push(path.clone());
        Ok(Self { path: Some(path) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.path.as_deref().expect("there until it is renamed")
    }

    /// Gives it its name. A folder of this name is replaced: on Linux in one step, elsewhere it is moved away before.
    ///
    /// # Errors
    /// Those of the system, and when the name is taken and `no_clobber` is set.
    pub fn rename(mut self, path: &Path, no_clobber: bool) -> io::Result<()> {
        let own = self.path().to_owned();
        // Under the lock: after `abandon_outputs` no output appears.
        let mut unfinished = unfinished();
        let old = match fs::symlink_metadata(path) {
            Ok(_) if no_clobber => return Err(io::ErrorKind::AlreadyExists.into()),
            Ok(_) => Some(swap(&own, path)?),
            Err(_) => {
                fs::rename(&own, path)?;
                None
            }
        };
        unfinished.retain(|other| *other != own);
        self.path = None;
        drop(unfinished);
        // The output is there: what is left of the one before does no harm.
        let _ = old.map(fs::remove_dir_all);
        Ok(())
    }
}

impl Drop for PartFolder {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            let _ = fs::remove_dir_all(&path);
            unfinished().retain(|other| *other != path);
        }
    }
}

/// Puts the folder `new` in the place of `old`; returns where that is then.
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

/// The folder for temporary files that belong to no output: `TMPDIR`, else the system's. An empty variable is as good
/// as none.
pub fn temporary_folder() -> PathBuf {
    let folder = std::env::temp_dir();
    if folder.as_os_str().is_empty() { PathBuf::from("/tmp") } else { folder }
}

/// A temporary file without a name in `folder`.
///
/// # Errors
/// Those of the system, with the folder, and with `TMPDIR` where it names the folder.
pub fn temporary_file(folder: &Path) -> io::Result<File> {
    tempfile::tempfile_in(folder).map_err(|error| {
        let chosen = if folder == temporary_folder() { " (TMPDIR)" } else { "" };
        let folder = folder.display();
        let what = format!("no temporary file can be made in {folder}{chosen}: {error}");
        io::Error::new(error.kind(), what)
    })
}

/// A name for a short time, which no other process takes.
pub fn temporary_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!(".gpuproc-{}-{now:x}-{count}.part", std::process::id())
}

/// How unfinished files are named.
fn builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(".gpuproc-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The umask applies, as to any new file.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder
}

/// A file with a name of its own, listed as unfinished while it is there.
#[derive(Debug)]
struct Named(Option<NamedTempFile>);

impl Named {
    fn create(folder: &Path) -> io::Result<Self> {
        // Under the lock: `abandon_outputs` finds either no file, or a file with its entry.
        let mut unfinished = unfinished();
        let file = builder().tempfile_in(folder)?;
        unfinished.push(file.path().to_owned());
        Ok(Self(Some(file)))
    }

    fn file(&self) -> &File {
        self.0.as_ref().expect("there until it is renamed").as_file()
    }

    fn rename(mut self, path: &Path, no_clobber: bool) -> io::Result<()> {
        let file = self.0.take().expect("renamed once");
        // Under the lock: after `abandon_outputs` no output appears.
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

/// Files without a name.
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

    /// A file that is in `folder` and has no name there.
    pub fn create(folder: &Path) -> io::Result<File> {
        let flags = OFlags::TMPFILE.bits() as i32;
        OpenOptions::new().read(true).write(true).mode(0o666).custom_flags(flags).open(folder)
    }

    /// Gives the file its first name. A name that is taken cannot be given, only moved to: for that moment the file is
    /// a `.part`.
    pub fn rename(file: File, path: &Path, no_clobber: bool) -> io::Result<()> {
        // Under the lock: after `abandon_outputs` no output appears.
        let unfinished = unfinished();
        match link(&file, path) {
            Err(Errno::EXIST) if no_clobber => return Err(io::ErrorKind::AlreadyExists.into()),
            Err(Errno::EXIST) => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let folder = folder.unwrap_or(Path::new("."));
                let link = |name: &Path| link(&file, name).map_err(io::Error::from);
                let linked = builder().make_in(folder, link)?;
                return linked.persist(path).map(drop).map_err(|error| error.error);
            }
            Ok(()) => return Ok(()),
            // No /proc, or a file system that makes such files and links none.
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

    /// Every kind of file that there is here.
    fn parts(folder: &Path) -> Vec<Part> {
        let named = Part(State::Named(Named::create(folder).unwrap()));
        vec![Part::create(folder).unwrap(), named]
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
    fn folders_are_whole_or_absent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let names = || fs::read_dir(&folder).unwrap().count();
        drop(PartFolder::create(folder.path()).unwrap());
        assert_eq!(
            (names(), unfinished().iter().any(|path| path.starts_with(&folder))),
            (0, false)
        );
        for content in ["first", "replaced"] {
            let part = PartFolder::create(folder.path()).unwrap();
            fs::write(part.path().join("file"), content).unwrap();
            part.rename(&path, false).unwrap();
            assert_eq!(fs::read_to_string(path.join("file")).unwrap(), content);
            assert_eq!(names(), 1);
        }
        let part = PartFolder::create(folder.path()).unwrap();
        let error = part.rename(&path, true).unwrap_err();
        assert_eq!((error.kind(), names()), (io::ErrorKind::AlreadyExists, 1));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_is_not_whole_has_no_name() {
        // Where the file system of the temporary folder knows of such files.
        let folder = tempfile::tempdir().unwrap();
        if nameless::create(folder.path()).is_ok() {
            let _part = Part::create(folder.path()).unwrap();
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        }
    }
}
