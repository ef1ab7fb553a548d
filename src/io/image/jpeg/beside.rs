//! Metadata of JPEG files except ICC profile and EXIF: the density in the JFIF segment (T.871, 10.1), XMP, comments,
//! and IPTC among Photoshop's image resources.

use super::container::Segments;
use crate::{
    data::image::{Density, DensityUnit, Metadata, Part},
    io::image::{
        metadata::{XMP_NAME, add_text, capped_iptc, capped_xmp, iptc_of_resources, iptc_resource},
        tiff,
    },
};

const JFIF: &[u8] = b"JFIF\0";
const MPF: &[u8] = b"MPF\0";
const PHOTOSHOP: &[u8] = b"Photoshop 3.0\0";
/// Maximal bytes of Photoshop's image resources that are read.
const MOST_RESOURCES: usize = 1 << 20;
/// Identifier of the segments of extended XMP, which does not fit into one segment.
const MORE_XMP: &[u8] = b"http://ns.adobe.com/xmp/extension/\0";

/// The segments before the first scan: second byte of the marker, and parameters.
fn segments(bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    const SOS: u8 = 0xda;
    let all = Segments::new(bytes).into_iter().flatten();
    all.take_while(|(marker, _)| *marker != SOS).map_while(|(marker, body)| Some((marker, body?)))
}

/// Channels of the decoded picture, by the frame header; pictures of four inks become RGB.
pub fn channels(bytes: &[u8]) -> Option<usize> {
    let frame = segments(bytes).find(|(marker, _)| matches!(marker, 0xc0..=0xc2));
    match frame?.1.get(5)? {
        1 => Some(1),
        3 | 4 => Some(3),
        _ => None,
    }
}

/// The name of a file's entropy coding, if it is not supported.
pub fn foreign_coding(bytes: &[u8]) -> Option<&'static str> {
    segments(bytes).find_map(|(marker, _)| match marker {
        0xc9..=0xcb | 0xcd..=0xcf => Some("arithmetic-coded"),
        _ => None,
    })
}

/// Adds the metadata of a file to `metadata`.
pub fn read(bytes: &[u8], metadata: &mut Metadata, losses: &mut Vec<String>) {
    const APP0: u8 = 0xe0;
    const APP1: u8 = 0xe1;
    const APP2: u8 = 0xe2;
    const APP13: u8 = 0xed;
    const COM: u8 = 0xfe;
    let mut resources = Vec::new();
    let (mut has_more, mut has_more_resources) = (false, false);
    let mut pictures = 0;
    for (marker, body) in segments(bytes) {
        match marker {
            APP0 if metadata.density.is_none() => {
                metadata.density = body.strip_prefix(JFIF).and_then(density);
            }
            APP1 if metadata.xmp.is_none() && body.starts_with(XMP_NAME) => {
                metadata.xmp = capped_xmp(Some(body[XMP_NAME.len()..].to_vec()), losses);
            }
            APP1 => has_more |= body.starts_with(MORE_XMP),
            // The resources may continue in the next segment.
            APP13 if resources.len() < MOST_RESOURCES => {
                resources.extend(body.strip_prefix(PHOTOSHOP).unwrap_or_default());
            }
            APP13 => has_more_resources = true,
            APP2 => pictures = pictures.max(body.strip_prefix(MPF).map_or(0, count)),
            COM => {
                // The comment is UTF-8 or, in old files, Latin-1.
                let latin = || body.iter().map(|&byte| char::from(byte)).collect();
                let text = std::str::from_utf8(body).map_or_else(|_| latin(), str::to_owned);
                add_text(metadata, "Comment", &text, losses);
            }
            _ => {}
        }
    }
    if pictures > 1 {
        // Further pictures are previews, or gain maps for HDR displays.
        metadata.parts.push(Part {
            format: "Multi-Picture Format",
            name: "MPF".into(),
            bytes: Vec::new(),
            loss: Some("pictures beside the first (MPF) are dropped"),
        });
    }
    if has_more {
        losses.push("XMP beyond the first 64 kB is left out".into());
    }
    if has_more_resources {
        losses.push("Photoshop's resources beyond the first MiB are left out".into());
    }
    metadata.iptc = capped_iptc(iptc_of_resources(&resources), losses);
}

/// The number of pictures that a Multi-Picture Format segment states (CIPA DC-007, 5.2.3).
fn count(mpf: &[u8]) -> u64 {
    const NUMBER_OF_IMAGES: u16 = 0xb001;
    tiff::number_in(mpf, NUMBER_OF_IMAGES).unwrap_or(0)
}

/// The density in a JFIF segment, without its identifier; `None` if the segment only states that pixels are square.
fn density(body: &[u8]) -> Option<Density> {
    let &[_, _, unit, x1, x0, y1, y0, ..] = body else {
        return None;
    };
    let pixels = [[x1, x0], [y1, y0]].map(|v| f64::from(u16::from_be_bytes(v)));
    match unit {
        1 => Density::new(pixels, DensityUnit::Inch),
        2 => Density::new(pixels, DensityUnit::Centimetre),
        _ => Density::new(pixels, DensityUnit::Aspect).filter(|density| !density.is_square()),
    }
}

/// The parameters of a JFIF segment behind its identifier: version, unit, density, no thumbnail.
pub fn jfif(density: Option<Density>) -> [u8; 9] {
    let square = Density { pixels: [1.0; 2], unit: DensityUnit::Aspect };
    let density = density.unwrap_or(square);
    let candidates =
        [(0, DensityUnit::Aspect), (1, DensityUnit::Inch), (2, DensityUnit::Centimetre)];
    // The unit in which rounding to whole numbers changes the density least.
    let nearest = candidates
        .into_iter()
        .filter_map(|(number, unit)| Some((number, density.per(unit)?)))
        .map(|(number, pixels)| (number, pixels.map(|v| v.round().clamp(1.0, 65_535.0)), pixels))
        .min_by(|a, b| deviation(a.1, a.2).total_cmp(&deviation(b.1, b.2)));
    let (unit, pixels) = nearest.map_or((0, [1.0; 2]), |(unit, pixels, _)| (unit, pixels));
    let [[x1, x0], [y1, y0]] = pixels.map(|v| (v as u16).to_be_bytes());
    [1, 1, unit, x1, x0, y1, y0, 0, 0]
}

fn deviation(rounded: [f64; 2], exact: [f64; 2]) -> f64 {
    (0..2).map(|axis| (rounded[axis] / exact[axis] - 1.0).abs()).sum()
}

/// IPTC as the parameters of a Photoshop segment.
pub fn photoshop(iptc: &[u8]) -> Vec<u8> {
    [PHOTOSHOP, &iptc_resource(iptc)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn densities_are_rounded_in_the_unit_where_that_changes_least() {
        let density = |pixels, unit| Density::new(pixels, unit);
        for (given, expected) in [
            (None, [0, 0, 1, 0, 1]),
            (density([300.0, 72.0], DensityUnit::Inch), [1, 1, 44, 0, 72]),
            (density([118.0, 118.0], DensityUnit::Centimetre), [2, 0, 118, 0, 118]),
            // 300 per inch, as PNG stores it.
            (density([118.11, 118.11], DensityUnit::Centimetre), [1, 1, 44, 1, 44]),
            (density([2.0, 1.0], DensityUnit::Aspect), [0, 0, 2, 0, 1]),
        ] {
            assert_eq!(jfif(given)[2..7], expected, "{given:?}");
        }
    }
}
