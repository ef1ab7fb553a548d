//! How much memory an image's samples take, from its header, before it is decoded.

use std::{panic::catch_unwind, path::Path};

use exr::meta::MetaData;
use image::{ImageDecoder, ImageReader};

use crate::io::Source;

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
