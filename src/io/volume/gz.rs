//! Gzip compression on all threads: each 4 MiB of the data becomes a gzip member, and every gzip reader concatenates the
//! members of a file (RFC 1952, 2.2).

use std::io::{self, Write};

use flate2::{Compression, write::GzEncoder};

use crate::util::parallel::Parallel;

/// Uncompressed bytes of a member.
const MEMBER: usize = 4 << 20;

/// A writer that compresses into `output`. The compressed bytes depend neither on how the data are split into writes nor
/// on the number of threads.
#[derive(Debug)]
pub struct ParallelGzWriter<W> {
    output: W,
    /// Data that do not fill a member yet.
    rest: Vec<u8>,
}

impl<W: Write> ParallelGzWriter<W> {
    pub fn new(output: W) -> Self {
        Self { output, rest: Vec::new() }
    }

    fn write_members(&mut self, data: &[u8]) -> io::Result<()> {
        for batch in data.chunks(MEMBER * rayon::current_num_threads()) {
            for member in batch.chunks(MEMBER).par_map(compress) {
                self.output.write_all(&member?)?;
            }
        }
        Ok(())
    }

    /// Compresses the rest, and returns the output.
    pub fn finish(mut self) -> io::Result<W> {
        let rest = std::mem::take(&mut self.rest);
        self.write_members(&rest)?;
        Ok(self.output)
    }
}

fn compress(data: &[u8]) -> io::Result<Vec<u8>> {
    let mut gz = GzEncoder::new(Vec::new(), Compression::new(4));
    gz.write_all(data)?;
    gz.finish()
}

impl<W: Write> Write for ParallelGzWriter<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let (head, data_left) = match self.rest.len() {
            0 => (&data[..0], data),
            held => data.split_at(data.len().min(MEMBER - held)),
        };
        self.rest.extend_from_slice(head);
        if self.rest.len() == MEMBER {
            let member = std::mem::take(&mut self.rest);
            self.write_members(&member)?;
        }
        if self.rest.is_empty() {
            let (whole, rest) = data_left.split_at(data_left.len() / MEMBER * MEMBER);
            self.write_members(whole)?;
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
    use super::*;

    #[test]
    fn compressed_bytes_do_not_depend_on_the_writes() {
        let data: Vec<u8> = (0..3 * MEMBER + 17).map(|i| ((i * i) >> 9) as u8).collect();
        let compressed = |lengths: &[usize]| {
            let mut writer = ParallelGzWriter::new(Vec::new());
            let (mut left, mut lengths) = (&data[..], lengths.iter().cycle());
            while !left.is_empty() {
                let (some, others) = left.split_at(left.len().min(*lengths.next().unwrap()));
                writer.write_all(some).unwrap();
                left = others;
            }
            writer.finish().unwrap()
        };
        let whole = compressed(&[data.len()]);
        let lengths: [&[usize]; 4] =
            [&[348, data.len()], &[MEMBER], &[MEMBER - 1, 2, MEMBER], &[700_001, 2 * MEMBER]];
        for lengths in lengths {
            assert!(compressed(lengths) == whole, "{lengths:?}");
        }
    }
}
