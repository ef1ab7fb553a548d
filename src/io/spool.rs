//! Bytes that wait to be read back, in little memory.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
};

use super::{temporary_file, temporary_folder};

/// Bytes in memory before a temporary file takes the rest.
const ROOM: u64 = 256 << 10;

/// Records in the order in which they were added: the first ones in memory, the others in a temporary file.
#[derive(Debug)]
pub struct Spool {
    memory: Vec<u8>,
    file: Option<File>,
    /// Bytes of all records.
    len: u64,
    /// Bytes that may be in memory where no temporary file can be made.
    most: u64,
}

impl Spool {
    /// Without records. Where no temporary file can be made, `most` bytes are kept in memory.
    pub fn new(most: u64) -> Self {
        Self { memory: Vec::new(), file: None, len: 0, most }
    }

    /// Adds a record. The first one is kept in memory, however long it is: it has been there anyway. Returns the number
    /// of bytes before the record.
    ///
    /// # Errors
    /// When a temporary file is needed and cannot be made or written.
    pub fn push(&mut self, record: &[u8]) -> io::Result<u64> {
        let bytes = (self.memory.len() + record.len()) as u64;
        let fits = self.memory.is_empty() || bytes <= ROOM.min(self.most);
        if self.file.is_none() && !fits {
            match temporary_file(&temporary_folder()) {
                Ok(file) => self.file = Some(file),
                Err(error) if bytes > self.most => return Err(error),
                Err(_) => {}
            }
        }
        let at = self.len;
        match &mut self.file {
            Some(file) => file.write_all(record)?,
            None => self.memory.extend_from_slice(record),
        }
        self.len += record.len() as u64;
        Ok(at)
    }

    /// The record of `len` bytes before which there are `at` bytes.
    ///
    /// # Errors
    /// When the temporary file cannot be read.
    pub fn get(&self, at: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut record = vec![0; len];
        match (&self.file, at.checked_sub(self.memory.len() as u64)) {
            (Some(file), Some(at)) => {
                let mut file: &File = file;
                file.seek(SeekFrom::Start(at))?;
                file.read_exact(&mut record)?;
            }
            _ => record.copy_from_slice(&self.memory[at as usize..][..len]),
        }
        Ok(record)
    }

    /// All bytes, from the first one on. There is one reader at a time.
    ///
    /// # Errors
    /// When the temporary file cannot be read.
    pub fn reader(&self) -> io::Result<impl Read + '_> {
        let rest: Box<dyn Read + '_> = match &self.file {
            Some(file) => {
                let mut file: &File = file;
                file.rewind()?;
                Box::new(file)
            }
            None => Box::new(io::empty()),
        };
        Ok(self.memory.chain(rest))
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
            assert_eq!(spool.file.is_some(), has_file);
            assert!(spool.memory.len() >= len && spool.memory.len() <= len.max(256 << 10));
            for _ in 0..2 {
                let mut all = Vec::new();
                spool.reader().unwrap().read_to_end(&mut all).unwrap();
                assert!(all == records.concat(), "{len} {most}");
                for (record, &at) in records.iter().zip(&at).rev() {
                    assert!(spool.get(at, record.len()).unwrap() == *record, "{len} {most} {at}");
                }
            }
        }
        assert_eq!(Spool::new(0).reader().unwrap().read(&mut [0]).unwrap(), 0);
    }
}
