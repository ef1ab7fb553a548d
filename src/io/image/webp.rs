//! WebP, by the image-webp crate. Reads lossy and lossless images and animations, and writes
//! lossless ones. Lossy ones are written by [`vp8`](super::vp8).

use std::io::Write;

use image::ImageFormat;
use image_webp::{ColorType, WebPEncoder};

#[cfg(feature = "webp-lossy")]
use super::vp8::encode as encode_lossy;
use super::{
    canvas::{AnimationHeader, AnimationPages, Area, Disposal, Frame, FrameDecoder},
    codec::{Capabilities, Codec, Decode, MetadataSupport},
    error::BoxError,
    image_crate::{self, open},
    limits::MIN_SCRATCH,
    metadata::MetadataBlock,
    pages::{
        Animation, DecodedPage, Delay, Encoding, OnePage, PageWriter, Pages, Series, UNEQUAL_FRAMES,
    },
    probe::Probe,
    riff, sandbox,
};
use crate::{
    data::{
        image::{Image, Metadata},
        samples::Samples,
    },
    io::{Limits, RegularFile},
    util::memory,
};

pub const CODEC: Codec = Codec {
    capabilities: Capabilities {
        has_grey: false,
        has_durations: true,
        metadata: MetadataSupport {
            blocks: &[MetadataBlock::Icc, MetadataBlock::Exif, MetadataBlock::Xmp],
            ..MetadataSupport::NONE
        },
        ..Capabilities::PLAIN
    },
    encode_pages: Some(encode_pages),
    probe: Some(probe),
    ..Codec::new(
        "WEBP",
        &["webp"],
        |bytes| bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"),
        Decode::Pages(pages),
        encode,
    )
};

fn probe(file: &RegularFile, bytes: Option<&[u8]>) -> Result<Probe, BoxError> {
    image_crate::probe(ImageFormat::WebP, CODEC.name, file, bytes)
}

fn pages(bytes: &[u8], limits: Limits) -> Result<Box<dyn Pages + '_>, BoxError> {
    let frames: Vec<WebPFrame<'_>> = frames(bytes).collect();
    if frames.is_empty() {
        return Ok(Box::new(OnePage(move || decode(bytes, limits))));
    }
    let (count, delays) = (frames.len(), frames.iter().map(|frame| frame.delay).collect());
    let header = chunk(bytes, b"VP8X").and_then(<[u8]>::first_chunk::<10>);
    let &[flags, _, _, _, w0, w1, w2, h0, h1, h2] = header.ok_or("its VP8X header is missing")?;
    let side = |bytes: [u8; 3]| number(bytes) + 1;
    let plays = chunk(bytes, b"ANIM").and_then(|data| data.get(4..)?.first_chunk());
    let plays = plays.map_or(0, |plays| u16::from_le_bytes(*plays).into());
    // The image-webp crate takes opacity from the pixels of a frame, not from its header, so each frame is decoded as a
    // separate file.
    let mut page = open(ImageFormat::WebP, bytes, limits)?.page;
    page.image.width = side([w0, w1, w2]);
    page.image.height = side([h0, h1, h2]);
    page.image.channels = if flags & ALPHA == 0 { 3 } else { 4 };
    let animation = (count > 1).then_some(Animation { plays, delays });
    let header = AnimationHeader { limits, page, count, animation };
    Ok(Box::new(AnimationPages::new(frames, header)))
}

/// Flag of a VP8X header: pixels may be transparent.
const ALPHA: u8 = 1 << 4;

fn number([low, middle, high]: [u8; 3]) -> usize {
    u32::from_le_bytes([low, middle, high, 0]) as usize
}

/// The data of the first chunk named `wanted`.
fn chunk<'a>(bytes: &'a [u8], wanted: &[u8; 4]) -> Option<&'a [u8]> {
    riff::chunks(bytes).find(|(name, _)| name == wanted).map(|(_, data)| data)
}

struct WebPFrame<'a> {
    area: Area,
    delay: Delay,
    blends: bool,
    disposal: Disposal,
    /// Chunks of the image of the frame.
    picture: &'a [u8],
}

fn frames(bytes: &[u8]) -> impl Iterator<Item = WebPFrame<'_>> {
    riff::chunks(bytes).filter(|(name, _)| name == b"ANMF").filter_map(|(_, data)| {
        let (header, picture) = data.split_first_chunk::<16>()?;
        let three = |at: usize| number([header[at], header[at + 1], header[at + 2]]);
        Some(WebPFrame {
            area: Area { origin: [2 * three(0), 2 * three(3)], size: [three(6) + 1, three(9) + 1] },
            delay: Delay { seconds: [three(12) as u32, 1000] },
            blends: header[15] & 2 == 0,
            disposal: if header[15] & 1 == 0 { Disposal::Keep } else { Disposal::Clear },
            picture,
        })
    })
}

impl WebPFrame<'_> {
    /// Converts the image of the frame to a WebP file.
    fn to_file(&self) -> Vec<u8> {
        // `chunk` skips the header of a file, 12 bytes.
        let chunks = [&[0; 12], self.picture].concat();
        let mut file = b"RIFF\0\0\0\0WEBP".to_vec();
        if let Some(data) = chunk(&chunks, b"VP8L") {
            riff::push(&mut file, b"VP8L", &[data]);
        } else {
            if let Some(alpha) = chunk(&chunks, b"ALPH") {
                let [width, height] = self.area.size.map(|side| three_bytes(side - 1));
                riff::push(&mut file, b"VP8X", &[&[ALPHA, 0, 0, 0], &width, &height]);
                riff::push(&mut file, b"ALPH", &[alpha]);
            }
            if let Some(data) = chunk(&chunks, b"VP8 ") {
                riff::push(&mut file, b"VP8 ", &[data]);
            }
        }
        let len = (file.len() - 8) as u32;
        file[4..8].copy_from_slice(&len.to_le_bytes());
        file
    }
}

impl FrameDecoder for Vec<WebPFrame<'_>> {
    type Sample = u8;

    fn decode(&mut self, number: usize, limits: Limits) -> Result<Frame<u8>, BoxError> {
        let &WebPFrame { area, blends, disposal, .. } = &self[number];
        let DecodedPage { image, .. } = decode(&self[number].to_file(), limits)?;
        if [image.width, image.height] != area.size {
            return Err("the size of a frame differs from its header".into());
        }
        let Samples::U8(samples) = &image.samples else { unreachable!("WebP holds u8") };
        let mut pixels = memory::room(image.width * image.height)?;
        let rgba = |pixel: &[u8]| [pixel[0], pixel[1], pixel[2], *pixel.get(3).unwrap_or(&u8::MAX)];
        pixels.extend(samples.chunks_exact(image.channels).map(rgba));
        Ok(Frame { area, disposal, blends, pixels })
    }
}

fn decode(bytes: &[u8], limits: Limits) -> Result<DecodedPage, BoxError> {
    /// Maximum number of bytes that the decoder allocates per byte of prefix codes, and in total. A table of 4 KiB has
    /// codes of ten lengths, which take about 90 bits in the file.
    const TABLES: u64 = 400;
    const ALL_TABLES: u64 = 65_536 * 5 * 4096;
    check_picture(bytes)?;
    let opened = open(ImageFormat::WebP, bytes, limits)?;
    let worst = TABLES.saturating_mul(bytes.len() as u64).min(ALL_TABLES);
    let allowed = limits.bytes().max(MIN_SCRATCH);
    if worst <= allowed || !has_prefix_codes(bytes) || !sandbox::is_available() {
        return opened.decode();
    }
    // The decoder converts between RGB and RGBA, and keeps the file in memory.
    let max_bytes = 3 * opened.bytes() + bytes.len() as u64 + allowed;
    log::debug!("decoding a WebP file in a child process, within {max_bytes} bytes");
    opened.decode_by(|_, samples| sandbox::decode(bytes, max_bytes, samples))
}

/// Returns an error if the size of the image differs from that in the VP8X header. The decoder only checks this after
/// decoding, which may take much memory, and panics on some files.
fn check_picture(bytes: &[u8]) -> Result<(), BoxError> {
    let Some((name, header)) = riff::chunks(bytes).next() else { return Ok(()) };
    let (b"VP8X", &[_, _, _, _, w0, w1, w2, h0, h1, h2, ..]) = (&name, header) else {
        return Ok(());
    };
    let stated = [[w0, w1, w2], [h0, h1, h2]].map(|side| number(side) + 1);
    let picture = riff::chunks(bytes).find_map(|(name, data)| match (&name, data) {
        (b"VP8L", &[_, a, b, c, d, ..]) => {
            let bits = u32::from_le_bytes([a, b, c, d]);
            Some([bits, bits >> 14].map(|side| (side & 0x3fff) as usize + 1))
        }
        // A frame tag and a signature of three bytes each precede the size, whose upper two bits are a scale.
        (b"VP8 ", &[_, _, _, _, _, _, a, b, c, d, ..]) => {
            Some([[a, b], [c, d]].map(|side| usize::from(u16::from_le_bytes(side) & 0x3fff)))
        }
        _ => None,
    });
    match picture {
        Some(size) if size != stated => Err(format!(
            "its image has {} x {} pixels, but its header states {} x {}",
            size[0], size[1], stated[0], stated[1]
        )
        .into()),
        _ => Ok(()),
    }
}

/// Whether a file has lossless data: an image or an alpha channel.
fn has_prefix_codes(bytes: &[u8]) -> bool {
    let has = |name: &[u8; 4]| bytes.windows(4).any(|found| found == name);
    has(b"VP8L") || has(b"ALPH")
}

/// Refuses images with sides that libwebp does not read. Lossless pictures might be a pixel larger (RFC 9649, 3.4).
fn check_sides(image: &Image) -> Result<(), BoxError> {
    const MAX_SIDE: usize = (1 << 14) - 1;
    if image.width.max(image.height) > MAX_SIDE {
        return Err("WebP images have at most 16,383 pixels per side; write .png or .tif".into());
    }
    Ok(())
}

fn encode(image: &Image, encoding: &Encoding) -> Result<Vec<u8>, BoxError> {
    check_sides(image)?;
    let mut bytes = Vec::new();
    if let Some(quality) = encoding.quality {
        let picture = encode_lossy(image, quality)?;
        let (metadata, size) = (&image.metadata, [image.width, image.height]);
        let flags = if image.has_alpha() { ALPHA } else { 0 };
        write_file(&mut bytes, size, flags, metadata, &[&picture])?;
        return Ok(bytes);
    }
    let mut encoder = WebPEncoder::new(&mut bytes);
    let Metadata { icc, exif, xmp, .. } = &image.metadata;
    encoder.set_icc_profile(icc.clone().unwrap_or_default());
    encoder.set_exif_metadata(exif.clone().unwrap_or_default());
    encoder.set_xmp_metadata(xmp.clone().unwrap_or_default());
    encode_to(encoder, image)?;
    Ok(bytes)
}

#[cfg(not(feature = "webp-lossy"))]
fn encode_lossy(_: &Image, _: u8) -> Result<Vec<u8>, BoxError> {
    Err("lossy WebP is not supported by this build; install with --features webp-lossy".into())
}

fn encode_to(encoder: WebPEncoder<&mut Vec<u8>>, image: &Image) -> Result<(), BoxError> {
    let colour = match image.channels {
        1 => ColorType::L8,
        2 => ColorType::La8,
        3 => ColorType::Rgb8,
        _ => ColorType::Rgba8,
    };
    let (width, height) = (image.width as u32, image.height as u32);
    Ok(encoder.encode(image.samples.as_bytes(), width, height, colour)?)
}

fn encode_pages<'a>(
    output: &'a mut dyn Write,
    series: Series,
    encoding: &Encoding,
) -> Result<Box<dyn PageWriter + 'a>, BoxError> {
    let quality = encoding.quality;
    let (first, frames, has_alpha) = (None, Vec::new(), false);
    Ok(Box::new(WebPWriter { output, series, quality, first, has_alpha, frames, written: 0 }))
}

/// An animation being written. The file begins with its length, so it is kept in memory until the end.
struct WebPWriter<'a> {
    output: &'a mut dyn Write,
    series: Series,
    /// Quality of lossy frames; `None` for lossless ones.
    quality: Option<u8>,
    /// Size and metadata of the first frame, which apply to all frames.
    first: Option<FirstFrame>,
    has_alpha: bool,
    /// Frames written so far.
    frames: Vec<u8>,
    written: usize,
}

struct FirstFrame {
    size: [usize; 2],
    metadata: Metadata,
}

/// The low 24 bits, little-endian.
fn three_bytes(number: usize) -> [u8; 3] {
    [number as u8, (number >> 8) as u8, (number >> 16) as u8]
}

impl PageWriter for WebPWriter<'_> {
    fn page(&mut self, image: &Image) -> Result<(), BoxError> {
        const MAX_DELAY: u32 = (1 << 24) - 1;
        /// Flag of a frame: its pixels replace those of the previous frame, without blending.
        const REPLACE: u8 = 2;
        check_sides(image)?;
        let size = [image.width, image.height];
        let first =
            self.first.get_or_insert_with(|| FirstFrame { size, metadata: image.metadata.clone() });
        if first.size != size {
            return Err(UNEQUAL_FRAMES.into());
        }
        self.has_alpha |= image.has_alpha();
        let [width, height] = size.map(|side| three_bytes(side - 1));
        let delay = self.series.timing().1(self.written).in_units(1000, MAX_DELAY);
        let delay = three_bytes(delay as usize);
        let picture = match self.quality {
            Some(quality) => encode_lossy(image, quality)?,
            None => encode_frame(image)?,
        };
        let parts = [&[0; 6][..], &width, &height, &delay, &[REPLACE], &picture];
        riff::push(&mut self.frames, b"ANMF", &parts);
        self.written += 1;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), BoxError> {
        let Some(FirstFrame { size, metadata }) = self.first else {
            return Ok(());
        };
        const ANIMATION: u8 = 1 << 1;
        let flags = ANIMATION | if self.has_alpha { ALPHA } else { 0 };
        let plays = u16::try_from(self.series.timing().0).unwrap_or(u16::MAX);
        let mut animation = Vec::new();
        // The first four bytes are the background colour, here transparent.
        riff::push(&mut animation, b"ANIM", &[&[0; 4], &plays.to_le_bytes()]);
        write_file(self.output, size, flags, &metadata, &[&animation, &self.frames])
    }
}

/// Writes a file of the chunks `images`. `flags` are those of its VP8X header, which is written only if a flag is set.
fn write_file(
    output: &mut dyn Write,
    size: [usize; 2],
    flags: u8,
    metadata: &Metadata,
    images: &[&[u8]],
) -> Result<(), BoxError> {
    let Metadata { icc, exif, xmp, .. } = metadata;
    let flags = flags
        | u8::from(xmp.is_some()) << 2
        | u8::from(exif.is_some()) << 3
        | u8::from(icc.is_some()) << 5;
    let [width, height] = size.map(|side| three_bytes(side - 1));
    let mut head = b"WEBP".to_vec();
    if flags != 0 {
        riff::push(&mut head, b"VP8X", &[&[flags, 0, 0, 0], &width, &height]);
    }
    if let Some(icc) = icc {
        riff::push(&mut head, b"ICCP", &[icc]);
    }
    let mut tail = Vec::new();
    for (name, data) in [(b"EXIF", exif), (b"XMP ", xmp)] {
        if let Some(data) = data {
            riff::push(&mut tail, name, &[data]);
        }
    }
    let images_len: usize = images.iter().map(|chunks| chunks.len()).sum();
    let len = u32::try_from(head.len() + images_len + tail.len());
    let len = len.map_err(|_| "WebP files have at most 4 GiB")?.to_le_bytes();
    let (start, end) = ([&b"RIFF"[..], &len, &head], [&tail[..]]);
    for part in start.iter().chain(images).chain(&end) {
        output.write_all(part)?;
    }
    Ok(())
}

/// The chunk of a lossless frame.
fn encode_frame(image: &Image) -> Result<Vec<u8>, BoxError> {
    let mut file = Vec::new();
    encode_to(WebPEncoder::new(&mut file), image)?;
    let data = chunk(&file, b"VP8L").ok_or("the encoder wrote no image")?;
    let mut picture = Vec::new();
    riff::push(&mut picture, b"VP8L", &[data]);
    Ok(picture)
}
