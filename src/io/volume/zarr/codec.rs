//! The codecs of Zarr chunks that make bytes of bytes: gzip, zlib, bzip2, zstd, LZ4, Blosc, CRC32C.
//!
//! Decoded sizes are bounded by the caller, whatever a chunk claims.

use std::io::Read;

use bzip2::read::MultiBzDecoder;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use serde_json::{Map, Value};

use super::blosc;
use crate::io::volume::format::{BoxError, shown};

/// One codec, of which a chunk needs no parameter to be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    Gzip,
    Zlib,
    Bzip2,
    Zstd,
    /// A block behind its length as 32 bits.
    Lz4,
    Blosc,
    Crc32c,
    /// Bytes of numbers of this size, ordered by their place in the number.
    Shuffle(usize),
}

impl Codec {
    /// A filter or compressor of numcodecs.
    pub fn of_version_2(value: &Value, size: usize) -> Result<Self, BoxError> {
        let fields = super::array::object(value)?;
        let name = fields.get("id").and_then(Value::as_str).ok_or("a codec has no name")?;
        match name {
            "shuffle" => {
                let size = fields.get("elementsize").and_then(Value::as_u64).unwrap_or(size as u64);
                Ok(Self::Shuffle(size.clamp(1, 64) as usize))
            }
            name => Self::named(name),
        }
    }

    /// A codec of version 3, or one of numcodecs under its name there.
    pub fn of_version_3(name: &str, fields: &Map<String, Value>) -> Result<Self, BoxError> {
        match name.strip_prefix("numcodecs.").unwrap_or(name) {
            "shuffle" => {
                let size = fields.get("elementsize").and_then(Value::as_u64).unwrap_or(4);
                Ok(Self::Shuffle(size.clamp(1, 64) as usize))
            }
            name => Self::named(name),
        }
    }

    fn named(name: &str) -> Result<Self, BoxError> {
        Ok(match name {
            "gzip" => Self::Gzip,
            "zlib" => Self::Zlib,
            "bz2" => Self::Bzip2,
            "zstd" => Self::Zstd,
            "lz4" => Self::Lz4,
            "blosc" => Self::Blosc,
            "crc32c" => Self::Crc32c,
            other => return Err(format!("the codec `{}` is not read", shown(other)).into()),
        })
    }

    /// What `bytes` were made of, of which there are at most `most`.
    fn decode(self, bytes: Vec<u8>, most: usize) -> Result<Vec<u8>, BoxError> {
        match self {
            Self::Gzip => read(MultiGzDecoder::new(&bytes[..]), most),
            Self::Zlib => read(ZlibDecoder::new(&bytes[..]), most),
            Self::Bzip2 => read(MultiBzDecoder::new(&bytes[..]), most),
            Self::Zstd => zstd(&bytes, most),
            Self::Lz4 => {
                let (len, block) = bytes.split_first_chunk().ok_or("it is cut off")?;
                let len = u32::from_le_bytes(*len) as usize;
                if len > most {
                    return Err(TOO_LONG.into());
                }
                let mut whole = vec![0; len];
                lz4(block, &mut whole)?;
                Ok(whole)
            }
            Self::Blosc => blosc::decode(&bytes, most),
            Self::Crc32c => {
                let (content, sum) = bytes.split_last_chunk().ok_or("it is cut off")?;
                match crc32c(content) == u32::from_le_bytes(*sum) {
                    true => Ok(content.to_vec()),
                    false => Err("its checksum is another one".into()),
                }
            }
            Self::Shuffle(size) => {
                let mut whole = vec![0; bytes.len()];
                blosc::unshuffle(&bytes, size, &mut whole);
                Ok(whole)
            }
        }
    }
}

const TOO_LONG: &str = "it is longer than its shape makes it";

/// The chunk of `expected` bytes that `codecs` have made `bytes` of.
pub fn decode(codecs: &[Codec], bytes: Vec<u8>, expected: usize) -> Result<Vec<u8>, BoxError> {
    // What lies between two codecs may be longer than the chunk, but for checksums by little.
    let most = expected + expected / 4 + (1 << 12);
    let last = |at: usize| if at == 0 { expected } else { most };
    let mut bytes = bytes;
    for (at, codec) in codecs.iter().enumerate().rev() {
        bytes = codec.decode(bytes, last(at))?;
    }
    match bytes.len() {
        len if len == expected => Ok(bytes),
        len => Err(format!("it has {len} bytes, but its shape makes {expected}").into()),
    }
}

/// At most `most` bytes of `input`, which are all.
pub fn read(input: impl Read, most: usize) -> Result<Vec<u8>, BoxError> {
    let mut bytes = Vec::new();
    input.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most { Err(TOO_LONG.into()) } else { Ok(bytes) }
}

/// All frames of zstd, one behind the other. What lies behind what is unpacked, and may be repeated, is held, too: every
/// encoder takes 8 MiB at most, or as much as it packs.
pub fn zstd(bytes: &[u8], most: usize) -> Result<Vec<u8>, BoxError> {
    let mut left = bytes;
    let mut whole = Vec::new();
    let mut decoder = ruzstd::decoding::FrameDecoder::new();
    decoder.set_max_window_size((2 * most as u64).max(8 << 20));
    while !left.is_empty() {
        let mut frame =
            ruzstd::decoding::StreamingDecoder::new_with_decoder(&mut left, &mut decoder)?;
        (&mut frame).take((most - whole.len()) as u64 + 1).read_to_end(&mut whole)?;
        if whole.len() > most {
            return Err(TOO_LONG.into());
        }
    }
    Ok(whole)
}

/// Unpacks a block of LZ4 that fills `whole`.
pub fn lz4(block: &[u8], whole: &mut [u8]) -> Result<(), BoxError> {
    match lz4_flex::block::decompress_into(block, whole)? {
        len if len == whole.len() => Ok(()),
        _ => Err("it is shorter than it says".into()),
    }
}

/// The checksum of `bytes` by the polynomial of Castagnoli (RFC 3720), reflected.
pub fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut at = 0;
        while at < 256 {
            let (mut value, mut bit) = (at as u32, 0);
            while bit < 8 {
                value = (value >> 1) ^ (0x82f6_3b78 & (value & 1).wrapping_neg());
                bit += 1;
            }
            table[at] = value;
            at += 1;
        }
        table
    };
    let step = |sum: u32, &byte: &u8| (sum >> 8) ^ TABLE[usize::from(sum as u8 ^ byte)];
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(4));
        packed.write_all(bytes).and_then(|()| packed.finish()).expect("memory takes all")
    }

    #[test]
    fn checksums_are_those_of_the_standard() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        let sum = crc32c(b"abc").to_le_bytes();
        let whole = [&b"abc"[..], &sum].concat();
        assert_eq!(decode(&[Codec::Crc32c], whole.clone(), 3).unwrap(), b"abc");
        assert!(decode(&[Codec::Crc32c], [&b"abd"[..], &sum].concat(), 3).is_err());
        // A stage more.
        assert_eq!(decode(&[Codec::Gzip], gzip(b"abc"), 3).unwrap(), b"abc");
        let chain = [Codec::Crc32c, Codec::Gzip];
        assert_eq!(decode(&chain, gzip(&whole), 3).unwrap(), b"abc");
    }

    #[test]
    fn what_is_too_long_is_refused_before_it_is_unpacked() {
        let bomb = gzip(&vec![0; 10 << 20]);
        assert!(decode(&[Codec::Gzip], bomb, 100).is_err());
        assert!(decode(&[], vec![0; 5], 4).is_err() && decode(&[], vec![0; 3], 4).is_err());
        let lz4 = [&u32::MAX.to_le_bytes()[..], &[0; 8]].concat();
        assert!(decode(&[Codec::Lz4], lz4, 100).is_err());
        let packed = ruzstd::encoding::compress_to_vec(
            &[7; 1 << 20][..],
            ruzstd::encoding::CompressionLevel::Fastest,
        );
        assert!(decode(&[Codec::Zstd], packed.clone(), 100).is_err());
        let twice = [&packed[..], &packed].concat();
        assert_eq!(decode(&[Codec::Zstd], twice, 2 << 20).unwrap(), vec![7; 2 << 20]);
    }
}
