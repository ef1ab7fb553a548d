//! Decompression of strips and tiles as streams, so that a strip as large as an image need not be in memory.

use std::io::{self, BufRead, Read};

use flate2::bufread::ZlibDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;
use weezl::{BitOrder, LzwStatus, decode::Decoder};

use super::storage::Compression;

/// A stream of decompressed bytes.
pub type ByteStream<'a> = Box<dyn Read + Send + 'a>;

/// Maximum window of zstd in bytes, unless a strip is larger: the default of the program zstd.
const MAX_WINDOW: u64 = 8 << 20;
/// Maximum dictionary of LZMA in bytes: that of the highest level of the program xz.
pub const MAX_DICTIONARY: u64 = 64 << 20;

/// Opens a stream of decompressed data of `bytes` bytes.
pub fn decompress<'a>(
    compression: Compression,
    mut packed: Box<dyn BufRead + Send + 'a>,
    bytes: u64,
) -> io::Result<ByteStream<'a>> {
    Ok(match compression {
        Compression::None | Compression::Jpeg | Compression::OldJpeg | Compression::Fax(_) => {
            Box::new(packed)
        }
        Compression::Deflate => Box::new(ZlibDecoder::new(packed)),
        Compression::PackBits => Box::new(PackBits { packed, run: Run::Copy(0) }),
        Compression::Zstd => {
            let window = bytes.clamp(MAX_WINDOW, 1 << 40).next_power_of_two();
            let packed = with_window(packed, window)?;
            let decoder = StreamingDecoder::new_with_max_window_size(packed, window);
            Box::new(decoder.map_err(io::Error::other)?)
        }
        Compression::Lzma => {
            // The dictionary, which grows with the decoded data, and half a mebibyte of tables.
            const KIBIBYTES: u64 = MAX_DICTIONARY / 1024 + 512;
            Box::new(XzReader::new_mem_limit(packed, false, KIBIBYTES as u32))
        }
        Compression::Lzw => {
            // Before TIFF 6.0, some writers packed codes from the lowest bit on. Then the first code, 256 in 9 bits, is
            // 0x00 and a byte with bit 0 set.
            let start = packed.fill_buf()?;
            let is_old = matches!(start, [0, odd, ..] if odd & 1 == 1);
            let decoder = match is_old {
                true => Decoder::new(BitOrder::Lsb, 8),
                false => Decoder::with_tiff_size_switch(BitOrder::Msb, 8),
            };
            Box::new(Lzw { packed, decoder })
        }
    })
}

/// Lowers the window that a zstd frame states to `window`, a power of two. The first `window` bytes do not change,
/// because no match in them reaches farther back.
fn with_window<'a>(
    mut packed: Box<dyn BufRead + Send + 'a>,
    window: u64,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    /// Bit of the frame header descriptor for frames without a window (RFC 8878, section 3.1.1.1).
    const SINGLE_SEGMENT: u8 = 0x20;
    let mut head = [0; 6];
    packed.read_exact(&mut head)?;
    let exponent = window.ilog2() as u8 - 10;
    if head[..4] == MAGIC && head[4] & SINGLE_SEGMENT == 0 && head[5] >> 3 >= exponent {
        head[5] = exponent << 3;
    }
    Ok(Box::new(io::Cursor::new(head).chain(packed)))
}

/// PackBits: runs of bytes (TIFF 6.0, section 9).
struct PackBits<R> {
    packed: R,
    run: Run,
}

#[derive(Clone, Copy)]
enum Run {
    /// This number of literal bytes follows.
    Copy(usize),
    /// This number of repetitions of a byte is left.
    Repeat(usize, u8),
}

impl<R: BufRead> PackBits<R> {
    fn byte(&mut self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        Ok(match self.packed.read(&mut byte)? {
            0 => None,
            _ => Some(byte[0]),
        })
    }
}

impl<R: BufRead> Read for PackBits<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        while matches!(self.run, Run::Copy(0) | Run::Repeat(0, _)) {
            let Some(head) = self.byte()? else { return Ok(0) };
            self.run = match head {
                0..=127 => Run::Copy(usize::from(head) + 1),
                // No operation, for alignment.
                128 => continue,
                _ => {
                    let Some(byte) = self.byte()? else { return Ok(0) };
                    Run::Repeat(257 - usize::from(head), byte)
                }
            };
        }
        match &mut self.run {
            Run::Copy(left) => {
                let len = bytes.len().min(*left);
                let read = self.packed.read(&mut bytes[..len])?;
                *left -= read;
                Ok(read)
            }
            Run::Repeat(left, byte) => {
                let len = bytes.len().min(*left);
                bytes[..len].fill(*byte);
                *left -= len;
                Ok(len)
            }
        }
    }
}

struct Lzw<R> {
    packed: R,
    decoder: Decoder,
}

impl<R: BufRead> Read for Lzw<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            let input = self.packed.fill_buf()?;
            let is_end = input.is_empty();
            let result = self.decoder.decode_bytes(input, bytes);
            self.packed.consume(result.consumed_in);
            match result.status {
                _ if result.consumed_out > 0 || bytes.is_empty() => return Ok(result.consumed_out),
                Ok(LzwStatus::Done) => return Ok(0),
                Ok(_) if is_end => return Ok(0),
                Ok(LzwStatus::NoProgress) if result.consumed_in == 0 => return Ok(0),
                Ok(_) => {}
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(compression: Compression, packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        decompress(compression, Box::new(packed), 1 << 10)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The example of Apple's Technical Note TN1023.
    #[test]
    fn runs_of_bytes() {
        let packed = [
            0xfe, 0xaa, 0x02, 0x80, 0x00, 0x2a, 0xfd, 0xaa, 0x03, 0x80, 0x00, 0x2a, 0x22, 0xf7,
            0xaa,
        ];
        let mut expected = vec![0xaa, 0xaa, 0xaa, 0x80, 0, 0x2a, 0xaa, 0xaa, 0xaa, 0xaa];
        expected.extend([0x80, 0, 0x2a, 0x22]);
        expected.extend([0xaa; 10]);
        assert_eq!(all(Compression::PackBits, &packed).unwrap(), expected);
        assert_eq!(all(Compression::PackBits, &[0x80, 0, 7]).unwrap(), [7]);
        // Truncated data give the existing bytes.
        assert_eq!(all(Compression::PackBits, &[2, 7]).unwrap(), [7]);
        assert!(all(Compression::PackBits, &[0xfe]).unwrap().is_empty());
    }

    /// The example of TIFF 6.0, section 13, and broken data.
    #[test]
    fn codes_of_strings() {
        let packed = [0x80, 0x01, 0xe0, 0x40, 0x80, 0x44, 0x08, 0x0c, 0x06, 0x80, 0x80];
        assert_eq!(all(Compression::Lzw, &packed).unwrap(), [7, 7, 7, 8, 8, 7, 7, 6, 6]);
        assert!(all(Compression::Lzw, &[]).unwrap().is_empty());
        assert!(all(Compression::Lzw, &[0x80, 0x7f, 0xff, 0xff]).is_err());
        // The codes 256, 1, 258, 257 in 9 bits each, the least significant bit first.
        let old = [0x00, 0x03, 0x08, 0x0c, 0x08];
        assert_eq!(all(Compression::Lzw, &old).unwrap(), [1, 1, 1]);
    }
}
