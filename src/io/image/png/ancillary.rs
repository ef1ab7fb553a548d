//! Ancillary chunks of PNG files: texts, among them XMP, density, and colour chunks (PNG, third edition,
//! 11.3). Texts and EXIF may also follow the pixels.

use std::io::{self, Read, Seek, SeekFrom, Write};

use flate2::read::ZlibDecoder;

use super::chunk::{SIGNATURE, checksum, chunk};
use crate::{
    data::image::{AncillaryData, Density, DensityUnit, Metadata, Orientation},
    io::image::{
        error::BoxError,
        metadata::{MAX_TEXT_LEN, MetadataBlock, add_text, display_name, record_loss},
        tiff::{density::density_to_write, exif::read_exif},
    },
};

/// Keyword of a text that is XMP.
const XMP: &str = "XML:com.adobe.xmp";
/// Maximum length of a chunk that is read, in bytes. A compressed profile may take more than its own length.
const MAX_CHUNK_LEN: u64 = 2 * MetadataBlock::Icc.max_len() as u64 + (1 << 20);
/// Maximum length of all chunks that are read, in bytes.
const MAX_CHUNKS_BYTES: u64 = 4 * MAX_CHUNK_LEN;
/// Maximum length of all uncompressed texts, in bytes.
const MAX_INFLATED_BYTES: usize = 16 << 20;
/// Chunks that define the colour space.
const COLOURS: [&[u8; 4]; 4] = [b"cICP", b"gAMA", b"cHRM", b"sRGB"];
/// Length of the longest of these chunks, in bytes.
const MAX_COLOURS_LEN: usize = 32;
const COLOURS_LOST: &str = "colour chunks of PNG (cICP, gAMA, cHRM) are dropped";

struct TextChunk {
    keyword: String,
    /// `None` if the text cannot be read, or is too long to be kept.
    text: Option<String>,
}

/// Adds the metadata of a file to `metadata`. Returns the orientation if it is stated after the pixels, where the
/// png crate does not read it. Damage of a chunk on which pixels depend is an error; the png crate skips such
/// chunks.
pub fn read(
    mut input: impl Read + Seek,
    metadata: &mut Metadata,
    losses: &mut Vec<String>,
) -> Result<Option<Orientation>, BoxError> {
    let (texts, exif) = read_chunks(&mut input, metadata, losses)?;
    if metadata.icc.is_some() || metadata.ancillary.iter().any(|part| part.name == "sRGB") {
        // These take precedence over gAMA and cHRM.
        metadata
            .ancillary
            .iter_mut()
            .filter(|part| part.name != "cICP")
            .for_each(|p| p.loss = None);
    }
    metadata.xmp = None;
    for found in &texts {
        add_text_chunk(found, metadata, losses);
    }
    if metadata.exif.is_some() {
        return Ok(None);
    }
    let (exif, orientation) = read_exif(exif, losses);
    metadata.exif = exif;
    Ok(orientation)
}

type TextsAndExif = (Vec<TextChunk>, Option<Vec<u8>>);

/// Adds density and colour chunks to `metadata`; returns texts and EXIF. Fails if a chunk on which pixels depend is
/// damaged.
fn read_chunks(
    input: &mut (impl Read + Seek),
    metadata: &mut Metadata,
    losses: &mut Vec<String>,
) -> Result<TextsAndExif, BoxError> {
    let (mut texts, mut exif) = (Vec::new(), None);
    let mut room = MAX_INFLATED_BYTES;
    let (mut has_profile, mut damaged) = (false, None);
    let read = for_each_chunk(input, losses, |name, body, losses| match (name, body) {
        (b"tRNS" | b"acTL", None) => damaged = Some(String::from_utf8_lossy(name).into_owned()),
        (_, None) => {
            let name = String::from_utf8_lossy(name);
            record_loss(losses, format!("its chunk {name} is damaged and left out"));
        }
        (b"tRNS" | b"acTL", _) => {}
        (name, Some(body)) if COLOURS.contains(&name) && body.len() > MAX_COLOURS_LEN => {
            let (name, len) = (String::from_utf8_lossy(name), body.len());
            record_loss(losses, format!("its chunk {name} of {len} bytes is left out: too long"));
        }
        (b"iCCP", _) => has_profile = true,
        (b"pHYs", Some(body)) => metadata.density = density(body),
        (b"eXIf", Some(body)) => exif = Some(body.to_vec()),
        (b"tEXt" | b"zTXt" | b"iTXt", Some(body)) => match text(name, body, &mut room) {
            Some(found) => texts.push(found),
            None => record_loss(losses, "a text that cannot be read is left out".into()),
        },
        (_, Some(body)) => {
            let name = String::from_utf8_lossy(name).into_owned();
            if metadata.ancillary.iter().any(|part| part.name == name) {
                return;
            }
            let loss = (!is_srgb(&name, body)).then_some(COLOURS_LOST);
            metadata.ancillary.push(AncillaryData {
                format: "PNG",
                name,
                bytes: body.to_vec(),
                loss,
            });
        }
    });
    if read.is_err() {
        // Missing pixels are reported by the decoder.
        record_loss(losses, "the file is truncated: chunks after its pixels may be missing".into());
    }
    if has_profile && metadata.icc.is_none() {
        record_loss(losses, "a colour profile that cannot be read is left out".into());
    }
    match damaged {
        Some(name) => Err(format!("its chunk {name} is damaged").into()),
        None => Ok((texts, exif)),
    }
}

/// Adds a text, or XMP, to `metadata`.
fn add_text_chunk(found: &TextChunk, metadata: &mut Metadata, losses: &mut Vec<String>) {
    let TextChunk { keyword, text } = found;
    match text {
        Some(text) if keyword == XMP => {
            metadata.xmp = MetadataBlock::Xmp.capped(Some(text.clone().into_bytes()), losses);
        }
        Some(text) => add_text(metadata, keyword, text, losses),
        None => {
            let text = || format!("the text {}", display_name(keyword));
            let what = if keyword == XMP { "XMP".to_owned() } else { text() };
            let loss = format!("{what} that cannot be read, or is too long, is left out");
            record_loss(losses, loss);
        }
    }
}

/// Calls `take` with name and body of each chunk of metadata up to the end of the file. Chunks with a wrong checksum
/// are passed without a body, also those of other kinds.
fn for_each_chunk(
    input: &mut (impl Read + Seek),
    losses: &mut Vec<String>,
    mut take: impl FnMut(&[u8; 4], Option<&[u8]>, &mut Vec<String>),
) -> io::Result<()> {
    const WANTED: [&[u8; 4]; 8] =
        [b"pHYs", b"eXIf", b"tEXt", b"zTXt", b"iTXt", b"iCCP", b"tRNS", b"acTL"];
    input.seek(SeekFrom::Start(SIGNATURE.len() as u64))?;
    let mut room = MAX_CHUNKS_BYTES;
    loop {
        let mut head = [0; 8];
        input.read_exact(&mut head)?;
        let [a, b, c, d, name @ ..] = head;
        let len = u64::from(u32::from_be_bytes([a, b, c, d]));
        if &name == b"IEND" {
            return Ok(());
        }
        let is_wanted = WANTED.contains(&&name) || COLOURS.contains(&&name);
        // The checksum of ancillary chunks (lower-case first letter) is checked even if they are not wanted: the name
        // may be damaged. The decoder checks critical chunks.
        let may_be_left_out = name[0].is_ascii_lowercase() && &name != b"fdAT";
        if !is_wanted && (!may_be_left_out || len > MAX_CHUNK_LEN) {
            input.seek_relative(len as i64 + 4)?;
            continue;
        }
        if is_wanted && len > room.min(MAX_CHUNK_LEN) {
            let name = String::from_utf8_lossy(&name);
            record_loss(losses, format!("its chunk {name} of {len} bytes is left out: too long"));
            input.seek_relative(len as i64 + 4)?;
            continue;
        }
        // At least 256 bytes per chunk, because many short chunks take more memory than their bytes.
        room -= if is_wanted { len.max(256).min(room) } else { 0 };
        let mut body = Vec::new();
        (&mut *input).take(len).read_to_end(&mut body)?;
        let mut sum = [0; 4];
        input.read_exact(&mut sum)?;
        let is_valid = checksum(&name, &body) == u32::from_be_bytes(sum);
        if is_wanted || !is_valid {
            take(&name, is_valid.then_some(&body), losses);
        }
    }
}

/// Parses a text chunk of any of the three kinds; `None` if it has no keyword.
fn text(name: &[u8; 4], body: &[u8], room: &mut usize) -> Option<TextChunk> {
    let mut fields = body.splitn(2, |&byte| byte == 0);
    let (keyword, rest) = (fields.next()?, fields.next()?);
    let keyword: String = keyword.iter().map(|&byte| char::from(byte)).collect();
    let max_len = MAX_TEXT_LEN.min(*room);
    let latin = |bytes: Vec<u8>| bytes.into_iter().map(char::from).collect::<String>();
    let text = match (name, rest) {
        (b"tEXt", rest) => (rest.len() <= max_len).then(|| latin(rest.to_vec())),
        (b"zTXt", [0, packed @ ..]) => inflate(packed, max_len).map(latin),
        (b"iTXt", [is_packed, _, rest @ ..]) => {
            // Language tag and translated keyword are skipped.
            let rest = rest.splitn(3, |&byte| byte == 0).nth(2)?;
            let bytes = match is_packed {
                0 => (rest.len() <= max_len).then(|| rest.to_vec()),
                _ => inflate(rest, max_len),
            };
            bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        }
        _ => return None,
    };
    *room -= text.as_ref().map_or(0, String::len).min(*room);
    Some(TextChunk { keyword, text })
}

/// Inflates `packed`; `None` if it is broken or has more than `max_len` bytes.
fn inflate(packed: &[u8], max_len: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    ZlibDecoder::new(packed).take(max_len as u64 + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() <= max_len).then_some(bytes)
}

fn density(body: &[u8]) -> Option<Density> {
    let &[a, b, c, d, e, f, g, h, unit] = body else { return None };
    let pixels = [[a, b, c, d], [e, f, g, h]].map(|word| f64::from(u32::from_be_bytes(word)));
    match unit {
        1 => Density::new(pixels.map(|v| v / 100.0), DensityUnit::Centimetre),
        _ => Density::new(pixels, DensityUnit::Aspect).filter(|density| !density.is_square()),
    }
}

/// Whether a chunk states sRGB, the default of files without such chunks.
fn is_srgb(name: &str, body: &[u8]) -> bool {
    let numbers = body.as_chunks::<4>().0.iter().map(|&word| u32::from_be_bytes(word));
    let near = |wanted: &[u32], by: u32| {
        numbers.clone().count() == wanted.len()
            && numbers.clone().zip(wanted).all(|(found, wanted)| found.abs_diff(*wanted) <= by)
    };
    match name {
        "sRGB" => true,
        "gAMA" => near(&[45_455], 500),
        "cHRM" => near(&[31_270, 32_900, 64_000, 33_000, 30_000, 60_000, 15_000, 6_000], 100),
        // cICP: primaries and transfer function of sRGB, RGB, full range (ITU-T H.273).
        _ => body == [1, 13, 0, 1],
    }
}

/// Writes the colour chunks, which must precede palette and ICC profile.
pub fn write_colours(metadata: &Metadata, output: &mut impl Write) -> io::Result<()> {
    for name in COLOURS {
        let has_name = |part: &&AncillaryData| part.format == "PNG" && part.name.as_bytes() == name;
        if let Some(part) = metadata.ancillary.iter().find(has_name) {
            chunk(output, name, &[&part.bytes])?;
        }
    }
    Ok(())
}

/// Writes the other ancillary chunks, except ICC profile and EXIF.
pub fn write(metadata: &Metadata, output: &mut impl Write) -> io::Result<()> {
    if let Some(density) = density_to_write(metadata) {
        let (pixels, unit) = match density.per(DensityUnit::Centimetre) {
            Some(pixels) => (pixels.map(|v| v * 100.0), 1),
            None => (density.pixels, 0),
        };
        let [across, down] = pixels.map(|v| (v.round() as u32).max(1).to_be_bytes());
        chunk(output, b"pHYs", &[&across, &down, &[unit]])?;
    }
    if let Some(xmp) = &metadata.xmp {
        // Compression flag and method, and empty language tag and translated keyword.
        chunk(output, b"iTXt", &[XMP.as_bytes(), &[0; 5], xmp])?;
    }
    for text in metadata.texts.iter().filter(|text| is_keyword(&text.keyword)) {
        let latin = |text: &str| -> Option<Vec<u8>> {
            let plain = |c: char| u8::try_from(c).ok().filter(|&byte| byte != 0);
            text.chars().map(plain).collect()
        };
        let keyword = latin(&text.keyword).unwrap_or_default();
        match latin(&text.text) {
            Some(bytes) => chunk(output, b"tEXt", &[&keyword, &[0], &bytes])?,
            None => {
                let text = text.text.replace('\0', "");
                chunk(output, b"iTXt", &[&keyword, &[0; 5], text.as_bytes()])?;
            }
        }
    }
    Ok(())
}

/// Whether a keyword is valid in PNG: 1 to 79 printable characters of Latin-1, with single spaces between them
/// (11.3.3.2).
pub fn is_keyword(keyword: &str) -> bool {
    let is_printable = |c: char| matches!(u32::from(c), 0x20..=0x7e | 0xa1..=0xff);
    (1..=79).contains(&keyword.chars().count())
        && keyword.chars().all(is_printable)
        && keyword.trim() == keyword
        && !keyword.contains("  ")
}
