//! Pictures of lossy WebP: a VP8 key frame, by the oxideav-vp8 crate, and a lossless alpha channel (RFC 9649).

use image_webp::{ColorType, WebPEncoder};
use oxideav_vp8::{
    AC_QLOOKUP, I420Frame, KeyframeParams,
    encoder::{EncodeError, TrellisStrength, encode_keyframe},
};

use super::{
    error::{BoxError, catch_panic},
    riff,
};
use crate::{data::image::Image, util::memory};

/// Bytes per pixel that the encoder takes: planes, their reconstruction, and coefficients of 16 bits, rounded up.
const BYTES_PER_PIXEL: usize = 8;
/// Signature and size at the start of a lossless image, which an alpha channel lacks.
const LOSSLESS_HEADER: usize = 5;

/// The chunks of a picture: `ALPH` if `image` has an alpha channel, and `VP8 `. The samples are u8, and sides have at most
/// 16,383 pixels.
pub fn encode(image: &Image, quality: u8) -> Result<Vec<u8>, BoxError> {
    let (width, height) = (image.width, image.height);
    // The encoder aborts the process if an allocation fails.
    drop(memory::room::<u8>(BYTES_PER_PIXEL * width * height)?);
    let mut chunks = Vec::new();
    if image.has_alpha() {
        riff::push(&mut chunks, b"ALPH", &[&encode_alpha(image)?]);
    }
    let [y, u, v] = planes(image)?;
    let frame = I420Frame::packed(width as u32, height as u32, &y, &u, &v);
    let params = params(quality);
    let encoded = catch_panic(|| match encode_keyframe(&frame, &params) {
        Err(EncodeError::FirstPartitionTooLarge { .. }) => {
            Err("the image is too large for lossy WebP at this quality".into())
        }
        encoded => Ok(encoded?),
    })?;
    riff::push(&mut chunks, b"VP8 ", &[&encoded]);
    Ok(chunks)
}

/// Parameters for a quality of 1 to 100, on the scale of libwebp.
fn params(quality: u8) -> KeyframeParams {
    let quality = f64::from(quality) / 100.0;
    let linear = if quality < 0.75 { quality * 2.0 / 3.0 } else { 2.0 * quality - 1.0 };
    // libwebp takes coarser steps in segments with much texture: 1.15 gives its signal-to-noise ratio.
    let quantizer = (1.15 * 127.0 * (1.0 - linear.cbrt())).round().clamp(0.0, 127.0) as u8;
    // The strength of libwebp's loop filter for segments of medium texture.
    let strength = AC_QLOOKUP[usize::from(quantizer)] * 2 / 7;
    KeyframeParams {
        y_ac_qi: quantizer,
        loop_filter_level: strength.clamp(0, 63) as u8,
        // The trellis takes half of the time for 2 % of the bytes.
        trellis_strength: TrellisStrength::OFF,
        ..KeyframeParams::default()
    }
}

/// The data of an `ALPH` chunk. Alpha is the green channel of a lossless image, without a file header.
fn encode_alpha(image: &Image) -> Result<Vec<u8>, BoxError> {
    /// Lossless compression, without a filter and without preprocessing.
    const LOSSLESS: u8 = 1;
    let samples = image.samples.as_bytes();
    let mut alpha = memory::room(image.width * image.height)?;
    alpha.extend(samples.chunks_exact(image.channels).filter_map(<[u8]>::last));
    let mut file = Vec::new();
    let (width, height) = (image.width as u32, image.height as u32);
    WebPEncoder::new(&mut file).encode(&alpha, width, height, ColorType::L8)?;
    let picture = riff::chunks(&file).find(|(name, _)| name == b"VP8L");
    let stream = picture.and_then(|(_, data)| data.get(LOSSLESS_HEADER..));
    Ok([&[LOSSLESS], stream.ok_or("the encoder wrote no image")?].concat())
}

/// Luma, and chroma at half the resolution along both axes: BT.601 with luma from 16 to 235.
fn planes(image: &Image) -> Result<[Vec<u8>; 3], BoxError> {
    let &Image { width, height, channels, ref samples, .. } = image;
    let pixels = samples.as_bytes();
    let rgba = |x: usize, y: usize| match pixels[(y * width + x) * channels..][..channels] {
        [grey] => [grey, grey, grey, u8::MAX],
        [grey, alpha] => [grey, grey, grey, alpha],
        [r, g, b] => [r, g, b, u8::MAX],
        [r, g, b, a, ..] => [r, g, b, a],
        [] => [0; 4],
    };
    let mut luma = memory::room(width * height)?;
    for y in 0..height {
        luma.extend((0..width).map(|x| {
            let [r, g, b, _] = rgba(x, y).map(i32::from);
            ((16_839 * r + 33_059 * g + 6_420 * b + (16 << 16) + (1 << 15)) >> 16) as u8
        }));
    }
    let [columns, rows] = [width.div_ceil(2), height.div_ceil(2)];
    let mut chroma = [memory::room(columns * rows)?, memory::room(columns * rows)?];
    for y in 0..rows {
        for x in 0..columns {
            let [left, right] = [2 * x, (2 * x + 1).min(width - 1)];
            let [top, bottom] = [2 * y, (2 * y + 1).min(height - 1)];
            let four = [[left, top], [right, top], [left, bottom], [right, bottom]];
            let [r, g, b] = mean(four.map(|[x, y]| rgba(x, y)));
            let u = -9_719 * r - 19_081 * g + 28_800 * b;
            let v = 28_800 * r - 24_116 * g - 4_684 * b;
            for (plane, value) in chroma.iter_mut().zip([u, v]) {
                plane.push(((value + (128 << 18) + (1 << 17)) >> 18).clamp(0, 255) as u8);
            }
        }
    }
    let [u, v] = chroma;
    Ok([luma, u, v])
}

/// Four times the mean colour of four pixels, weighted by alpha, so that invisible colours do not tint visible pixels.
fn mean(pixels: [[u8; 4]; 4]) -> [i32; 3] {
    let weight: i32 = pixels.iter().map(|pixel| i32::from(pixel[3])).sum();
    std::array::from_fn(|channel| {
        let value = |pixel: &[u8; 4]| i32::from(pixel[channel]);
        match weight {
            0 | 1020 => pixels.iter().map(value).sum(),
            _ => {
                let sum: i32 = pixels.iter().map(|pixel| value(pixel) * i32::from(pixel[3])).sum();
                (4 * sum + weight / 2) / weight
            }
        }
    })
}
