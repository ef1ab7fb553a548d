//! OpenEXR: one layer of grey or RGB, with alpha or without, as f32. By the format's convention samples
//! are linear light, and colours are premultiplied with alpha.

use std::io::Cursor;

use exr::{
    math::Vec2,
    meta::{MetaData, attribute::Text, header::Header},
    prelude::{ReadChannels, ReadLayers, ReadSpecificChannel, SpecificChannels, WritableImage},
};

use super::{
    codec::{BoxError, Codec, Decoded, Encoding, Holds},
    limits::check_size,
};
use crate::{
    data::{
        dtype::Dtype,
        image::{Image, Metadata, Orientation},
        samples::Samples,
    },
    io::Limits,
};

/// OpenEXR.
pub const CODEC: Codec = Codec {
    extensions: &["exr"],
    has_signature: |bytes| bytes.starts_with(&[0x76, 0x2f, 0x31, 0x01]),
    holds: Holds { dtypes: &[Dtype::F32], alpha: true, linear: true, metadata: false },
    decode,
    encode,
};

/// Decodes the first layer that has the channels R, G and B, else the first with Y: the part inside
/// the display window.
fn decode(bytes: &[u8], limits: Limits) -> Result<Decoded, BoxError> {
    let file = MetaData::read_from_buffered(Cursor::new(bytes), false)?;
    let (header, colours) =
        layer(&file).ok_or("there are no channels named R, G and B, nor one named Y")?;
    let channels = colours + usize::from(has(header, "A"));
    let shown = header.shared_attributes.display_window;
    // Pixels outside the display window are decoded, too, and left out.
    for Vec2(width, height) in [header.layer_size, shown.size] {
        let samples = (width as u64).saturating_mul(height as u64).saturating_mul(channels as u64);
        check_size(limits, [width, height], samples.saturating_mul(4))?;
    }
    let mut losses = Vec::new();
    if header.channels.list.len() > channels || file.headers.len() > 1 {
        losses.push("of its layers and channels only one picture is read".into());
    }
    let Vec2(width, height) = shown.size;
    let target = Target {
        size: [width, height],
        offset: header.own_attributes.layer_position - shown.position,
        channels,
    };
    let samples = match colours {
        3 => read_rgb(bytes, target)?,
        _ => read_grey(bytes, target)?,
    };
    let samples = Samples::F32(samples);
    let metadata = Metadata::default();
    let image = Image { width, height, channels, samples, is_linear: true, metadata };
    Ok(Decoded { image, orientation: Orientation::default(), losses })
}

/// The layer that is decoded, and its channels without alpha.
fn layer(file: &MetaData) -> Option<(&Header, usize)> {
    let flat = || file.headers.iter().filter(|header| !header.deep);
    let rgb = flat().find(|header| ["R", "G", "B"].iter().all(|name| has(header, name)));
    let grey = || flat().find(|header| has(header, "Y"));
    rgb.map(|header| (header, 3)).or_else(|| grey().map(|header| (header, 1)))
}

fn has(header: &Header, name: &str) -> bool {
    header.channels.find_index_of_channel(&Text::from(name)).is_some()
}

/// Where a layer's pixels go.
#[derive(Clone, Copy)]
struct Target {
    /// Width and height of the display window.
    size: [usize; 2],
    /// The layer's first pixel in the display window.
    offset: Vec2<i32>,
    channels: usize,
}

impl Target {
    fn samples(self) -> Vec<f32> {
        vec![0.0; self.size[0] * self.size[1] * self.channels]
    }

    /// Sets the pixel at `at` of the layer, if the display window holds it.
    fn set(self, samples: &mut [f32], at: Vec2<usize>, pixel: &[f32]) {
        let inside = |at: usize, offset: i32, len: usize| {
            let at = usize::try_from(at as i64 + i64::from(offset)).ok()?;
            (at < len).then_some(at)
        };
        let x = inside(at.0, self.offset.0, self.size[0]);
        let y = inside(at.1, self.offset.1, self.size[1]);
        if let (Some(x), Some(y)) = (x, y) {
            let first = (y * self.size[0] + x) * self.channels;
            samples[first..first + self.channels].copy_from_slice(&pixel[..self.channels]);
        }
    }
}

fn read_rgb(bytes: &[u8], target: Target) -> exr::error::Result<Vec<f32>> {
    let set = move |samples: &mut Vec<f32>, at, (r, g, b, a): (f32, f32, f32, f32)| {
        target.set(samples, at, &[r, g, b, a]);
    };
    let layers = exr::prelude::read().no_deep_data().largest_resolution_level();
    let layers = layers.rgba_channels(move |_, _| target.samples(), set).first_valid_layer();
    let read = layers.all_attributes().non_parallel().from_buffered(Cursor::new(bytes))?;
    Ok(read.layer_data.channel_data.pixels)
}

fn read_grey(bytes: &[u8], target: Target) -> exr::error::Result<Vec<f32>> {
    let set = move |samples: &mut Vec<f32>, at, (y, a): (f32, f32)| {
        target.set(samples, at, &[y, a]);
    };
    let layers = exr::prelude::read().no_deep_data().largest_resolution_level();
    let channels = layers.specific_channels().required("Y").optional("A", 1.0);
    let layers = channels.collect_pixels(move |_, _| target.samples(), set).first_valid_layer();
    let read = layers.all_attributes().non_parallel().from_buffered(Cursor::new(bytes))?;
    Ok(read.layer_data.channel_data.pixels)
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
    Ok(bytes)
}
