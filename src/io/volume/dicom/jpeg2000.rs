//! JPEG 2000 (ITU-T T.800) in DICOM frames. The decoder adds half of the range (DC level shift) to signed samples as
//! well, though the standard shifts unsigned samples only; that is undone here.

use hayro_jpeg2000::{DecodeSettings, DecoderContext, Image};

use super::kind::Kind;
use crate::io::{image::caught, volume::format::BoxError};

/// Decodes `packed` into samples of `kind`, in the machine's byte order.
///
/// # Errors
/// When the picture is broken, or its size, depth or number of components is not that of `kind`.
pub fn decode(packed: &[u8], kind: &Kind, stored: &mut [u8]) -> Result<(), BoxError> {
    let settings =
        DecodeSettings { resolve_palette_indices: false, strict: true, target_resolution: None };
    let image = caught(|| Ok(Image::new(packed, &settings)?))?;
    let size = [image.width() as usize, image.height() as usize];
    if size != [kind.columns, kind.rows] || kind.allocated > 16 {
        return Err(format!(
            "its picture is {}x{}, not {}x{} of at most 16 bits",
            size[0], size[1], kind.columns, kind.rows
        )
        .into());
    }
    let mut context = DecoderContext::default();
    let decoded = caught(|| Ok(image.decode(&mut context)?))?;
    let components = decoded.components();
    let pixels = kind.rows * kind.columns;
    let fits = components.iter().all(|component| {
        component.samples().len() == pixels && u32::from(component.bit_depth()) <= kind.allocated
    });
    if components.len() != kind.samples || !fits {
        return Err(format!("its picture has {} components", components.len()).into());
    }
    let bytes = kind.allocated as usize / 8;
    for (i, component) in components.iter().enumerate() {
        let half = 1 << (component.bit_depth() - 1);
        let shift = if kind.signed { half } else { 0 };
        let out = stored.chunks_exact_mut(bytes).skip(i).step_by(kind.samples);
        for (out, &sample) in out.zip(component.samples()) {
            let value = sample.round() as i32 - shift;
            match bytes {
                1 => out[0] = value as u8,
                _ => out.copy_from_slice(&(value as u16).to_ne_bytes()),
            }
        }
    }
    Ok(())
}
