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
    unpack::{TOO_LONG, lz4, read, zstd},
};
use crate::{
    io::volume::format::{BoxError, shown},
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
    pub fn of_version_2(value: &Value, size: usize) -> Result<Self, BoxError> {
        let name = value.get("id").and_then(Value::as_str).ok_or("a codec has no name")?;
        Self::named(name, value.get("elementsize"), size)
    }

    /// A codec of version 3, or one of numcodecs, with or without the prefix `numcodecs.`.
    pub fn of_version_3(name: &str, fields: &Map<String, Value>) -> Result<Self, BoxError> {
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
            other => return Err(format!("the codec `{}` is not read", shown(other)).into()),
        })
    }

    /// Decodes `bytes` into `to`, `most` bytes at most.
    fn decode(self, bytes: &[u8], most: usize, to: &mut Vec<u8>) -> Result<(), BoxError> {
        match self {
            Self::Gzip => read(MultiGzDecoder::new(bytes), most, to),
            Self::Zlib => read(ZlibDecoder::new(bytes), most, to),
            Self::Bzip2 => read(MultiBzDecoder::new(bytes), most, to),
            Self::Zstd => zstd(bytes, most, to),
            Self::Lz4 => {
                let (len, block) = bytes.split_first_chunk().ok_or("it is cut off")?;
                let len = u32::from_le_bytes(*len) as usize;
                if len > most {
                    return Err(TOO_LONG.into());
                }
                memory::resize(to, len)?;
                lz4(block, to)
            }
            Self::Blosc => blosc::decode(bytes, most, to),
            Self::Crc32c => {
                let (content, sum) = bytes.split_last_chunk().ok_or("it is cut off")?;
                if crc32c(content) != u32::from_le_bytes(*sum) {
                    return Err("its checksum is another one".into());
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
    let most = expected + expected / 4 + (1 << 12);
    let last = |at: usize| if at == 0 { expected } else { most };
    for (at, codec) in codecs.iter().enumerate().rev() {
        codec.decode(&bytes, last(at), spare)?;
        std::mem::swap(&mut bytes, spare);
    }
    match bytes.len() {
        len if len == expected => Ok(bytes),
        len => Err(format!("it has {len} bytes, but its shape makes {expected}").into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn decode(codecs: &[Codec], bytes: Vec<u8>, expected: usize) -> Result<Vec<u8>, BoxError> {
        // Old content of the memory must not matter.
        let mut spare = vec![0xa5; 300];
        super::decode(codecs, bytes, expected, &mut spare)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(4));
        packed.write_all(bytes).and_then(|()| packed.finish()).expect("memory takes all")
    }

    #[test]
    fn checksums_are_those_of_the_standard() {
        let sum = crc32c(b"abc").to_le_bytes();
        let whole = [&b"abc"[..], &sum].concat();
        assert_eq!(decode(&[Codec::Crc32c], whole.clone(), 3).unwrap(), b"abc");
        assert!(decode(&[Codec::Crc32c], [&b"abd"[..], &sum].concat(), 3).is_err());
        // Another codec behind the checksum.
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
