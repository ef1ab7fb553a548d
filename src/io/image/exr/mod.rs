//! OpenEXR: one layer of grey or RGB samples, with or without alpha, as f32. By convention, samples are linear light
//! and colours are premultiplied with alpha.
//!
//! The exr crate trusts the sizes stated in blocks. Files are therefore decoded block by block, after a check of these
//! sizes.

mod attributes;
mod chroma;
mod chunk;

use std::{
    collections::HashSet,
    io::{BufReader, Cursor},
};

use exr::{
    block::{UncompressedBlock, lines::LineRef, reader::ChunksReader},
    math::Vec2,
    meta::{
        MetaData,
        attribute::{SampleType, Text},
        header::Header,
    },
    prelude::{SpecificChannels, WritableImage, f16},
};

use super::{
    codec::{Capabilities, Codec, Decode, MetadataSupport, TextSupport},
    error::BoxError,
    limits::{check_scratch, check_size},
    metadata::display_name,
    pages::{DecodedPage, Encoding},
    probe::Probe,
};
use crate::{
    data::{
        dtype::Dtype,
        image::{Image, Metadata, Orientation},
        samples::Samples,
    },
    io::{Limits, RegularFile},
};

pub const CODEC: Codec = Codec {
    capabilities: Capabilities {
        dtypes: &[Dtype::F32],
        is_linear: true,
        metadata: MetadataSupport {
            has_density: true,
            texts: TextSupport::Matching(attributes::supports_text),
            ancillary: "OpenEXR",
            ..MetadataSupport::NONE
        },
        ..Capabilities::PLAIN
    },
    probe: Some(probe),
    max_decoded_bytes: Some(max_decoded_bytes),
    ..Codec::new(
        "OpenEXR",
        &["exr"],
        |bytes| bytes.starts_with(&[0x76, 0x2f, 0x31, 0x01]),
        Decode::One(decode),
        encode,
    )
};

/// Maximum size in bytes of a header in which attributes are searched.
const MAX_HEADER_LEN: u64 = 2 << 20;

/// Upper bound of the decoded bytes: RGBA as f32 in the largest layer or display window.
fn max_decoded_bytes(input: &RegularFile) -> Option<u64> {
    let file = MetaData::read_from_buffered(BufReader::new(input.reader(0)), false).ok()?;
    let windows = |layer: &Header| [layer.layer_size, layer.shared_attributes.display_window.size];
    let bytes = |Vec2(width, height): Vec2<usize>| {
        (width as u64).saturating_mul(height as u64).saturating_mul(16)
    };
    file.headers.iter().flat_map(windows).map(bytes).max()
}

fn probe(input: &RegularFile, _: Option<&[u8]>) -> Result<Probe, BoxError> {
    let file = MetaData::read_from_buffered(BufReader::new(input.reader(0)), false)?;
    let (layer, decoded) = picture(&file).unwrap_or_default();
    let first = file.headers.get(layer).ok_or("there are no layers")?;
    let channels = &first.channels.list;
    let names: Vec<String> = channels.iter().map(|channel| channel.name.to_string()).collect();
    let kind = channels.first().map(|channel| match channel.sample_type {
        SampleType::F16 => "f16",
        SampleType::F32 => "f32",
        SampleType::U32 => "u32",
    });
    let pixels = (first.layer_size.width() as u64).saturating_mul(first.layer_size.height() as u64);
    let mut probe = Probe {
        format: CODEC.name,
        size: [first.layer_size.width(), first.layer_size.height()],
        dtype: kind.unwrap_or_default().to_owned(),
        decoded: Dtype::F32,
        channels: names.join(", "),
        has_colour: decoded.len() >= 3 || names.iter().any(|name| name == "RY"),
        has_alpha: matches!(decoded.len(), 2 | 4),
        pages: (file.headers.len() > 1).then_some(file.headers.len()),
        metadata: vec![("compression".into(), first.compression.to_string())],
        bytes: pixels.saturating_mul(4 * names.len() as u64),
        is_transposed: false,
    };
    let mut metadata = Metadata::default();
    attributes::read(&input.start(MAX_HEADER_LEN)?, layer, &mut metadata, &mut Vec::new());
    probe.add_metadata(&metadata);
    Ok(probe)
}

/// Memory for decoding a block, as a multiple of its samples (measured).
const BLOCK_COPIES: u64 = 8;

/// Decodes the [`picture`] of a file, cut to the display window.
fn decode(bytes: &[u8], limits: Limits) -> Result<DecodedPage, BoxError> {
    /// Flag in the second byte of the version field: a part has several samples per pixel.
    const DEEP: u8 = 0x08;
    let is_deep = bytes.get(5).is_some_and(|flags| flags & DEEP != 0);
    let deep = || "deep images (several samples per pixel) are not supported; flatten it first";
    let file = match MetaData::read_from_buffered(Cursor::new(bytes), false) {
        Ok(file) => file,
        Err(_) if is_deep => return Err(deep().into()),
        Err(error) => return Err(error.into()),
    };
    let is_full =
        |header: &Header| header.channels.list.iter().all(|channel| channel.sampling == Vec2(1, 1));
    if !file.headers.iter().all(is_full) {
        return decode_chroma(bytes, limits);
    }
    let (layer, names) = picture(&file).ok_or_else(|| match is_deep {
        true => deep().to_owned(),
        false => no_picture(&file),
    })?;
    let header = &file.headers[layer];
    let channels = names.len();
    let window = header.shared_attributes.display_window;
    check_limits(&file, header.layer_size, window.size, channels, limits)?;
    let mut losses = Vec::new();
    if header.channels.list.len() > channels || file.headers.len() > 1 {
        losses.push("only one image is read: other layers or channels are left out".into());
    }
    let index = |name: &Text| names.iter().position(|known| known == name);
    let Vec2(width, height) = window.size;
    let mut target = WindowPixels {
        size: [width, height],
        offset: header.own_attributes.layer_position - window.position,
        indices: header.channels.list.iter().map(|channel| index(&channel.name)).collect(),
        channels,
        samples: crate::util::memory::zeros(width * height * channels)?,
    };
    decode_blocks(bytes, &file, layer, &mut target)?;
    let samples = Samples::F32(target.samples);
    let mut metadata = Metadata::default();
    attributes::read(bytes, layer, &mut metadata, &mut losses);
    let image = Image { width, height, channels, samples, is_linear: true, metadata };
    Ok(DecodedPage { image, orientation: Orientation::default(), losses, damage: None })
}

/// Decodes a file of luminance and chroma, cut to the display window.
fn decode_chroma(bytes: &[u8], limits: Limits) -> Result<DecodedPage, BoxError> {
    check_scratch(limits, bytes.len() as u64, "a copy of the file")?;
    let whole = chroma::with_full_header(bytes)?.ok_or(
        "channels of lower resolution are not supported, except luminance and chroma (Y, RY, BY)",
    )?;
    let file = MetaData::read_from_buffered(Cursor::new(&*whole), false)?;
    let header = &file.headers[0];
    let channels = header.channels.list.len();
    let window = header.shared_attributes.display_window;
    check_limits(&file, header.layer_size, window.size, channels, limits)?;
    let mut pixels = chroma::decode(&whole, &file, channels)?;
    let (Vec2(width, height), size) = (window.size, header.layer_size);
    let offset = header.own_attributes.layer_position - window.position;
    if (offset, size) != (Vec2(0, 0), window.size) {
        let inside = |at: usize, offset: i32, len: usize| {
            let at = usize::try_from(at as i64 - i64::from(offset)).ok()?;
            (at < len).then_some(at)
        };
        let mut cut = crate::util::memory::zeros(width * height * channels)?;
        for (i, pixel) in cut.chunks_exact_mut(channels).enumerate() {
            if let Some(x) = inside(i % width, offset.0, size.0)
                && let Some(y) = inside(i / width, offset.1, size.1)
            {
                pixel.copy_from_slice(&pixels[(y * size.0 + x) * channels..][..channels]);
            }
        }
        pixels = cut;
    }
    let (mut metadata, mut losses) = (Metadata::default(), Vec::new());
    attributes::read(bytes, 0, &mut metadata, &mut losses);
    let samples = Samples::F32(pixels);
    let image = Image { width, height, channels, samples, is_linear: true, metadata };
    Ok(DecodedPage { image, orientation: Orientation::default(), losses, damage: None })
}

/// Returns an error if the layer or display window with `channels` channels, or a block, exceeds `limits`.
fn check_limits(
    file: &MetaData,
    layer: Vec2<usize>,
    window: Vec2<usize>,
    channels: usize,
    limits: Limits,
) -> Result<(), BoxError> {
    // Pixels outside the display window are decoded, too, and discarded.
    for Vec2(width, height) in [layer, window] {
        let samples = (width as u64).saturating_mul(height as u64).saturating_mul(channels as u64);
        check_size(limits, [width, height], samples.saturating_mul(4))?;
    }
    // The offset table of a broken file may point to a block of any layer.
    let block = |header: &Header| {
        let Vec2(across, down) = header.max_block_pixel_size();
        let factors = [across, down, header.channels.bytes_per_pixel];
        factors.into_iter().fold(BLOCK_COPIES, |n, factor| n.saturating_mul(factor as u64))
    };
    let largest = file.headers.iter().map(block).max().unwrap_or(0);
    check_scratch(limits, largest, "decoding a block")
}

/// Decodes all blocks of a layer at the largest resolution into `target`.
fn decode_blocks(
    bytes: &[u8],
    file: &MetaData,
    layer: usize,
    target: &mut WindowPixels,
) -> Result<(), BoxError> {
    let header = &file.headers[layer];
    let reader = exr::block::read(Cursor::new(bytes), false)?;
    let chunks = reader.filter_chunks(false, |_, tile, block| {
        block.layer == layer && tile.is_largest_resolution_level()
    })?;
    let expected = chunks.expected_chunk_count();
    let mut found = HashSet::new();
    for chunk in chunks {
        let chunk = chunk?;
        if chunk.layer_index != layer {
            return Err("a block belongs to another layer".into());
        }
        chunk::check(header, &chunk)?;
        let block = UncompressedBlock::decompress_chunk(chunk, file, false)?;
        found.insert(block.index.pixel_position);
        for line in block.lines(&header.channels) {
            target.set(line, header.channels.list[line.location.channel].sample_type);
        }
    }
    match expected.saturating_sub(found.len()) {
        0 => Ok(()),
        missing => Err(format!("{missing} of its {expected} blocks are missing").into()),
    }
}

/// Number of the part to decode, and its channels: the first R, G and B, else the first Y, with A if there is one.
/// Without any, those of the first layer that has them, such as `diffuse.R`; else the only channel of the first part
/// that has only one, as grey.
fn picture(file: &MetaData) -> Option<(usize, Vec<Text>)> {
    let flat = || file.headers.iter().enumerate().filter(|(_, header)| !header.deep);
    let find = |header: &Header, layer: &str, colours: &[&str]| {
        let text = |name: &&str| Text::from(format!("{layer}{name}").as_str());
        let has = |name: &Text| header.channels.find_index_of_channel(name).is_some();
        let names: Vec<Text> = colours.iter().map(text).collect();
        names.iter().all(has).then(|| {
            let alpha = Some(text(&"A")).filter(has);
            names.into_iter().chain(alpha).collect::<Vec<_>>()
        })
    };
    let colours: [&[&str]; 2] = [&["R", "G", "B"], &["Y"]];
    let unnamed = colours
        .into_iter()
        .find_map(|colours| flat().find_map(|(part, h)| Some((part, find(h, "", colours)?))));
    let named = || {
        flat().find_map(|(part, header)| {
            let layers = header.channels.list.iter().filter_map(|channel| {
                let name = channel.name.to_string();
                name.rfind('.').map(|end| name[..=end].to_owned())
            });
            let layers: Vec<String> = layers.collect();
            let names = colours
                .into_iter()
                .find_map(|colours| layers.iter().find_map(|layer| find(header, layer, colours)))?;
            Some((part, names))
        })
    };
    let only = || {
        let (part, header) = flat().find(|(_, header)| header.channels.list.len() == 1)?;
        Some((part, vec![header.channels.list[0].name.clone()]))
    };
    unnamed.or_else(named).or_else(only)
}

/// The error for a file without a [`picture`].
fn no_picture(file: &MetaData) -> String {
    const MAX_NAMES: usize = 8;
    let channels = file.headers.iter().flat_map(|header| &header.channels.list);
    let names: Vec<String> =
        channels.take(MAX_NAMES).map(|channel| display_name(&channel.name.to_string())).collect();
    format!("there are no channels named R, G and B, nor one named Y, but {}", names.join(", "))
}

/// The decoded pixels of the display window.
struct WindowPixels {
    /// Width and height.
    size: [usize; 2],
    /// Position of the layer's first pixel in the display window.
    offset: Vec2<i32>,
    /// For each channel of the layer, its index in a decoded pixel, if it is decoded.
    indices: Vec<Option<usize>>,
    channels: usize,
    samples: Vec<f32>,
}

impl WindowPixels {
    /// Stores the samples of one channel of a line that are inside the display window.
    fn set(&mut self, line: LineRef<'_>, kind: SampleType) {
        let Some(index) = self.indices[line.location.channel] else {
            return;
        };
        let inside = |at: usize, offset: i32, len: usize| {
            let at = usize::try_from(at as i64 + i64::from(offset)).ok()?;
            (at < len).then_some(at)
        };
        let Vec2(left, y) = line.location.position;
        let Some(y) = inside(y, self.offset.1, self.size[1]) else {
            return;
        };
        let row = &mut self.samples[y * self.size[0] * self.channels..];
        for i in 0..line.location.sample_count {
            let Some(x) = inside(left + i, self.offset.0, self.size[0]) else {
                continue;
            };
            row[x * self.channels + index] = match kind {
                SampleType::F16 => f16::from_ne_bytes(sample(line.value, i)).to_f32(),
                SampleType::F32 => f32::from_ne_bytes(sample(line.value, i)),
                SampleType::U32 => u32::from_ne_bytes(sample(line.value, i)) as f32,
            };
        }
    }
}

fn sample<const N: usize>(line: &[u8], i: usize) -> [u8; N] {
    line.as_chunks::<N>().0[i]
}

fn encode(image: &Image, _: &Encoding) -> Result<Vec<u8>, BoxError> {
    let Samples::F32(samples) = &image.samples else { unreachable!("EXR takes f32") };
    let &Image { width, height, channels, .. } = image;
    let pixel = |at: Vec2<usize>| &samples[(at.1 * width + at.0) * channels..][..channels];
    let build = SpecificChannels::build;
    let size = (width, height);
    let mut bytes = Vec::new();
    let output = Cursor::new(&mut bytes);
    macro_rules! write {
        ($(($name:literal, $index:literal))+) => {
            exr::prelude::Image::from_channels(
                size,
                build()$(.with_channel($name))+.with_pixel_fn(|at: Vec2<usize>| {
                    let pixel = pixel(at);
                    ($(pixel[$index],)+)
                }),
            )
            .write()
            .non_parallel()
            .to_buffered(output)?
        };
    }
    match channels {
        1 => write!(("Y", 0)),
        2 => write!(("Y", 0)("A", 1)),
        3 => write!(("R", 0)("G", 1)("B", 2)),
        _ => write!(("R", 0)("G", 1)("B", 2)("A", 3)),
    }
    attributes::write(&mut bytes, &image.metadata);
    Ok(bytes)
}
