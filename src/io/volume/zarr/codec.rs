//! The bytes-to-bytes codecs of Zarr chunks: gzip, zlib, bzip2, zstd, LZ4, Blosc, CRC32C, shuffle.
//!
//! The caller bounds the decoded size, whatever a chunk claims.

use bzip2::read::MultiBzDecoder;
use crc32c::crc32c;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    blosc,
    unpack::{TOO_LONG, TRUNCATED, lz4, read, zstd},
};
use crate::{
    io::volume::header::{BoxError, excerpt},
    util::memory,
};

/// One codec, with the parameters that decoding needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Codec {
    Gzip,
    Zlib,
    Bzip2,
    Zstd,
    /// The decoded length as u32, then one LZ4 block.
    Lz4,
    Blosc,
    Crc32c,
    /// Byte shuffle of numbers of this size: all first bytes, then all second bytes, ...
    Shuffle(usize),
}

impl Codec {
    /// A filter or compressor of numcodecs, for numbers of `size` bytes.
    pub fn from_v2(value: &Value, size: usize) -> Result<Self, BoxError> {
        let name = value.get("id").and_then(Value::as_str).ok_or("name of a codec is missing")?;
        Self::named(name, value.get("elementsize"), size)
    }

    /// A codec of version 3, or one of numcodecs, with or without the prefix `numcodecs.`.
    pub fn from_v3(name: &str, fields: &Map<String, Value>) -> Result<Self, BoxError> {
        let name = name.strip_prefix("numcodecs.").unwrap_or(name);
        Self::named(name, fields.get("elementsize"), 4)
    }

    fn named(name: &str, size: Option<&Value>, usual: usize) -> Result<Self, BoxError> {
        Ok(match name {
            "shuffle" => {
                let size = size.and_then(Value::as_u64).unwrap_or(usual as u64);
                Self::Shuffle(size.clamp(1, 64) as usize)
            }
            "gzip" => Self::Gzip,
            "zlib" => Self::Zlib,
            "bz2" => Self::Bzip2,
            "zstd" => Self::Zstd,
            "lz4" => Self::Lz4,
            "blosc" => Self::Blosc,
            "crc32c" => Self::Crc32c,
            other => return Err(format!("codec `{}` is not supported", excerpt(other)).into()),
        })
    }

    /// Decodes `bytes` into `to`, at most `max` bytes.
    fn decode(self, bytes: &[u8], max: usize, to: &mut Vec<u8>) -> Result<(), BoxError> {
        match self {
            Self::Gzip => read(MultiGzDecoder::new(bytes), max, to),
            Self::Zlib => read(ZlibDecoder::new(bytes), max, to),
            Self::Bzip2 => read(MultiBzDecoder::new(bytes), max, to),
            Self::Zstd => zstd(bytes, max, to),
            Self::Lz4 => {
                let (len, block) = bytes.split_first_chunk().ok_or(TRUNCATED)?;
                let len = u32::from_le_bytes(*len) as usize;
                if len > max {
                    return Err(TOO_LONG.into());
                }
                memory::resize(to, len)?;
                lz4(block, to)
            }
            Self::Blosc => blosc::decode(bytes, max, to),
            Self::Crc32c => {
                let (content, sum) = bytes.split_last_chunk().ok_or(TRUNCATED)?;
                if crc32c(content) != u32::from_le_bytes(*sum) {
                    return Err("checksum (CRC32C) mismatch".into());
                }
                memory::resize(to, content.len())?;
                to.copy_from_slice(content);
                Ok(())
            }
            Self::Shuffle(size) => {
                memory::resize(to, bytes.len())?;
                blosc::unshuffle(bytes, size, to);
                Ok(())
            }
        }
    }
}

/// Decodes `bytes`, encoded by `codecs` in their order, to a chunk of `expected` bytes. The chunk takes the memory of
/// `bytes` or of `spare`; the memory of the other is left in `spare`.
pub fn decode(
    codecs: &[Codec],
    mut bytes: Vec<u8>,
    expected: usize,
    spare: &mut Vec<u8>,
) -> Result<Vec<u8>, BoxError> {
    // Between two codecs the data may be a little longer than the chunk: incompressible data grow, checksums add bytes.
    let intermediate = expected + expected / 4 + (1 << 12);
    for (at, codec) in codecs.iter().enumerate().rev() {
        let max = if at == 0 { expected } else { intermediate };
        codec.decode(&bytes, max, spare)?;
        std::mem::swap(&mut bytes, spare);
    }
    match bytes.len() {
        len if len == expected => Ok(bytes),
        len => Err(format!("chunk has {len} bytes; expected {expected}").into()),
    }
}
