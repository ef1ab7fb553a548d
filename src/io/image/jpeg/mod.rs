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
use decode::{coefficients, decode_parsed};
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
        image::{Image, Metadata, Orientation},
        jpeg::{Frame, Quality, SparseCoefficients},
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

/// Whether an encoded picture of this quality has chroma at half the resolution along both axes.
pub fn has_half_chroma(quality: u8) -> bool {
    quality < FULL_CHROMA
}

/// The coefficients of a file, and what it holds beside them.
#[derive(Debug)]
pub struct Picture {
    /// The coefficients.
    pub coefficients: SparseCoefficients,
    /// What the file says of the picture.
    pub metadata: Metadata,
    /// What of the file is lost, in words.
    pub losses: Vec<String>,
}

/// The coefficients of `bytes`; nothing where they are no JPEG file of the common kinds, or its picture has to be turned.
pub fn read_coefficients(bytes: &[u8], limits: Limits) -> Option<Picture> {
    let (file, frame) = File::parse(bytes)?;
    let samples = frame.size.iter().product::<usize>() * frame.colour.channels();
    check_size(limits, frame.size, samples as u64).ok()?;
    let (metadata, orientation, losses) = metadata(file.icc(), file.exif.clone());
    let whole = (0..frame.components.len()).all(|c| frame.upsampling(c).is_some());
    if orientation != Orientation::default() || !whole || file.bytes_needed() > limits.bytes {
        return None;
    }
    let coefficients = coefficients(&file, &frame)?;
    Some(Picture { coefficients, metadata, losses })
}

fn decode_file(bytes: &[u8], limits: Limits) -> Result<Decoded, BoxError> {
    let by_image_crate = || image_crate::open(image::ImageFormat::Jpeg, bytes, limits)?.decode();
    let Some((file, frame)) = File::parse(bytes) else { return by_image_crate() };
    let [width, height] = frame.size;
    check_size(limits, frame.size, (width * height * frame.colour.channels()) as u64)?;
    let decoded = decode_parsed(file, &frame, limits.bytes);
    let Some(mut image) = decoded else { return by_image_crate() };
    let (metadata, orientation, losses) = metadata(image.metadata.icc, image.metadata.exif);
    image.metadata = metadata;
    Ok(Decoded { image, orientation, losses })
}

/// What is kept of a file's ICC profile and EXIF, how its picture comes upright, and what is lost, in words.
fn metadata(icc: Option<Vec<u8>>, exif: Option<Vec<u8>>) -> (Metadata, Orientation, Vec<String>) {
    let mut losses = Vec::new();
    let mut exif = capped_exif(exif, &mut losses);
    let orientation = exif.as_deref_mut().and_then(take_orientation).unwrap_or_default();
    (Metadata { icc: capped_icc(icc, &mut losses), exif }, orientation, losses)
}

fn encode_image(image: &Image, encoding: &Encoding) -> Result<Vec<u8>, BoxError> {
    let half_chroma = has_half_chroma(encoding.quality);
    let size = [image.width, image.height];
    let frame = Frame::for_pixels(size, image.channels, Quality(encoding.quality), half_chroma);
    Ok(encode_pixels(&frame, image.samples.as_bytes(), &image.metadata)?)
}
