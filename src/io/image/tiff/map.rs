//! The position of a map (GeoTIFF 1.1, section 7): tags from raster coordinates to those of a model of the earth.

use super::directory::{Directory, Entry, TiffFile, kind};

const PIXEL_SCALE: u16 = 33550;
const TIE_POINTS: u16 = 33922;
const TRANSFORMATION: u16 = 34264;
const KEYS: u16 = 34735;
/// All tags of the position, the last two with parameters of the keys.
pub const TAGS: [u16; 6] = [PIXEL_SCALE, TIE_POINTS, TRANSFORMATION, KEYS, 34736, 34737];

/// Maximum number of values of a tag.
const MAX_VALUES: usize = 1 << 16;

/// The tags that change if an image is resized, with their new values. A new pixel is `factor` times as large.
pub fn resized(
    file: &TiffFile<'_>,
    directory: &Directory,
    factor: [f64; 2],
) -> Vec<(Entry, Vec<f64>)> {
    // GTRasterTypeGeoKey: where the raster coordinates of a pixel are those of its centre, its corner is at -0.5.
    let keys = file.numbers(directory, KEYS, MAX_VALUES).ok().flatten().unwrap_or_default();
    let half = if keys.as_chunks().0.contains(&[1025, 0, 1, 2]) { 0.5 } else { 0.0 };
    let tag = |tag| {
        let entry = *directory.find(tag).filter(|entry| entry.kind == kind::DOUBLE)?;
        let mut values = file.floats(directory, tag, MAX_VALUES)?;
        match tag {
            PIXEL_SCALE => values.iter_mut().zip(factor).for_each(|(scale, by)| *scale *= by),
            TIE_POINTS => values.as_chunks_mut::<6>().0.iter_mut().for_each(|point| {
                let raster = point.iter_mut().zip(factor);
                raster.for_each(|(at, by)| *at = (*at + half) / by - half);
            }),
            // The rows of a matrix, the last column of which is the position of the origin.
            _ => values.as_chunks_mut().0.iter_mut().for_each(|[x, y, _, origin]| {
                *origin += half * (*x * (factor[0] - 1.0) + *y * (factor[1] - 1.0));
                *x *= factor[0];
                *y *= factor[1];
            }),
        }
        Some((entry, values))
    };
    [PIXEL_SCALE, TIE_POINTS, TRANSFORMATION].into_iter().filter_map(tag).collect()
}
