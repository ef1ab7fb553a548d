//! The container of WebP files (RIFF): chunks of a name, a length and data (WebP container specification).

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

/// Appends a chunk called `name`, whose data are `parts` one behind the other.
pub fn push(file: &mut Vec<u8>, name: &[u8; 4], parts: &[&[u8]]) {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    file.extend(name);
    file.extend((len as u32).to_le_bytes());
    parts.iter().for_each(|part| file.extend(*part));
    file.extend(&[0][..len % 2]);
}
