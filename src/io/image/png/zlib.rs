//! Zlib streams whose parts are compressed independently (RFC 1950 and RFC 1951).

use std::io::{self, Write};

use flate2::{Compress, Compression, FlushCompress};

/// The header of a stream: deflate with a window of 32 KiB, without a dictionary. The check bits make both bytes
/// together a multiple of 31 (RFC 1950, 2.2).
pub const HEADER: [u8; 2] = [0x78, 0x01];
/// The last block, which is empty: final bit, fixed Huffman codes, and the end-of-block code.
pub const LAST_BLOCK: [u8; 2] = [0x03, 0x00];

/// Part of a stream: deflate blocks that end at a byte boundary, with checksum and length of their data.
pub struct DeflatedPart {
    pub blocks: Vec<u8>,
    checksum: u32,
    len: usize,
}

impl DeflatedPart {
    /// Compresses `data` with the effort `level`, 0 to 9.
    pub fn compress(data: &[u8], level: u8) -> io::Result<Self> {
        let mut state = Compress::new(Compression::new(level.into()), false);
        let mut blocks = Vec::with_capacity(data.len() / 2 + 1024);
        loop {
            let start = state.total_in() as usize;
            state
                .compress_vec(&data[start..], &mut blocks, FlushCompress::Sync)
                .map_err(io::Error::other)?;
            // The flush is complete if it leaves room in the output.
            if state.total_in() as usize == data.len() && blocks.len() < blocks.capacity() {
                return Ok(Self { blocks, checksum: adler32(data), len: data.len() });
            }
            blocks.reserve(blocks.capacity() / 2 + 4096);
        }
    }
}

/// The Adler-32 checksum of a stream, computed part by part.
#[derive(Debug)]
pub struct Checksum(pub u32);

impl Default for Checksum {
    fn default() -> Self {
        Self(1)
    }
}

impl Checksum {
    /// Appends the checksum of the next part.
    ///
    /// Of bytes `x[i]`, Adler-32 has `a = 1 + sum x[i]` in the low 16 bits and `b`, the sum of `a` after each byte, in
    /// the high 16 bits, both modulo 65521. Data with the checksum `(a, b)` followed by `len` bytes with the checksum
    /// `(c, d)` have the checksum `(a + c - 1, b + d + len (a - 1))`: the second part's sums start from `a` instead of
    /// 1, and `d` has `len` of these sums.
    pub fn append(&mut self, part: &DeflatedPart) {
        const BASE: u64 = 65521;
        let split = |adler: u32| (u64::from(adler & 0xffff), u64::from(adler >> 16));
        let ((a, b), (c, d)) = (split(self.0), split(part.checksum));
        let low = (a + c + BASE - 1) % BASE;
        let high = (b + d + (part.len as u64 % BASE) * ((a + BASE - 1) % BASE)) % BASE;
        self.0 = (high << 16 | low) as u32;
    }
}

/// Compresses `data` to a whole zlib stream.
pub fn compress(data: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data)?;
    encoder.finish()
}

fn adler32(data: &[u8]) -> u32 {
    let mut adler = simd_adler32::Adler32::new();
    adler.write(data);
    adler.finish()
}
