//! Positions of the frames of a DICOM file (PS3.5, annex A).

use std::{
    io::{self, Read},
    ops::Range,
};

use super::{
    attributes::{ITEM, OFFSET_TABLE},
    dataset::{Dataset, Input, Pixels},
    pixel_format::PixelFormat,
    syntax::Compression,
};
use crate::io::{Source, volume::header::BoxError};

/// Positions of the bytes of each frame, as offsets in the data set.
#[derive(Clone, Debug, PartialEq)]
pub enum Frames {
    /// Uncompressed frames that follow each other from offset `at` on; `pairs` as in [`PixelFormat::pairs`].
    Plain { at: u64, pairs: bool },
    /// Compressed frames, each of one or more fragments.
    Compressed(Vec<Vec<Range<u64>>>),
}

/// Finds the `count` frames of a file of `len` bytes.
pub fn frames(
    source: &Source,
    data: &Dataset,
    format: &PixelFormat,
    count: usize,
    len: u64,
) -> Result<Frames, BoxError> {
    let pixels = data.pixels.expect("checked before");
    let all = format.count() as u64 * u64::from(format.allocated) * count as u64;
    let Some(stated) = pixels.len else {
        if data.syntax.compression == Compression::None {
            return Err("uncompressed pixels of undefined length".into());
        }
        return fragments(source, data, &pixels, count, len).map(Frames::Compressed);
    };
    if data.syntax.compression != Compression::None {
        return Err(
            "pixels are uncompressed, but the transfer syntax declares a compression".into()
        );
    }
    // A byte of deflated data becomes at most 1,032 bytes.
    let rest = match data.syntax.deflated {
        true => len.saturating_mul(1032),
        false => len.saturating_sub(pixels.at),
    };
    let rest = rest.min(stated);
    // Some writers state YBR_FULL_422 though every pixel has its own chroma, as the length shows.
    let pairs = format.pairs && rest < all.div_ceil(8);
    let all = if pairs { all / 3 * 2 } else { all };
    if pairs && !format.columns.is_multiple_of(2) {
        let columns = format.columns;
        return Err(format!("YBR_FULL_422 needs an even number of columns, found {columns}").into());
    }
    if rest < all.div_ceil(8) {
        let all = all.div_ceil(8);
        return Err(format!("pixels take {all} bytes, but the file has only {rest}").into());
    }
    Ok(Frames::Plain { at: pixels.at, pairs })
}

/// Groups the fragments by frame (PS3.5, A.4): one per frame if their numbers are equal, else split where the Basic or the
/// Extended Offset Table states it, or where a picture begins.
fn fragments(
    source: &Source,
    data: &Dataset,
    pixels: &Pixels,
    count: usize,
    len: u64,
) -> Result<Vec<Vec<Range<u64>>>, BoxError> {
    let (offsets, found, begins_picture) = items(source, data, pixels, count, len)?;
    if count == 1 {
        return Ok(vec![found]);
    }
    if found.len() == count {
        return Ok(found.into_iter().map(|fragment| vec![fragment]).collect());
    }
    let header = |fragment: &Range<u64>| fragment.start - 8;
    let first = found.first().map_or(0, header);
    let extended = data.top.numbers(OFFSET_TABLE).unwrap_or_default();
    let extended: Vec<u64> = extended.iter().map(|&offset| offset as u64).collect();
    let begins_frame = |i: usize, way: usize| match way {
        0 => offsets.binary_search(&(header(&found[i]) - first)).is_ok(),
        1 => extended.binary_search(&(header(&found[i]) - first)).is_ok(),
        _ => begins_picture[i],
    };
    let mut frame_count = 0;
    for way in 0..3 {
        let mut frames: Vec<Vec<Range<u64>>> = Vec::new();
        for (i, fragment) in found.iter().enumerate() {
            match frames.last_mut() {
                Some(last) if !begins_frame(i, way) => last.push(fragment.clone()),
                _ => frames.push(vec![fragment.clone()]),
            }
        }
        if frames.len() == count {
            return Ok(frames);
        }
        frame_count = frame_count.max(frames.len());
    }
    Err(format!("expected {count} frames, found {frame_count}").into())
}

/// Offsets of frames, bytes of fragments, and whether each fragment begins as a picture.
type Items = (Vec<u64>, Vec<Range<u64>>, Vec<bool>);

/// Reads the headers of all items of compressed pixels: the sorted offsets of the Basic Offset Table, which is the
/// first item; the bytes of the fragments in the file of `len` bytes; and whether each begins as a picture. Offsets are
/// those of the items' headers, counted from that of the first fragment.
fn items(
    source: &Source,
    data: &Dataset,
    pixels: &Pixels,
    count: usize,
    len: u64,
) -> Result<Items, BoxError> {
    const MAX_FRAGMENTS: usize = 1 << 22;
    let mut input = Input::open(source, data.syntax.deflated, pixels.at)?;
    let mut at = pixels.at;
    let mut table: Option<Vec<u64>> = None;
    let (mut found, mut begins_picture) = (Vec::new(), Vec::new());
    while let Some(bytes) = item_len(&mut input)? {
        at += 8;
        if at.saturating_add(bytes) > len {
            return Err("file ends within its pixels".into());
        }
        if table.is_none() {
            table = Some(offset_table(&mut input, bytes, count)?);
        } else {
            found.push(at..at + bytes);
            let mut first = [0; 4];
            let known = &mut first[..bytes.min(4) as usize];
            input.read_exact(known)?;
            input.skip(bytes - known.len() as u64)?;
            // JPEG and JPEG-LS, JPEG 2000, JPEG 2000 in boxes.
            begins_picture.push(matches!(
                first,
                [0xff, 0xd8, 0xff, _] | [0xff, 0x4f, 0xff, 0x51] | [0, 0, 0, 12]
            ));
        }
        at += bytes;
        if found.len() > MAX_FRAGMENTS {
            return Err(format!("more fragments than the maximum of {MAX_FRAGMENTS}").into());
        }
    }
    Ok((table.unwrap_or_default(), found, begins_picture))
}

/// Reads the header of an item: its length in bytes; `None` at the end of the items.
fn item_len(input: &mut Input) -> io::Result<Option<u64>> {
    let mut head = [0; 8];
    match input.read_exact(&mut head) {
        Ok(()) => {}
        // Files without the closing delimiter are common.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let [a, b, c, d, len @ ..] = head;
    let tag = u32::from(u16::from_le_bytes([a, b])) << 16 | u32::from(u16::from_le_bytes([c, d]));
    Ok((tag == ITEM).then_some(u32::from_le_bytes(len).into()))
}

/// Reads a Basic Offset Table of `bytes` bytes: at most `count` offsets, sorted.
fn offset_table(input: &mut Input, bytes: u64, count: usize) -> io::Result<Vec<u64>> {
    let mut table = Vec::new();
    let known = bytes.min(4 * count as u64);
    (&mut *input).take(known).read_to_end(&mut table)?;
    input.skip(bytes - known)?;
    let offsets = table.as_chunks().0.iter();
    let mut offsets: Vec<u64> = offsets.map(|offset| u32::from_le_bytes(*offset).into()).collect();
    offsets.sort_unstable();
    Ok(offsets)
}
