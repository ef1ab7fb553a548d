//! PBM, PGM, PPM and PAM through the image crate.

use image::ImageFormat;

use super::{
    codec::{Beside, Codec, Decode, Holds},
    image_crate,
};
use crate::data::dtype::Dtype;

/// Netpbm's formats.
pub const CODEC: Codec = Codec {
    extensions: &["pnm", "pbm", "pam", "ppm", "pgm"],
    has_signature: |bytes| matches!(bytes, [b'P', b'1'..=b'7', ..]),
    holds: Holds {
        dtypes: &[Dtype::U8, Dtype::U16],
        alpha: true,
        linear: false,
        true_colour: true,
        animation: false,
        metadata: Beside::NONE,
    },
    decode: Decode::One(|bytes, limits| {
        image_crate::open(ImageFormat::Pnm, bytes, limits)?.decode()
    }),
    encode: |image, _| image_crate::encode(ImageFormat::Pnm, image),
    encode_pages: None,
};
