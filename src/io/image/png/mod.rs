//! PNG: decoding by the png crate, an encoder that runs on all cores, and both by rows.

mod animation;
mod beside;
mod encode;
mod open;
mod rows;
mod zlib;

pub(super) use beside::read_file as read_beside;
pub use encode::{Png, PngWriter};
use open::Opened;
pub use rows::PngRows;

use std::borrow::Cow;

use super::{
    codec::{Beside, BoxError, Codec, Decode, Decoded, Encoding, Holds, OnePage, Pages, Texts},
    limits::check_size,
};
use crate::{
    data::{dtype::Dtype, image::Image, samples::Samples},
    io::Limits,
};

/// PNG.
pub(super) const CODEC: Codec = Codec {
    extensions: &["png", "apng"],
    has_signature: |bytes| bytes.starts_with(SIGNATURE),
    holds: Holds {
        dtypes: &[Dtype::U8, Dtype::U16],
        alpha: true,
        linear: false,
        true_colour: true,
        animation: true,
        metadata: Beside { texts: Texts::If(beside::is_keyword), parts: "PNG", ..Beside::ALL },
    },
    decode: Decode::Pages(pages),
    encode,
    encode_pages: Some(animation::start),
};

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

fn pages(bytes: &[u8], limits: Limits) -> Result<Box<dyn Pages + '_>, BoxError> {
    Ok(match animation::Apng::open(bytes, limits)? {
        Some(animation) => Box::new(animation),
        None => Box::new(OnePage { bytes, limits, decode }),
    })
}

fn decode(bytes: &[u8], limits: Limits) -> Result<Decoded, BoxError> {
    let Opened { mut reader, size, channels, dtype, metadata, orientation, losses } =
        open::open_bytes(bytes)?;
    let [width, height] = size;
    let samples = reader.output_buffer_size().ok_or("its size is too large")?;
    check_size(limits, size, samples as u64)?;
    let mut samples = Samples::zeros(dtype, width * height * channels)?;
    reader.next_frame(samples.as_bytes_mut())?;
    if cfg!(target_endian = "little") && dtype == Dtype::U16 {
        samples.swap_bytes();
    }
    let image = Image { width, height, channels, samples, is_linear: false, metadata };
    Ok(Decoded { image, orientation, losses, damage: None })
}

fn encode(image: &Image, encoding: &Encoding) -> Result<Vec<u8>, BoxError> {
    let dtype = image.samples.dtype();
    let mut samples = Cow::Borrowed(&image.samples);
    if cfg!(target_endian = "little") && dtype == Dtype::U16 {
        let mut big_endian = image.samples.copy()?;
        big_endian.swap_bytes();
        samples = Cow::Owned(big_endian);
    }
    let png = Png {
        width: image.width as u32,
        height: image.height as u32,
        channels: image.channels as u8,
        sample_bytes: dtype.size() as u8,
        metadata: &image.metadata,
        compression: encoding.compression,
    };
    let mut bytes = Vec::new();
    png.write(samples.as_bytes(), &mut bytes)?;
    Ok(bytes)
}
