//! The chunks of PNG files (PNG, third edition, 5.3).

use std::{
    borrow::Cow,
    io::{self, Write},
};

use crate::{
    io::{
        Limits,
        image::{error::BoxError, limits::check_scratch},
    },
    util::memory,
};

pub const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The error of a decoder, with the names of chunks instead of `ChunkType { type: NAME, ... }`.
pub fn readable(error: impl Into<BoxError>) -> BoxError {
    let error = error.into();
    let text = error.to_string();
    let mut parts = text.split("ChunkType { type: ");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    if plain.len() == text.len() {
        return error;
    }
    for part in parts {
        plain += part.split(',').next().unwrap_or_default();
        plain += part.split_once('}').map_or("", |(_, rest)| rest);
    }
    plain.into()
}

/// The checksum (CRC) of a chunk.
pub fn checksum(name: &[u8; 4], body: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(name);
    crc.update(body);
    crc.finalize()
}

/// Writes a chunk, whose body is `parts` one after the other.
pub fn chunk(output: &mut impl Write, name: &[u8; 4], parts: &[&[u8]]) -> io::Result<()> {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let len = u32::try_from(len).map_err(|_| io::Error::other("a PNG chunk is too long"))?;
    let mut crc = crc32fast::Hasher::new();
    crc.update(name);
    output.write_all(&len.to_be_bytes())?;
    output.write_all(name)?;
    for part in parts {
        crc.update(part);
        output.write_all(part)?;
    }
    output.write_all(&crc.finalize().to_be_bytes())
}

/// The file with its last chunk (IEND), if it lacks only that. What is missing is reported with the metadata.
pub fn with_last_chunk(bytes: &[u8], limits: Limits) -> Result<Cow<'_, [u8]>, BoxError> {
    let (mut at, mut has_pixels) = (SIGNATURE.len(), false);
    while let Some([a, b, c, d, name @ ..]) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let len = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        let end = at.saturating_add(len).saturating_add(12);
        match name {
            b"IEND" if end <= bytes.len() => return Ok(bytes.into()),
            b"IEND" => break,
            // Pixels are missing.
            b"IDAT" | b"fdAT" if end > bytes.len() => return Ok(bytes.into()),
            _ if end > bytes.len() => break,
            _ => (at, has_pixels) = (end, has_pixels || name == b"IDAT"),
        }
    }
    if !has_pixels {
        return Ok(bytes.into());
    }
    check_scratch(limits, bytes.len() as u64, "completing the file")?;
    let mut whole = memory::room(bytes.len() + 12)?;
    whole.extend_from_slice(&bytes[..at.min(bytes.len())]);
    chunk(&mut whole, b"IEND", &[])?;
    Ok(whole.into())
}
