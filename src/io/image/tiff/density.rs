//! Pixel density from the tags of a page, from EXIF, or from the description of all pages.

use super::{
    description::{DescriptionFormat, description_format, imagej_value},
    directory::{Directory, TiffFile},
    ome, tag,
};
use crate::data::{
    image::{Density, DensityUnit, Metadata, StackDescription},
    length,
};

/// Density to be written: that of the file, or that in EXIF, where cameras store it.
pub fn density_to_write(metadata: &Metadata) -> Option<Density> {
    metadata.density.or_else(|| {
        let file = TiffFile::open_block(metadata.exif.as_deref()?).ok()?;
        density(&file, &file.directory(file.first_directory).ok()?, None)
    })
}

/// Pixel density of a page. The description `pages` of all pages takes precedence.
pub fn density(
    file: &TiffFile<'_>,
    directory: &Directory,
    pages: Option<&StackDescription>,
) -> Option<Density> {
    let text = pages.map_or("", |pages| &pages.text);
    let format = description_format(text);
    let [x, y, _] = match format {
        Some(DescriptionFormat::Ome) => ome::lengths(text),
        _ => [None; 3],
    };
    if let Some(x) = x {
        let side = |(length, unit)| length::convert(length, &length::symbol(unit)?, "cm");
        let pixels = [side(x)?, side(y.unwrap_or(x))?].map(|length| 1.0 / length);
        return Density::new(pixels, DensityUnit::Centimetre);
    }
    let first = |tag| file.floats(directory, tag, 1)?.first().copied();
    let across = first(tag::X_RESOLUTION)?;
    let pixels = [across, first(tag::Y_RESOLUTION).unwrap_or(across)];
    let unit = match first(tag::RESOLUTION_UNIT) {
        Some(1.0) => DensityUnit::Aspect,
        Some(3.0) => DensityUnit::Centimetre,
        _ => DensityUnit::Inch,
    };
    if unit == DensityUnit::Aspect {
        // In ImageJ's files, the resolution is per unit of the description.
        let unit = imagej_value(text, "unit").filter(|_| format == Some(DescriptionFormat::ImageJ));
        let unit = unit.and_then(length::symbol);
        if let Some(length) = unit.and_then(|unit| length::convert(1.0, &unit, "cm")) {
            let pixels = pixels.map(|count| count / length);
            return Density::new(pixels, DensityUnit::Centimetre);
        }
    }
    Density::new(pixels, unit).filter(|_| unit != DensityUnit::Aspect || pixels[0] != pixels[1])
}
