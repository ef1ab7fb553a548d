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

use container::File;
pub use decode::decode;
use decode::decode_parsed;
pub use encode::{encode_coefficients, encode_pixels};

use super::{
    codec::{BoxError, Codec, Decoded, Encoding, Holds},
    image_crate,
    limits::check_size,
    metadata::{capped_exif, capped_icc, take_orientation},
};
use crate::{
    data::{
        dtype::Dtype,
        image::{Image, Metadata},
        jpeg::{Frame, Quality},
    },
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
    let by_image_crate = || image_crate::open(image::ImageFormat::Jpeg, bytes, limits)?.decode();
    let Some((file, frame)) = File::parse(bytes) else { return by_image_crate() };
    let [width, height] = frame.size;
    check_size(limits, frame.size, (width * height * frame.colour.channels()) as u64)?;
    let decoded = decode_parsed(file, &frame, limits.bytes);
    let Some(mut image) = decoded else { return by_image_crate() };
    let mut losses = Vec::new();
    let Metadata { icc, exif } = image.metadata;
    let mut exif = capped_exif(exif, &mut losses);
    let orientation = exif.as_deref_mut().and_then(take_orientation).unwrap_or_default();
    image.metadata = Metadata { icc: capped_icc(icc, &mut losses), exif };
    Ok(Decoded { image, orientation, losses })
}

fn encode_image(image: &Image, encoding: &Encoding) -> Result<Vec<u8>, BoxError> {
    let half_chroma = encoding.quality < FULL_CHROMA;
    let size = [image.width, image.height];
    let frame = Frame::for_pixels(size, image.channels, Quality(encoding.quality), half_chroma);
    Ok(encode_pixels(&frame, image.samples.as_bytes(), &image.metadata)?)
}
