//! Blosc's container (version 1): blocks of numbers whose bytes or bits are shuffled, then compressed by the codec that
//! the header names. LZ4, BloscLZ, zlib and zstd are read; LZ4 is written.
//!
//! ```text
//! byte 0  version, version of the codec, flags, bytes of a number: u8 each
//! byte 4  decompressed bytes, bytes of a block, compressed bytes: u32 each, little-endian
//! byte 16 offset of each block: u32
//! block   one stream, or one for each byte of a number: compressed length as u32, then the data; if that length
//!         is the decompressed length, the data are stored uncompressed
//! ```
//! Source: README_CHUNK_FORMAT of c-blosc.

use flate2::read::ZlibDecoder;

use super::unpack;
use crate::{
    io::volume::header::BoxError,
    util::{error::Result as Done, memory, simd},
};

const HEADER: usize = 16;
/// Flags.
const SHUFFLE: u8 = 1;
const STORED: u8 = 2;
const BITSHUFFLE: u8 = 4;
const ONE_STREAM: u8 = 0x10;
/// A block is split into one stream for each byte of a number if a number has at most this many bytes ...
const MAX_STREAMS: usize = 16;
/// ... and each stream has at least this many bytes.
const MIN_STREAM: usize = 128;
/// Number of bytes of a block that is written.
const BLOCK: usize = 256 << 10;
/// The number of LZ4 among the codecs, in bits 5 to 7 of the flags.
const LZ4: u8 = 1;

fn number(bytes: &[u8], at: usize) -> Result<usize, BoxError> {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or(unpack::TRUNCATED)?;
    Ok(u32::from_le_bytes(*bytes) as usize)
}

/// Decompresses `bytes` into `whole`, at most `max` bytes.
pub fn decode(bytes: &[u8], max: usize, whole: &mut Vec<u8>) -> Result<(), BoxError> {
    let (Some(&[_, _, flags, size]), true) = (bytes.first_chunk(), bytes.len() >= HEADER) else {
        return Err(unpack::TRUNCATED.into());
    };
    let (size, len, block) = (usize::from(size).max(1), number(bytes, 4)?, number(bytes, 8)?);
    if len > max {
        return Err(unpack::TOO_LONG.into());
    }
    if flags & STORED != 0 {
        let stored = bytes.get(HEADER..HEADER + len).ok_or(unpack::TRUNCATED)?;
        memory::resize(whole, len)?;
        whole.copy_from_slice(stored);
        return Ok(());
    }
    if len > 0 && (block == 0 || block > len.max(HEADER)) {
        return Err(format!("invalid block size {block}").into());
    }
    memory::resize(whole, len)?;
    let (mut ordered, mut unpacked) = (vec![0; block.min(len)], Vec::new());
    for (i, part) in whole.chunks_mut(block.max(1)).enumerate() {
        let shuffles = flags & SHUFFLE != 0 && size > 1;
        let bitshuffles = flags & BITSHUFFLE != 0 && part.len() >= size;
        let ordered = &mut ordered[..part.len()];
        let to = if shuffles || bitshuffles { &mut *ordered } else { &mut *part };
        let is_split = flags & ONE_STREAM == 0
            && size <= MAX_STREAMS
            && block / size >= MIN_STREAM
            && to.len() == block;
        let streams = if is_split { size } else { 1 };
        let mut at = number(bytes, HEADER + 4 * i)?;
        let each = to.len() / streams;
        let mut of_block = to.chunks_exact_mut(each);
        for stream in of_block.by_ref() {
            let packed = number(bytes, at)?;
            at += 4;
            let content = at.checked_add(packed).and_then(|end| bytes.get(at..end));
            let content = content.ok_or(unpack::TRUNCATED)?;
            at += packed;
            match packed == each {
                true => stream.copy_from_slice(content),
                false => unpack(flags >> 5, content, stream, &mut unpacked)?,
            }
        }
        of_block.into_remainder().fill(0);
        if shuffles {
            unshuffle(ordered, size, part);
        } else if bitshuffles {
            bitunshuffle(ordered, size, part);
        }
    }
    Ok(())
}

/// Decompresses one stream, which must fill `whole`. `unpacked` is scratch memory.
fn unpack(
    codec: u8,
    packed: &[u8],
    whole: &mut [u8],
    unpacked: &mut Vec<u8>,
) -> Result<(), BoxError> {
    match codec {
        0 => return blosclz(packed, whole),
        LZ4 => return unpack::lz4(packed, whole),
        2 => return Err("Snappy within Blosc is not supported".into()),
        3 => unpack::read(ZlibDecoder::new(packed), whole.len(), unpacked)?,
        4 => unpack::zstd(packed, whole.len(), unpacked)?,
        other => return Err(format!("unknown codec {other} of Blosc").into()),
    }
    if unpacked.len() != whole.len() {
        return Err("a block is shorter than its stated size".into());
    }
    whole.copy_from_slice(unpacked);
    Ok(())
}

/// Decompresses BloscLZ: literals, and copies from up to 8191 bytes before, or up to 8191 + 65,536 with an extended
/// distance.
fn blosclz(packed: &[u8], whole: &mut [u8]) -> Result<(), BoxError> {
    const FAR: usize = 8191;
    let mut input = packed.iter().map(|&byte| usize::from(byte));
    let mut next = || input.next().ok_or("a block is truncated");
    let mut at = 0;
    // The first instruction is always a literal.
    let mut control = Some(next()? & 31);
    while let Some(code) = control {
        if code < 32 {
            for _ in 0..=code {
                *whole.get_mut(at).ok_or("a block is too long")? = next()? as u8;
                at += 1;
            }
        } else {
            let (mut len, mut back) = ((code >> 5) - 1, (code & 31) << 8);
            if len == 6 {
                loop {
                    let more = next()?;
                    len += more;
                    if more != 255 {
                        break;
                    }
                }
            }
            let low = next()?;
            back += low;
            if low == 255 && back == (31 << 8) + 255 {
                back = (next()? << 8) + next()? + FAR;
            }
            let (len, back) = (len + 3, back + 1);
            if back > at || len > whole.len() - at {
                return Err("a block refers to bytes before its beginning or past its end".into());
            }
            for to in at..at + len {
                whole[to] = whole[to - back];
            }
            at += len;
        }
        control = next().ok();
    }
    if at == whole.len() { Ok(()) } else { Err("a block is shorter than its stated size".into()) }
}

/// Undoes the byte shuffle: all first bytes of numbers of `size` bytes, all second bytes, ... become numbers. Bytes at the
/// end that do not fill a number are copied.
pub fn unshuffle(from: &[u8], size: usize, to: &mut [u8]) {
    fn with_size<const SIZE: usize>(from: &[u8], to: &mut [u8]) {
        let count = to.len() / SIZE;
        let planes: [&[u8]; SIZE] = std::array::from_fn(|byte| &from[byte * count..][..count]);
        for (i, number) in to.as_chunks_mut::<SIZE>().0.iter_mut().enumerate() {
            *number = std::array::from_fn(|byte| planes[byte][i]);
        }
    }
    let count = to.len() / size;
    match size {
        1 => to.copy_from_slice(from),
        2 => with_size::<2>(from, to),
        4 => with_size::<4>(from, to),
        8 => with_size::<8>(from, to),
        _ => {
            for (i, number) in to.chunks_exact_mut(size).enumerate() {
                number.iter_mut().enumerate().for_each(|(byte, to)| *to = from[byte * count + i]);
            }
        }
    }
    let rest = count * size;
    to[rest..].copy_from_slice(&from[rest..]);
}

/// The byte shuffle, the inverse of [`unshuffle`].
#[inline(always)]
fn shuffle(from: &[u8], size: usize, to: &mut [u8]) {
    #[inline(always)]
    fn with_size<const SIZE: usize>(from: &[u8], count: usize, to: &mut [u8]) {
        for (byte, plane) in to.chunks_exact_mut(count).take(SIZE).enumerate() {
            for (to, number) in plane.iter_mut().zip(from.as_chunks::<SIZE>().0) {
                *to = number[byte];
            }
        }
    }
    let count = from.len() / size;
    if count > 0 {
        match size {
            2 => with_size::<2>(from, count, to),
            4 => with_size::<4>(from, count, to),
            8 => with_size::<8>(from, count, to),
            _ => to.copy_from_slice(from),
        }
    }
    let rest = count * size;
    to[rest..].copy_from_slice(&from[rest..]);
}

/// Undoes the bit shuffle: the first bits of all numbers, their second bits, ... become numbers. Blocks whose count of
/// numbers is not a multiple of 8 are not shuffled.
fn bitunshuffle(from: &[u8], size: usize, to: &mut [u8]) {
    let count = to.len() / size;
    if !count.is_multiple_of(8) {
        to.copy_from_slice(from);
        return;
    }
    let row = count / 8;
    for byte in 0..size {
        for group in 0..row {
            let bits = |bit: usize| from[(8 * byte + bit) * row + group];
            let numbers = transposed(u64::from_le_bytes(std::array::from_fn(bits)));
            for (i, value) in numbers.to_le_bytes().into_iter().enumerate() {
                to[(8 * group + i) * size + byte] = value;
            }
        }
    }
    let rest = count * size;
    to[rest..].copy_from_slice(&from[rest..]);
}

/// Transposes the 8 x 8 bits of `x` (Hacker's Delight, 7-3).
fn transposed(x: u64) -> u64 {
    let swap = |x: u64, shift: u32, mask: u64| {
        let moved = (x ^ (x >> shift)) & mask;
        x ^ moved ^ (moved << shift)
    };
    let x = swap(x, 7, 0x00aa_00aa_00aa_00aa);
    let x = swap(x, 14, 0x0000_cccc_0000_cccc);
    swap(x, 28, 0x0000_0000_f0f0_f0f0)
}

/// A compressor that reuses its memory for the next chunk.
#[derive(Debug, Default)]
pub struct Encoder {
    /// At least as long as the compressed chunk.
    packed: Vec<u8>,
    ordered: Vec<u8>,
}

impl Encoder {
    /// Compresses numbers of `size` bytes (1, 2, 4 or 8) by byte shuffle and LZ4.
    pub fn encode(&mut self, bytes: &[u8], size: usize) -> Done<&[u8]> {
        let Self { packed, ordered } = self;
        let block = BLOCK.min(bytes.len()).max(1);
        let mut flags = LZ4 << 5;
        if size > 1 {
            flags |= SHUFFLE;
        }
        let blocks = bytes.len().div_ceil(block);
        let mut end = HEADER + 4 * blocks;
        let room = lz4_flex::block::get_maximum_output_size(block) + 4 * MAX_STREAMS;
        let needed = end + bytes.len() + room.max(HEADER);
        if packed.len() < needed {
            memory::resize(packed, needed)?;
        }
        memory::resize(ordered, block)?;
        for (i, part) in bytes.chunks(block).enumerate() {
            packed[HEADER + 4 * i..][..4].copy_from_slice(&(end as u32).to_le_bytes());
            let ordered = &mut ordered[..part.len()];
            simd::vectorize(
                #[inline(always)]
                || shuffle(part, size, ordered),
            );
            let is_split = block / size >= MIN_STREAM && part.len() == block;
            let each = part.len() / if is_split { size } else { 1 };
            for stream in ordered.chunks_exact(each) {
                let room = lz4_flex::block::get_maximum_output_size(each);
                if packed.len() < end + 4 + room {
                    memory::reserve(packed, end + 4 + room - packed.len())?;
                    packed.resize(end + 4 + room, 0);
                }
                let to = &mut packed[end + 4..];
                let len = match lz4_flex::block::compress_into(stream, to) {
                    Ok(len) if len < each => len,
                    _ => {
                        to[..each].copy_from_slice(stream);
                        each
                    }
                };
                packed[end..][..4].copy_from_slice(&(len as u32).to_le_bytes());
                end += 4 + len;
            }
        }
        if end >= HEADER + bytes.len() {
            flags |= STORED;
            end = HEADER + bytes.len();
            packed[HEADER..end].copy_from_slice(bytes);
        }
        packed[..4].copy_from_slice(&[2, 1, flags, size as u8]);
        for (at, value) in [(4, bytes.len()), (8, block), (12, end)] {
            packed[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
        }
        Ok(&packed[..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8], max: usize) -> Result<Vec<u8>, BoxError> {
        // Old content of the memory must not matter.
        let mut whole = vec![0xa5; 999];
        super::decode(bytes, max, &mut whole).map(|()| whole)
    }

    #[test]
    fn decoding_inverts_encoding() {
        let mut encoder = Encoder::default();
        for size in [1, 2, 4, 8] {
            for len in [0, 1, 7, 128, 1000, 4096, BLOCK, BLOCK + 24, 3 * BLOCK + 8 * 77] {
                let smooth = |i: usize| ((i / size * 3) >> (8 * (i % size))) as u8;
                let noise = |i: usize| (i as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0];
                let of = |value: &dyn Fn(usize) -> u8| (0..len).map(value).collect::<Vec<u8>>();
                for (bytes, is_even) in
                    [(of(&smooth), false), (of(&noise), false), (of(&|_| 7), true)]
                {
                    let packed = encoder.encode(&bytes, size).unwrap();
                    assert!(packed.len() <= bytes.len() + HEADER);
                    assert!(len <= 4096 || !is_even || packed.len() < len / 50);
                    assert_eq!(decode(packed, len).unwrap(), bytes, "{size} {len}");
                    assert!(len == 0 || decode(packed, len - 1).is_err());
                }
            }
        }
    }

    #[test]
    fn damage_is_an_error_or_changes_bytes() {
        let bytes: Vec<u8> = (0..3000).map(|i| (i / 7) as u8).collect();
        let packed = Encoder::default().encode(&bytes, 2).unwrap().to_vec();
        for at in 0..packed.len() {
            assert!(decode(&packed[..at], 3000).is_err(), "{at}");
            for bit in 0..8 {
                let mut damaged = packed.clone();
                damaged[at] ^= 1 << bit;
                let _ = decode(&damaged, 3000);
            }
        }
    }
}
