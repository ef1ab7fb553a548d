//! Decompression into memory of a known size.

use std::{cell::RefCell, io::Read};

use crate::io::volume::header::BoxError;
#[cfg(feature = "zstd-c")]
use crate::util::memory;

pub const TOO_LONG: &str = "decompressed data are longer than the chunk";
pub const TRUNCATED: &str = "compressed data are truncated";

/// Reads `input` to its end into `bytes`. Fails if there are more than `max` bytes.
pub fn read(input: impl Read, max: usize, bytes: &mut Vec<u8>) -> Result<(), BoxError> {
    bytes.clear();
    input.take(max as u64 + 1).read_to_end(bytes)?;
    if bytes.len() > max { Err(TOO_LONG.into()) } else { Ok(()) }
}

/// Decodes consecutive zstd frames into `whole`, at most `max` bytes. The window size is limited to 8 MiB, the largest that
/// encoders use for longer data, or to twice `max`.
#[cfg(not(feature = "zstd-c"))]
pub fn zstd(bytes: &[u8], max: usize, whole: &mut Vec<u8>) -> Result<(), BoxError> {
    use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

    thread_local! {
        /// One decoder per thread: its tables and its window are reused for every chunk.
        static DECODER: RefCell<FrameDecoder> = RefCell::default();
    }
    whole.clear();
    DECODER.with_borrow_mut(|decoder| {
        let mut left = bytes;
        decoder.set_max_window_size((2 * max as u64).max(8 << 20));
        while !left.is_empty() {
            let mut frame = StreamingDecoder::new_with_decoder(&mut left, &mut *decoder)?;
            (&mut frame).take((max - whole.len()) as u64 + 1).read_to_end(whole)?;
            if whole.len() > max {
                return Err(TOO_LONG.into());
            }
            // The decoder computes the checksum, but does not compare it with that of the frame.
            let stated = frame.decoder.get_checksum_from_data();
            if stated.is_some() && stated != frame.decoder.get_calculated_checksum() {
                return Err("checksum (XXH64) mismatch".into());
            }
        }
        Ok(())
    })
}

/// Decodes consecutive zstd frames into `whole`, at most `max` bytes.
#[cfg(feature = "zstd-c")]
pub fn zstd(bytes: &[u8], max: usize, whole: &mut Vec<u8>) -> Result<(), BoxError> {
    use zstd::bulk::Decompressor;

    thread_local! {
        /// One decoder per thread: its tables are reused for every chunk.
        static DECODER: RefCell<Option<Decompressor<'static>>> = RefCell::default();
    }
    DECODER.with_borrow_mut(|decoder| {
        let decoder = match decoder {
            Some(decoder) => decoder,
            none => none.insert(Decompressor::new()?),
        };
        memory::resize(whole, max)?;
        let unpacked = decoder.decompress_to_buffer(bytes, &mut whole[..])?;
        whole.truncate(unpacked);
        Ok(())
    })
}

/// Decodes an LZ4 block that fills `whole`.
pub fn lz4(block: &[u8], whole: &mut [u8]) -> Result<(), BoxError> {
    match lz4_flex::block::decompress_into(block, whole)? {
        len if len == whole.len() => Ok(()),
        _ => Err("LZ4 block is shorter than its stated size".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame with a checksum: `zstd` of a text.
    #[test]
    fn damage_of_zstd_with_a_checksum_is_seen() {
        let frame = [
            0x28, 0xb5, 0x2f, 0xfd, 0x24, 0x12, 0x91, 0x00, 0x00, 0x76, 0x6f, 0x78, 0x65, 0x6c,
            0x73, 0x20, 0x6f, 0x66, 0x20, 0x61, 0x20, 0x76, 0x6f, 0x6c, 0x75, 0x6d, 0x65, 0x64,
            0x70, 0xc0, 0x4a,
        ];
        let mut whole = Vec::new();
        zstd(&frame, 100, &mut whole).unwrap();
        assert_eq!(whole, b"voxels of a volume");
        for at in [9, frame.len() - 1] {
            let mut damaged = frame;
            damaged[at] ^= 1;
            assert!(zstd(&damaged, 100, &mut whole).is_err(), "{at}");
        }
    }
}
