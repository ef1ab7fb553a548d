//! PBM, PGM, PPM and PAM (netpbm's `pnm(5)` and `pam(5)`), decoded by the image crate, except for comments in headers,
//! which the crate skips.

use image::ImageFormat;

use super::{
    codec::{Capabilities, Codec, Decode, MetadataSupport, TextSupport},
    error::BoxError,
    image_crate,
    metadata::{MAX_TEXT_LEN, add_text, utf8_or_latin1},
    pages::DecodedPage,
    probe::Probe,
};
use crate::{
    data::{
        dtype::Dtype,
        image::{Image, Metadata},
        samples::Samples,
    },
    io::{Limits, RegularFile},
    util::memory,
};

pub const CODEC: Codec = Codec {
    capabilities: Capabilities {
        dtypes: &[Dtype::U8, Dtype::U16],
        metadata: MetadataSupport { texts: TextSupport::COMMENT, ..MetadataSupport::NONE },
        ..Capabilities::PLAIN
    },
    probe: Some(probe),
    ..Codec::new(
        "PNM",
        &["pnm", "pbm", "pam", "ppm", "pgm"],
        |bytes| matches!(bytes, [b'P', b'1'..=b'7', ..]),
        Decode::One(decode),
        |image, _| encode(image),
    )
};

fn probe(file: &RegularFile, _: Option<&[u8]>) -> Result<Probe, BoxError> {
    /// Bytes in which comments are searched: more than are kept.
    const MAX_HEADER_LEN: u64 = 4 * MAX_TEXT_LEN as u64;
    let mut probe = image_crate::probe(ImageFormat::Pnm, CODEC.name, file, None)?;
    let mut metadata = Metadata::default();
    read_comments(&file.start(MAX_HEADER_LEN)?, &mut metadata, &mut Vec::new());
    probe.add_metadata(&metadata);
    Ok(probe)
}

/// Keyword of comments in [`Metadata`], as in other formats.
const COMMENT: &str = "Comment";

fn decode(bytes: &[u8], limits: Limits) -> Result<DecodedPage, BoxError> {
    let mut decoded = image_crate::open(ImageFormat::Pnm, bytes, limits)?.decode()?;
    read_comments(bytes, &mut decoded.image.metadata, &mut decoded.losses);
    Ok(decoded)
}

/// Adds the comments in the header of a file to `metadata`, as one text with a line per comment.
pub fn read_comments(bytes: &[u8], metadata: &mut Metadata, losses: &mut Vec<String>) {
    // Number of words after the signature: width, height and, except for bitmaps, the maximum sample. The header of PAM
    // (P7) ends with ENDHDR.
    let words = match bytes.get(1) {
        Some(b'7') => usize::MAX,
        Some(b'1' | b'4') => 2,
        _ => 3,
    };
    let mut rest = bytes.get(2..).unwrap_or_default();
    let mut comments: Vec<String> = Vec::new();
    let (mut found, mut len) = (0, 0);
    while found < words {
        rest = rest.trim_ascii_start();
        let is_comment = rest.first() == Some(&b'#');
        let is_end = |byte: &u8| match is_comment {
            true => matches!(byte, b'\n' | b'\r'),
            false => byte.is_ascii_whitespace(),
        };
        let Some(end) = rest.iter().position(is_end) else { break };
        let (word, after) = rest.split_at(end);
        rest = after;
        match word {
            // The comments are too long in total, which `add_text` reports below.
            [b'#', ..] if len > MAX_TEXT_LEN => {}
            [b'#', comment @ ..] => {
                let comment = comment.trim_ascii();
                let comment = utf8_or_latin1(&comment[..comment.len().min(MAX_TEXT_LEN + 1)]);
                len += comment.len() + 1;
                comments.push(comment);
            }
            b"ENDHDR" => break,
            _ => found += 1,
        }
    }
    add_text(metadata, COMMENT, comments.join("\n").trim(), losses);
}

/// Encodes PGM or PPM, which more programs read than PAM, or PAM if there is alpha. Comments follow the signature;
/// samples of 16 bits are big-endian.
fn encode(image: &Image) -> Result<Vec<u8>, BoxError> {
    let Image { width, height, channels, .. } = image;
    let max = if image.samples.dtype() == Dtype::U16 { u16::MAX } else { u8::MAX.into() };
    let header = match channels {
        1 => format!("P5\n{width} {height}\n{max}\n"),
        3 => format!("P6\n{width} {height}\n{max}\n"),
        _ => {
            let kind = if *channels == 2 { "GRAYSCALE_ALPHA" } else { "RGB_ALPHA" };
            format!(
                "P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH {channels}\nMAXVAL {max}\n\
                 TUPLTYPE {kind}\nENDHDR\n"
            )
        }
    };
    /// Length of the signature with its line end.
    const START: usize = 3;
    let texts =
        image.metadata.texts.iter().filter(|text| TextSupport::COMMENT.supports(&text.keyword));
    let lines = texts.flat_map(|text| text.text.split(['\n', '\r']));
    let comments: String = lines.map(|line| format!("# {}\n", line.trim_end())).collect();
    let (signature, sides) = header.split_at(START);
    let header = [signature, &comments, sides].concat();
    let mut file = memory::room(header.len() + image.samples.as_bytes().len())?;
    file.extend_from_slice(header.as_bytes());
    match &image.samples {
        Samples::U16(samples) => file.extend(samples.iter().flat_map(|v| v.to_be_bytes())),
        samples => file.extend_from_slice(samples.as_bytes()),
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of 8 and 16 bits, grey and RGB, with and without alpha.
    #[test]
    fn files_decode_to_what_was_encoded() {
        for channels in 1..=4usize {
            let values = || (0..6 * channels).map(|i| i * 10_007);
            let eight = Samples::U8(values().map(|value| value as u8).collect());
            let sixteen = Samples::U16(values().map(|value| value as u16).collect());
            for samples in [eight, sixteen] {
                let metadata = Metadata::default();
                let (width, height) = (3, 2);
                let image = Image { width, height, channels, samples, is_linear: false, metadata };
                let file = encode(&image).unwrap();
                let decoded = decode(&file, Limits::from(u64::MAX)).unwrap().image;
                assert_eq!(decoded.samples, image.samples, "{channels}");
                assert_eq!((decoded.width, decoded.height), (width, height));
            }
        }
    }
}
