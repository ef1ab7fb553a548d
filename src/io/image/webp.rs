//! WebP through the image crate: lossy and lossless are read, lossless is written.

use image::{ImageEncoder, ImageFormat, codecs::webp::WebPEncoder};

use super::{
    codec::{BoxError, Codec, Encoding, Holds},
    image_crate::{colour_type, open},
};
use crate::data::{dtype::Dtype, image::Image};

/// WebP.
pub const CODEC: Codec = Codec {
    extensions: &["webp"],
    has_signature: |bytes| bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"),
    holds: Holds { dtypes: &[Dtype::U8], alpha: true, linear: false, metadata: true },
    decode: |bytes, limits| open(ImageFormat::WebP, bytes, limits)?.decode(),
    encode,
};

fn encode(image: &Image, _: &Encoding) -> Result<Vec<u8>, BoxError> {
    let mut bytes = Vec::new();
    let mut encoder = WebPEncoder::new_lossless(&mut bytes);
    if let Some(icc) = &image.metadata.icc {
        encoder.set_icc_profile(icc.clone())?;
    }
    if let Some(exif) = &image.metadata.exif {
        encoder.set_exif_metadata(exif.clone())?;
    }
    let (width, height) = (image.width as u32, image.height as u32);
    encoder.write_image(image.samples.as_bytes(), width, height, colour_type(image))?;
    Ok(bytes)
}
