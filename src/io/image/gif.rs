//! GIF, by the gif crate. Frames are composed on a canvas, and written with a palette per frame.

use std::io::{Cursor, Write};

use ::gif::{
    ColorOutput, DecodeOptions, Decoder, DisposalMethod, Encoder, Extension, Frame as GifFrame,
    MemoryLimit, Repeat,
};

use super::{
    canvas::{AnimationHeader, AnimationPages, Area, Disposal, Frame, FrameDecoder},
    codec::{Capabilities, Codec, Decode, MetadataSupport, TextSupport},
    error::BoxError,
    limits::check_size,
    metadata::{MAX_TEXT_LEN, MetadataBlock, add_text, utf8_or_latin1},
    pages::{Animation, DecodedPage, Delay, Encoding, PageWriter, Series},
};
use crate::{
    data::{
        dtype::Dtype,
        image::{Image, Metadata, Orientation, Text},
        samples::Samples,
    },
    io::{Limits, RegularFile},
    util::memory,
};

pub const CODEC: Codec = Codec {
    capabilities: Capabilities {
        has_true_color: false,
        has_durations: true,
        metadata: MetadataSupport { texts: TextSupport::COMMENT, ..MetadataSupport::NONE },
        ..Capabilities::PLAIN
    },
    encode_pages: Some(encode_pages),
    max_decoded_bytes: Some(canvas_bytes),
    ..Codec::new(
        "GIF",
        &["gif"],
        |bytes| bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a"),
        Decode::Pages(|bytes, limits| Ok(Box::new(open(bytes, limits)?))),
        encode,
    )
};

/// Bytes of the canvas as RGBA.
fn canvas_bytes(file: &RegularFile) -> Option<u64> {
    let &[.., w0, w1, h0, h1] = file.first.first_chunk::<10>()?;
    Some(4 * u64::from(u16::from_le_bytes([w0, w1])) * u64::from(u16::from_le_bytes([h0, h1])))
}

/// Units of delay per second.
const UNITS: u32 = 100;

/// Decoder of the frames of a file.
struct GifFrames<'a> {
    bytes: &'a [u8],
    decoder: Option<Decoder<Cursor<&'a [u8]>>>,
}

fn decoder(bytes: &[u8], limits: Limits, skips: bool) -> Result<Decoder<Cursor<&[u8]>>, BoxError> {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    options.set_memory_limit(MemoryLimit::Bytes(limits.bytes().max(1).try_into()?));
    options.skip_frame_decoding(skips);
    Ok(options.read_info(Cursor::new(bytes))?)
}

fn open(bytes: &[u8], limits: Limits) -> Result<AnimationPages<GifFrames<'_>>, BoxError> {
    let mut decoder = decoder(bytes, limits, true)?;
    let size = [usize::from(decoder.width()), usize::from(decoder.height())];
    let FrameHeaders { delays, is_grey, is_opaque, damage } =
        FrameHeaders::read(&mut decoder, size)?;
    let plays = match decoder.repeat() {
        Repeat::Infinite => 0,
        Repeat::Finite(again) => u32::from(again) + 1,
    };
    let mut losses = Vec::new();
    let mut metadata = Metadata {
        icc: MetadataBlock::Icc.capped(decoder.icc_profile().map(<[u8]>::to_vec), &mut losses),
        xmp: MetadataBlock::Xmp.capped(decoder.xmp_metadata().map(<[u8]>::to_vec), &mut losses),
        ..Metadata::default()
    };
    read_comments(bytes, &mut metadata, &mut losses);
    let channels = if is_grey { 1 } else { 3 } + usize::from(!is_opaque);
    let orientation = Orientation::default();
    let mut page = DecodedPage::header(size, channels, Dtype::U8, metadata, orientation, losses)?;
    page.damage = damage;
    let count = delays.len();
    let animation = (count > 1).then_some(Animation { plays, delays });
    let header = AnimationHeader { limits, page, count, animation };
    Ok(AnimationPages::new(GifFrames { bytes, decoder: None }, header))
}

/// Properties of all frames together, from their headers.
struct FrameHeaders {
    delays: Vec<Delay>,
    is_grey: bool,
    /// Whether all pixels of all frames are opaque.
    is_opaque: bool,
    /// Warning about frames that cannot be read.
    damage: Option<String>,
}

impl FrameHeaders {
    fn read(
        decoder: &mut Decoder<Cursor<&[u8]>>,
        [width, height]: [usize; 2],
    ) -> Result<Self, BoxError> {
        let are_grey =
            |palette: &[u8]| palette.as_chunks::<3>().0.iter().all(|&[r, g, b]| r == g && g == b);
        let mut found = Self { delays: Vec::new(), is_grey: true, is_opaque: true, damage: None };
        // Whether pixels are opaque after the disposal of the last frame.
        let mut stays_opaque = true;
        loop {
            let count = found.delays.len();
            let frame = match decoder.next_frame_info() {
                Ok(Some(frame)) => frame,
                Ok(None) if count == 0 => return Err("the file contains no image".into()),
                Ok(None) => return Ok(found),
                Err(error) if count == 0 => return Err(error.into()),
                Err(error) => {
                    let damage = format!("the data after frame {count} cannot be read: {error}");
                    return Ok(Self { damage: Some(damage), ..found });
                }
            };
            found.is_opaque &= stays_opaque;
            if count == 0 {
                let covers = frame.left == 0
                    && frame.top == 0
                    && usize::from(frame.width) >= width
                    && usize::from(frame.height) >= height;
                found.is_opaque = covers && frame.transparent.is_none();
            }
            stays_opaque = match frame.dispose {
                DisposalMethod::Any | DisposalMethod::Keep => true,
                DisposalMethod::Background => false,
                // Before the first frame, the canvas is transparent.
                DisposalMethod::Previous => count > 0,
            };
            found.delays.push(Delay { seconds: [frame.delay.into(), UNITS] });
            let local = frame.palette.as_deref().map(are_grey);
            found.is_grey &= local.unwrap_or_else(|| decoder.global_palette().is_none_or(are_grey));
        }
    }
}

impl FrameDecoder for GifFrames<'_> {
    type Sample = u8;

    fn decode(&mut self, number: usize, limits: Limits) -> Result<Frame<u8>, BoxError> {
        if number == 0 {
            self.decoder = Some(decoder(self.bytes, limits, false)?);
        }
        let ends = "the file ends early";
        let decoder = self.decoder.as_mut().ok_or(ends)?;
        let frame = decoder.next_frame_info()?.ok_or(ends)?;
        let size = [usize::from(frame.width), usize::from(frame.height)];
        let area = Area { origin: [usize::from(frame.left), usize::from(frame.top)], size };
        let (transparent, disposal) = (
            frame.transparent,
            match frame.dispose {
                DisposalMethod::Any | DisposalMethod::Keep => Disposal::Keep,
                DisposalMethod::Background => Disposal::Clear,
                DisposalMethod::Previous => Disposal::Restore,
            },
        );
        let mut pixels = Vec::new();
        if !size.contains(&0) {
            let count = size[0] * size[1];
            check_size(limits, size, count as u64)?;
            let colours = palette(decoder.palette()?, transparent);
            let mut indices = memory::zeros(count)?;
            decoder.read_into_buffer(&mut indices)?;
            pixels = memory::room(count)?;
            pixels.extend(indices.into_iter().map(|index| colours[usize::from(index)]));
        }
        Ok(Frame { area, disposal, blends: true, pixels })
    }
}

/// Adds the comments of a file (GIF89a specification, section 24), which the gif crate skips.
fn read_comments(bytes: &[u8], metadata: &mut Metadata, losses: &mut Vec<String>) {
    const COMMENT: u8 = 0xfe;
    let table = |packed: u8| if packed & 0x80 != 0 { 3 << ((packed & 7) + 1) } else { 0 };
    // Truncated files have been reported as damaged already.
    let mut walk = || -> Option<()> {
        let mut at = 13 + table(*bytes.get(10)?);
        loop {
            let comment = match bytes.get(at)? {
                0x21 => {
                    at += 2;
                    bytes.get(at - 1) == Some(&COMMENT)
                }
                0x2c => {
                    // Separator, position, size and flags (10 bytes), local palette, minimal code size.
                    at += 11 + table(*bytes.get(at + 9)?);
                    false
                }
                _ => return Some(()),
            };
            let mut text = Vec::new();
            loop {
                let len = usize::from(*bytes.get(at)?);
                let block = bytes.get(at + 1..at + 1 + len)?;
                at += 1 + len;
                if len == 0 {
                    break;
                }
                // One byte more than the limit is enough for `add_text` to report the text as too long.
                if comment && text.len() <= MAX_TEXT_LEN {
                    text.extend_from_slice(block);
                }
            }
            if comment {
                add_text(metadata, "Comment", &utf8_or_latin1(&text), losses);
            }
        }
    };
    walk();
}

/// RGBA colours of all indices. Indices beyond the palette are black.
fn palette(palette: &[u8], transparent: Option<u8>) -> Vec<[u8; 4]> {
    let mut colours = vec![[0, 0, 0, 255]; 256];
    for (colour, &[r, g, b]) in colours.iter_mut().zip(palette.as_chunks::<3>().0) {
        *colour = [r, g, b, 255];
    }
    if let Some(index) = transparent {
        colours[usize::from(index)] = [0; 4];
    }
    colours
}

fn encode(image: &Image, encoding: &Encoding) -> Result<Vec<u8>, BoxError> {
    let mut bytes = Vec::new();
    let series = Series { count: 1, sample_bytes: 0, animation: None };
    let mut file = encode_pages(&mut bytes, series, encoding)?;
    file.page(image)?;
    file.finish()?;
    Ok(bytes)
}

fn encode_pages<'a>(
    output: &'a mut dyn Write,
    series: Series,
    _: &Encoding,
) -> Result<Box<dyn PageWriter + 'a>, BoxError> {
    Ok(Box::new(GifWriter { output: Some(output), encoder: None, series, written: 0 }))
}

struct GifWriter<'a> {
    /// Output, until the first page creates the encoder, which needs the size of the image.
    output: Option<&'a mut dyn Write>,
    encoder: Option<Encoder<&'a mut dyn Write>>,
    series: Series,
    written: usize,
}

impl PageWriter for GifWriter<'_> {
    fn page(&mut self, image: &Image) -> Result<(), BoxError> {
        let sides = [image.width, image.height].map(u16::try_from);
        let [Ok(width), Ok(height)] = sides else {
            return Err("GIF images have at most 65,535 pixels per side; write .png or .tif".into());
        };
        let (plays, delay) = self.series.timing();
        if let Some(output) = self.output.take() {
            let mut encoder = Encoder::new(output, width, height, &[])?;
            if self.series.count > 1 && plays != 1 {
                let again = u16::try_from(plays.saturating_sub(1)).unwrap_or(u16::MAX);
                encoder.set_repeat(match plays {
                    0 => Repeat::Infinite,
                    _ => Repeat::Finite(again),
                })?;
            }
            let is_comment = |text: &&Text| TextSupport::COMMENT.supports(&text.keyword);
            for text in image.metadata.texts.iter().filter(is_comment) {
                encoder.write_raw_extension(Extension::Comment.into(), &[text.text.as_bytes()])?;
            }
            self.encoder = Some(encoder);
        }
        let Samples::U8(samples) = &image.samples else { unreachable!("GIF holds u8") };
        let mut frame = frame(samples, image.channels, [width, height])?;
        if self.series.count > 1 {
            frame.delay = delay(self.written).in_units(UNITS, u16::MAX.into()) as u16;
        }
        // Transparent pixels must not show the previous frame.
        frame.dispose = match image.has_alpha() {
            true => DisposalMethod::Background,
            false => DisposalMethod::Keep,
        };
        self.encoder.as_mut().expect("made above").write_frame(&frame)?;
        self.written += 1;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), BoxError> {
        // `into_inner` writes the trailer.
        self.encoder.map_or(Ok(()), |encoder| Ok(encoder.into_inner().map(drop)?))
    }
}

/// Encodes a frame, lossless if it is grey or has at most 256 colours.
fn frame(
    samples: &[u8],
    channels: usize,
    [width, height]: [u16; 2],
) -> Result<GifFrame<'static>, BoxError> {
    /// Speed of the palette search, from 1, the best result, to 30. At 10 it takes about a second for two megapixels,
    /// and the result differs from the best one by about the rounding of 8 bits.
    const SPEED: i32 = 10;
    let half = |alpha: u8| if alpha < 128 { 0 } else { 255 };
    Ok(match channels {
        1 => {
            let grey: Vec<u8> = (0..=255).flat_map(|v| [v; 3]).collect();
            GifFrame::from_palette_pixels(width, height, samples, &grey[..], None)
        }
        3 => GifFrame::from_rgb_speed(width, height, samples, SPEED),
        _ => {
            let mut rgba = memory::room(samples.len() / channels * 4)?;
            for pixel in samples.chunks_exact(channels) {
                match *pixel {
                    [grey, alpha] => rgba.extend([grey, grey, grey, half(alpha)]),
                    [r, g, b, alpha] => rgba.extend([r, g, b, half(alpha)]),
                    _ => unreachable!("two or four channels"),
                }
            }
            GifFrame::from_rgba_speed(width, height, &mut rgba, SPEED)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::image::pages::Pages;

    /// Pixels of the first frame become transparent if they are restored.
    #[test]
    fn nothing_is_below_the_first_frame() {
        for (dispose, expected) in [
            (DisposalMethod::Keep, vec![9, 7]),
            (DisposalMethod::Background, vec![9, 255, 0, 0]),
            (DisposalMethod::Previous, vec![9, 255, 0, 0]),
        ] {
            let grey: Vec<u8> = (0..16).flat_map(|v| [v; 3]).collect();
            let mut file = Vec::new();
            let mut encoder = Encoder::new(&mut file, 2, 1, &grey).unwrap();
            for (width, dispose) in [(2, dispose), (1, DisposalMethod::Keep)] {
                let buffer = if width == 2 { vec![7; 2] } else { vec![9] };
                let frame = GifFrame {
                    width,
                    height: 1,
                    dispose,
                    buffer: buffer.into(),
                    ..GifFrame::default()
                };
                encoder.write_frame(&frame).unwrap();
            }
            drop(encoder);
            let mut pages = open(&file, Limits::from(1 << 20)).unwrap();
            let samples = pages.decode(1).unwrap().image.samples;
            assert_eq!(samples, Samples::U8(expected), "{dispose:?}");
        }
    }
}
