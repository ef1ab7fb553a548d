//! The container of WebP files (RIFF): chunks of a name, a length and data (WebP container specification).

use std::io::{Read, Seek, SeekFrom};

use super::{codec::BoxError, metadata::Block};

/// Names and data of the chunks of a file. The data of a chunk that is cut off end with the file.
pub fn chunks(bytes: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    let mut rest = bytes.get(12..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (name, after) = rest.split_first_chunk::<4>()?;
        let (len, after) = after.split_first_chunk::<4>()?;
        let len = u32::from_le_bytes(*len) as usize;
        let data = &after[..len.min(after.len())];
        // A chunk of odd length is followed by a byte of padding.
        rest = after.get(len.saturating_add(len % 2)..).unwrap_or_default();
        Some((*name, data))
    })
}

/// Reads the ICC profile, EXIF and XMP of a file. Chunks that are too long are left out, and recorded in `losses`.
pub fn metadata(
    mut input: impl Read + Seek,
    losses: &mut Vec<String>,
) -> Result<[Option<Vec<u8>>; 3], BoxError> {
    const WANTED: [(&[u8; 4], Block); 3] =
        [(b"ICCP", Block::Icc), (b"EXIF", Block::Exif), (b"XMP ", Block::Xmp)];
    let file_bytes = input.seek(SeekFrom::End(0))?;
    input.rewind()?;
    let mut header = [0; 12];
    input.read_exact(&mut header)?;
    let [_, _, _, _, a, b, c, d, ..] = header;
    // Other data may follow the container.
    let end = file_bytes.min(8 + u64::from(u32::from_le_bytes([a, b, c, d])));
    let mut found = [None, None, None];
    let mut at = header.len() as u64;
    while at + 8 <= end {
        let mut head = [0; 8];
        input.read_exact(&mut head)?;
        at += 8;
        let [name @ .., a, b, c, d] = head;
        let len = u64::from(u32::from_le_bytes([a, b, c, d]));
        let padded = len + len % 2;
        let wanted = WANTED.iter().zip(&mut found).find(|((wanted, ..), _)| **wanted == name);
        match wanted {
            Some((_, Some(_))) | None => input.seek_relative(padded as i64)?,
            Some((&(_, block), found)) => {
                if len > file_bytes - at {
                    let left = file_bytes - at;
                    return Err(format!(
                        "{} claims {len} bytes, but the file ends after {left}",
                        block.name()
                    )
                    .into());
                }
                // EXIF may have a prefix of 6 bytes. Whoever keeps a block checks its length again.
                if len <= block.longest() as u64 + 6 || block.fits(len, losses) {
                    let mut data = vec![0; len as usize];
                    input.read_exact(&mut data)?;
                    *found = Some(data);
                    input.seek_relative((len % 2) as i64)?;
                } else {
                    input.seek_relative(padded as i64)?;
                }
            }
        }
        at += padded;
    }
    Ok(found)
}

/// Appends a chunk called `name`, whose data are `parts` one behind the other.
pub fn push(file: &mut Vec<u8>, name: &[u8; 4], parts: &[&[u8]]) {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    file.extend(name);
    file.extend((len as u32).to_le_bytes());
    parts.iter().for_each(|part| file.extend(*part));
    file.extend(&[0][..len % 2]);
}
