//! JPEG 2000 (ITU-T T.800) in DICOM frames. The decoder adds half of the range (DC level shift) to signed samples as
//! well, though the standard shifts unsigned samples only; that is undone here. Samples may be unsigned though the file
//! states signed ones: their bits are then those of signed samples.

use hayro_jpeg2000::{DecodeSettings, DecoderContext, Image};

use super::pixel_format::PixelFormat;
use crate::io::{image::catch_panic, volume::header::BoxError};

/// Decodes `compressed` into samples of `format`, in the machine's byte order. Returns whether a transform of JPEG 2000
/// from other colours to RGB was undone.
pub fn decode(
    compressed: &[u8],
    format: &PixelFormat,
    stored: &mut [u8],
) -> Result<bool, BoxError> {
    let settings =
        DecodeSettings { resolve_palette_indices: false, strict: true, target_resolution: None };
    // Some files have boxes of JP2 around the codestream, which DICOM does not know.
    let begin = compressed.windows(4).position(|bytes| bytes == [0xff, 0x4f, 0xff, 0x51]);
    let compressed = &compressed[begin.unwrap_or(0)..];
    let image = catch_panic(|| Ok(Image::new(compressed, &settings)?))?;
    let size = [image.width() as usize, image.height() as usize];
    if size != [format.columns, format.rows] || format.allocated > 16 {
        return Err(format!(
            "JPEG 2000 picture of {}x{} pixels; expected {}x{} of at most 16 bits",
            size[0], size[1], format.columns, format.rows
        )
        .into());
    }
    let mut context = DecoderContext::default();
    let decoded = catch_panic(|| Ok(image.decode(&mut context)?))?;
    let components = decoded.components();
    let pixels = format.rows * format.columns;
    let fits = components.iter().all(|component| {
        component.samples().len() == pixels && u32::from(component.bit_depth()) <= format.allocated
    });
    if components.len() != format.samples || !fits {
        return Err(format!(
            "JPEG 2000 picture of {} components; expected {} of at most {} bits",
            components.len(),
            format.samples,
            format.allocated
        )
        .into());
    }
    let bytes = format.allocated as usize / 8;
    // Ssiz of the first component in the marker segment SIZ (T.800, A.5.1).
    let size = compressed.windows(41).find(|bytes| bytes.starts_with(&[0xff, 0x51, 0]));
    let is_signed = size.is_some_and(|size| size[40] & 0x80 != 0);
    for (i, component) in components.iter().enumerate() {
        let half = 1 << (component.bit_depth() - 1);
        let shift = if is_signed { half } else { 0 };
        let out = stored.chunks_exact_mut(bytes).skip(i).step_by(format.samples);
        for (out, &sample) in out.zip(component.samples()) {
            let value = sample.round() as i32 - shift;
            match bytes {
                1 => out[0] = value as u8,
                _ => out.copy_from_slice(&(value as u16).to_ne_bytes()),
            }
        }
    }
    // The coding style (COD) states it after progression and layers (T.800, A.6.1).
    let style = compressed.windows(10).find(|bytes| bytes.starts_with(&[0xff, 0x52, 0]));
    Ok(style.is_some_and(|style| style[8] == 1))
}
