//! Inputs: a file, or standard input, written `-`.

use std::{
    ffi::OsString,
    fmt,
    fs::File,
    io::{self, Cursor, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    input_file::{InputFile, RegularFile},
    parallel_file::ParallelFile,
    standard,
};
use crate::util::{
    error::{Error, Hint, Result},
    memory,
};

/// An input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Standard input, `-`.
    Stdin,
    /// A file, which all clones open once.
    File(InputFile),
}

/// Limits on an input. `Limits::from(bytes)` limits the memory alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum memory, in bytes, of the input and all that is made from it.
    pub memory: u64,
    /// Number of copies of the input that the memory must hold.
    pub copies: u64,
    /// Maximum number of pixels of an image, or samples of a volume.
    pub pixels: u64,
    /// Whether an image with missing or damaged parts is an error. Otherwise they cause a warning.
    pub strict: bool,
}

impl From<u64> for Limits {
    fn from(bytes: u64) -> Self {
        Self { memory: bytes, copies: 1, pixels: u64::MAX, strict: false }
    }
}

impl Limits {
    /// Maximum memory of the input, in bytes.
    pub fn bytes(&self) -> u64 {
        self.memory / self.copies
    }

    /// Error for `what`, a part of the input that takes `bytes` bytes, more than [`bytes`](Self::bytes).
    pub fn exceeded(&self, what: impl fmt::Display, bytes: u64) -> Error {
        memory::exceeds_limit(what, bytes.saturating_mul(self.copies), self.memory)
    }

    /// Refuses an image or volume with the sides `sides`, before memory is allocated for it.
    pub fn check(&self, sides: &[usize]) -> Result<()> {
        let pixels = sides.iter().fold(1u64, |n, &side| n.saturating_mul(side as u64));
        if pixels <= self.pixels {
            return Ok(());
        }
        let sides: Vec<String> = sides.iter().map(ToString::to_string).collect();
        let noun = if sides.len() == 2 { "pixels" } else { "samples" };
        let (sides, limit) = (sides.join(" x "), self.pixels);
        let message = format!("{sides} = {pixels} {noun}, more than the limit of {limit}");
        Err(Error::bad_input(message).with_hint(Hint::Pixels))
    }
}

impl From<OsString> for Source {
    fn from(name: OsString) -> Self {
        match name.to_str() {
            Some("-") => Self::Stdin,
            _ => PathBuf::from(name).into(),
        }
    }
}

impl From<PathBuf> for Source {
    fn from(path: PathBuf) -> Self {
        Self::File(path.into())
    }
}

impl From<&Path> for Source {
    fn from(path: &Path) -> Self {
        path.to_owned().into()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str(standard::INPUT),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

fn open_standard(name: &Path) -> Result<Box<dyn Read + Send>> {
    let input = standard::input().map_err(|error| Error::io("read", name, error))?;
    Ok(match standard::take_first() {
        first if first.is_empty() => Box::new(input),
        first => Box::new(Cursor::new(first).chain(input)),
    })
}

/// Reads once, again if a signal interrupts it.
pub fn read_once(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Reads until `bytes` are full or the data end. Returns the number of bytes read.
pub fn read_full(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match read_once(input, &mut bytes[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

impl Source {
    /// The path of the file; `None` for standard input.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdin => None,
            Self::File(path) => Some(path),
        }
    }

    /// The extension in lower case, or an empty string.
    pub fn extension(&self) -> String {
        let extension = self.path().and_then(Path::extension);
        extension.map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
    }

    /// The length in bytes of a regular file; `None` for standard input, pipes and devices.
    pub fn size(&self) -> Result<Option<u64>> {
        match self {
            Self::Stdin => Ok(None),
            Self::File(file) => file.size().map_err(|error| Error::io("read", file, error)),
        }
    }

    /// The open file; `None` for standard input, pipes and devices.
    pub fn regular(&self) -> Result<Option<Arc<RegularFile>>> {
        match self {
            Self::Stdin => Ok(None),
            Self::File(file) => {
                standard::refuse_stream(file)?;
                file.open().map_err(|error| Error::io("read", file, error))
            }
        }
    }

    /// Reads a regular file from byte `at` on.
    pub fn reader(&self, at: u64) -> io::Result<ParallelFile> {
        let file = match self {
            Self::Stdin => None,
            Self::File(file) => file.open()?,
        };
        file.map(|file| file.reader(at)).ok_or_else(|| io::Error::other("not a regular file"))
    }

    /// Opens the input for reading.
    pub fn open(&self) -> Result<Box<dyn Read + Send>> {
        self.open_at(0)
    }

    /// Opens the input for reading from byte `at` on. A pipe or device is read up to there.
    pub fn open_at(&self, at: u64) -> Result<Box<dyn Read + Send>> {
        let regular = self.regular()?;
        let mut input: Box<dyn Read + Send> = match (self, regular) {
            (Self::Stdin, _) => open_standard(standard::INPUT.as_ref())?,
            // `/dev/stdin` opened by its path could be read even if standard input is open for writing only.
            (Self::File(path), _) if standard::descriptor(path) == Some(0) => open_standard(path)?,
            (_, Some(file)) => return Ok(Box::new(file.reader(at))),
            (Self::File(path), None) => {
                Box::new(File::open(path).map_err(|error| Error::io("read", path, error))?)
            }
        };
        let skipped = io::copy(&mut (&mut input).take(at), &mut io::sink());
        skipped.map_err(|error| Error::io("read", self.to_string(), error))?;
        Ok(input)
    }

    /// All bytes of the input, within the memory of `limits`.
    pub fn read_all(&self, limits: Limits) -> Result<Vec<u8>> {
        let (expected, limit) = (self.size()?.unwrap_or(0), limits.bytes());
        if expected > limit {
            let what = format_args!("{self}: processing a file of {expected} bytes");
            return Err(limits.exceeded(what, expected));
        }
        let mut input = self.open()?.take(limit.saturating_add(1));
        let mut bytes = memory::zeros(expected as usize).map_err(|error| error.context(self))?;
        let read = read_full(&mut input, &mut bytes);
        let filled = *read.as_ref().unwrap_or(&0);
        bytes.truncate(filled);
        // The input may be a pipe, or a file that has grown.
        let read = read.and_then(|_| input.read_to_end(&mut bytes));
        read.map_err(|error| Error::io("read", self.to_string(), error))?;
        match bytes.len() as u64 > limit {
            true => Err(limits.exceeded(format_args!("{self}: processing the file"), limit + 1)),
            false => Ok(bytes),
        }
    }
}
