//! ICC profiles, EXIF, XMP and IPTC: how long they may be, what is around them, and the orientation in EXIF.

use super::tiff;
use crate::data::image::{Density, Metadata, Orientation, Text};

/// A longer ICC profile is not kept.
pub const LONGEST_ICC: usize = 4 << 20;
/// The longest EXIF: what one JPEG segment holds behind its length and `Exif\0\0`.
pub const LONGEST_EXIF: usize = 65_533 - 6;

/// The longest XMP: what one JPEG segment holds behind its length and [`XMP_NAME`].
pub const LONGEST_XMP: usize = 65_533 - XMP_NAME.len();
/// What comes before XMP in a JPEG segment.
pub const XMP_NAME: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";
/// The longest IPTC: what one JPEG segment holds beside [`iptc_resource`]'s frame.
pub const LONGEST_IPTC: usize = 65_533 - 32;

/// The longest text: what one JPEG segment holds.
pub const LONGEST_TEXT: usize = 65_533;
/// Bytes of all texts, and of all parts that only files of one format hold.
pub const MOST_TEXTS: usize = 1 << 20;

/// Adds a text, unless it is too long, which is noted in `losses`.
pub fn add_text(metadata: &mut Metadata, keyword: &str, text: &str, losses: &mut Vec<String>) {
    let text = text.trim_end_matches('\0');
    let held: usize = metadata.texts.iter().map(|held| held.keyword.len() + held.text.len()).sum();
    let room = LONGEST_TEXT.min(MOST_TEXTS.saturating_sub(held + keyword.len()));
    if text.len() > room {
        note(losses, format!("the text {} of {} bytes is left out", shown(keyword), text.len()));
    } else if !text.is_empty() {
        metadata.texts.push(Text { keyword: keyword.to_owned(), text: text.to_owned() });
    }
}

/// The density to be written: where only EXIF tells it, as of many cameras, that of EXIF.
pub fn density_of(metadata: &Metadata) -> Option<Density> {
    metadata.density.or_else(|| tiff::exif_density(metadata.exif.as_deref()?))
}

/// Adds to `losses`, once, and not without end.
pub fn note(losses: &mut Vec<String>, loss: String) {
    const MOST: usize = 32;
    if losses.len() < MOST && !losses.contains(&loss) {
        losses.push(loss);
    }
}

/// Whether a text only describes its file: what wrote it and when, or how the pixels are stored.
pub fn describes_file(keyword: &str) -> bool {
    const OF_FILE: [&str; 4] = ["Software", "Creation Time", "Thumb", "version"];
    const PREFIXES: [&str; 7] = ["date:", "png:", "exif:", "icc:", "jpeg:", "tiff:", "Thumb::"];
    OF_FILE.iter().any(|known| keyword.eq_ignore_ascii_case(known))
        || PREFIXES.iter().any(|prefix| keyword.starts_with(prefix))
}

/// A keyword as a message shows it.
pub fn shown(keyword: &str) -> String {
    keyword.chars().filter(|c| !c.is_control()).take(40).collect()
}

/// The number of Photoshop's image resource that holds IPTC.
const IPTC_RESOURCE: [u8; 2] = [0x04, 0x04];

/// IPTC among Photoshop's image resources: `8BIM`, a number, a Pascal string and data with their length, the last two
/// padded to an even length (Adobe Photoshop File Formats Specification).
pub fn iptc_of_resources(mut resources: &[u8]) -> Option<Vec<u8>> {
    while let Some(rest) = resources.strip_prefix(b"8BIM") {
        let (&number, rest) = rest.split_first_chunk::<2>()?;
        let name = 1 + usize::from(*rest.first()?);
        let rest = rest.get(name + name % 2..)?;
        let (&len, rest) = rest.split_first_chunk::<4>()?;
        let len = usize::try_from(u32::from_be_bytes(len)).ok()?;
        let data = rest.get(..len)?;
        if number == IPTC_RESOURCE {
            return Some(data.to_vec());
        }
        resources = rest.get(len.checked_add(len % 2)?..)?;
    }
    None
}

/// IPTC as one of Photoshop's image resources.
pub fn iptc_resource(iptc: &[u8]) -> Vec<u8> {
    let mut resource = b"8BIM".to_vec();
    resource.extend(IPTC_RESOURCE);
    // No name.
    resource.extend([0, 0]);
    resource.extend((iptc.len() as u32).to_be_bytes());
    resource.extend(iptc);
    resource.extend(&[0][..iptc.len() % 2]);
    resource
}

/// An ICC profile, unless it is too long, which is noted in `losses`.
pub fn capped_icc(icc: Option<Vec<u8>>, losses: &mut Vec<String>) -> Option<Vec<u8>> {
    capped(icc, LONGEST_ICC, "a colour profile", losses)
}

/// EXIF, unless it is too long, which is noted in `losses`.
pub fn capped_exif(exif: Option<Vec<u8>>, losses: &mut Vec<String>) -> Option<Vec<u8>> {
    capped(exif, LONGEST_EXIF, "EXIF", losses)
}

/// XMP, unless it is too long, which is noted in `losses`.
pub fn capped_xmp(xmp: Option<Vec<u8>>, losses: &mut Vec<String>) -> Option<Vec<u8>> {
    capped(xmp.filter(|xmp| !xmp.is_empty()), LONGEST_XMP, "XMP", losses)
}

/// IPTC, unless it is too long, which is noted in `losses`.
pub fn capped_iptc(iptc: Option<Vec<u8>>, losses: &mut Vec<String>) -> Option<Vec<u8>> {
    capped(iptc.filter(|iptc| !iptc.is_empty()), LONGEST_IPTC, "IPTC", losses)
}

fn capped(
    data: Option<Vec<u8>>,
    longest: usize,
    what: &str,
    losses: &mut Vec<String>,
) -> Option<Vec<u8>> {
    data.filter(|data| fits(data.len() as u64, longest, what, losses))
}

/// Whether `what` of `len` bytes is short enough to be kept; if not, that is noted in `losses`.
pub fn fits(len: u64, longest: usize, what: &str, losses: &mut Vec<String>) -> bool {
    let fits = len <= longest as u64;
    if !fits {
        losses.push(format!("{what} of {len} bytes is left out"));
    }
    fits
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
