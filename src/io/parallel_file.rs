//! A regular file that is read by all threads: one alone copies about 3 GB/s from the system's cache, and half of that
//! into fresh memory.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::FileExt,
};

use crate::parallel::Parallel;

/// Bytes that a thread reads at once.
const PIECE: usize = 1 << 20;

/// Reads a file from an offset on.
#[derive(Debug)]
pub struct ParallelFile {
    file: File,
    at: u64,
}

impl ParallelFile {
    /// Reads `file`, a regular one, from offset `at` on: pipes and terminals have no offsets to read at.
    pub fn new(file: File, at: u64) -> Self {
        Self { file, at }
    }

    /// Fills `bytes` from offset `at` on; returns how many there were.
    fn fill(&self, bytes: &mut [u8], at: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.file.read_at(&mut bytes[filled..], at + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

impl Read for ParallelFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        if bytes.len() <= PIECE {
            read = self.file.read_at(bytes, self.at)?;
        } else {
            let pieces = bytes.chunks_mut(PIECE).enumerate();
            let offset = |number: usize| self.at + (number * PIECE) as u64;
            let fill = |(number, piece): (usize, &mut [u8])| {
                self.fill(piece, offset(number)).map(|filled| (filled, filled == piece.len()))
            };
            for filled in pieces.par_map(fill) {
                match filled {
                    // What stands before an error is there; the error comes again.
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
        let mut input = ParallelFile::new(file, 0);
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
