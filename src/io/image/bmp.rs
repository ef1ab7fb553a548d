//! BMP, by the image crate, except for the density, which the crate ignores, and grey palettes, which it expands to
//! RGB.

use std::{fs::File, io::Read, path::Path};

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
    io::Limits,
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

fn probe(path: &Path, _: Option<&[u8]>) -> Result<Probe, BoxError> {
    let mut probe = image_crate::probe(ImageFormat::Bmp, CODEC.name, path, None)?;
    let mut header = Vec::new();
    File::open(path)?.take(COLOURS as u64).read_to_end(&mut header)?;
    probe.add_metadata(&Metadata { density: density(&header), ..Metadata::default() });
    Ok(probe)
}

// Offsets in bytes: length of the information header, bits per pixel, pixels per metre across and down, and number of
// colours of the palette.
const HEADER: usize = 14;
const BITS: usize = 28;
const PER_METRE: [usize; 2] = [38, 42];
const COLOURS: usize = 46;
/// Minimum length of a header with all of these fields (BITMAPINFOHEADER).
const INFO: u32 = 40;

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|number| u32::from_le_bytes(*number))
}

fn decode(bytes: &[u8], limits: Limits) -> Result<DecodedPage, BoxError> {
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
    let header = number(bytes, HEADER).filter(|len| *len >= INFO)?;
    let bits = u16::from_le_bytes(*bytes.get(BITS..)?.first_chunk()?);
    if !matches!(bits, 1..=8) {
        return None;
    }
    let max = 1 << bits;
    let colours = match number(bytes, COLOURS)? {
        0 => max,
        colours => max.min(colours as usize),
    };
    let palette = bytes.get(HEADER + header as usize..)?.as_chunks::<4>().0.get(..colours)?;
    Some(palette.iter().all(|&[b, g, r, _]| b == g && g == r))
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
