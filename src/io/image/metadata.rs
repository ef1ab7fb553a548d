//! ICC profiles and EXIF: how long they may be, and the orientation in EXIF.

use crate::data::image::Orientation;

/// A longer ICC profile is not kept.
pub const LONGEST_ICC: usize = 4 << 20;
/// The longest EXIF: what one JPEG segment holds behind its length and `Exif\0\0`.
pub const LONGEST_EXIF: usize = 65_533 - 6;

/// An ICC profile, unless it is too long, which is noted in `losses`.
pub fn capped_icc(icc: Option<Vec<u8>>, losses: &mut Vec<String>) -> Option<Vec<u8>> {
    capped(icc, LONGEST_ICC, "a colour profile", losses)
}

/// EXIF, unless it is too long, which is noted in `losses`.
pub fn capped_exif(exif: Option<Vec<u8>>, losses: &mut Vec<String>) -> Option<Vec<u8>> {
    capped(exif, LONGEST_EXIF, "EXIF", losses)
}

fn capped(
    data: Option<Vec<u8>>,
    longest: usize,
    what: &str,
    losses: &mut Vec<String>,
) -> Option<Vec<u8>> {
    data.filter(|data| {
        let fits = data.len() <= longest;
        if !fits {
            losses.push(format!("{what} of {} bytes is left out", data.len()));
        }
        fits
    })
}

/// EXIF as it is kept, and the orientation in it, which is taken out. EXIF that is too long is noted in `losses`.
pub fn read_exif(
    exif: Option<Vec<u8>>,
    losses: &mut Vec<String>,
) -> (Option<Vec<u8>>, Option<Orientation>) {
    let mut exif = exif.map(without_prefix);
    let orientation = exif.as_deref_mut().and_then(take_orientation);
    (capped_exif(exif, losses), orientation)
}

/// EXIF that begins with its TIFF header. In PNG and WebP files, too, some writers put before it what JPEG has there.
pub fn without_prefix(mut exif: Vec<u8>) -> Vec<u8> {
    if exif.starts_with(b"Exif\0\0") {
        exif.drain(..6);
    }
    exif
}

/// Takes the orientation out of EXIF, so that no viewer applies it to the upright picture again.
pub fn take_orientation(exif: &mut [u8]) -> Option<Orientation> {
    let found = image::metadata::Orientation::remove_from_exif_chunk(exif)?;
    Orientation::from_exif(found.to_exif())
}
