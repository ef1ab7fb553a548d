//! TIFF in strips, uncompressed, of u8, u16 or f32 samples, with ICC profile and EXIF.

use std::io::Cursor;

use ::tiff::{
    TiffResult,
    encoder::{
        TiffEncoder, TiffKind, TiffKindBig, TiffKindStandard,
        colortype::{Gray8, Gray16, Gray32Float, RGB8, RGB16, RGB32Float},
    },
    tags::{ExtraSamples, Tag},
};

use super::exif::Exif;
use crate::{
    data::{image::Image, samples::Samples},
    io::image::codec::BoxError,
};

/// Encodes an image, as a BigTIFF where it exceeds 4 GiB.
///
/// # Errors
/// When the encoder fails.
pub fn encode(image: &Image) -> Result<Vec<u8>, BoxError> {
    let metadata = [&image.metadata.icc, &image.metadata.exif];
    let metadata: usize = metadata.into_iter().flatten().map(Vec::len).sum();
    // Besides, each strip of 1 MB takes an entry.
    let len = image.samples.as_bytes().len() + 2 * metadata + (1 << 20);
    Ok(match u32::try_from(len) {
        Ok(_) => encode_as::<TiffKindStandard>(image)?,
        Err(_) => encode_as::<TiffKindBig>(image)?,
    })
}

fn encode_as<K: TiffKind>(image: &Image) -> TiffResult<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = TiffEncoder::<_, K>::new_generic(Cursor::new(&mut bytes))?;
    let exif = image.metadata.exif.as_deref().and_then(Exif::of_block).unwrap_or_default();
    let pointers = exif.write_children(&mut encoder)?;
    let (width, height) = (image.width as u32, image.height as u32);
    macro_rules! write {
        ($colour:ty, $values:expr) => {{
            let mut picture = encoder.new_image::<$colour>(width, height)?;
            if image.has_alpha() {
                picture.extra_samples(&[ExtraSamples::UnassociatedAlpha])?;
            }
            if let Some(icc) = &image.metadata.icc {
                picture.encoder().write_tag(Tag::IccProfile, &icc[..])?;
            }
            exif.write_values(picture.encoder(), &pointers)?;
            picture.write_data($values)?;
        }};
    }
    match (&image.samples, image.channels) {
        (Samples::U8(values), 1 | 2) => write!(Gray8, values),
        (Samples::U8(values), _) => write!(RGB8, values),
        (Samples::U16(values), 1 | 2) => write!(Gray16, values),
        (Samples::U16(values), _) => write!(RGB16, values),
        (Samples::F32(values), 1 | 2) => write!(Gray32Float, values),
        (Samples::F32(values), _) => write!(RGB32Float, values),
        (other, _) => unreachable!("images hold no {}", other.dtype()),
    }
    Ok(bytes)
}
