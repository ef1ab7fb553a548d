//! Luminance and chroma (channels Y, RY and BY, the last two at half the resolution), as written by OpenEXR's
//! `RgbaOutputFile`: RY is (R - Y) / Y, BY is (B - Y) / Y. The exr crate decompresses such blocks, but refuses the
//! header. Here its sampling factors are replaced by 1 before it is parsed, and put back afterwards.

use std::{collections::HashSet, io::Cursor};

use exr::{
    block::{UncompressedBlock, reader::ChunksReader},
    compression::Compression,
    math::Vec2,
    meta::{
        BlockDescription, MetaData,
        attribute::{Chromaticities, SampleType},
    },
    prelude::f16,
};

use super::chunk;
use crate::{io::image::error::BoxError, util::memory};

/// The names of channels, in the order of pixels in memory: those that become R, G and B, and alpha.
pub const NAMES: [&str; 4] = ["RY", "Y", "BY", "A"];

/// Weights of the samples at the distances -13, -11, ... 13 of one between them (`ImfRgbaYca.cpp`).
const WEIGHTS: [f32; 14] = [
    0.002_128, -0.007_54, 0.019_597, -0.043_159, 0.087_929, -0.186_077, 0.627_123, 0.627_123,
    -0.186_077, 0.087_929, -0.043_159, 0.019_597, -0.007_54, 0.002_128,
];

/// The file with channels at full resolution in its header, if it has luminance and chroma.
pub fn with_full_header(bytes: &[u8]) -> Result<Option<Vec<u8>>, BoxError> {
    const LIST: &[u8] = b"channels\0chlist\0";
    let Some(at) = bytes.windows(LIST.len()).position(|name| name == LIST) else { return Ok(None) };
    let mut whole = memory::copied(bytes)?;
    let Some(mut rest) = whole.get_mut(at + LIST.len() + 4..) else { return Ok(None) };
    let mut found = 0;
    while let Some(len @ 1..) = rest.iter().position(|&byte| byte == 0)
        && let Some((channel, after)) = rest.split_at_mut_checked(len + 17)
    {
        // After its name, a channel has its type, four bytes of flags, and the sampling factors across and down.
        let (name, factors) = channel.split_at_mut(len + 9);
        let name = NAMES.iter().position(|known| known.as_bytes() == &name[..len]);
        let Some(index) = name else { return Ok(None) };
        let factor = if index % 2 == 0 { 2u8 } else { 1 };
        if *factors != [factor, 0, 0, 0, factor, 0, 0, 0] || found >> index & 1 == 1 {
            return Ok(None);
        }
        (factors[0], factors[4]) = (1, 1);
        found |= 1 << index;
        rest = after;
    }
    Ok((found & 0b111 == 0b111).then_some(whole))
}

/// Decodes the only layer of a file by [`with_full_header`] to pixels of `channels` samples.
pub fn decode(bytes: &[u8], file: &MetaData, channels: usize) -> Result<Vec<f32>, BoxError> {
    let [header] = &file.headers[..] else { return Err("chroma in several layers".into()) };
    let (Vec2(width, height), Vec2(x, y)) =
        (header.layer_size, header.own_attributes.layer_position);
    let is_even = (width | height) % 2 == 0 && (x | y) % 2 == 0;
    let are_halves = header.channels.uniform_sample_type == Some(SampleType::F16);
    let are_lines = header.blocks == BlockDescription::ScanLines && !header.deep;
    // The decoders of the crate for these do not know sampling factors.
    let is_refused =
        matches!(header.compression, Compression::B44 | Compression::B44A | Compression::PXR24);
    if !is_even || !are_halves || !are_lines || is_refused {
        return Err("luminance and chroma (Y, RY, BY) are only supported as scan lines of f16, of even size and \
                    position, without B44 and PXR24 compression"
            .into());
    }
    let index = |name: &str| NAMES.iter().position(|known| *known == name).unwrap_or_default();
    let mut file = file.clone();
    let list = &mut file.headers[0].channels.list;
    let indices: Vec<usize> = list.iter().map(|channel| index(&channel.name.to_string())).collect();
    for (channel, index) in list.iter_mut().zip(&indices) {
        channel.sampling = if index % 2 == 0 { Vec2(2, 2) } else { Vec2(1, 1) };
    }
    let mut pixels = memory::zeros(width * height * channels)?;
    let reader = exr::block::read(Cursor::new(bytes), false)?;
    let chunks = reader.filter_chunks(false, |_, _, _| true)?;
    let (expected, mut found) = (chunks.expected_chunk_count(), HashSet::new());
    for chunk in chunks {
        let chunk = chunk?;
        chunk::check(&file.headers[0], &chunk)?;
        // In two rows, chroma takes one byte per pixel on average; in a single row, it takes two bytes, or none.
        let block = file.headers[0].get_block_data_indices(&chunk.compressed_block)?;
        let place = file.headers[0].get_absolute_block_pixel_coordinates(block)?;
        let first = usize::try_from(place.position.1)?;
        let chroma = if place.size.1 > 1 { 1 } else { 2 * (1 - first % 2) };
        file.headers[0].channels.bytes_per_pixel = 2 * (channels - 2) + chroma;
        let block = UncompressedBlock::decompress_chunk(chunk, &file, false)?;
        let mut samples = block.data.as_chunks().0.iter();
        for y in first..first + place.size.1 {
            for &index in &indices {
                let step = if index % 2 == 0 { 2 } else { 1 };
                if y % step == 0 {
                    let row = &mut pixels[y * width * channels..][..width * channels];
                    let row = row.iter_mut().skip(index).step_by(step * channels);
                    row.zip(&mut samples).for_each(|(to, bytes)| {
                        *to = f16::from_ne_bytes(*bytes).to_f32();
                    });
                }
            }
        }
        found.insert(first);
    }
    if found.len() < expected {
        return Err(
            format!("{} of its {expected} blocks are missing", expected - found.len()).into()
        );
    }
    for chroma in [0, 2] {
        for y in (0..height).step_by(2) {
            fill_odd(&mut pixels[y * width * channels + chroma..], channels, width);
        }
        for x in 0..width {
            fill_odd(&mut pixels[x * channels + chroma..], width * channels, height);
        }
    }
    let weights = luminance(header.shared_attributes.chromaticities);
    pixels.chunks_exact_mut(channels).for_each(|pixel| {
        let [red, luminance, blue] = [pixel[0], pixel[1], pixel[2]];
        let [r, b] = [red, blue].map(|chroma| (chroma + 1.0) * luminance);
        // Without chroma, nothing is rounded.
        if [red, blue] != [0.0; 2] {
            pixel[1] = (luminance - r * weights[0] - b * weights[2]) / weights[1];
        }
        (pixel[0], pixel[2]) = (r, b);
    });
    Ok(pixels)
}

/// Computes every other one of `count` samples, which are `step` apart, from those between them.
fn fill_odd(samples: &mut [f32], step: usize, count: usize) {
    for at in (1..count).step_by(2) {
        let sample = |i: usize| samples[(at + 2 * i).saturating_sub(13).min(count - 2) * step];
        let sum = WEIGHTS.iter().enumerate().map(|(i, weight)| weight * sample(i)).sum();
        samples[at * step] = sum;
    }
}

/// The parts of R, G and B in luminance, for these primaries and white point; without them, those of Rec. 709.
fn luminance(primaries: Option<Chromaticities>) -> [f32; 3] {
    let Some(Chromaticities { red, green, blue, white }) = primaries else {
        return [0.212_639, 0.715_169, 0.072_192];
    };
    // Cramer's rule for the sum of the primaries (x, y, 1 - x - y), which is the white point.
    let column = |Vec2(x, y): Vec2<f32>| [x, y, 1.0 - x - y];
    let [r, g, b, w] = [red, green, blue, white].map(column);
    let determinant = |a: [f32; 3], b: [f32; 3], c: [f32; 3]| {
        let minor = |i: usize, j: usize| b[i] * c[j] - b[j] * c[i];
        a[0] * minor(1, 2) + a[1] * minor(2, 0) + a[2] * minor(0, 1)
    };
    let parts =
        [determinant(w, g, b) * r[1], determinant(r, w, b) * g[1], determinant(r, g, w) * b[1]];
    parts.map(|part| part / parts.iter().sum::<f32>())
}

#[cfg(test)]
mod tests {
    use super::{super::decode, *};
    use crate::{data::samples::Samples, io::Limits};

    /// A file of 8 x 4 pixels of luminance 0.25, whose chroma grows to the right and down. Its blocks have their
    /// uncompressed length, so decoders take them as stored.
    fn file(compression: u8, lines: usize) -> Vec<u8> {
        let attribute = |name: &str, kind: &str, value: &[u8]| {
            let len = (value.len() as u32).to_le_bytes();
            [name.as_bytes(), &[0], kind.as_bytes(), &[0], &len, value].concat()
        };
        let channel = |name: &str, factor: u8| {
            [name.as_bytes(), &[0, 1, 0, 0, 0, 0, 0, 0, 0, factor, 0, 0, 0, factor, 0, 0, 0]]
                .concat()
        };
        let list = [channel("BY", 2), channel("RY", 2), channel("Y", 1), vec![0]].concat();
        let window = [0u32, 0, 7, 3].map(u32::to_le_bytes).concat();
        let one = 1f32.to_le_bytes();
        let mut file = [
            &[0x76, 0x2f, 0x31, 0x01, 2, 0, 0, 0][..],
            &attribute("channels", "chlist", &list),
            &attribute("compression", "compression", &[compression]),
            &attribute("dataWindow", "box2i", &window),
            &attribute("displayWindow", "box2i", &window),
            &attribute("lineOrder", "lineOrder", &[0]),
            &attribute("pixelAspectRatio", "float", &one),
            &attribute("screenWindowCenter", "v2f", &[0; 8]),
            &attribute("screenWindowWidth", "float", &one),
            &[0],
        ]
        .concat();
        let halves = |values: &[f32]| -> Vec<u8> {
            values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect()
        };
        let row = |y: usize| {
            let blue = halves(&[y as f32 / -8.0; 4]);
            let red = halves(&[0.0, 0.125, 0.25, 0.375]);
            let chroma = if y.is_multiple_of(2) { [blue, red].concat() } else { Vec::new() };
            [chroma, halves(&[0.25; 8])].concat()
        };
        let block = |first: usize| {
            let rows: Vec<u8> = (first..(first + lines).min(4)).flat_map(row).collect();
            [&(first as u32).to_le_bytes(), &(rows.len() as u32).to_le_bytes(), &rows[..]].concat()
        };
        let blocks: Vec<Vec<u8>> = (0..4).step_by(lines).map(block).collect();
        let mut at = file.len() + 8 * blocks.len();
        for block in &blocks {
            file.extend((at as u64).to_le_bytes());
            at += block.len();
        }
        file.extend(blocks.concat());
        file
    }

    /// The expected values are those of OpenEXR 3.1.5.
    #[test]
    fn luminance_and_chroma_become_rgb() {
        // None, RLE, ZIPS, ZIP, PIZ.
        for (compression, lines) in [(0, 1), (1, 1), (2, 1), (3, 16), (4, 32)] {
            let page = decode(&file(compression, lines), Limits::from(1 << 20)).unwrap();
            let Samples::F32(samples) = &page.image.samples else { panic!("not f32") };
            assert_eq!([page.image.width, page.image.height, page.image.channels], [8, 4, 3]);
            for (x, y, expected) in [
                (0, 0, [0.25, 0.25, 0.25]),
                (1, 0, [0.26343, 0.24597, 0.25]),
                (7, 1, [0.34669, 0.22437, 0.21875]),
                (4, 2, [0.31251, 0.23768, 0.18751]),
                (3, 3, [0.29687, 0.24316, 0.17957]),
            ] {
                let pixel = &samples[(y * 8 + x) * 3..][..3];
                let is_near = (0..3).all(|i| (pixel[i] - expected[i]).abs() < 3e-4);
                assert!(is_near, "{compression} {x} {y}: {pixel:?}");
            }
        }
        // Columns 2 and 3, and rows 1 to 4, of which three are stored.
        let mut cut = file(0, 1);
        let at = cut.windows(20).position(|name| name == b"displayWindow\0box2i\0").unwrap();
        cut[at + 24..at + 40].copy_from_slice(&[2u32, 1, 3, 4].map(u32::to_le_bytes).concat());
        let image = decode(&cut, Limits::from(1 << 20)).unwrap().image;
        let Samples::F32(samples) = &image.samples else { panic!("not f32") };
        assert_eq!([image.width, image.height], [2, 4]);
        let near = |at: usize, value: f32| (samples[at] - value).abs() < 3e-4;
        assert!(near(0, 0.28126) && near(15, 0.29687) && near(16, 0.24316), "{samples:?}");
        assert_eq!(samples[18..], [0.0; 6]);
        // PXR24, other factors, and a file that ends early.
        assert!(decode(&file(5, 16), Limits::from(1 << 20)).is_err());
        let mut other = file(0, 1);
        let at = other.windows(3).position(|name| name == b"RY\0").unwrap();
        other[at + 11] = 4;
        assert!(decode(&other, Limits::from(1 << 20)).is_err());
        let whole = file(0, 1);
        assert!(decode(&whole[..whole.len() - 9], Limits::from(1 << 20)).is_err());
    }
}
