//! Outputs: standard output, or a file, which gets its name when it is complete.

use std::{
    ffi::OsString,
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Read, Seek, Write},
    path::{MAIN_SEPARATOR, Path, PathBuf},
};

use super::{
    folders, standard,
    unfinished::{UnfinishedFile, UnfinishedFolder, already_exists, link_target, parent_folder},
};
use crate::util::error::{Error, Result};

/// The destination of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sink {
    /// Standard output, `-`.
    Stdout,
    /// A file.
    File(PathBuf),
}

impl From<OsString> for Sink {
    fn from(name: OsString) -> Self {
        match name.to_str() {
            Some("-") => Self::Stdout,
            _ => Self::File(name.into()),
        }
    }
}

impl fmt::Display for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => f.write_str(standard::OUTPUT),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// An output being written. Unless committed, no trace of it remains.
#[derive(Debug)]
#[must_use = "without a commit, no trace of it remains"]
pub struct Output {
    name: String,
    state: State,
}

#[derive(Debug)]
enum State {
    /// A regular file: written as an unnamed or temporary file, and renamed to `path` at the end.
    Renamed { temporary: BufWriter<UnfinishedFile>, path: PathBuf, no_clobber: bool },
    /// Standard output, another open file, a FIFO or a device: written directly.
    Direct(BufWriter<Direct>),
}

/// Turns a broken pipe into success. If the reader of one of several outputs stops early, the others are still written.
pub fn allow_broken_pipe(written: Result<()>) -> Result<()> {
    match written {
        Err(error) if error.is_broken_pipe() => Ok(()),
        written => written,
    }
}

/// Bytes per write, so that a mesh or an image takes few system calls.
const BUFFER: usize = 1 << 20;

impl Sink {
    /// The path of the file; `None` for standard output.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::File(path) => Some(path),
        }
    }

    /// The extension in lower case, or an empty string.
    pub fn extension(&self) -> String {
        let extension = self.path().and_then(Path::extension);
        extension.map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
    }

    /// Allows the output to create its missing parent folders.
    pub fn want_folder(&self) {
        if let Self::File(path) = self {
            folders::want(&link_target(parent_folder(path)));
        }
    }

    /// Whether bytes are written directly, without a file to rename at the end: to standard output, a pipe or a device.
    pub fn is_stream(&self) -> bool {
        match self {
            Self::Stdout => true,
            Self::File(path) => {
                fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
            }
        }
    }

    /// Opens the output. Commands call this before they begin to compute, so that a wrong path fails at once. With
    /// `no_clobber`, refuses to replace a file.
    pub fn create(&self, no_clobber: bool) -> Result<Output> {
        let state = match self {
            Self::Stdout => standard::output().map(State::direct),
            Self::File(path) => create_file(path, no_clobber),
        };
        let name = self.to_string();
        match state {
            Ok(state) => Ok(Output { name, state }),
            Err(error) => Err(Error::io("write", name, error)),
        }
    }

    /// Creates the output, lets `write` fill it, and commits it.
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

/// A file that is written directly. Its bytes cannot be taken back.
#[derive(Debug)]
struct Direct(File);

impl Write for Direct {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        standard::record_written();
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl State {
    fn direct(file: File) -> Self {
        Self::Direct(BufWriter::with_capacity(BUFFER, Direct(file)))
    }
}

fn create_file(path: &Path, no_clobber: bool) -> io::Result<State> {
    match standard::descriptor(path) {
        Some(1) => return standard::output().map(State::direct),
        // Linux opens the file again. Append, as a redirection would.
        Some(_) => {
            standard::refuse_stream(path).map_err(io::Error::other)?;
            return OpenOptions::new().append(true).open(path).map(State::direct);
        }
        None => {}
    }
    let existing = fs::metadata(path).ok();
    match &existing {
        Some(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Some(found) if !found.is_file() => {
            standard::refuse_stream(path).map_err(io::Error::other)?;
            return OpenOptions::new().write(true).open(path).map(State::direct);
        }
        Some(_) if no_clobber => {
            return Err(already_exists());
        }
        _ => {}
    }
    if path.to_string_lossy().ends_with(['/', MAIN_SEPARATOR]) {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "this is the name of a folder"));
    }
    // For a symbolic link, the file that it points to is replaced or created, not the link.
    let path = link_target(path);
    if path.is_symlink() {
        return Err(io::Error::other("too many symbolic links in a row"));
    }
    let folder = &link_target(parent_folder(&path));
    let unfinished = folders::create_in(folder, || UnfinishedFile::create(folder));
    let unfinished = unfinished.map_err(|error| {
        if !matches!(folder.try_exists(), Ok(false)) {
            return error;
        }
        let message = format!("the folder {} does not exist", folder.display());
        io::Error::new(io::ErrorKind::NotFound, message)
    })?;
    if let Some(existing) = existing {
        unfinished.file().set_permissions(existing.permissions())?;
    }
    let temporary = BufWriter::with_capacity(BUFFER, unfinished);
    Ok(State::Renamed { temporary, path, no_clobber })
}

impl Output {
    /// Flushes the output and returns what has been written so far; `None` if it is not a regular file.
    pub fn read_back(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.flush()?;
        let State::Renamed { temporary, .. } = &self.state else { return Ok(None) };
        let (mut file, mut bytes) = (temporary.get_ref().file(), Vec::new());
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Completes the output: flushes it and gives it its final name. After an error, there is no output.
    pub fn commit(self) -> Result<()> {
        let Self { name, state } = self;
        let committed = match state {
            State::Renamed { temporary, path, no_clobber } => {
                temporary.into_inner().map_err(io::IntoInnerError::into_error).and_then(|file| {
                    standard::record_written();
                    file.rename(&path, no_clobber)
                })
            }
            State::Direct(mut file) => file.flush(),
        };
        committed.map_err(|error| Error::io("write", name, error))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Renamed { temporary, .. } => temporary.write(bytes),
            State::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Renamed { temporary, .. } => temporary.flush(),
            State::Direct(file) => file.flush(),
        }
    }
}

/// A folder being written as an output. Unless committed, no trace of it remains.
#[derive(Debug)]
#[must_use = "without a commit, no trace of it remains"]
pub struct OutputFolder {
    folder: UnfinishedFolder,
    /// The name in messages.
    name: PathBuf,
    /// The folder to replace. For a symbolic link, this is the folder that it points to.
    target: PathBuf,
    no_clobber: bool,
}

impl OutputFolder {
    /// Creates an empty folder, which replaces `path` when it is committed.
    ///
    /// # Errors
    /// `Kind::Io` if it cannot be created, or if `path` exists and `no_clobber` is set.
    pub fn create(path: &Path, no_clobber: bool) -> Result<Self> {
        let failed = |error| Error::io("write", path, error);
        let target = link_target(path);
        if no_clobber && target.exists() {
            return Err(failed(already_exists()));
        }
        let folder = UnfinishedFolder::create(&target).map_err(failed)?;
        Ok(Self { folder, name: path.to_owned(), target, no_clobber })
    }

    /// The path of the folder while it is written.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Gives the folder its final name.
    ///
    /// # Errors
    /// `Kind::Io` if the rename fails; then there is no output.
    pub fn commit(self) -> Result<()> {
        let Self { folder, name, target, no_clobber } = self;
        folder.rename(&target, no_clobber).map_err(|error| Error::io("write", name, error))
    }
}

/// An output that is ready to be committed.
#[derive(Debug)]
#[must_use = "without a commit, no trace of it remains"]
pub enum Finished {
    /// A file.
    File(Output),
    /// A folder.
    Folder(OutputFolder),
    /// An output in memory. It is written when it is committed.
    Bytes {
        /// All bytes of the output.
        bytes: Vec<u8>,
        /// Destination of the bytes.
        sink: Sink,
        /// Whether an existing file is an error.
        no_clobber: bool,
    },
}

impl Finished {
    /// Gives the output its name.
    ///
    /// # Errors
    /// As [`Output::commit`].
    pub fn commit(self) -> Result<()> {
        match self {
            Self::File(output) => output.commit(),
            Self::Folder(folder) => folder.commit(),
            Self::Bytes { bytes, sink, no_clobber } => {
                sink.write_with(no_clobber, |output| output.write_all(&bytes))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn an_open_file_is_written_where_it_stands() {
        use std::os::fd::AsRawFd;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, b"first\n").unwrap();
        let file = OpenOptions::new().append(true).open(&path).unwrap();
        let sink = Sink::File(format!("/dev/fd/{}", file.as_raw_fd()).into());
        // `no_clobber` does not apply to a file that is open already.
        sink.write_with(true, |output| output.write_all(b"second\n")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first\nsecond\n");
        assert_eq!(file.metadata().unwrap().len(), 13, "the file is another one");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn a_file_is_read_back_before_it_has_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new");
        let mut output = Sink::File(path.clone()).create(false).unwrap();
        output.write_all(b"content").unwrap();
        assert_eq!(output.read_back().unwrap().as_deref(), Some(&b"content"[..]));
        assert!(!path.exists());
        output.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"content");
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
}
