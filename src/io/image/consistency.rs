//! Metadata that agree with the pixels: what describes other pixels is changed or left out.

use super::{tiff::exif, xmp};
use crate::data::image::{Metadata, Orientation};

/// Adapts metadata to an image of `size` that is written with `channels` channels: leaves out what describes other
/// pixels, or other data in the file.
pub fn adapt(metadata: &mut Metadata, size: [usize; 2], channels: usize) {
    let Metadata { icc, exif, xmp, .. } = metadata;
    if icc.as_ref().is_some_and(|icc| foreign_colours(icc, channels).is_some()) {
        *icc = None;
    }
    if let Some(exif) = exif {
        exif::adapt(exif, size);
    }
    if let Some(xmp) = xmp {
        *xmp = xmp::for_output(xmp, size);
    }
}

/// Adapts EXIF and XMP to pixels that were turned upright from `orientation`.
pub fn turn(metadata: &mut Metadata, orientation: Orientation) {
    if orientation.is_transposed()
        && let Some(exif) = &mut metadata.exif
    {
        exif::swap_resolutions(exif);
    }
    if let Some(xmp) = &mut metadata.xmp {
        *xmp = xmp::upright(xmp);
    }
}

/// The colour space of an ICC profile, if images of `channels` channels have another one (ICC.1:2022, 7.2.6). `None` if
/// they fit, or if `icc` is not a profile.
pub fn foreign_colours(icc: &[u8], channels: usize) -> Option<&'static str> {
    let signature = |at: usize| icc.get(at..)?.first_chunk::<4>();
    signature(36).filter(|signature| *signature == b"acsp")?;
    let name = match signature(16)? {
        b"GRAY" => "grey",
        b"RGB " => "RGB",
        b"CMYK" => "CMYK",
        _ => "other",
    };
    (name != if channels < 3 { "grey" } else { "RGB" }).then_some(name)
}
