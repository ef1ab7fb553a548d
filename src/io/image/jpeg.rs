//! JPEG files as images: limits, metadata, and the entry in the list of formats. The codec is in `crate::jpeg`.
//!
//! Metadata are EXIF, the ICC profile, the density in the JFIF segment (T.871, 10.1), XMP, comments, and IPTC among
//! Photoshop's image resources.

use super::{
    codec::{Capabilities, Codec, Decode, MetadataSupport, TextSupport},
    error::BoxError,
    limits::{check_scratch, check_size},
    metadata::{
        MetadataBlock, XMP_NAME, add_text, iptc_from_resources, iptc_resource, utf8_or_latin1,
    },
    pages::{DecodedPage, Encoding, Shrink},
    probe::Probe,
    tiff::{
        density::density_to_write,
        directory::number_in,
        exif::{self, read_exif},
    },
};
use crate::{
    data::{
        dtype::Dtype,
        image::{AncillaryData, Density, DensityUnit, Image, Metadata, Orientation},
        samples::Samples,
    },
    io::{Limits, RegularFile},
    jpeg::{
        ColourModel, Container, Damage, Frame, JpegFile, Picture, PixelEncoding, Process, Quality,
        SparseCoefficients, Summary, encode, has_signature, marker,
    },
    util::parallel,
};

/// JPEG.
pub(super) const CODEC: Codec = Codec {
    capabilities: Capabilities {
        has_alpha: false,
        metadata: MetadataSupport { texts: TextSupport::COMMENT, ..MetadataSupport::ALL },
        ..Capabilities::PLAIN
    },
    probe: Some(probe),
    ..Codec::new("JPEG", &["jpg", "jpeg", "jfif"], has_signature, Decode::One(decode), encode_image)
};

fn probe(file: &RegularFile, _: Option<&[u8]>) -> Result<Probe, BoxError> {
    /// Bytes in which the header is searched.
    const MAX_HEADER: u64 = 8 << 20;
    let start = file.start(MAX_HEADER)?;
    let Summary { segments, size, channels, precision, .. } =
        Summary::new(&start).ok_or("the JPEG file has no frame header")?;
    let (metadata, ..) = metadata(&segments);
    let dtype = if precision > 8 { Dtype::U16 } else { Dtype::U8 };
    let mut probe = Probe::new(CODEC.name, size, channels, dtype);
    probe.add_block(MetadataBlock::Xmp, metadata.xmp.as_deref());
    probe.add_block(MetadataBlock::Icc, metadata.icc.as_deref());
    exif::add_to_probe(&mut probe, exif(&segments));
    probe.add_block(MetadataBlock::Iptc, metadata.iptc.as_deref());
    probe.add_metadata(&metadata);
    Ok(probe)
}

/// The lowest quality at which chroma is stored at full resolution, as in most programs.
const FULL_CHROMA: u8 = 95;

/// How pixels are encoded: below a quality with chroma at half the resolution along both axes (4:2:0).
pub(super) fn pixel_encoding(encoding: &Encoding) -> PixelEncoding {
    let quality = encoding.jpeg_quality();
    PixelEncoding { quality: Quality(quality), half_chroma: quality < FULL_CHROMA }
}

/// Reads the headers of a file and checks the memory that it takes.
fn parse(bytes: &[u8], limits: Limits) -> Result<JpegFile<'_>, BoxError> {
    parse_shrunken(bytes, limits, &|_, _| None).map(|(file, _)| file)
}

/// The factors by which an image of this size can be decoded smaller, and the sizes that it then has, the smallest
/// first.
pub fn smaller_sizes(size: [usize; 2]) -> Vec<(usize, [usize; 2])> {
    // The sides must be multiples of the factor, so that no pixel of the smaller image is partly outside.
    let divides = |&factor: &usize| size.iter().all(|side| side.is_multiple_of(factor));
    let factors = [8, 4, 2].into_iter().filter(divides);
    factors.map(|factor| (factor, size.map(|side| side / factor))).collect()
}

/// As [`parse`], for an image that is decoded smaller if `shrink` chooses a size. Also returns the factor.
fn parse_shrunken<'a>(
    bytes: &'a [u8],
    limits: Limits,
    shrink: Shrink<'_>,
) -> Result<(JpegFile<'a>, usize), BoxError> {
    let file = JpegFile::parse(bytes, &Container::default())?;
    let mut sampling = file.frame.components.iter().flat_map(|component| component.sampling);
    let upright = decoded(&file, Vec::new(), None).upright_size();
    // Components with sampling factor 3 cannot be halved; wide samples are decoded in full.
    let is_full = is_wide(&file) || sampling.any(|factor| factor == 3);
    let (factors, sizes): (Vec<_>, Vec<_>) = smaller_sizes(upright).into_iter().unzip();
    let chosen = if is_full { None } else { shrink(upright, &sizes) };
    let shrink = chosen.map_or(1, |at| factors[at]);
    // Wide samples are decoded to u16 first; those of lossy colours are decoded to planes before that.
    let is_lossy_colour = file.process != Process::Lossless && file.frame.components.len() > 1;
    let factor = if !is_wide(&file) { 1 } else { 3 + u64::from(is_lossy_colour) };
    let bytes = factor * file.frame.pixel_bytes().div_ceil(shrink * shrink) as u64;
    check_size(limits, file.frame.size, bytes)?;
    check_scratch(limits, file.scratch_bytes() as u64, "decoding its coefficients")?;
    Ok((file, shrink))
}

/// Decodes a file.
fn decode(bytes: &[u8], limits: Limits) -> Result<DecodedPage, BoxError> {
    decode_shrunken(bytes, limits, &|_, _| None)
}

/// As `decode`, but 8, 4 or 2 times smaller if `shrink` chooses that size.
pub fn decode_shrunken(
    bytes: &[u8],
    limits: Limits,
    shrink: Shrink<'_>,
) -> Result<DecodedPage, BoxError> {
    let (file, shrink) = parse_shrunken(bytes, limits, shrink)?;
    let page = decoded(&file, Vec::new(), None);
    if is_wide(&file) {
        return decode_wide(&file, page);
    }
    let (samples, damage) = file.decode(shrink)?;
    let [width, height] = page.size().map(|side| side.div_ceil(shrink));
    let image = Image { width, height, samples: Samples::U8(samples), ..page.image };
    Ok(DecodedPage { image, damage: damage_text(damage)?, ..page })
}

/// Whether a file is lossless, or has samples of more than 8 bits.
fn is_wide(file: &JpegFile<'_>) -> bool {
    file.process == Process::Lossless || file.precision > 8
}

/// Decodes a file for which [`is_wide`] holds. Samples of up to 8 bits become u8, others u16; the largest value that
/// their bits can hold becomes full intensity, as in TIFF. Damage is an error.
fn decode_wide(file: &JpegFile<'_>, page: DecodedPage) -> Result<DecodedPage, BoxError> {
    let (process, colour) = (file.process, file.frame.colour);
    let is_ycc = process != Process::Lossless && colour == ColourModel::YCbCr;
    if !is_ycc && ![ColourModel::Grey, ColourModel::Rgb].contains(&colour) {
        let kind = if process == Process::Lossless { "lossless" } else { "12-bit" };
        return Err(format!("{kind} JPEG of {colour:?} components is not supported").into());
    }
    if process != Process::Lossless && file.precision != 12 {
        return Err(format!("JPEG of {} bits per sample is not supported", file.precision).into());
    }
    let is_lossy_colour = process != Process::Lossless && colour != ColourModel::Grey;
    let mut samples =
        if is_lossy_colour { file.decode_16_bit_rgb()? } else { file.decode_16_bits()? };
    let (max, full) = ((1 << file.precision) - 1, if file.precision > 8 { 65_535 } else { 255 });
    let scale = |sample: u16| ((u32::from(sample).min(max) * full + max / 2) / max) as u16;
    samples.iter_mut().for_each(|sample| *sample = scale(*sample));
    let samples = match file.precision {
        9.. => Samples::U16(samples),
        _ => Samples::U8(parallel::mapped(&samples, |&sample| sample as u8)?),
    };
    Ok(page.with_samples(samples))
}

/// Reads the coefficients of a file, and its image without samples; `None` if the file cannot be decoded, exceeds
/// `limits`, or has to be rotated or mirrored.
pub fn read_coefficients(
    bytes: &[u8],
    limits: Limits,
) -> Option<(SparseCoefficients, DecodedPage)> {
    let file = parse(bytes, limits).ok()?;
    let mut image = decoded(&file, Vec::new(), None);
    let mut components = 0..file.frame.components.len();
    let is_fractional = components.any(|c| file.frame.upsampling(c).is_err());
    if image.orientation != Orientation::default() || is_fractional {
        return None;
    }
    let (coefficients, damage) = file.coefficients().ok()?;
    image.damage = damage_text(damage).ok()?;
    Some((coefficients, image))
}

fn decoded(file: &JpegFile<'_>, samples: Vec<u8>, damage: Option<String>) -> DecodedPage {
    let (metadata, orientation, losses) = metadata(&file.segments);
    let ([width, height], channels) = (file.frame.size, file.frame.colour.channels());
    let samples = Samples::U8(samples);
    let image = Image { width, height, channels, samples, is_linear: false, metadata };
    DecodedPage { image, orientation, losses, damage }
}

/// The damage as text. It is an error if the file has no image data.
fn damage_text(damage: Option<Damage>) -> Result<Option<String>, BoxError> {
    match damage {
        Some(Damage::Empty) => Err(Damage::Empty.to_string().into()),
        damage => Ok(damage.map(|damage| damage.to_string())),
    }
}

/// Decodes a file and passes its pixels, in the stored orientation, to `consume`, some rows at a time and in any order.
/// Returns messages about losses and damage.
pub(super) fn consume(
    bytes: &[u8],
    limits: Limits,
    consume: &(dyn Fn(&mut Vec<u8>) + Sync),
) -> Result<(Vec<String>, Option<String>), BoxError> {
    let file = parse(bytes, limits)?;
    let damage = file.decode_to(consume)?;
    let (_, _, losses) = metadata(&file.segments);
    Ok((losses, damage_text(damage)?))
}

fn encode_image(image: &Image, encoding: &Encoding) -> Result<Vec<u8>, BoxError> {
    let PixelEncoding { quality, half_chroma } = pixel_encoding(encoding);
    let size = [image.width, image.height];
    let frame = Frame::for_pixels(size, image.channels, quality, half_chroma);
    let picture = Picture::Pixels(image.samples.as_bytes());
    Ok(encode(&frame, picture, &segments(&image.metadata)?, encoding.optimized)?)
}

/// Encodes coefficients.
pub fn encode_coefficients(
    coefficients: &SparseCoefficients,
    metadata: &Metadata,
    optimized: bool,
) -> Result<Vec<u8>, BoxError> {
    let picture = Picture::Coefficients(coefficients);
    Ok(encode(&coefficients.frame, picture, &segments(metadata)?, optimized)?)
}

/// Name of the format of files with further pictures.
pub const MULTI_PICTURE: &str = "Multi-Picture Format";

const JFIF: &[u8] = b"JFIF\0";
const EXIF: &[u8] = b"Exif\0\0";
const ICC: &[u8] = b"ICC_PROFILE\0";
const MPF: &[u8] = b"MPF\0";
const PHOTOSHOP: &[u8] = b"Photoshop 3.0\0";
/// Identifier of the segments of extended XMP, which does not fit into one segment.
const EXTENDED_XMP: &[u8] = b"http://ns.adobe.com/xmp/extension/\0";
/// Maximum size in bytes of Photoshop's image resources that are read.
const MAX_RESOURCES: usize = 1 << 20;
/// Maximum size in bytes of an ICC profile in one segment: 65,533 without the identifier and two numbers.
const ICC_PART: usize = 65_533 - 14;

/// EXIF, from its TIFF header on.
fn exif(segments: &[(u8, &[u8])]) -> Option<Vec<u8>> {
    let mut all = segments.iter().filter(|(marker, _)| *marker == marker::APP1);
    all.find_map(|(_, body)| body.strip_prefix(EXIF)).map(<[u8]>::to_vec)
}

/// The ICC profile, joined from its parts (ICC.1:2010, B.4).
fn icc(segments: &[(u8, &[u8])]) -> Option<Vec<u8>> {
    let all = segments.iter().filter(|(marker, _)| *marker == marker::APP2);
    let part = |(_, body): &(u8, &'_ [u8])| match body.strip_prefix(ICC)? {
        [number, _count, data @ ..] => Some((*number, data.to_vec())),
        _ => None,
    };
    let mut parts: Vec<(u8, Vec<u8>)> = all.filter_map(part).collect();
    parts.sort_by_key(|(number, _)| *number);
    (!parts.is_empty()).then(|| parts.into_iter().flat_map(|(_, data)| data).collect())
}

/// Metadata and orientation of a file from the segments before its first scan, and messages about losses.
fn metadata(segments: &[(u8, &[u8])]) -> (Metadata, Orientation, Vec<String>) {
    let mut losses = Vec::new();
    let (exif, orientation) = read_exif(exif(segments), &mut losses);
    let icc = MetadataBlock::Icc.capped(icc(segments), &mut losses);
    let mut metadata = Metadata { icc, exif, ..Metadata::default() };
    let mut resources = Vec::new();
    let (mut has_extended_xmp, mut has_more_resources) = (false, false);
    let mut pictures = 0;
    for &(marker, body) in segments {
        match marker {
            marker::APP0 if metadata.density.is_none() => {
                metadata.density = body.strip_prefix(JFIF).and_then(density);
            }
            marker::APP1 if metadata.xmp.is_none() && body.starts_with(XMP_NAME) => {
                metadata.xmp =
                    MetadataBlock::Xmp.capped(Some(body[XMP_NAME.len()..].to_vec()), &mut losses);
            }
            marker::APP1 => has_extended_xmp |= body.starts_with(EXTENDED_XMP),
            // The resources may continue in the next segment.
            marker::APP13 if resources.len() < MAX_RESOURCES => {
                resources.extend(body.strip_prefix(PHOTOSHOP).unwrap_or_default());
            }
            marker::APP13 => has_more_resources = true,
            marker::APP2 => pictures = pictures.max(body.strip_prefix(MPF).map_or(0, count)),
            marker::COM => {
                // Old files have comments in Latin-1.
                add_text(&mut metadata, "Comment", &utf8_or_latin1(body), &mut losses);
            }
            _ => {}
        }
    }
    if pictures > 1 {
        // Further pictures are previews, or gain maps for HDR displays.
        metadata.ancillary.push(AncillaryData {
            format: MULTI_PICTURE,
            name: "MPF".into(),
            bytes: Vec::new(),
            loss: Some("further images in the file (MPF) are dropped"),
        });
    }
    if has_extended_xmp {
        losses.push("XMP beyond the first 64 kB is left out".into());
    }
    if has_more_resources {
        losses.push("Photoshop's resources beyond the first MiB are left out".into());
    }
    metadata.iptc = MetadataBlock::Iptc.capped(iptc_from_resources(&resources), &mut losses);
    (metadata, orientation.unwrap_or_default(), losses)
}

/// The number of pictures that a Multi-Picture Format segment states (CIPA DC-007, 5.2.3).
fn count(mpf: &[u8]) -> u64 {
    const NUMBER_OF_IMAGES: u16 = 0xb001;
    number_in(mpf, NUMBER_OF_IMAGES).unwrap_or(0)
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

/// The parameters of a JFIF segment after its identifier: version, unit, density, no thumbnail.
fn jfif(density: Option<Density>) -> [u8; 9] {
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

/// The segments of `metadata`: second byte of the marker, and parameters.
fn segments(metadata: &Metadata) -> Result<Vec<(u8, Vec<u8>)>, BoxError> {
    let mut segments = vec![(marker::APP0, [JFIF, &jfif(density_to_write(metadata))].concat())];
    let named = [
        (marker::APP1, EXIF, metadata.exif.clone()),
        (marker::APP1, XMP_NAME, metadata.xmp.clone()),
        (marker::APP13, PHOTOSHOP, metadata.iptc.as_deref().map(iptc_resource)),
    ];
    for (marker, name, data) in named {
        segments.extend(data.map(|data| (marker, [name, &data].concat())));
    }
    if let Some(icc) = &metadata.icc {
        let parts = icc.chunks(ICC_PART);
        let count =
            u8::try_from(parts.len()).map_err(|_| "the ICC profile is too long for JPEG")?;
        let part = |(part, number): (&[u8], u8)| [ICC, &[number, count], part].concat();
        segments.extend(parts.zip(1..).map(|numbered| (marker::APP2, part(numbered))));
    }
    let texts = metadata.texts.iter().filter(|text| TextSupport::COMMENT.supports(&text.keyword));
    segments.extend(texts.map(|text| (marker::COM, text.text.as_bytes().to_vec())));
    Ok(segments)
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
