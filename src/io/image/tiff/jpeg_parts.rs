//! The strips or tiles of a TIFF file that are JPEG files of their own: how large they claim to be, and whether they are
//! whole. The decoder of the tiff crate looks at neither.

use std::io::Cursor;

use ::tiff::{decoder::Decoder, tags::Tag};

use crate::io::{
    Limits,
    image::{codec::BoxError, jpeg, limits::check_scratch},
};

/// The number of JPEG in the tag that tells the compression.
const JPEG: u16 = 7;

/// Refuses a file whose parts would take more memory than `limits` allow, and tells in words what of them is missing.
pub fn check(bytes: &[u8], limits: Limits) -> Result<Option<String>, BoxError> {
    // Broken directories are told by who decodes the file.
    let Some(Parts { tables, parts }) = Parts::of(bytes) else { return Ok(None) };
    let mut damaged = 0;
    for &[offset, len] in &parts {
        let data = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..));
        let Some(data) = data else { continue };
        let data = &data[..data.len().min(usize::try_from(len)?)];
        // Tables for all parts are a JPEG file without a picture: both lack an end and a beginning once joined.
        let joined = match tables.len() > 2 && data.len() > 2 {
            true => [&tables[..tables.len() - 2], &data[2..]].concat(),
            false => data.to_vec(),
        };
        // Coefficients of two bytes, and samples.
        check_scratch(
            limits,
            jpeg::claimed_samples(&joined).saturating_mul(3),
            "a part of it takes",
        )?;
        damaged += usize::from(jpeg::lacks(&joined));
    }
    let all = parts.len();
    Ok((damaged > 0).then(|| format!("{damaged} of its {all} strips or tiles are damaged")))
}

struct Parts {
    tables: Vec<u8>,
    /// Where each begins, and how long it is.
    parts: Vec<[u64; 2]>,
}

impl Parts {
    /// Nothing of files of other compressions.
    fn of(bytes: &[u8]) -> Option<Self> {
        let mut decoder = Decoder::new(Cursor::new(bytes)).ok()?;
        if decoder.find_tag_unsigned::<u16>(Tag::Compression).ok()?? != JPEG {
            return None;
        }
        let tables = decoder.find_tag(Tag::JPEGTables).ok().flatten();
        let tables = tables.and_then(|tables| tables.into_u8_vec().ok()).unwrap_or_default();
        let mut numbers = |strips, tiles| {
            let found = decoder.find_tag_unsigned_vec::<u64>(strips).ok().flatten();
            found.or_else(|| decoder.find_tag_unsigned_vec::<u64>(tiles).ok().flatten())
        };
        let offsets = numbers(Tag::StripOffsets, Tag::TileOffsets)?;
        let lengths = numbers(Tag::StripByteCounts, Tag::TileByteCounts)?;
        let parts = offsets.into_iter().zip(lengths).map(|(offset, len)| [offset, len]).collect();
        Some(Self { tables, parts })
    }
}
