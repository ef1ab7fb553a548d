//! ICC profiles, EXIF, XMP, IPTC and texts: maximum lengths and containers.

use crate::data::image::{Metadata, Text};

/// Metadata that are kept as the bytes in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataBlock {
    Icc,
    /// EXIF from its TIFF header on.
    Exif,
    Xmp,
    Iptc,
}

impl MetadataBlock {
    pub const ALL: [Self; 4] = [Self::Icc, Self::Exif, Self::Xmp, Self::Iptc];

    pub fn name(self) -> &'static str {
        match self {
            Self::Icc => "a colour profile",
            Self::Exif => "EXIF",
            Self::Xmp => "XMP",
            Self::Iptc => "IPTC",
        }
    }

    /// Maximum length in bytes; longer blocks are dropped. Except for profiles, this is the capacity of one JPEG
    /// segment without its length and identifier, or the container made by [`iptc_resource`].
    pub const fn max_len(self) -> usize {
        const SEGMENT: usize = 65_533;
        match self {
            Self::Icc => 4 << 20,
            Self::Exif => SEGMENT - 6,
            Self::Xmp => SEGMENT - XMP_NAME.len(),
            Self::Iptc => SEGMENT - 32,
        }
    }

    pub fn get(self, metadata: &Metadata) -> Option<&[u8]> {
        let Metadata { icc, exif, xmp, iptc, .. } = metadata;
        match self {
            Self::Icc => icc.as_deref(),
            Self::Exif => exif.as_deref(),
            Self::Xmp => xmp.as_deref(),
            Self::Iptc => iptc.as_deref(),
        }
    }

    /// Whether `len` bytes are not too long; otherwise adds a loss.
    pub fn fits(self, len: u64, losses: &mut Vec<String>) -> bool {
        let fits = len <= self.max_len() as u64;
        if !fits {
            let (name, max) = (self.name(), self.max_len());
            losses.push(format!("{name} of {len} bytes is left out: the maximum is {max}"));
        }
        fits
    }

    /// Returns `data` unless they are empty or too long.
    pub fn capped(self, data: Option<Vec<u8>>, losses: &mut Vec<String>) -> Option<Vec<u8>> {
        data.filter(|data| !data.is_empty() && self.fits(data.len() as u64, losses))
    }
}

/// The identifier in front of XMP in a JPEG segment.
pub const XMP_NAME: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";
/// Maximum length of a text in bytes: the capacity of one JPEG segment.
pub const MAX_TEXT_LEN: usize = 65_533;
/// Maximum size in bytes of all texts of a file, and of all metadata that only one format can store.
pub const MAX_TEXTS_BYTES: usize = 1 << 20;
const MAX_TEXT_COUNT: usize = 4096;

/// Adds a text, or a loss if it is too long.
pub fn add_text(metadata: &mut Metadata, keyword: &str, text: &str, losses: &mut Vec<String>) {
    let text = text.trim_end_matches('\0');
    if metadata.texts.len() == MAX_TEXT_COUNT {
        record_loss(losses, format!("only the first {MAX_TEXT_COUNT} of its texts are kept"));
        return;
    }
    let stored: usize =
        metadata.texts.iter().map(|text| text.keyword.len() + text.text.len()).sum();
    let room = MAX_TEXT_LEN.min(MAX_TEXTS_BYTES.saturating_sub(stored + keyword.len()));
    if text.len() > room {
        record_loss(
            losses,
            format!(
                "the text {} of {} bytes is left out: the maximum is {room}",
                display_name(keyword),
                text.len()
            ),
        );
    } else if !text.is_empty() {
        metadata.texts.push(Text { keyword: keyword.to_owned(), text: text.to_owned() });
    }
}

/// Decodes UTF-8 if valid, else Latin-1, for formats that define no encoding of comments.
pub fn utf8_or_latin1(bytes: &[u8]) -> String {
    let latin = |_| bytes.iter().map(|&byte| char::from(byte)).collect();
    std::str::from_utf8(bytes).map_or_else(latin, str::to_owned)
}

/// Adds `loss` to `losses`, unless it is a duplicate or `losses` is full.
pub fn record_loss(losses: &mut Vec<String>, loss: String) {
    const MAX: usize = 32;
    if losses.len() < MAX && !losses.contains(&loss) {
        losses.push(loss);
    }
}

/// Whether a text only describes its file: the software, the time, or the storage of pixels.
pub fn is_about_file(keyword: &str) -> bool {
    const KEYWORDS: [&str; 4] = ["Software", "Creation Time", "Thumb", "version"];
    const PREFIXES: [&str; 7] = ["date:", "png:", "exif:", "icc:", "jpeg:", "tiff:", "Thumb::"];
    KEYWORDS.iter().any(|known| keyword.eq_ignore_ascii_case(known))
        || PREFIXES.iter().any(|prefix| keyword.starts_with(prefix))
}

/// A keyword for messages: without control characters, and not too long.
pub fn display_name(keyword: &str) -> String {
    keyword.chars().filter(|c| !c.is_control()).take(40).collect()
}

/// The ID of Photoshop's image resource that holds IPTC.
const IPTC_RESOURCE: [u8; 2] = [0x04, 0x04];

/// Finds IPTC data among Photoshop's image resources. Each resource is `8BIM`, an ID, a Pascal string, a length and
/// data; string and data are padded to an even length (Adobe Photoshop File Formats Specification).
pub fn iptc_from_resources(mut resources: &[u8]) -> Option<Vec<u8>> {
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

/// Packs IPTC as one of Photoshop's image resources.
pub fn iptc_resource(iptc: &[u8]) -> Vec<u8> {
    let mut resource = b"8BIM".to_vec();
    resource.extend(IPTC_RESOURCE);
    // An empty name, padded.
    resource.extend([0, 0]);
    resource.extend((iptc.len() as u32).to_be_bytes());
    resource.extend(iptc);
    resource.extend(&[0][..iptc.len() % 2]);
    resource
}

/// Removes the prefix that JPEG requires before the TIFF header. Some writers put it into PNG and WebP files, too.
pub fn strip_exif_prefix(mut exif: Vec<u8>) -> Vec<u8> {
    if exif.starts_with(b"Exif\0\0") {
        exif.drain(..6);
    }
    exif
}
