//! Outputs: standard output, or a file, which gets its name when it is complete.

use std::{
    borrow::Borrow,
    collections::BTreeSet,
    ffi::OsString,
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Read, Seek, Write},
    path::{MAIN_SEPARATOR, Path, PathBuf},
};

use super::{
    Source, standard,
    unfinished::{UnfinishedFile, already_exists, parent_folder},
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

/// The result of writing one of several outputs. A broken pipe counts as success: that one reader has read enough must not
/// stop the other outputs.
///
/// # Errors
/// Those of `written`, except a broken pipe.
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

    /// Creates the folder of the output if it does not exist.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create_folder(&self) -> Result<()> {
        let Self::File(path) = self else { return Ok(()) };
        let folder = parent_folder(path);
        fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))
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

    /// Whether both outputs would replace or create the same file, or are the same open file, as standard output is.
    /// Devices and pipes, such as `/dev/null`, may be written twice and are never the same.
    pub fn is_same(&self, other: &Self) -> bool {
        let streams = (self.descriptor(), other.descriptor());
        match (self, other) {
            _ if matches!(streams, (Some(one), Some(other)) if one == other) => true,
            (Self::File(one), Self::File(other)) if streams == (None, None) => {
                target(one).is_some_and(|one| target(other) == Some(one))
            }
            // `-`, and a path of the file that standard output is redirected to.
            _ => self.inode().is_some_and(|inode| other.inode() == Some(inode)),
        }
    }

    /// Whether the output would replace the file `source`.
    pub fn replaces(&self, source: &Source) -> bool {
        source.path().is_some_and(|path| self.is_same(&Self::File(path.to_owned())))
    }

    /// The file descriptor that the output names, if any.
    fn descriptor(&self) -> Option<u32> {
        match self {
            Self::Stdout => Some(1),
            Self::File(path) => standard::descriptor(path),
        }
    }

    /// Device and inode of an existing regular file, which identify it under all its names.
    #[cfg(unix)]
    fn inode(&self) -> Option<(u64, u64)> {
        use std::os::unix::fs::MetadataExt;
        let found = match self {
            Self::Stdout => standard::output().and_then(|output| output.metadata()),
            Self::File(path) => fs::metadata(path),
        };
        found.ok().filter(fs::Metadata::is_file).map(|found| (found.dev(), found.ino()))
    }

    #[cfg(not(unix))]
    fn inode(&self) -> Option<(u64, u64)> {
        None
    }

    /// Refuses several outputs to the same file.
    ///
    /// # Errors
    /// `Kind::Usage` if two outputs are the same file.
    pub fn all_differ<S: Borrow<Self>>(sinks: impl IntoIterator<Item = S>) -> Result<()> {
        let all: Vec<S> = sinks.into_iter().collect();
        if all.len() < 2 {
            return Ok(());
        }
        let (mut open, mut targets) = (Vec::<&Self>::new(), BTreeSet::new());
        for (number, own) in all.iter().map(Borrow::borrow).enumerate() {
            // Open files are few, so each is compared with all others. Outputs with names may be many.
            let is_taken = match (own, own.descriptor()) {
                (Self::File(path), None) => {
                    let is_new = target(path).is_none_or(|target| targets.insert(target));
                    !is_new || open.iter().any(|other| own.is_same(other))
                }
                _ => {
                    open.push(own);
                    all[..number].iter().any(|other| own.is_same(other.borrow()))
                }
            };
            if is_taken {
                return Err(Error::usage(format_args!(
                    "{own} is named for two outputs; they must differ"
                )));
            }
        }
        Ok(())
    }

    /// Opens the output. Commands open outputs before the work, so that a wrong path fails at once.
    ///
    /// # Errors
    /// `Kind::Io` if the folder is missing or not writable, if the output is a folder, or if it exists and `no_clobber`
    /// is set.
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
    ///
    /// # Errors
    /// As [`Sink::create`], and those of `write`.
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

/// The regular file or folder that an output at `path` replaces or creates, with symbolic links resolved; `None` for a
/// device or a pipe.
fn target(path: &Path) -> Option<PathBuf> {
    if let Ok(found) = fs::metadata(path) {
        return fs::canonicalize(path).ok().filter(|_| found.is_file() || found.is_dir());
    }
    let folder = parent_folder(path);
    // A folder that is still to be created has no links.
    let folder = fs::canonicalize(folder).or_else(|_| std::path::absolute(folder)).ok()?;
    Some(folder.join(path.file_name()?))
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
        // Linux opens the file again. As for a redirection, bytes are appended.
        Some(_) => return OpenOptions::new().append(true).open(path).map(State::direct),
        None => {}
    }
    let existing = fs::metadata(path).ok();
    match &existing {
        Some(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Some(found) if !found.is_file() => {
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
    // For a symbolic link, the file that it points to is replaced, not the link.
    let path = if existing.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
    let folder = parent_folder(&path);
    if matches!(folder.try_exists(), Ok(false)) {
        let message = format!("the folder {} does not exist", folder.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    let unfinished = UnfinishedFile::create(folder)?;
    if let Some(existing) = existing {
        unfinished.file().set_permissions(existing.permissions())?;
    }
    let temporary = BufWriter::with_capacity(BUFFER, unfinished);
    Ok(State::Renamed { temporary, path, no_clobber })
}

impl Output {
    /// Flushes the output and returns what has been written so far; `None` if it is not a regular file.
    ///
    /// # Errors
    /// Those of writing and reading.
    pub fn read_back(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.flush()?;
        let State::Renamed { temporary, .. } = &self.state else { return Ok(None) };
        let (mut file, mut bytes) = (temporary.get_ref().file(), Vec::new());
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Completes the output: flushes it and gives it its final name.
    ///
    /// # Errors
    /// `Kind::Io` if writing the last bytes or the rename fails; then there is no output.
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
        // Two paths of one file are the same output.
        assert!(sink.is_same(&Sink::File(path)) && sink.is_same(&sink));
        assert!(Sink::Stdout.is_same(&Sink::File("/dev/stdout".into())));
        assert!(!Sink::Stdout.is_same(&Sink::File("/dev/null".into())));
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
    fn the_first_of_many_outputs_that_is_taken_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("old"), b"old").unwrap();
        let names = ["new", "old", "folder/new", "other", "/dev/null", "/dev/null"];
        let mut sinks = names.map(|name| Sink::File(path(name))).to_vec();
        sinks.push(Sink::Stdout);
        Sink::all_differ(&sinks).unwrap();
        for again in ["./new", "old", "folder/./new"] {
            let all = sinks.iter().cloned().chain([Sink::File(path(again))]);
            let error = Sink::all_differ(all.chain([Sink::Stdout])).unwrap_err().one_line();
            assert!(error.starts_with(&*Sink::File(path(again)).to_string()), "{error}");
        }
        // An open file is the same output as its name, whichever comes first.
        use std::os::fd::AsRawFd;
        let file = File::open(path("old")).unwrap();
        let open = Sink::File(format!("/dev/fd/{}", file.as_raw_fd()).into());
        let named = Sink::File(path("old"));
        assert!(Sink::all_differ([&open, &named]).is_err());
        assert!(Sink::all_differ([&named, &open]).is_err());
    }
}
