//! Temporary files that belong to no output, and a byte queue that spills to one.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use tempfile::SpooledTempFile;

/// The folder for temporary files that belong to no output: `TMPDIR`, else the default of the system. An empty `TMPDIR`
/// counts as unset.
pub fn temporary_folder() -> PathBuf {
    let folder = std::env::temp_dir();
    if folder.as_os_str().is_empty() { PathBuf::from("/tmp") } else { folder }
}

/// Creates a temporary file in `folder`, which is deleted when it is closed. The error names the folder, and `TMPDIR`
/// if the folder comes from it.
pub fn temporary_file(folder: &Path) -> io::Result<File> {
    tempfile::tempfile_in(folder).map_err(|error| no_temporary_file(folder, error))
}

/// The error if no temporary file can be created in `folder`.
fn no_temporary_file(folder: &Path, error: io::Error) -> io::Error {
    let variable = if folder == temporary_folder() { " (TMPDIR)" } else { "" };
    let folder = folder.display();
    let message = format!("cannot create a temporary file in {folder}{variable}: {error}");
    io::Error::new(error.kind(), message)
}

/// Number of bytes above which all bytes are moved from memory to a temporary file.
const MAX_BUFFERED: u64 = 256 << 10;

/// Records in the order in which they were added, in memory or in a temporary file.
#[derive(Debug)]
pub struct Spool {
    bytes: SpooledTempFile,
    /// Size of all records in bytes.
    len: u64,
    /// Maximum number of bytes in memory if no temporary file can be created.
    max_memory: u64,
}

impl Spool {
    /// An empty spool. If no temporary file can be created, up to `max_memory` bytes are kept in memory.
    pub fn new(max_memory: u64) -> Self {
        let bytes = SpooledTempFile::new_in(usize::MAX, temporary_folder());
        Self { bytes, len: 0, max_memory }
    }

    /// Adds a record and returns its offset. The first record is kept in memory, however long it is, since the caller
    /// has it in memory anyway.
    pub fn push(&mut self, record: &[u8]) -> io::Result<u64> {
        let (at, len) = (self.len, self.len + record.len() as u64);
        if at > 0
            && len > MAX_BUFFERED.min(self.max_memory)
            && let Err(error) = self.bytes.roll()
            && len > self.max_memory
        {
            return Err(no_temporary_file(&temporary_folder(), error));
        }
        self.bytes.seek(SeekFrom::Start(at))?;
        self.bytes.write_all(record)?;
        self.len = len;
        Ok(at)
    }

    /// The record of `len` bytes at the offset `at`.
    pub fn get(&mut self, at: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut record = vec![0; len];
        self.bytes.seek(SeekFrom::Start(at))?;
        self.bytes.read_exact(&mut record)?;
        Ok(record)
    }

    /// Reader of all records.
    pub fn reader(&mut self) -> io::Result<impl Read> {
        self.bytes.rewind()?;
        Ok(&mut self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_in_order_from_memory_and_file() {
        for (len, most, has_file) in [
            (700, u64::MAX, false),
            (90_000, u64::MAX, true),
            (700, 2000, true),
            (3 << 20, 0, true),
        ] {
            let mut spool = Spool::new(most);
            let records: Vec<Vec<u8>> = (0..5).map(|i| vec![i; len + usize::from(i)]).collect();
            let at: Vec<u64> = records.iter().map(|record| spool.push(record).unwrap()).collect();
            assert_eq!(spool.bytes.is_rolled(), has_file);
            for _ in 0..2 {
                let mut all = Vec::new();
                spool.reader().unwrap().read_to_end(&mut all).unwrap();
                assert!(all == records.concat(), "{len} {most}");
                for (record, &at) in records.iter().zip(&at).rev() {
                    assert!(spool.get(at, record.len()).unwrap() == *record, "{len} {most} {at}");
                }
            }
            assert_eq!(spool.push(b"later").unwrap(), records.concat().len() as u64);
        }
        assert_eq!(Spool::new(0).reader().unwrap().read(&mut [0]).unwrap(), 0);
    }
}
