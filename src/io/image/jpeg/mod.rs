//! JPEG: a decoder on all cores for the common kinds, the image crate's for all others, and an encoder
//! in bands.

mod bands;
mod block;
mod container;
mod decode;
mod encode;
mod entropy;
mod huffman;
mod huffman_encode;
mod scan;

pub use decode::decode;
pub use encode::{encode_coefficients, encode_pixels, frame};

use super::{
    codec::{BoxError, Codec, Decoded, Encoding, Holds},
    image_crate,
};
use crate::{
    data::{dtype::Dtype, image::Image, jpeg::Quality},
    io::Limits,
};

/// JPEG.
pub(super) const CODEC: Codec = Codec {
    extensions: &["jpg", "jpeg", "jfif"],
    has_signature: |bytes| bytes.starts_with(&[0xff, 0xd8, 0xff]),
    holds: Holds { dtypes: &[Dtype::U8], alpha: false, linear: false, metadata: true },
    decode: decode_file,
    encode: encode_image,
};

/// The quality from which on chroma is stored at full resolution, as most programs do.
const FULL_CHROMA: u8 = 95;

fn decode_file(bytes: &[u8], limits: Limits) -> Result<Decoded, BoxError> {
    let file = image_crate::open(image::ImageFormat::Jpeg, bytes, limits)?;
    match decode(bytes, limits.bytes) {
        Some(image) => Ok(file.with_samples_of(image)),
        None => file.decode(),
    }
}

fn encode_image(image: &Image, encoding: &Encoding) -> Result<Vec<u8>, BoxError> {
    let half_chroma = encoding.quality < FULL_CHROMA;
    let size = [image.width, image.height];
    let frame = frame(size, image.channels, Quality(encoding.quality), half_chroma);
    Ok(encode_pixels(&frame, image.samples.as_bytes(), &image.metadata)?)
}
