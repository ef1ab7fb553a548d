//! Compression by gzip on all threads: each 4 MiB of the data becomes a gzip member, and every reader of gzip
//! concatenates the members of a file (RFC 1952, 2.2).

use std::io::{self, Write};

use flate2::{Compression, write::GzEncoder};

use crate::util::parallel::Parallel;

/// Uncompressed bytes of a member.
const MEMBER: usize = 4 << 20;

/// A writer that compresses into `output`. The compressed bytes depend neither on how the data are cut into writes nor
/// on the number of threads.
#[derive(Debug)]
pub struct Members<W> {
    output: W,
    /// Data that do not fill a member yet.
    rest: Vec<u8>,
    is_empty: bool,
}

impl<W: Write> Members<W> {
    pub fn new(output: W) -> Self {
        Self { output, rest: Vec::new(), is_empty: true }
    }

    fn pack(&mut self, data: &[u8]) -> io::Result<()> {
        self.is_empty = false;
        for some in data.chunks(MEMBER * rayon::current_num_threads()) {
            for member in some.chunks(MEMBER).par_map(packed) {
                self.output.write_all(&member?)?;
            }
        }
        Ok(())
    }

    /// Compresses the rest, and returns the output. Without any data, an empty member is written.
    pub fn finish(mut self) -> io::Result<W> {
        let rest = std::mem::take(&mut self.rest);
        if self.is_empty || !rest.is_empty() {
            self.output.write_all(&packed(&rest)?)?;
        }
        Ok(self.output)
    }
}

fn packed(data: &[u8]) -> io::Result<Vec<u8>> {
    let mut gz = GzEncoder::new(Vec::new(), Compression::new(4));
    gz.write_all(data)?;
    gz.finish()
}

impl<W: Write> Write for Members<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let (head, data_left) = match self.rest.len() {
            0 => (&data[..0], data),
            held => data.split_at(data.len().min(MEMBER - held)),
        };
        self.rest.extend_from_slice(head);
        if self.rest.len() == MEMBER {
            let member = std::mem::take(&mut self.rest);
            self.pack(&member)?;
        }
        if self.rest.is_empty() {
            let (whole, rest) = data_left.split_at(data_left.len() / MEMBER * MEMBER);
            self.pack(whole)?;
            self.rest.extend_from_slice(rest);
        }
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn members_join_to_the_data_however_they_are_written() {
        let data: Vec<u8> = (0..3 * MEMBER + 17).map(|i| ((i * i) >> 9) as u8).collect();
        let packed = |lengths: &[usize]| {
            let mut members = Members::new(Vec::new());
            let (mut left, mut lengths) = (&data[..], lengths.iter().cycle());
            while !left.is_empty() {
                let (some, others) = left.split_at(left.len().min(*lengths.next().unwrap()));
                members.write_all(some).unwrap();
                left = others;
            }
            members.finish().unwrap()
        };
        let whole = packed(&[data.len()]);
        let mut unpacked = Vec::new();
        flate2::read::MultiGzDecoder::new(&whole[..]).read_to_end(&mut unpacked).unwrap();
        assert!(unpacked == data);
        let lengths: [&[usize]; 4] =
            [&[348, data.len()], &[MEMBER], &[MEMBER - 1, 2, MEMBER], &[700_001, 2 * MEMBER]];
        for lengths in lengths {
            assert!(packed(lengths) == whole, "{lengths:?}");
        }
    }

    #[test]
    fn nothing_is_a_member_too() {
        let packed = Members::new(Vec::new()).finish().unwrap();
        let mut unpacked = Vec::new();
        flate2::read::MultiGzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
        assert!(unpacked.is_empty() && !packed.is_empty());
    }
}
