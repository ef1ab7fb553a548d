//! BMP through the image crate.

use image::ImageFormat;

use super::{
    codec::{Beside, BoxError, Codec, Decode, Encoding, Holds},
    image_crate,
};
use crate::data::{dtype::Dtype, image::Image};

/// BMP.
pub const CODEC: Codec = Codec {
    extensions: &["bmp"],
    has_signature: |bytes| bytes.starts_with(b"BM"),
    holds: Holds { dtypes: &[Dtype::U8], alpha: true, linear: false, metadata: Beside::NONE },
    decode: Decode::One(|bytes, limits| {
        image_crate::open(ImageFormat::Bmp, bytes, limits)?.decode()
    }),
    encode,
    encode_pages: None,
};

fn encode(image: &Image, _: &Encoding) -> Result<Vec<u8>, BoxError> {
    match image.channels {
        // BMP has no grey with alpha.
        2 => image_crate::encode(ImageFormat::Bmp, &image.to_rgba()?),
        _ => image_crate::encode(ImageFormat::Bmp, image),
    }
}
