//! Attributes of OpenEXR headers (openexr.com, "OpenEXR File Layout"). The exr crate handles those that define the
//! storage of samples. It does not keep the order of the others, so they are read and written here, byte for byte. An
//! attribute is a name, a type, a length and bytes; an empty name ends a header.
//!
//! ```text
//! magic, version | attributes, 0 | [attributes, 0] ... [0] | offsets of chunks | chunks
//! ```

use crate::{
    data::image::{AncillaryData, Density, DensityUnit, Metadata},
    io::image::{
        metadata::{MAX_TEXT_LEN, MAX_TEXTS_BYTES, add_text, display_name, record_loss},
        tiff::density::density_to_write,
    },
};

/// Offset of the first attribute in a file.
const START: usize = 8;
/// Flag in the second byte of the version field: names may have up to 255 bytes.
const LONG_NAMES: u8 = 0x04;
/// Maximum length in bytes of a name without that flag, and with it.
const MAX_SHORT_NAME: usize = 31;
const MAX_NAME: usize = 255;
/// Attributes of the storage, position and preview of the image, which are not kept as metadata.
const RESERVED: [&str; 18] = [
    "channels",
    "chunkCount",
    "compression",
    "dataWindow",
    "deepImageState",
    "displayWindow",
    "lineOrder",
    "maxSamplesPerPixel",
    "multiView",
    "name",
    "pixelAspectRatio",
    "preview",
    "screenWindowCenter",
    "screenWindowWidth",
    "tiles",
    "type",
    "version",
    "view",
];
/// Names of texts in OpenEXR, and their keywords in PNG.
const TEXTS: [(&str, &str); 3] =
    [("comments", "Comment"), ("owner", "Copyright"), ("software", "Software")];
/// Attribute: pixels per inch across.
const DENSITY: &str = "xDensity";
const ASPECT: &str = "pixelAspectRatio";

struct Attribute<'a> {
    name: &'a [u8],
    kind: &'a [u8],
    value: &'a [u8],
}

/// Takes a name of at most 255 bytes and its final NUL.
fn name<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().take(MAX_NAME + 1).position(|&byte| byte == 0)?;
    let (name, after) = rest.split_at(end);
    *rest = &after[1..];
    Some(name)
}

/// Takes an attribute; `Some(None)` at the end of a header, `None` if the file is truncated.
fn attribute<'a>(rest: &mut &'a [u8]) -> Option<Option<Attribute<'a>>> {
    let attribute = name(rest)?;
    if attribute.is_empty() {
        return Some(None);
    }
    let kind = name(rest)?;
    let (len, after) = rest.split_first_chunk::<4>()?;
    let (value, after) = after.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    *rest = after;
    Some(Some(Attribute { name: attribute, kind, value }))
}

/// Adds the attributes of header `layer` to `metadata`. `bytes` are the first bytes of the file.
pub fn read(bytes: &[u8], layer: usize, metadata: &mut Metadata, losses: &mut Vec<String>) {
    let mut rest = bytes.get(START..).unwrap_or_default();
    for _ in 0..layer {
        while let Some(Some(_)) = attribute(&mut rest) {}
    }
    let mut room = MAX_TEXTS_BYTES;
    let [mut aspect, mut density] = [1.0; 2];
    let mut has_density = false;
    while let Some(Some(Attribute { name, kind, value })) = attribute(&mut rest) {
        let number = || value.first_chunk().map(|bytes| f64::from(f32::from_le_bytes(*bytes)));
        let (Ok(name), Ok(_)) = (std::str::from_utf8(name), std::str::from_utf8(kind)) else {
            record_loss(losses, "an attribute whose name is not UTF-8 is left out".into());
            continue;
        };
        match (name, kind) {
            (ASPECT, b"float") => aspect = number().unwrap_or(1.0),
            (DENSITY, b"float") => {
                (density, has_density) = (number().unwrap_or(1.0), true);
            }
            (name, _) if RESERVED.contains(&name) => {}
            (name, b"string") => {
                let keyword =
                    TEXTS.iter().find(|(own, _)| *own == name).map_or(name, |known| known.1);
                add_text(metadata, keyword, &String::from_utf8_lossy(value), losses);
            }
            _ if value.len() > room.min(MAX_TEXT_LEN) => {
                let (name, len) = (display_name(name), value.len());
                record_loss(losses, format!("the attribute {name} of {len} bytes is left out"));
            }
            _ => {
                room -= (value.len() + 64).min(room);
                let loss = Some("attributes of OpenEXR are dropped");
                let bytes = [kind, &[0], value].concat();
                metadata.ancillary.push(AncillaryData {
                    format: "OpenEXR",
                    name: name.into(),
                    bytes,
                    loss,
                });
            }
        }
    }
    // The aspect ratio is width by height of a pixel, so `aspect` times as many pixels fit down as across.
    let (pixels, unit) = match has_density {
        true => ([density, density * aspect], DensityUnit::Inch),
        false => ([1.0, aspect], DensityUnit::Aspect),
    };
    metadata.density = Density::new(pixels, unit).filter(|d| has_density || !d.is_square());
}

/// Inserts attributes for `metadata` into a file of one part, and corrects the chunk offsets.
pub fn write(file: &mut Vec<u8>, metadata: &Metadata) {
    let Some(mut rest) = file.get(START..) else { return };
    let mut new = NewAttributes::default();
    new.names.extend(RESERVED.iter().map(|name| name.as_bytes().to_vec()));
    while let Some(Some(found)) = attribute(&mut rest) {
        new.names.push(found.name.to_vec());
    }
    // The offset table follows the byte that ends the header.
    let table = file.len() - rest.len();
    for part in metadata.ancillary.iter().filter(|part| part.format == "OpenEXR") {
        let kind = part.bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        if let Some(value) = part.bytes.get(kind.len() + 1..) {
            new.add(&part.name, kind, value);
        }
    }
    for (name, text) in named_texts(metadata) {
        new.add(&name, b"string", text.as_bytes());
    }
    let density = density_to_write(metadata);
    let inches = density.and_then(|density| density.per(DensityUnit::Inch));
    if let Some([across, _]) = inches {
        new.add(DENSITY, b"float", &(across as f32).to_le_bytes());
    }
    if let Some(Density { pixels: [across, down], .. }) = density {
        set_aspect(&mut file[START..], (down / across) as f32);
    }
    let Some(first) = file.get(table..).and_then(<[u8]>::first_chunk) else { return };
    let first = u64::from_le_bytes(*first) as usize;
    let len = new.bytes.len() as u64;
    for offset in file[table..first].as_chunks_mut::<8>().0 {
        *offset = (u64::from_le_bytes(*offset) + len).to_le_bytes();
    }
    if new.names.iter().any(|name| name.len() > MAX_SHORT_NAME) {
        file[5] |= LONG_NAMES;
    }
    file.splice(table - 1..table - 1, new.bytes);
}

/// Attributes to be inserted into a header.
#[derive(Default)]
struct NewAttributes {
    /// Names of existing and reserved attributes.
    names: Vec<Vec<u8>>,
    bytes: Vec<u8>,
}

impl NewAttributes {
    /// Adds an attribute, unless its name is taken or invalid.
    fn add(&mut self, name: &str, kind: &[u8], value: &[u8]) {
        let is_known = self.names.iter().any(|known| known == name.as_bytes());
        if is_known || name.is_empty() || name.len() > MAX_NAME || name.contains('\0') {
            return;
        }
        self.names.push(name.as_bytes().to_vec());
        self.bytes.extend([name.as_bytes(), &[0], kind, &[0]].concat());
        self.bytes.extend((value.len() as u32).to_le_bytes());
        self.bytes.extend(value);
    }
}

/// Texts by their names in OpenEXR; texts of the same name are joined.
fn named_texts(metadata: &Metadata) -> Vec<(String, String)> {
    let mut texts: Vec<(String, String)> = Vec::new();
    for text in &metadata.texts {
        let name = own_name(&text.keyword);
        match texts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, lines)) => *lines += &format!("\n{}", text.text),
            None => texts.push((name.to_owned(), text.text.clone())),
        }
    }
    texts
}

/// Name in OpenEXR of a text with this keyword in PNG.
fn own_name(keyword: &str) -> &str {
    let is = |known: &str| keyword.eq_ignore_ascii_case(known);
    // PNG has two keywords for this attribute.
    let wanted = if is("Description") { "Comment" } else { keyword };
    let known = TEXTS.iter().find(|known| known.1.eq_ignore_ascii_case(wanted));
    known.map_or(keyword, |known| known.0)
}

/// Whether a text with this keyword can be stored as an attribute.
pub fn supports_text(keyword: &str) -> bool {
    let name = own_name(keyword);
    !RESERVED.contains(&name) && (1..=MAX_NAME).contains(&name.len()) && !name.contains('\0')
}

/// Sets the ratio of width to height of a pixel.
fn set_aspect(header: &mut [u8], aspect: f32) {
    let len = header.len();
    let mut rest = &*header;
    while let Some(Some(found)) = attribute(&mut rest) {
        if found.name == ASPECT.as_bytes() && found.value.len() == 4 {
            let end = len - rest.len();
            header[end - 4..end].copy_from_slice(&aspect.to_le_bytes());
            return;
        }
    }
}
