//! BMP, by the image crate, except for the density, which the crate ignores, and grey palettes, which it expands to
//! RGB.

use std::{borrow::Cow, io::Cursor};

use image::{ExtendedColorType, ImageEncoder, ImageFormat, codecs::bmp::BmpEncoder};

use super::{
    codec::{Capabilities, Codec, Decode, MetadataSupport},
    error::BoxError,
    image_crate,
    pages::{DecodedPage, Encoding},
    probe::Probe,
    tiff::density::density_to_write,
};
use crate::{
    data::{
        image::{Density, DensityUnit, Image, Metadata},
        samples::Samples,
    },
    io::{Limits, RegularFile},
    util::memory,
};

pub const CODEC: Codec = Codec {
    capabilities: Capabilities {
        metadata: MetadataSupport { has_density: true, ..MetadataSupport::NONE },
        ..Capabilities::PLAIN
    },
    probe: Some(probe),
    ..Codec::new("BMP", &["bmp"], |bytes| bytes.starts_with(b"BM"), Decode::One(decode), encode)
};

fn probe(file: &RegularFile, _: Option<&[u8]>) -> Result<Probe, BoxError> {
    /// Length of all headers and the largest palette.
    const MAX_START: u64 = 2048;
    let start = file.start(MAX_START)?;
    let header = with_known_header(&start)?;
    let input = Cursor::new(&*header);
    let mut probe = image_crate::probe_input(ImageFormat::Bmp, CODEC.name, input, None)?;
    probe.add_metadata(&Metadata { density: density(&header), ..Metadata::default() });
    Ok(probe)
}

// Offsets in bytes: that of the pixels, length of the information header, bits per pixel, pixels per metre across and
// down, and number of colours of the palette.
const PIXELS: usize = 10;
const HEADER: usize = 14;
const BITS: usize = 28;
const PER_METRE: [usize; 2] = [38, 42];
const COLOURS: usize = 46;
/// Offset of the compression.
const COMPRESSION: usize = 30;
/// Length of the information header of OS/2 1.x (BITMAPCOREHEADER), and offset of its bits per pixel.
const CORE: u32 = 12;
const CORE_BITS: usize = 24;
/// Minimum length of a header with all of these fields (BITMAPINFOHEADER).
const INFO: u32 = 40;

/// The file with a header that the image crate knows. Headers of OS/2 2.x have 16 to 64 bytes: those of
/// BITMAPINFOHEADER, as far as they go, and further fields.
fn with_known_header(bytes: &[u8]) -> Result<Cow<'_, [u8]>, BoxError> {
    let len = match number(bytes, HEADER) {
        Some(len @ 16..=64) if !matches!(len, INFO | 52 | 56) => len as usize,
        _ => return Ok(bytes.into()),
    };
    let header = bytes.get(HEADER..HEADER + len).ok_or("the file ends within its header")?;
    match number(header, COMPRESSION - HEADER) {
        Some(3) => return Err("BMP of OS/2 with Huffman codes is not supported".into()),
        Some(4) => return Err("BMP of OS/2 with RLE of 24 bits is not supported".into()),
        _ => {}
    }
    let info = INFO as usize;
    let mut known = memory::room(bytes.len() + info)?;
    known.extend_from_slice(&bytes[..HEADER]);
    known.extend(INFO.to_le_bytes());
    known.extend(&header[4..len.min(info)]);
    known.resize(HEADER + info, 0);
    known.extend(&bytes[HEADER + len..]);
    let pixels = number(bytes, PIXELS).unwrap_or(0);
    let pixels = pixels.wrapping_add(INFO).wrapping_sub(len as u32);
    known[PIXELS..PIXELS + 4].copy_from_slice(&pixels.to_le_bytes());
    Ok(known.into())
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|number| u32::from_le_bytes(*number))
}

fn decode(bytes: &[u8], limits: Limits) -> Result<DecodedPage, BoxError> {
    let bytes = &*with_known_header(bytes)?;
    let mut decoded = image_crate::open(ImageFormat::Bmp, bytes, limits)?.decode()?;
    let image = &mut decoded.image;
    if has_grey_palette(bytes) == Some(true)
        && let (Samples::U8(samples), channels @ 2..) = (&image.samples, image.channels)
    {
        let mut grey = memory::room(image.width * image.height)?;
        grey.extend(samples.iter().step_by(channels));
        (image.samples, image.channels) = (Samples::U8(grey), 1);
    }
    image.metadata.density = density(bytes);
    Ok(decoded)
}

/// Whether all colours of the palette are grey; `None` if there is no palette.
fn has_grey_palette(bytes: &[u8]) -> Option<bool> {
    let header = number(bytes, HEADER).filter(|len| *len >= INFO || *len == CORE)?;
    let (bits, entry) = if header == CORE { (CORE_BITS, 3) } else { (BITS, 4) };
    let bits = u16::from_le_bytes(*bytes.get(bits..)?.first_chunk()?);
    if !matches!(bits, 1..=8) {
        return None;
    }
    let max = 1 << bits;
    let stated = if header == CORE { 0 } else { number(bytes, COLOURS)? };
    let colours = match stated {
        0 => max,
        colours => max.min(colours as usize),
    };
    let palette = bytes.get(HEADER + header as usize..)?.get(..colours * entry)?;
    Some(palette.chunks_exact(entry).all(|colour| colour[0] == colour[1] && colour[1] == colour[2]))
}

/// Pixel density, if the file states one.
fn density(bytes: &[u8]) -> Option<Density> {
    number(bytes, HEADER).filter(|len| *len >= INFO)?;
    let [Some(across), Some(down)] = PER_METRE.map(|at| number(bytes, at)) else {
        return None;
    };
    // The fields are signed, and 0 in most files, which `Density::new` refuses.
    let pixels = [across as i32, down as i32].map(|pixels| f64::from(pixels) / 100.0);
    Density::new(pixels, DensityUnit::Centimetre)
}

fn encode(image: &Image, _: &Encoding) -> Result<Vec<u8>, BoxError> {
    // BMP has no grey samples with alpha.
    let image = if image.channels == 2 { &image.to_rgba()? } else { image };
    let colour = match image.channels {
        1 => ExtendedColorType::L8,
        3 => ExtendedColorType::Rgb8,
        _ => ExtendedColorType::Rgba8,
    };
    let (mut bytes, size) = (Vec::new(), [image.width as u32, image.height as u32]);
    let encoder = BmpEncoder::new(&mut bytes);
    encoder.write_image(image.samples.as_bytes(), size[0], size[1], colour)?;
    if let Some(pixels) =
        density_to_write(&image.metadata).and_then(|d| d.per(DensityUnit::Centimetre))
    {
        for (at, pixels) in PER_METRE.into_iter().zip(pixels) {
            let pixels = (pixels * 100.0).round() as i32;
            bytes[at..at + 4].copy_from_slice(&pixels.to_le_bytes());
        }
    }
    Ok(bytes)
}
