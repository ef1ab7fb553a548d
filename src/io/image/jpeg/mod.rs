//! JPEG: a decoder that runs on all cores for the common kinds of files, the image crate's decoder for all others, and
//! an encoder that runs on all cores.

mod bands;
mod beside;
mod block;
mod container;
mod damage;
mod decode;
mod encode;
mod entropy;
mod huffman;
mod huffman_encode;
mod scan;

pub(super) use bands::Consume;
pub(super) use beside::{channels, read as read_beside};
use container::File;
pub use container::Segments;
pub use decode::decode;
use decode::{coefficients, decode_bands, decode_parsed, missing};
pub use encode::{encode_coefficients, encode_pixels};
pub use huffman::{BitReader, Huffman};

use zune_jpeg::{
    JpegDecoder,
    zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions},
};

use super::{
    codec::{Beside, BoxError, Codec, Decode, Decoded, Encoding, Holds, Texts},
    image_crate,
    limits::check_size,
    metadata::{capped_icc, read_exif},
};
use crate::{
    data::{
        dtype::Dtype,
        image::{Image, Metadata, Orientation},
        jpeg::{Frame, Quality, SparseCoefficients},
        samples::Samples,
    },
    io::Limits,
};

/// JPEG.
pub(super) const CODEC: Codec = Codec {
    extensions: &["jpg", "jpeg", "jfif"],
    has_signature: |bytes| bytes.starts_with(&[0xff, 0xd8, 0xff]),
    holds: Holds {
        dtypes: &[Dtype::U8],
        alpha: false,
        linear: false,
        true_colour: true,
        animation: false,
        metadata: Beside { texts: Texts::COMMENT, ..Beside::ALL },
    },
    decode: Decode::One(decode_file),
    encode: encode_image,
    encode_pages: None,
};

/// The lowest quality at which chroma is stored at full resolution, as in most programs.
const FULL_CHROMA: u8 = 95;

/// Whether pictures of this quality are encoded with chroma at half the resolution along both axes (4:2:0).
pub fn has_half_chroma(quality: u8) -> bool {
    quality < FULL_CHROMA
}

/// The coefficients of a file with its metadata.
#[derive(Debug)]
pub struct Picture {
    /// The coefficients.
    pub coefficients: SparseCoefficients,
    /// Metadata of the file.
    pub metadata: Metadata,
    /// What is lost of the file, in words.
    pub losses: Vec<String>,
    /// What is missing of the picture, in words.
    pub damage: Option<String>,
}

/// Reads the coefficients of a file; `None` if it is no JPEG file of the common kinds, exceeds `limits`, or if its
/// picture has to be rotated or mirrored.
pub fn read_coefficients(bytes: &[u8], limits: Limits) -> Option<Picture> {
    let (file, frame) = File::parse(bytes)?;
    let samples = frame.size.iter().product::<usize>() * frame.colour.channels();
    check_size(limits, frame.size, samples as u64).ok()?;
    let (metadata, orientation, losses) = metadata(bytes, file.icc(), file.exif.clone());
    let whole = (0..frame.components.len()).all(|c| frame.upsampling(c).is_some());
    let fits = file.bytes_needed() <= limits.bytes && !file.is_thin();
    if orientation != Orientation::default() || !whole || !fits {
        return None;
    }
    let (coefficients, damage) = coefficients(&file, &frame);
    Some(Picture { coefficients, metadata, losses, damage })
}

/// What is lost or missing of a file whose pixels were consumed.
#[derive(Debug)]
pub(super) struct Consumed {
    pub losses: Vec<String>,
    pub damage: Option<String>,
}

/// Hands all pixels of a file to `consume`, as they are stored, some rows at a time and in any order; `None` if the
/// file is no JPEG file of the common kinds, or takes more than `limits`.
pub(super) fn consume(bytes: &[u8], limits: Limits, consume: &Consume<'_>) -> Option<Consumed> {
    let (file, frame) = File::parse(bytes)?;
    let samples = frame.size.iter().product::<usize>() * frame.colour.channels();
    check_size(limits, frame.size, samples as u64).ok()?;
    let damage = decode_bands(&file, &frame, limits.bytes, consume)?;
    let (_, _, losses) = metadata(bytes, file.icc(), file.exif.clone());
    Some(Consumed { losses, damage })
}

pub(super) fn decode_file(bytes: &[u8], limits: Limits) -> Result<Decoded, BoxError> {
    let Some((file, frame)) = File::parse(bytes) else {
        return decode_other(bytes, None, limits);
    };
    let [width, height] = frame.size;
    check_size(limits, frame.size, (width * height * frame.colour.channels()) as u64)?;
    let decoded = decode_parsed(&file, &frame, limits.bytes);
    let Some((mut image, damage)) = decoded else {
        return decode_other(bytes, missing(&file), limits);
    };
    let (metadata, orientation, losses) = metadata(bytes, image.metadata.icc, image.metadata.exif);
    image.metadata = metadata;
    Ok(Decoded { image, orientation, losses, damage })
}

/// Decodes a file by the image crate. That does not report missing parts, so they are given as `damage` if they are
/// known.
fn decode_other(
    bytes: &[u8],
    damage: Option<Option<String>>,
    limits: Limits,
) -> Result<Decoded, BoxError> {
    if !bytes.windows(2).any(|marker| marker == SCAN) {
        return Err("there is no scan in it".into());
    }
    if let Some(coding) = beside::foreign_coding(bytes) {
        let remedy = "`jpegtran FILE > out.jpg` makes a common one of it";
        return Err(format!("{coding} JPEG is not read here: {remedy}").into());
    }
    let mut decoded = image_crate::open(image::ImageFormat::Jpeg, bytes, limits)?.decode()?;
    decoded.image.metadata.xmp = None;
    beside::read(bytes, &mut decoded.image.metadata, &mut decoded.losses);
    decoded.damage = damage.unwrap_or_else(|| match is_whole(bytes) {
        true => None,
        false => Some("some of it is missing or damaged".into()),
    });
    Ok(decoded)
}

/// Number of samples of the largest frame that any header in the file claims, since a broken file may have several.
pub(super) fn claimed_samples(bytes: &[u8]) -> u64 {
    let frame = |body: &[u8; 9]| {
        let is_frame =
            matches!(body, [0xff, 0xc0..=0xcf, ..]) && ![0xc4, 0xc8, 0xcc].contains(&body[1]);
        let side = |at: usize| u64::from(u16::from_be_bytes([body[at], body[at + 1]]));
        // Marker, length, bits, height and width; the number of components follows, at most four.
        if is_frame { side(5) * side(7) * 4 } else { 0 }
    };
    bytes.windows(9).filter_map(<[u8]>::first_chunk).map(frame).max().unwrap_or(0)
}

/// Decodes a JPEG stream inside of another file: its picture as it is stored, and whether parts of it are missing.
pub(super) fn decode_part(bytes: &[u8], limits: Limits) -> Result<(Image, bool), BoxError> {
    let Decoded { image, damage, .. } = decode_file(bytes, limits)?;
    Ok((image, damage.is_some()))
}

/// Decodes a JPEG stream of four inks (CMYK) inside of another file; its samples are not converted.
pub(super) fn decode_inks(bytes: &[u8]) -> Result<Image, BoxError> {
    let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::CMYK);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    let samples = decoder.decode()?;
    let (width, height) = decoder.dimensions().ok_or("it has no size")?;
    if samples.len() != 4 * width * height {
        return Err("it is no JPEG of four inks".into());
    }
    let metadata = Metadata::default();
    let samples = Samples::U8(samples);
    Ok(Image { width, height, channels: 4, samples, is_linear: false, metadata })
}

/// The marker of a scan header (SOS).
const SCAN: [u8; 2] = [0xff, 0xda];

/// Whether a strict decoder accepts the file.
fn is_whole(bytes: &[u8]) -> bool {
    let most = usize::MAX;
    let options = DecoderOptions::default().set_strict_mode(true);
    let options = options.set_max_width(most).set_max_height(most);
    JpegDecoder::new_with_options(ZCursor::new(bytes), options).decode().is_ok()
}

/// Metadata and orientation of a file, and what is lost of the metadata, in words.
fn metadata(
    bytes: &[u8],
    icc: Option<Vec<u8>>,
    exif: Option<Vec<u8>>,
) -> (Metadata, Orientation, Vec<String>) {
    let mut losses = Vec::new();
    let (exif, orientation) = read_exif(exif, &mut losses);
    let icc = capped_icc(icc, &mut losses);
    let mut metadata = Metadata { icc, exif, ..Metadata::default() };
    beside::read(bytes, &mut metadata, &mut losses);
    (metadata, orientation.unwrap_or_default(), losses)
}

fn encode_image(image: &Image, encoding: &Encoding) -> Result<Vec<u8>, BoxError> {
    let half_chroma = has_half_chroma(encoding.quality);
    let size = [image.width, image.height];
    let frame = Frame::for_pixels(size, image.channels, Quality(encoding.quality), half_chroma);
    Ok(encode_pixels(&frame, image.samples.as_bytes(), &image.metadata, encoding.optimized)?)
}
