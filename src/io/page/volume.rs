//! Compresses the samples of a volume: differences between consecutive samples, modulo 2^bits; first the low bytes of
//! all, then the next bytes, ...; deflated. `web/live.js` decodes them.

use flate2::Compression;

use super::deflate;
use crate::data::samples::Samples;

/// Compresses samples of 8, 16 or 32 bits.
pub fn pack(samples: &Samples) -> Vec<u8> {
    let (bytes, size) = (samples.as_bytes(), samples.dtype().size());
    let word = |bytes: &[u8]| {
        let mut word = [0; 4];
        word[..size].copy_from_slice(bytes);
        u32::from_le_bytes(word)
    };
    let planes = (0..size).flat_map(|plane| {
        let mut before = 0;
        bytes.chunks(CHUNK * size).map(move |samples| {
            let bytes = samples.chunks_exact(size).map(word).map(|sample: u32| {
                let delta = sample.wrapping_sub(before);
                before = sample;
                (delta >> (8 * plane)) as u8
            });
            bytes.collect::<Vec<u8>>()
        })
    });
    deflate(planes, Compression::default())
}

/// Number of samples that are compressed at a time.
const CHUNK: usize = 1 << 16;
