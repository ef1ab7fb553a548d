//! Animated PNG (PNG, third edition, 11.3.6). Frames are composed on a canvas, and written as whole images.

use std::{
    borrow::Cow,
    io::{self, Cursor, Write},
    marker::PhantomData,
    sync::Arc,
};

use png::{BlendOp, Decoder, DisposeOp, Reader, Transformations};

use super::{
    chunk::{SIGNATURE, checksum, chunk, readable, with_last_chunk},
    encode::encode,
    open::open,
};
use crate::{
    data::{dtype::Dtype, image::Image},
    io::{
        Limits,
        image::{
            canvas::{
                AnimationHeader, AnimationPages, Area, Disposal, Frame, FrameDecoder, Sample,
            },
            error::BoxError,
            pages::{Animation, Delay, Encoding, PageWriter, Pages, Series, UNEQUAL_FRAMES},
        },
    },
    util::memory,
};

/// The bytes of a file, which a reader shares with its successor.
#[derive(Clone)]
struct SharedBytes<'a>(Arc<Cow<'a, [u8]>>);

impl AsRef<[u8]> for SharedBytes<'_> {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

type FrameReader<'a> = Reader<Cursor<SharedBytes<'a>>>;

/// Decoder of the frames of a file.
struct ApngFrames<'a, T> {
    bytes: SharedBytes<'a>,
    reader: Option<FrameReader<'a>>,
    channels: usize,
    interlaced: bool,
    /// Whether the first image is a still image that is not part of the animation.
    has_still: bool,
    samples: PhantomData<T>,
}

struct Chunk<'a> {
    name: [u8; 4],
    data: &'a [u8],
    /// Checksum (CRC) stated in the file.
    sum: Option<u32>,
}

fn chunks(bytes: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    let mut rest = bytes.get(SIGNATURE.len()..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (len, after) = rest.split_first_chunk::<4>()?;
        let (name, after) = after.split_first_chunk::<4>()?;
        let len = u32::from_be_bytes(*len) as usize;
        let data = after.get(..len)?;
        let sum = after.get(len..).and_then(<[u8]>::first_chunk).copied().map(u32::from_be_bytes);
        rest = after.get(len + 4..).unwrap_or_default();
        Some(Chunk { name: *name, data, sum })
    })
}

fn word(data: &[u8], at: usize) -> u32 {
    data.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_be_bytes(*word))
}

/// Reads the headers of all frames and the number of plays; `None` for still images. A damaged or missing chunk of the
/// animation is an error; the png crate skips damaged chunks, except for pixels.
fn read_control(bytes: &[u8]) -> Result<Option<AnimationControl>, BoxError> {
    let mut found = AnimationControl { plays: 0, frames: Vec::new(), has_still: false };
    let mut count = None;
    for Chunk { name, data, sum } in chunks(bytes) {
        if [b"acTL", b"fcTL", b"fdAT"].contains(&&name) && sum != Some(checksum(&name, data)) {
            let name = String::from_utf8_lossy(&name);
            return Err(format!("its chunk {name} is damaged").into());
        }
        match &name {
            b"acTL" if count.is_none() => {
                count = Some(word(data, 0) as usize);
                found.plays = word(data, 4);
            }
            b"IDAT" if count.is_none() => return Ok(None),
            b"IDAT" if found.frames.is_empty() => found.has_still = true,
            b"fcTL" if data.len() >= 26 => found.frames.push(FrameHeader {
                size: [word(data, 4), word(data, 8)],
                delay: [
                    u16::from_be_bytes([data[20], data[21]]),
                    u16::from_be_bytes([data[22], data[23]]),
                ],
                // For the first frame, `Previous` (2) means `Background` (1; 11.3.6.2).
                clears: data[24] == 1 || data[24] == 2 && found.frames.is_empty(),
            }),
            _ => {}
        }
    }
    let Some(count) = count else { return Ok(None) };
    if found.frames.len() < count {
        let found_count = found.frames.len();
        return Err(format!("the file has {found_count} of its {count} frames").into());
    }
    found.frames.truncate(count);
    // Viewers of animations show a single frame that follows a still image.
    let is_shown = found.frames.len() > 1 || found.frames.len() == 1 && found.has_still;
    Ok(is_shown.then_some(found))
}

struct AnimationControl {
    plays: u32,
    frames: Vec<FrameHeader>,
    has_still: bool,
}

struct FrameHeader {
    size: [u32; 2],
    delay: [u16; 2],
    /// Whether the frame becomes transparent before the next is drawn.
    clears: bool,
}

/// Pages of an animation; `None` for still images.
pub fn pages(bytes: &[u8], limits: Limits) -> Result<Option<Box<dyn Pages + '_>>, BoxError> {
    let Some(AnimationControl { plays, frames, has_still }) = read_control(bytes)? else {
        return Ok(None);
    };
    let whole = SharedBytes(Arc::new(with_last_chunk(bytes, limits)?));
    let (reader, mut page) = open(Cursor::new(whole.as_ref()), Cursor::new(bytes))?;
    if has_still {
        page.losses.push("the still image for viewers without animation is left out".into());
    }
    let info = reader.info();
    let covers = frames[0].size == [info.width, info.height];
    let clears = frames[..frames.len() - 1].iter().any(|frame| frame.clears);
    let (channels, dtype) = (page.image.channels, page.image.samples.dtype());
    page.image.channels += usize::from(matches!(channels, 1 | 3) && (!covers || clears));
    // A denominator of 0 stands for 100.
    let denominator = |stated: u16| if stated == 0 { 100 } else { stated.into() };
    let delays = frames.iter().map(|FrameHeader { delay: [numerator, stated], .. }| Delay {
        seconds: [(*numerator).into(), denominator(*stated)],
    });
    let animation = Some(Animation { plays, delays: delays.collect() });
    let header = AnimationHeader { limits, page, count: frames.len(), animation };
    let interlaced = info.interlaced;
    Ok(Some(match dtype {
        Dtype::U16 => {
            let frames = ApngFrames::<u16>::new(whole.clone(), channels, interlaced, has_still);
            Box::new(AnimationPages::new(frames, header))
        }
        _ => {
            let frames = ApngFrames::<u8>::new(whole.clone(), channels, interlaced, has_still);
            Box::new(AnimationPages::new(frames, header))
        }
    }))
}

impl<'a, T> ApngFrames<'a, T> {
    fn new(bytes: SharedBytes<'a>, channels: usize, interlaced: bool, has_still: bool) -> Self {
        Self { bytes, reader: None, channels, interlaced, has_still, samples: PhantomData }
    }
}

/// Decodes the next image of a file. Returns its samples and layout.
fn next_picture(reader: &mut FrameReader<'_>) -> Result<(Vec<u8>, png::OutputInfo), BoxError> {
    let len = reader.output_buffer_size().ok_or("the image is too large for this machine")?;
    let mut samples = memory::zeros(len)?;
    let output = reader.next_frame(&mut samples).map_err(readable)?;
    Ok((samples, output))
}

impl<T: Sample> FrameDecoder for ApngFrames<'_, T> {
    type Sample = T;

    fn decode(&mut self, number: usize, _: Limits) -> Result<Frame<T>, BoxError> {
        if number == 0 {
            let reader = self.reader.insert(frame_reader(self.bytes.clone())?);
            if self.has_still {
                next_picture(reader)?;
            }
        }
        let reader = self.reader.as_mut().ok_or("a frame is missing")?;
        let (samples, output) = next_picture(reader)?;
        let control = reader.info().frame_control;
        let control = control.ok_or("a frame has no fcTL chunk")?;
        let size @ [width, height] = [output.width as usize, output.height as usize];
        let area = Area { origin: [control.x_offset as usize, control.y_offset as usize], size };
        let disposal = match control.dispose_op {
            DisposeOp::None => Disposal::Keep,
            // For the first frame, `Previous` means `Background` (11.3.6.2).
            DisposeOp::Previous if number > 0 => Disposal::Restore,
            DisposeOp::Background | DisposeOp::Previous => Disposal::Clear,
        };
        // The rows of an interlaced frame have the stride of the whole image.
        let row = match self.interlaced {
            true => reader.output_line_size(reader.info().width),
            false => Some(output.line_size),
        };
        let (row, sample) = (row.ok_or("the image is too large for this machine")?, size_of::<T>());
        // Samples are big-endian.
        let value =
            |bytes: &[u8]| T::from_number(bytes.iter().fold(0, |n, &b| n << 8 | u64::from(b)));
        let rgba = |pixel: &[u8]| {
            let value = |i: usize| value(&pixel[i * sample..][..sample]);
            match self.channels {
                1 => [value(0), value(0), value(0), T::MAX],
                2 => [value(0), value(0), value(0), value(1)],
                3 => [value(0), value(1), value(2), T::MAX],
                _ => [value(0), value(1), value(2), value(3)],
            }
        };
        let mut pixels = memory::room(width * height)?;
        for row in samples.chunks(row).take(height) {
            let row = row.get(..width * self.channels * sample).ok_or("a frame is too short")?;
            pixels.extend(row.chunks_exact(self.channels * sample).map(rgba));
        }
        Ok(Frame { area, disposal, blends: control.blend_op == BlendOp::Over, pixels })
    }
}

/// Opens a reader of frames without limits: the png crate counts each row towards its limits, and [`open`] has read the
/// chunks that need limits.
fn frame_reader(bytes: SharedBytes<'_>) -> Result<FrameReader<'_>, BoxError> {
    let limits = png::Limits { bytes: usize::MAX };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(Transformations::EXPAND);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.read_info().map_err(readable)
}

pub fn encode_pages<'a>(
    output: &'a mut dyn Write,
    series: Series,
    encoding: &Encoding,
) -> Result<Box<dyn PageWriter + 'a>, BoxError> {
    Ok(Box::new(ApngWriter {
        output,
        series,
        encoding: *encoding,
        written: 0,
        header: None,
        number: 0,
    }))
}

struct ApngWriter<'a> {
    output: &'a mut dyn Write,
    series: Series,
    encoding: Encoding,
    /// Frames written so far.
    written: usize,
    /// Header chunk of the first frame, which all frames share.
    header: Option<Vec<u8>>,
    /// The sequence number of the next chunk of the animation.
    number: u32,
}

impl ApngWriter<'_> {
    fn next_number(&mut self) -> [u8; 4] {
        self.number += 1;
        (self.number - 1).to_be_bytes()
    }

    /// Writes the frame control chunk of frame `self.written`, which has the size stated in `header`.
    fn control(&mut self, header: &[u8]) -> io::Result<()> {
        let delay = self.series.timing().1(self.written);
        let seconds = match delay.seconds.map(u16::try_from) {
            [Ok(numerator), Ok(denominator)] => [numerator, denominator],
            _ => [delay.in_units(1000, u16::MAX.into()) as u16, 1000],
        };
        let [numerator, denominator] = seconds.map(u16::to_be_bytes);
        let number = self.next_number();
        // Offset 0, no disposal, and the frame replaces the pixels below.
        let parts = [&number, &header[..8], &[0; 8], &numerator, &denominator, &[0, 0]];
        chunk(&mut self.output, b"fcTL", &parts)
    }
}

impl PageWriter for ApngWriter<'_> {
    fn page(&mut self, image: &Image) -> Result<(), BoxError> {
        let file = encode(image, &self.encoding)?;
        let header = chunks(&file).next().ok_or("there is no header")?.data;
        if *self.header.get_or_insert_with(|| header.to_vec()) != header {
            return Err(UNEQUAL_FRAMES.into());
        }
        if self.written == 0 {
            self.output.write_all(SIGNATURE)?;
        }
        let mut is_first = true;
        for Chunk { name, data, .. } in chunks(&file) {
            match &name {
                b"IDAT" => {
                    if is_first {
                        self.control(header)?;
                    }
                    is_first = false;
                    if self.written == 0 {
                        chunk(&mut self.output, &name, &[data])?;
                    } else {
                        let number = self.next_number();
                        chunk(&mut self.output, b"fdAT", &[&number, data])?;
                    }
                }
                b"IEND" => {}
                _ if self.written > 0 => {}
                _ => {
                    chunk(&mut self.output, &name, &[data])?;
                    if name == *b"IHDR" {
                        let count = u32::try_from(self.series.count)?.to_be_bytes();
                        let plays = self.series.timing().0.to_be_bytes();
                        chunk(&mut self.output, b"acTL", &[&count, &plays])?;
                    }
                }
            }
        }
        self.written += 1;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), BoxError> {
        Ok(chunk(&mut self.output, b"IEND", &[])?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{data::samples::Samples, io::image::png::zlib::compress};

    /// `Previous` of the first frame clears it (11.3.6.2), so that the next one is seen on transparent pixels.
    #[test]
    fn nothing_is_below_the_first_frame() {
        for (dispose, expected) in [
            (0, vec![0, 9, 0, 7, 7, 7]),
            (1, vec![0, 9, 0, 255, 0, 0, 0, 0]),
            (2, vec![0, 9, 0, 255, 0, 0, 0, 0]),
        ] {
            let control = |number: u32, width: u32, dispose: u8| {
                let words = [number, width, 1, 0, 0].map(u32::to_be_bytes).concat();
                [words, vec![0, 1, 0, 10, dispose, 0]].concat()
            };
            let mut file = SIGNATURE.to_vec();
            let mut add = |name: &[u8; 4], body: &[u8]| chunk(&mut file, name, &[body]).unwrap();
            add(b"IHDR", &[0, 0, 0, 2, 0, 0, 0, 1, 8, 2, 0, 0, 0]);
            add(b"acTL", &[0, 0, 0, 2, 0, 0, 0, 0]);
            add(b"fcTL", &control(0, 2, dispose));
            add(b"IDAT", &compress(&[0, 7, 7, 7, 7, 7, 7]).unwrap());
            add(b"fcTL", &control(1, 1, 0));
            let frame = [vec![0, 0, 0, 2], compress(&[0, 0, 9, 0]).unwrap()].concat();
            add(b"fdAT", &frame);
            add(b"IEND", &[]);
            // With and without IEND.
            for file in [&file[..], &file[..file.len() - 12]] {
                let mut pages = pages(file, Limits::from(1 << 20)).unwrap().unwrap();
                let samples = pages.decode(1).unwrap().image.samples;
                assert_eq!(samples, Samples::U8(expected.clone()), "{dispose}");
            }
        }
    }
}
