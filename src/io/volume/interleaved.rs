//! Volumes whose samples alternate with those of others: components of vectors, layers of labels, colours.

use std::io::{self, Read};

use super::{header::InnerAxis, stream::ByteStream};

/// Number of positions of all inner axes together.
pub fn count(axes: &[InnerAxis]) -> usize {
    axes.iter().map(|axis| axis.size).product()
}

/// The samples of `size` bytes at position `index` among the positions of all `axes`, the fastest first.
pub fn select(
    mut input: ByteStream,
    axes: &[InnerAxis],
    mut index: usize,
    size: usize,
) -> ByteStream {
    let mut positions = Vec::new();
    for axis in axes {
        positions.push(index % axis.size);
        index /= axis.size;
    }
    for (axis, position) in axes.iter().zip(positions).rev().filter(|(axis, _)| axis.size > 1) {
        let run = axis.run * size;
        let (before, period) = ((position * run) as u64, (axis.size * run) as u64);
        let wanted = before..before + run as u64;
        input = Box::new(Runs { input, wanted, period, at: 0, buffer: Vec::new(), held: 0..0 });
    }
    input
}

/// The bytes at the positions `wanted` of each period.
struct Runs {
    input: ByteStream,
    wanted: std::ops::Range<u64>,
    period: u64,
    /// Position in the period of the next byte of the buffer.
    at: u64,
    buffer: Vec<u8>,
    /// Bytes of the buffer that are not consumed.
    held: std::ops::Range<usize>,
}

impl Runs {
    const BUFFER: usize = 1 << 16;

    fn advance(&mut self, bytes: u64) {
        self.at = (self.at + bytes) % self.period;
    }
}

impl Read for Runs {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            if self.held.is_empty() {
                if done > 0 {
                    break;
                }
                self.buffer.resize(Self::BUFFER, 0);
                let read = self.input.read(&mut self.buffer)?;
                self.held = 0..read;
                if read == 0 {
                    break;
                }
            }
            let is_wanted = self.wanted.contains(&self.at);
            let left = match is_wanted {
                true => (self.wanted.end - self.at).min((bytes.len() - done) as u64),
                false if self.at < self.wanted.start => self.wanted.start - self.at,
                false => self.period - self.at + self.wanted.start,
            };
            let len = left.min(self.held.len() as u64) as usize;
            if is_wanted {
                let from = &self.buffer[self.held.start..][..len];
                bytes[done..done + len].copy_from_slice(from);
                done += len;
            }
            self.held.start += len;
            self.advance(len as u64);
        }
        Ok(done)
    }
}
