//! What PNG files hold beside pixels: XMP and IPTC in texts, and how large pixels are (PNG, third edition, 11.3).

use std::io::{self, Cursor, Write};

use png::Info;

use super::encode::chunk;
use crate::{
    data::image::{Density, DensityUnit, Metadata},
    io::image::metadata::{
        LONGEST_IPTC, LONGEST_XMP, capped_iptc, capped_xmp, iptc_of_resources, iptc_resource,
    },
};

/// The keyword of XMP.
const XMP: &str = "XML:com.adobe.xmp";
/// The keyword under which ImageMagick writes XMP, as it does IPTC.
const XMP_PROFILE: &str = "Raw profile type xmp";
/// Keywords under which ImageMagick and ExifTool write IPTC: in hexadecimal, behind a name and a length.
const PROFILES: [&str; 2] = ["Raw profile type iptc", "Raw profile type 8bim"];

/// Adds what a file's chunks before its pixels hold to `metadata`.
pub fn read(info: &Info<'_>, metadata: &mut Metadata, losses: &mut Vec<String>) {
    metadata.density = info.pixel_dims.and_then(|dims| {
        let pixels = [dims.xppu, dims.yppu].map(f64::from);
        match dims.unit {
            png::Unit::Meter => Density::new(pixels.map(|v| v / 100.0), DensityUnit::Centimetre),
            png::Unit::Unspecified => {
                Density::new(pixels, DensityUnit::Aspect).filter(|density| !density.is_square())
            }
        }
    });
    let mut xmp = info.utf8_text.iter().find(|text| text.keyword == XMP).cloned();
    if let Some(text) = &mut xmp {
        match text.decompress_text_with_limit(LONGEST_XMP).and_then(|()| text.get_text()) {
            Ok(text) => metadata.xmp = capped_xmp(Some(text.into_bytes()), losses),
            Err(_) => losses.push("XMP that cannot be read, or is too long, is left out".into()),
        }
    }
    match profile(info, &PROFILES) {
        Some(Some(profile)) => {
            let iptc = match profile.starts_with(b"8BIM") {
                true => iptc_of_resources(&profile),
                false => Some(profile),
            };
            metadata.iptc = capped_iptc(iptc, losses);
        }
        Some(None) => losses.push("IPTC that cannot be read is left out".into()),
        None => {}
    }
    if metadata.xmp.is_none() {
        match profile(info, &[XMP_PROFILE]) {
            Some(Some(profile)) => metadata.xmp = capped_xmp(Some(profile), losses),
            Some(None) => losses.push("XMP that cannot be read is left out".into()),
            None => {}
        }
    }
}

/// The profile under one of `names`; nothing in it where it cannot be read.
fn profile(info: &Info<'_>, names: &[&str]) -> Option<Option<Vec<u8>>> {
    let plain =
        info.uncompressed_latin1_text.iter().find(|text| names.contains(&text.keyword.as_str()));
    if let Some(text) = plain {
        return Some(raw_profile(&text.text));
    }
    let packed =
        info.compressed_latin1_text.iter().find(|text| names.contains(&text.keyword.as_str()));
    let mut text = packed?.clone();
    let unpacked = text.decompress_text_with_limit(4 * LONGEST_IPTC);
    Some(unpacked.and_then(|()| text.get_text()).ok().and_then(|text| raw_profile(&text)))
}

/// Adds what a file that begins with `bytes` holds beside pixels to `metadata`.
pub fn read_file(bytes: &[u8], metadata: &mut Metadata, losses: &mut Vec<String>) {
    // A broken file is refused by who decodes it.
    if let Ok(reader) = png::Decoder::new(Cursor::new(bytes)).read_info() {
        read(reader.info(), metadata, losses);
    }
}

/// The bytes of `\nNAME\n LENGTH\nHEXADECIMAL`.
fn raw_profile(text: &str) -> Option<Vec<u8>> {
    let mut lines = text.trim_start().splitn(3, '\n');
    let (_name, len, digits) = (lines.next()?, lines.next()?, lines.next()?);
    let len: usize = len.trim().parse().ok()?;
    let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let value = |digit: u8| char::from(digit).to_digit(16);
    let bytes = digits.as_chunks::<2>().0.iter();
    let bytes: Option<Vec<u8>> =
        bytes.map(|&[high, low]| Some((value(high)? << 4 | value(low)?) as u8)).collect();
    bytes.filter(|bytes| bytes.len() == len)
}

/// Writes the chunks of `metadata` that go before the pixels, but for ICC profile and EXIF.
///
/// # Errors
/// Those of writing.
pub fn write(metadata: &Metadata, output: &mut impl Write) -> io::Result<()> {
    if let Some(density) = metadata.density {
        let (pixels, unit) = match density.per(DensityUnit::Centimetre) {
            Some(pixels) => (pixels.map(|v| v * 100.0), 1),
            None => (density.pixels, 0),
        };
        let [across, down] = pixels.map(|v| (v.round() as u32).max(1).to_be_bytes());
        chunk(output, b"pHYs", &[&across, &down, &[unit]])?;
    }
    if let Some(xmp) = &metadata.xmp {
        // Not compressed, no language, no translated keyword.
        chunk(output, b"iTXt", &[XMP.as_bytes(), &[0; 5], xmp])?;
    }
    if let Some(iptc) = &metadata.iptc {
        let resource = iptc_resource(iptc);
        let mut text = format!("\niptc\n{:8}\n", resource.len()).into_bytes();
        for line in resource.chunks(36) {
            line.iter().try_for_each(|byte| write!(text, "{byte:02x}"))?;
            text.push(b'\n');
        }
        chunk(output, b"tEXt", &[PROFILES[0].as_bytes(), &[0], &text])?;
    }
    Ok(())
}
