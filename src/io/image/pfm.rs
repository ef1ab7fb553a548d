//! Portable Float Map: grey or RGB samples as f32, rows from the bottom up (Debevec's format, described in netpbm's
//! `pfm(5)`).

use super::{
    codec::{Capabilities, Codec, Decode},
    error::BoxError,
    limits::check_size,
    pages::DecodedPage,
    pnm,
};
use crate::{
    data::{
        dtype::Dtype,
        image::{Image, Metadata, Orientation},
        samples::Samples,
    },
    io::Limits,
    util::memory,
};

pub const CODEC: Codec = Codec {
    capabilities: Capabilities { dtypes: &[Dtype::F32], has_alpha: false, ..Capabilities::PLAIN },
    ..Codec::new(
        "PFM",
        &["pfm"],
        |bytes| matches!(bytes, [b'P', b'F' | b'f', b' ' | b'\n' | b'\r' | b'\t', ..]),
        Decode::One(decode),
        |image, _| encode(image),
    )
};

const SAMPLE: usize = 4;

/// Takes the next word of a header and one byte of white space after it. Skips lines of comments, as libvips writes
/// them.
fn word<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let text = loop {
        let start = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let text = &rest[start..];
        if text[0] != b'#' {
            break text;
        }
        *rest = &text[text.iter().position(|&byte| byte == b'\n')?..];
    };
    let len = text.iter().position(u8::is_ascii_whitespace)?;
    *rest = &text[len + 1..];
    std::str::from_utf8(&text[..len]).ok()
}

fn decode(bytes: &[u8], limits: Limits) -> Result<DecodedPage, BoxError> {
    let (mut losses, mut metadata) = (Vec::new(), Metadata::default());
    pnm::read_comments(bytes, &mut metadata, &mut losses);
    // Program and time, written by libvips.
    metadata.texts.retain(|text| !text.text.starts_with("vips2ppm"));
    let mut rest = bytes;
    let channels = if word(&mut rest) == Some("PF") { 3 } else { 1 };
    let mut side = || word(&mut rest).and_then(|text| text.parse::<u32>().ok());
    let (Some(width), Some(height)) = (side(), side()) else {
        return Err("its header has an invalid width or height".into());
    };
    let scale = word(&mut rest).and_then(|text| text.parse::<f64>().ok());
    let scale = scale.filter(|scale| scale.is_finite() && *scale != 0.0);
    let scale = scale.ok_or("its header has an invalid scale")?;
    let (width, height) = (width as usize, height as usize);
    let size =
        (width as u64).saturating_mul(height as u64).saturating_mul((channels * SAMPLE) as u64);
    check_size(limits, [width, height], size)?;
    let row = width * channels * SAMPLE;
    let Some(pixels) = rest.get(..row * height) else {
        return Err(format!("{} bytes of samples are missing", size - rest.len() as u64).into());
    };
    if scale.abs() != 1.0 {
        losses.push(format!("the scale {} is not applied to the samples", scale.abs()));
    }
    if rest.len() > pixels.len() {
        let surplus = rest.len() - pixels.len();
        losses.push(format!("{surplus} bytes after the pixels are left out"));
    }
    let mut samples = memory::room(width * height * channels)?;
    for row in pixels.chunks_exact(row).rev() {
        let values = row.as_chunks::<SAMPLE>().0.iter();
        // A negative scale means little-endian samples.
        samples.extend(values.map(|&value| match scale < 0.0 {
            true => f32::from_le_bytes(value),
            false => f32::from_be_bytes(value),
        }));
    }
    let samples = Samples::F32(samples);
    let image = Image { width, height, channels, samples, is_linear: false, metadata };
    Ok(DecodedPage { image, orientation: Orientation::default(), losses, damage: None })
}

fn encode(image: &Image) -> Result<Vec<u8>, BoxError> {
    let Samples::F32(samples) = &image.samples else { unreachable!("PFM holds f32") };
    let name = if image.channels == 3 { "PF" } else { "Pf" };
    let header = format!("{name}\n{} {}\n-1.0\n", image.width, image.height);
    let mut bytes = memory::room(header.len() + samples.len() * SAMPLE)?;
    bytes.extend(header.as_bytes());
    for row in samples.chunks_exact(image.width * image.channels).rev() {
        bytes.extend(row.iter().flat_map(|value| value.to_le_bytes()));
    }
    Ok(bytes)
}
