//! Outputs: written beside their final place and renamed when whole, or standard output.

use std::{
    convert::Infallible,
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// Where data go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sink {
    /// Standard output, `-`.
    Stdout,
    /// A file.
    File(PathBuf),
}

impl FromStr for Sink {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "-" => Self::Stdout,
            path => Self::File(path.into()),
        })
    }
}

impl fmt::Display for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => f.write_str("standard output"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// An output being written. Unless committed, no trace of it remains.
#[derive(Debug)]
pub struct Output {
    name: String,
    state: State,
}

#[derive(Debug)]
enum State {
    /// A regular file: written under another name, renamed at the end.
    Renamed {
        temporary: BufWriter<Part>,
        path: PathBuf,
        no_clobber: bool,
    },
    /// Standard output, a FIFO or a device: written as it is.
    Direct(BufWriter<File>),
    Stdout(BufWriter<io::Stdout>),
}

/// The temporary files of unfinished outputs, for [`abandon_outputs`].
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes the temporary files of all unfinished outputs, for a process about to be stopped. From then
/// on no thread can begin or complete an output.
pub fn abandon_outputs() {
    let mut unfinished = unfinished();
    for path in unfinished.drain(..) {
        // A file that cannot be removed stays behind: the process ends.
        let _ = fs::remove_file(path);
    }
    std::mem::forget(unfinished);
}

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A temporary file, listed as unfinished while it is there.
#[derive(Debug)]
struct Part(Option<NamedTempFile>);

impl Part {
    fn create(builder: &tempfile::Builder<'_, '_>, folder: &Path) -> io::Result<Self> {
        // Under the lock: `abandon_outputs` finds either no file, or a file with its entry.
        let mut unfinished = unfinished();
        let file = builder.tempfile_in(folder)?;
        unfinished.push(file.path().to_owned());
        Ok(Self(Some(file)))
    }

    /// Renames it to its final path. When that fails, the file is removed.
    fn rename(mut self, path: &Path, no_clobber: bool) -> io::Result<()> {
        let Some(file) = self.0.take() else { return Ok(()) };
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

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.as_mut().map_or(Ok(bytes.len()), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(file) = self.0.take() {
            unfinished().retain(|path| path != file.path());
        }
    }
}

/// Bytes that are written at once: a mesh or an image leaves in few system calls.
const BUFFER: usize = 1 << 20;

impl Sink {
    /// The lower-case extension, or nothing.
    pub fn extension(&self) -> String {
        let extension = match self {
            Self::Stdout => None,
            Self::File(path) => path.extension(),
        };
        extension.map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
    }

    /// Whether both would replace or create one file, or are standard output. Devices and pipes, such as
    /// `/dev/null`, may be written twice.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Stdout, Self::Stdout) => true,
            (Self::File(one), Self::File(other)) => {
                target(one).is_some_and(|one| target(other) == Some(one))
            }
            _ => false,
        }
    }

    /// Opens the output. Commands do so before the work, so that a wrong path fails at once.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::error::Kind::Io) when the folder is missing or cannot be written, when the
    /// output is a folder, or when it exists and `no_clobber` is set.
    pub fn create(&self, no_clobber: bool) -> Result<Output> {
        let state = match self {
            Self::Stdout => State::Stdout(BufWriter::with_capacity(BUFFER, io::stdout())),
            Self::File(path) => {
                create_file(path, no_clobber).map_err(|error| Error::io("write", path, error))?
            }
        };
        Ok(Output { name: self.to_string(), state })
    }

    /// Creates the output, lets `write` fill it, and commits it.
    ///
    /// # Errors
    /// As [`Sink::create`], and whatever writing fails with.
    pub fn write_with(
        &self,
        no_clobber: bool,
        write: impl FnOnce(&mut Output) -> io::Result<()>,
    ) -> Result<()> {
        let mut output = self.create(no_clobber)?;
        write(&mut output).map_err(|error| Error::io("write", self.to_string(), error))?;
        output.commit()
    }
}

/// The file that an output at `path` replaces or creates, links resolved; nothing for a device or a pipe.
fn target(path: &Path) -> Option<PathBuf> {
    if let Ok(found) = fs::metadata(path) {
        return fs::canonicalize(path).ok().filter(|_| found.is_file());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
    Some(folder.join(path.file_name()?))
}

fn create_file(path: &Path, no_clobber: bool) -> io::Result<State> {
    let existing = fs::metadata(path).ok();
    match &existing {
        Some(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Some(found) if !found.is_file() => {
            let file = OpenOptions::new().write(true).open(path)?;
            return Ok(State::Direct(BufWriter::with_capacity(BUFFER, file)));
        }
        Some(_) if no_clobber => return Err(io::ErrorKind::AlreadyExists.into()),
        _ => {}
    }
    // Of a symbolic link, the file that it names is replaced.
    let path = if existing.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    builder.prefix(".gpuproc-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The umask applies, as to any new file. The mode of a file that is replaced is kept below.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let part = Part::create(&builder, folder.unwrap_or(Path::new(".")))?;
    if let (Some(existing), Some(file)) = (existing, &part.0) {
        file.as_file().set_permissions(existing.permissions())?;
    }
    let temporary = BufWriter::with_capacity(BUFFER, part);
    Ok(State::Renamed { temporary, path, no_clobber })
}

impl Output {
    /// Completes the output: flushes it and gives it its name.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::error::Kind::Io) when the last bytes or the rename fail; then there is no output.
    pub fn commit(self) -> Result<()> {
        let Self { name, state } = self;
        let committed = match state {
            State::Renamed { temporary, path, no_clobber } => temporary
                .into_inner()
                .map_err(io::IntoInnerError::into_error)
                .and_then(|part| part.rename(&path, no_clobber)),
            State::Direct(mut file) => file.flush(),
            State::Stdout(mut stdout) => stdout.flush(),
        };
        committed.map_err(|error| Error::io("write", name, error))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Renamed { temporary, .. } => temporary.write(bytes),
            State::Direct(file) => file.write(bytes),
            State::Stdout(stdout) => stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Renamed { temporary, .. } => temporary.flush(),
            State::Direct(file) => file.flush(),
            State::Stdout(stdout) => stdout.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn an_output_is_whole_or_absent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let sink = Sink::File(path.clone());
        let mut output = sink.create(false).unwrap();
        output.write_all(b"half").unwrap();
        drop(output);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        sink.write_with(false, |output| output.write_all(b"whole")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(sink.create(true).unwrap_err().kind(), Kind::Io);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_modes_survive() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, b"old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        Sink::File(link.clone()).write_with(false, |output| output.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn two_names_of_one_file_are_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let sink = |name: &str| Sink::File(folder.path().join(name));
        assert!(sink("new").is_same(&sink("./new")) && !sink("new").is_same(&sink("other")));
        fs::write(folder.path().join("old"), b"old").unwrap();
        assert!(sink("old").is_same(&sink("./old")) && !sink("old").is_same(&sink("new")));
        assert!(Sink::Stdout.is_same(&Sink::Stdout) && !Sink::Stdout.is_same(&sink("old")));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("old", folder.path().join("link")).unwrap();
            assert!(sink("link").is_same(&sink("old")));
            let null = Sink::File("/dev/null".into());
            assert!(!null.is_same(&null));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_reported() {
        let sink = Sink::File("/dev/full".into());
        let error = sink.write_with(false, |output| output.write_all(b"x")).unwrap_err();
        assert_eq!(error.kind(), Kind::Io);
    }
}
