//! The flags of commands that read or write images.

use super::choice::Choice;
use crate::io::image::ImageFormat;

/// Formats in which images can be written.
pub const IMAGE_FORMATS: [Choice<ImageFormat>; 9] = [
    ("png", ImageFormat::Png, "PNG; animated PNG for several pages"),
    ("jpeg|jpg", ImageFormat::Jpeg, "JPEG"),
    ("tiff|tif", ImageFormat::Tiff, "TIFF"),
    ("exr", ImageFormat::OpenExr, "OpenEXR"),
    ("webp", ImageFormat::WebP, "WebP, lossless unless --quality is given"),
    ("gif", ImageFormat::Gif, "GIF"),
    ("bmp", ImageFormat::Bmp, "BMP"),
    ("pnm|ppm|pgm|pam", ImageFormat::Pnm, "PBM, PGM, PPM or PAM"),
    ("pfm", ImageFormat::Pfm, "Portable Float Map"),
];
