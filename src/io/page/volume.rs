//! Compresses the samples of a volume: differences between consecutive samples, modulo 2^bits; first the low bytes of
//! all, then the next bytes, ...; deflated. `web/live.js` decodes them.

use std::io::Write;

use flate2::{Compression, write::DeflateEncoder};

use crate::data::samples::Samples;

/// Compresses samples of 8, 16 or 32 bits.
pub fn pack(samples: &Samples) -> Vec<u8> {
    let (bytes, size) = (samples.as_bytes(), samples.dtype().size());
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..size].copy_from_slice(bytes);
        if cfg!(target_endian = "big") {
            word[..size].reverse();
        }
        u64::from_le_bytes(word)
    };
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::default());
    let mut part = Vec::with_capacity(CHUNK);
    for plane in 0..size {
        let mut before = 0;
        for samples in bytes.chunks(CHUNK * size) {
            part.clear();
            for sample in samples.chunks_exact(size).map(word) {
                part.push((sample.wrapping_sub(before) >> (8 * plane)) as u8);
                before = sample;
            }
            deflate.write_all(&part).expect("memory takes every byte");
        }
    }
    deflate.finish().expect("memory takes every byte")
}

/// Number of samples that are compressed at a time.
const CHUNK: usize = 1 << 16;
