//! OpenEXR: one layer of grey or RGB, with alpha or without, as f32. As the format has it, samples are
//! linear light, and colours are multiplied with alpha.

use std::io::Cursor;

use exr::{
    math::Vec2,
    meta::{MetaData, attribute::Text, header::Header},
    prelude::{ReadChannels, ReadLayers, ReadSpecificChannel, SpecificChannels, WritableImage},
};

use super::{
    Limits, Source,
    image::{BoxError, Image, check_room},
};
use crate::data::samples::Samples;

/// Decodes the first layer that has the channels R, G and B, or Y: what of it is inside of the display
/// window.
///
/// # Errors
/// When there is no such layer, the file is broken, or the picture breaks `allowed`.
pub fn decode(bytes: &[u8], source: &Source, allowed: Limits) -> Result<Image, BoxError> {
    let file = MetaData::read_from_buffered(Cursor::new(bytes), false)?;
    let has = |header: &Header, name: &str| {
        header.channels.find_index_of_channel(&Text::from(name)).is_some()
    };
    let flat = || file.headers.iter().filter(|header| !header.deep);
    let colour = |header: &&Header| ["R", "G", "B"].iter().all(|name| has(header, name));
    let grey = |header: &&Header| has(header, "Y");
    let (header, colours) = match flat().find(colour) {
        Some(header) => (header, 3),
        None => {
            let layer = flat().find(grey);
            (layer.ok_or("there are no channels named R, G and B, nor one named Y")?, 1)
        }
    };
    let channels = colours + usize::from(has(header, "A"));
    let window = header.shared_attributes.display_window;
    let Vec2(width, height) = window.size;
    // Pixels outside of the window are decoded, too, and left out.
    for Vec2(width, height) in [header.layer_size, window.size] {
        let samples = (width as u64).saturating_mul(height as u64).saturating_mul(channels as u64);
        check_room(source, allowed, [width, height], samples.saturating_mul(4))?;
    }
    let others = header.channels.list.len() - channels;
    if others > 0 || file.headers.len() > 1 {
        log::warn!("{source}: of its layers and channels only one picture is read");
    }
    let Vec2(left, top) = header.own_attributes.layer_position - window.position;
    let place = move |at: Vec2<usize>| {
        let inside = |at: usize, first: i32, len: usize| {
            let at = usize::try_from(at as i64 + i64::from(first)).ok()?;
            (at < len).then_some(at)
        };
        let (x, y) = (inside(at.0, left, width)?, inside(at.1, top, height)?);
        Some((y * width + x) * channels)
    };
    let set = move |samples: &mut Vec<f32>, at, pixel: &[f32]| {
        if let Some(first) = place(at) {
            samples[first..first + channels].copy_from_slice(&pixel[..channels]);
        }
    };
    let layers = exr::prelude::read().no_deep_data().largest_resolution_level();
    let empty = move || vec![0.0; width * height * channels];
    let samples = match colours {
        3 => {
            let set = move |samples: &mut Vec<f32>, at, (r, g, b, a): (f32, f32, f32, f32)| {
                set(samples, at, &[r, g, b, a]);
            };
            let read = layers.rgba_channels(move |_, _| empty(), set).first_valid_layer();
            let read = read.all_attributes().non_parallel();
            read.from_buffered(Cursor::new(bytes))?.layer_data.channel_data.pixels
        }
        _ => {
            let set =
                move |samples: &mut Vec<f32>, at, (y, a): (f32, f32)| set(samples, at, &[y, a]);
            let read = layers.specific_channels().required("Y").optional("A", 1.0);
            let read = read.collect_pixels(move |_, _| empty(), set).first_valid_layer();
            let read = read.all_attributes().non_parallel();
            read.from_buffered(Cursor::new(bytes))?.layer_data.channel_data.pixels
        }
    };
    let samples = Samples::F32(samples);
    Ok(Image { width, height, channels, samples, icc: None, is_light: true })
}

/// Encodes an image of f32 samples that [is light](Image::is_light).
///
/// # Errors
/// When the encoder fails.
///
/// # Panics
/// When the samples are no f32.
pub fn encode(image: &Image) -> Result<Vec<u8>, BoxError> {
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
