//! PNG: decoding through the image crate, an encoder on all cores, and both by rows.

mod encode;
mod rows;
mod zlib;

pub use encode::{Png, PngWriter};
pub use rows::PngRows;

use std::borrow::Cow;

use super::{
    codec::{Beside, BoxError, Codec, Decode, Encoding, Holds},
    image_crate,
};
use crate::data::{dtype::Dtype, image::Image};

/// PNG.
pub(super) const CODEC: Codec = Codec {
    extensions: &["png", "apng"],
    has_signature: |bytes| bytes.starts_with(SIGNATURE),
    holds: Holds {
        dtypes: &[Dtype::U8, Dtype::U16],
        alpha: true,
        linear: false,
        metadata: Beside { icc: true, exif: true, ..Beside::NONE },
    },
    decode: Decode::One(|bytes, limits| {
        image_crate::open(image::ImageFormat::Png, bytes, limits)?.decode()
    }),
    encode,
    encode_pages: None,
};

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

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
