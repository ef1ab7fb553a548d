//! Tables that move from memory to a temporary file when they exceed a limit.

use std::{
    borrow::Cow,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    ops::Range,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::util::{
    error::{Error, Kind, Result},
    memory,
};

/// Memory for the tables of a filter. Tables that exceed it move to temporary files.
#[derive(Clone, Copy, Debug)]
pub struct Workspace {
    /// Bytes of memory.
    pub bytes: u64,
    /// Creates a temporary file, which is deleted when it is closed.
    pub create_file: fn() -> io::Result<File>,
}

impl Workspace {
    /// Memory without a limit.
    pub const UNLIMITED: Self =
        Self { bytes: u64::MAX, create_file: || Err(io::Error::other("no temporary file")) };

    /// The same workspace with `bytes` bytes of memory.
    #[must_use]
    pub fn of(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }
}

/// A table in memory, or in a temporary file once it exceeds its workspace.
#[derive(Debug)]
pub struct Spill<T> {
    workspace: Workspace,
    /// The values, while they are in memory.
    values: Vec<T>,
    file: Option<Mutex<File>>,
    /// Number of values.
    len: usize,
}

impl<T: bytemuck::Pod> Spill<T> {
    /// An empty table.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace, values: Vec::new(), file: None, len: 0 }
    }

    /// Number of values.
    #[allow(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        size_of_val(&self.values[..]) as u64
    }

    /// Adds `values` at the end.
    pub fn append(&mut self, values: &[T]) -> Result<()> {
        self.write(self.len, values)
    }

    /// Stores `values` from the index `at` on. Values between the end and `at` become zeros.
    pub fn write(&mut self, at: usize, values: &[T]) -> Result<()> {
        /// Bytes that are always kept in memory. A file for fewer bytes would save nothing.
        const MIN: u64 = 1 << 18;
        let end = at + values.len();
        let bytes = (self.len.max(end) * size_of::<T>()) as u64;
        if self.file.is_none() && bytes > self.workspace.bytes.max(MIN) {
            let created = (self.workspace.create_file)();
            self.file = Some(created.map_err(|error| Error::new(Kind::Io, error))?.into());
            let all = std::mem::take(&mut self.values);
            self.write_to_file(0, &all)?;
        }
        if self.file.is_some() {
            self.write_to_file(at, values)?;
        } else {
            if end > self.len {
                memory::reserve(&mut self.values, end - self.len)?;
                self.values.resize(end, T::zeroed());
            }
            self.values[at..end].copy_from_slice(values);
        }
        self.len = self.len.max(end);
        Ok(())
    }

    fn write_to_file(&mut self, at: usize, values: &[T]) -> Result<()> {
        let mut file = self.file_at(at).map_err(|error| io_error("write", error))?;
        file.write_all(bytemuck::cast_slice(values)).map_err(|error| io_error("write", error))
    }

    /// The values with the indices `range`.
    pub fn read(&self, range: Range<usize>) -> Result<Cow<'_, [T]>> {
        if self.file.is_none() {
            return Ok(Cow::Borrowed(&self.values[range]));
        }
        let mut values = memory::zeros(range.len())?;
        // The file ends after the last value that was written.
        let read = self
            .file_at(range.start)
            .and_then(|mut file| file.read_exact(bytemuck::cast_slice_mut(&mut values[..])));
        read.map_err(|error| io_error("read", error))?;
        Ok(Cow::Owned(values))
    }

    /// The temporary file at the value with the index `at`.
    fn file_at(&self, at: usize) -> io::Result<MutexGuard<'_, File>> {
        let file = self.file.as_ref().expect("the table is in a file");
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start((at * size_of::<T>()) as u64))?;
        Ok(file)
    }
}

impl Spill<u8> {
    /// Writes all bytes to `output`, without reading them into memory at once.
    pub fn copy_to(&self, output: &mut dyn Write) -> io::Result<()> {
        const PART: usize = 1 << 16;
        (0..self.len).step_by(PART).try_for_each(|at| {
            let part = self.read(at..self.len.min(at + PART)).map_err(io::Error::other)?;
            output.write_all(&part)
        })
    }
}

fn io_error(action: &str, error: io::Error) -> Error {
    Error::io(action, "a temporary file", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create_file() -> io::Result<File> {
        tempfile::tempfile()
    }

    /// A table has the same values in memory and in a file, wherever they are written.
    #[test]
    fn values_do_not_depend_on_the_limit() {
        const PART: usize = 10_000;
        for bytes in [0, 1 << 20, u64::MAX] {
            let mut table = Spill::<u64>::new(Workspace { bytes, create_file });
            let mut expected = vec![0; 20 * PART];
            for part in [0, 1, 5, 19, 3] {
                let values: Vec<u64> = (0..PART as u64).map(|at| at * 7 + part).collect();
                let first = part as usize * PART;
                table.write(first, &values).unwrap();
                expected[first..first + PART].copy_from_slice(&values);
            }
            assert_eq!(table.len(), expected.len());
            assert!(table.bytes() <= bytes);
            assert_eq!(table.bytes() == 0, bytes < u64::MAX);
            assert!(*table.read(0..expected.len()).unwrap() == expected[..], "{bytes}");
            assert!(*table.read(PART - 1..PART + 1).unwrap() == expected[PART - 1..PART + 1]);
            assert_eq!(table.read(7..7).unwrap().len(), 0);
        }
    }

    #[test]
    fn all_bytes_are_copied_from_memory_and_file() {
        for (bytes, len) in [(0, 0), (0, 700_000), (1 << 20, 700_000)] {
            let mut table = Spill::<u8>::new(Workspace { bytes, create_file });
            let values: Vec<u8> = (0..len).map(|at: u32| (at % 251) as u8).collect();
            values.chunks(90_000).for_each(|part| table.append(part).unwrap());
            let mut copy = Vec::new();
            table.copy_to(&mut copy).unwrap();
            assert!(copy == values, "{bytes} {len}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_created_is_an_error() {
        let workspace = Workspace::UNLIMITED.of(0);
        let mut table = Spill::new(workspace);
        table.append(&[1u8; 1 << 18]).unwrap();
        let error = table.append(&[1]).unwrap_err().one_line();
        assert!(error.contains("temporary file"), "{error}");
    }
}
