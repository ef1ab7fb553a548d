//! An input that is a file. It is opened once, and its first bytes are read once, however often the steps from the plan of a
//! job to its result ask for them: all read the same file, even if its name is given to another one meanwhile.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Read},
    ops::Deref,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{parallel_file::ParallelFile, standard};

/// The name of an input, and the file once it has been opened. Clones share it.
#[derive(Clone)]
pub struct InputFile(Arc<Shared>);

struct Shared {
    path: PathBuf,
    opened: OnceLock<Arc<RegularFile>>,
}

/// A regular file that is open.
#[derive(Debug)]
pub struct RegularFile {
    file: Arc<File>,
    /// The first bytes, which contain the signatures of all formats.
    pub first: Vec<u8>,
}

/// Number of files that stay open with their [`InputFile`].
static KEPT: AtomicUsize = AtomicUsize::new(0);
/// Maximum of [`KEPT`]. Further files, such as those of a folder of thousands of slices, are opened each time.
const MAX_KEPT: usize = 32;

impl From<PathBuf> for InputFile {
    fn from(path: PathBuf) -> Self {
        Self(Arc::new(Shared { path, opened: OnceLock::new() }))
    }
}

impl Deref for InputFile {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0.path
    }
}

impl AsRef<Path> for InputFile {
    fn as_ref(&self) -> &Path {
        self
    }
}

impl fmt::Debug for InputFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.path.fmt(f)
    }
}

impl PartialEq for InputFile {
    fn eq(&self, other: &Self) -> bool {
        self.0.path == other.0.path
    }
}

impl Eq for InputFile {}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.opened.get().is_some() {
            KEPT.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl InputFile {
    /// The length in bytes of a regular file; `None` for pipes and devices.
    pub fn size(&self) -> io::Result<Option<u64>> {
        let found = match self.0.opened.get() {
            Some(opened) => opened.file.metadata(),
            None => fs::metadata(self),
        }?;
        if found.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(found.is_file().then_some(found.len()))
    }

    /// Opens the file, unless it is open; `None` for pipes and devices.
    pub fn open(&self) -> io::Result<Option<Arc<RegularFile>>> {
        let Shared { path, opened } = &*self.0;
        if let Some(opened) = opened.get() {
            return Ok(Some(opened.clone()));
        }
        if self.size()?.is_none() {
            return Ok(None);
        }
        let file = match RegularFile::open(path) {
            // A file that is open in this process, such as `/dev/stdin`, may be closed to its user otherwise.
            Err(_) if standard::descriptor(path).is_some() => return Ok(None),
            file => Arc::new(file?),
        };
        if KEPT.fetch_add(1, Ordering::Relaxed) >= MAX_KEPT || opened.set(file.clone()).is_err() {
            KEPT.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(Some(file))
    }
}

impl RegularFile {
    fn open(path: &Path) -> io::Result<Self> {
        /// Number of bytes that contain the signatures of all formats.
        const FIRST: u64 = 1024;
        let file = Arc::new(File::open(path)?);
        let mut opened = Self { file, first: Vec::new() };
        opened.first = opened.start(FIRST)?;
        Ok(opened)
    }

    /// A reader from byte `at` on.
    pub fn reader(&self, at: u64) -> ParallelFile {
        ParallelFile::new(self.file.clone(), at)
    }

    /// The first bytes, at most `max`.
    pub fn start(&self, max: u64) -> io::Result<Vec<u8>> {
        let mut start = Vec::new();
        self.reader(0).take(max).read_to_end(&mut start)?;
        Ok(start)
    }

    /// The file itself, for reads at offsets: all readers share its position.
    pub fn file(&self) -> &Arc<File> {
        &self.file
    }
}
