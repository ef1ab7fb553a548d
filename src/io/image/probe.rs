//! What is known of an image before it is decoded: by its name, and by its header.

use std::{panic::catch_unwind, path::Path};

use exr::meta::MetaData;
use image::{ImageDecoder, ImageReader};

use crate::io::Source;

/// Whether the extension of `source` is that of an image, of a format that is supported or not.
pub fn has_image_name(source: &Source) -> bool {
    let format = image::ImageFormat::from_extension(source.extension());
    format.is_some_and(|format| format.can_read())
}

/// Bytes of the decoded samples of the image file `source`; nothing when that cannot be found out
/// without consuming or decoding it. The header is trusted for planning only: decoders check it again.
pub fn sample_bytes(source: &Source) -> Option<u64> {
    let path = source.path()?;
    // A pipe can be read only once.
    source.size().ok()??;
    // Decoders panic on some broken files.
    let decoded = catch_unwind(|| {
        let reader = ImageReader::open(path).ok()?.with_guessed_format().ok()?;
        Some(reader.into_decoder().ok()?.total_bytes())
    });
    decoded.ok().flatten().or_else(|| openexr(path))
}

/// At most RGBA as f32, in the largest layer.
fn openexr(path: &Path) -> Option<u64> {
    let file = MetaData::read_from_file(path, false).ok()?;
    file.headers.iter().map(|layer| layer.layer_size.area() as u64 * 16).max()
}
