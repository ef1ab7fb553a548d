//! TIFF: f32, f16 and grey with alpha are decoded by the tiff crate directly, other files through the
//! image crate; all that images hold is written.

mod decode;
mod encode;
mod exif;
mod jpeg_parts;

use super::{
    codec::{Beside, BoxError, Codec, Decode, Decoded, Holds},
    image_crate,
    metadata::capped_exif,
};
use crate::{data::dtype::Dtype, io::Limits};

/// TIFF.
pub const CODEC: Codec = Codec {
    extensions: &["tif", "tiff"],
    has_signature: |bytes| bytes.starts_with(b"II*\0") || bytes.starts_with(b"MM\0*"),
    holds: Holds {
        dtypes: &[Dtype::U8, Dtype::U16, Dtype::F32],
        alpha: true,
        linear: false,
        metadata: Beside { icc: true, exif: true, ..Beside::NONE },
    },
    decode: Decode::One(decode),
    encode: |image, _| encode::encode(image),
    encode_pages: None,
};

fn decode(bytes: &[u8], limits: Limits) -> Result<Decoded, BoxError> {
    let damage = jpeg_parts::check(bytes, limits)?;
    let mut decoded = match decode::TiffFile::open(bytes) {
        Some(file) => file.decode(limits)?,
        None => image_crate::open(image::ImageFormat::Tiff, bytes, limits)?.decode()?,
    };
    if let Some(exif) = exif::of_file(bytes) {
        let losses = &mut decoded.losses;
        if exif.is_partial {
            losses.push("EXIF that cannot be read, or is too long, is left out".into());
        }
        decoded.image.metadata.exif = capped_exif(Some(exif.block), losses);
    }
    decoded.damage = damage;
    Ok(decoded)
}
