//! WebP through the image crate: lossy and lossless are read, lossless is written.

use image::{ImageEncoder, ImageFormat, codecs::webp::WebPEncoder};

use super::{
    apart,
    codec::{Beside, BoxError, Codec, Decode, Decoded, Encoding, Holds},
    image_crate::{colour_type, open},
    limits::LEAST_SCRATCH,
};
use crate::{
    data::{dtype::Dtype, image::Image},
    io::Limits,
};

/// WebP.
pub const CODEC: Codec = Codec {
    extensions: &["webp"],
    has_signature: |bytes| bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"),
    holds: Holds {
        dtypes: &[Dtype::U8],
        alpha: true,
        linear: false,
        metadata: Beside { icc: true, exif: true, ..Beside::NONE },
    },
    decode: Decode::One(decode),
    encode,
    encode_pages: None,
};

fn decode(bytes: &[u8], limits: Limits) -> Result<Decoded, BoxError> {
    /// Bytes that the decoder allocates for a byte of prefix codes, and for all of them, at most. A table of 4 KiB
    /// has codes of ten lengths, which take some 90 bits to write.
    const TABLES: u64 = 400;
    const ALL_TABLES: u64 = 65_536 * 5 * 4096;
    let opened = open(ImageFormat::WebP, bytes, limits)?;
    let worst = TABLES.saturating_mul(bytes.len() as u64).min(ALL_TABLES);
    let allowed = limits.bytes.max(LEAST_SCRATCH);
    if worst <= allowed || !has_prefix_codes(bytes) || !apart::is_possible() {
        return opened.decode();
    }
    // The decoder makes RGBA of RGB, or the other way round, and has the file.
    let within = 3 * opened.bytes() + bytes.len() as u64 + allowed;
    log::debug!("a WebP file is decoded in a process of its own, within {within} bytes");
    opened.decode_by(|_, samples| apart::decode(bytes, within, samples))
}

/// Whether a file has lossless data: a picture, or the alpha of one.
fn has_prefix_codes(bytes: &[u8]) -> bool {
    let has = |name: &[u8; 4]| bytes.windows(4).any(|found| found == name);
    has(b"VP8L") || has(b"ALPH")
}

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
