//! RIFF, the container of WebP files: chunks of a name, a length and data (WebP container specification).

use super::{error::BoxError, metadata::MetadataBlock};

/// Names and data of the chunks of a file. The data of a truncated chunk end with the file.
pub fn chunks(bytes: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    declared_chunks(bytes).map(|(name, _, data)| (name, data))
}

/// As [`chunks`], with the length that the file states.
fn declared_chunks(bytes: &[u8]) -> impl Iterator<Item = ([u8; 4], usize, &[u8])> {
    let mut rest = bytes.get(12..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (name, after) = rest.split_first_chunk::<4>()?;
        let (len, after) = after.split_first_chunk::<4>()?;
        let len = u32::from_le_bytes(*len) as usize;
        let data = &after[..len.min(after.len())];
        // A chunk of odd length is followed by a byte of padding.
        rest = after.get(len.saturating_add(len % 2)..).unwrap_or_default();
        Some((*name, len, data))
    })
}

/// The ICC profile, EXIF and XMP of a file. Chunks that are too long are left out, and recorded in `losses`.
pub fn metadata(bytes: &[u8], losses: &mut Vec<String>) -> Result<[Option<Vec<u8>>; 3], BoxError> {
    const WANTED: [(&[u8; 4], MetadataBlock); 3] = [
        (b"ICCP", MetadataBlock::Icc),
        (b"EXIF", MetadataBlock::Exif),
        (b"XMP ", MetadataBlock::Xmp),
    ];
    let mut found = [None, None, None];
    for (name, len, data) in declared_chunks(bytes) {
        let wanted = WANTED.iter().zip(&mut found).find(|((wanted, _), _)| **wanted == name);
        let Some((&(_, block), found @ None)) = wanted else { continue };
        if data.len() < len {
            let (name, left) = (block.name(), data.len());
            return Err(format!("{name} claims {len} bytes, but the file ends after {left}").into());
        }
        // EXIF may have a prefix of 6 bytes. The length is checked again without it.
        if len <= block.max_len() + 6 || block.fits(len as u64, losses) {
            *found = Some(data.to_vec());
        }
    }
    Ok(found)
}

/// Appends a chunk, whose data are `parts` one after the other.
pub fn push(file: &mut Vec<u8>, name: &[u8; 4], parts: &[&[u8]]) {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    file.extend(name);
    file.extend((len as u32).to_le_bytes());
    parts.iter().for_each(|part| file.extend(*part));
    file.extend(&[0][..len % 2]);
}
