//! Access to regular files at any offset, and a reader that uses all threads. One thread alone copies about 3 GB/s from
//! the page cache, and half of that into fresh memory.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    sync::Arc,
};

use crate::util::parallel::Parallel;

/// Number of bytes that one thread reads at a time.
const PIECE: usize = 1 << 20;

/// Reader of a regular file. Reads of more than `PIECE` bytes are divided among all threads.
#[derive(Debug)]
pub struct ParallelFile {
    file: Arc<File>,
    at: u64,
}

impl ParallelFile {
    /// Reads `file` from offset `at` on. It must be a regular file: pipes and terminals have no offsets.
    pub fn new(file: Arc<File>, at: u64) -> Self {
        Self { file, at }
    }
}

/// Reads `bytes` from offset `at` of `file` on, again if a signal interrupts it.
fn read_once_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    loop {
        #[cfg(unix)]
        let read = std::os::unix::fs::FileExt::read_at(file, bytes, at);
        #[cfg(windows)]
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, at);
        match read {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Fills `bytes` from offset `at` of `file` on. Returns the number of bytes read, which is smaller only at the end of the
/// file.
pub fn read_full_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match read_once_at(file, &mut bytes[filled..], at + filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

impl Read for ParallelFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        if bytes.len() <= PIECE {
            read = read_once_at(&self.file, bytes, self.at)?;
        } else {
            let pieces = bytes.chunks_mut(PIECE).enumerate();
            let offset = |number: usize| self.at + (number * PIECE) as u64;
            let fill = |(number, piece): (usize, &mut [u8])| {
                read_full_at(&self.file, piece, offset(number))
                    .map(|filled| (filled, filled == piece.len()))
            };
            for filled in pieces.par_map(fill) {
                match filled {
                    // The bytes before the error are returned; the next read meets the error again.
                    Err(error) if read == 0 => return Err(error),
                    Err(_) => break,
                    Ok((filled, whole)) => {
                        read += filled;
                        if !whole {
                            break;
                        }
                    }
                }
            }
        }
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for ParallelFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// Writes all `bytes` at offset `at` of `file`.
pub fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::write_all_at(file, bytes, at);
    #[cfg(windows)]
    {
        let mut written = 0;
        while written < bytes.len() {
            let (rest, at) = (&bytes[written..], at + written as u64);
            match std::os::windows::fs::FileExt::seek_write(file, rest, at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn all_bytes_come_in_order() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> =
            (0..3 * PIECE as u32 + 12_345).map(|i| (i >> 3 ^ i >> 13) as u8).collect();
        file.write_all(&bytes).unwrap();
        let mut input = ParallelFile::new(Arc::new(file), 0);
        let mut start = [0; 7];
        input.read_exact(&mut start).unwrap();
        assert_eq!(start, bytes[..7]);
        let mut rest = vec![1; bytes.len()];
        assert_eq!(input.read(&mut rest).unwrap(), bytes.len() - 7);
        assert!(rest[..bytes.len() - 7] == bytes[7..]);
        assert_eq!(input.read(&mut rest).unwrap(), 0);
        let mut later = ParallelFile::new(input.file, 12_345);
        later.read_exact(&mut start).unwrap();
        assert_eq!(start, bytes[12_345..][..7]);
    }
}
