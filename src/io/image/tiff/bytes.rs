//! Access to the bytes of a TIFF file at any offset, in memory or on disk.

#[cfg(unix)]
use std::os::unix::fs::FileExt;
#[cfg(windows)]
use std::os::windows::fs::FileExt;
use std::{
    borrow::Cow,
    fs::File,
    io::{self, SeekFrom},
    sync::{Mutex, PoisonError},
};

use crate::{
    io::image::codec::{BoxError, ReadSeek},
    util::memory,
};

/// Bytes that can be read at any offset, by several threads at once.
pub trait Bytes: Send + Sync {
    /// Number of bytes.
    fn len(&self) -> u64;

    /// Reads `len` bytes from offset `at` on, or fewer at the end.
    ///
    /// # Errors
    /// If reading fails, or there is no memory.
    fn read(&self, at: u64, len: u64) -> Result<Cow<'_, [u8]>, BoxError>;
}

impl Bytes for &[u8] {
    fn len(&self) -> u64 {
        (**self).len() as u64
    }

    fn read(&self, at: u64, len: u64) -> Result<Cow<'_, [u8]>, BoxError> {
        let whole = (**self).len() as u64;
        let range = at.min(whole) as usize..at.saturating_add(len).min(whole) as usize;
        Ok(Cow::Borrowed(&self[range]))
    }
}

/// A reader that one thread uses at a time.
pub struct SharedBytes<'a> {
    input: Mutex<Input<'a>>,
    len: u64,
}

struct Input<'a> {
    input: Box<dyn ReadSeek + 'a>,
    /// Position of the reader; `None` after a failure.
    at: Option<u64>,
}

impl<'a> SharedBytes<'a> {
    /// Wraps `input`.
    ///
    /// # Errors
    /// If the length cannot be found out.
    pub fn new(mut input: Box<dyn ReadSeek + 'a>) -> io::Result<Self> {
        let len = input.seek(SeekFrom::End(0))?;
        Ok(Self { input: Mutex::new(Input { input, at: Some(len) }), len })
    }
}

impl Bytes for SharedBytes<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, at: u64, len: u64) -> Result<Cow<'_, [u8]>, BoxError> {
        let there = self.len.saturating_sub(at).min(len);
        let mut bytes = memory::zeros(usize::try_from(there)?)?;
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        if there > 0 {
            match input.at.take() {
                // Unlike `seek`, this keeps the buffer: strips are often short.
                Some(from) => input.input.seek_relative(at.cast_signed() - from.cast_signed())?,
                None => _ = input.input.seek(SeekFrom::Start(at))?,
            }
            input.input.read_exact(&mut bytes)?;
            input.at = Some(at + there);
        }
        Ok(Cow::Owned(bytes))
    }
}

/// A regular file.
#[derive(Debug)]
pub struct FileBytes {
    file: File,
    len: u64,
}

impl FileBytes {
    /// Wraps `file`.
    ///
    /// # Errors
    /// If the length cannot be found out.
    pub fn new(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { file, len })
    }
}

impl Bytes for FileBytes {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, at: u64, len: u64) -> Result<Cow<'_, [u8]>, BoxError> {
        let there = self.len.saturating_sub(at).min(len);
        let mut bytes = memory::zeros(usize::try_from(there)?)?;
        let mut filled = 0;
        while filled < bytes.len() {
            #[cfg(unix)]
            let read = self.file.read_at(&mut bytes[filled..], at + filled as u64);
            #[cfg(windows)]
            let read = self.file.seek_read(&mut bytes[filled..], at + filled as u64);
            match read {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        bytes.truncate(filled);
        Ok(Cow::Owned(bytes))
    }
}
