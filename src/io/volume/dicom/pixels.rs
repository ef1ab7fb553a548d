//! The pixels of DICOM frames (PS3.5, chapter 8 and annexes A and G): decompressed (RLE, JPEG), reduced to their
//! significant bits, and rescaled to values.

use std::{io::Read, ops::Range};

use super::{
    dataset::{Compression, Input},
    frames::Frames,
    image::Image,
    pixel_format::PixelFormat,
};
use crate::{
    data::dtype::Dtype,
    io::volume::{
        convert::rescale,
        header::{BoxError, Endian, Scale},
    },
    jpeg::{ColourModel, ColourSource, Container, JpegFile, Process},
    util::{
        error::{self, Error},
        memory,
    },
};

/// Reads frame `number` as values of type `to`, in the machine's byte order. Returns whether none was clipped to the
/// range of `to`, as happens if the range that the file states is wrong.
///
/// # Errors
/// When the frame cannot be read or is damaged.
pub fn read(
    image: &Image,
    number: usize,
    (scale, to): (Option<Scale>, Dtype),
    values: &mut [u8],
) -> Result<bool, BoxError> {
    let (mut stored, format) = match &image.frames {
        Frames::Plain { at, pairs } => read_plain(image, number, *at, *pairs)?,
        Frames::Compressed(_) if image.format.allocated < 8 => {
            return Err("compression of single bits is not supported".into());
        }
        Frames::Compressed(frames) => read_compressed(image, &frames[number])?,
    };
    if format.samples == 3 {
        stored = grey(&stored, &format)?;
    }
    Ok(convert(&stored, &format, scale, to, values))
}

/// Reads an uncompressed frame. Returns its samples in the machine's byte order, and their format.
fn read_plain(
    image: &Image,
    number: usize,
    at: u64,
    pairs: bool,
) -> Result<(Vec<u8>, PixelFormat), BoxError> {
    let format = image.format;
    if format.allocated == 1 {
        let stored = read_bits(image, number, at)?;
        return Ok((stored, PixelFormat { allocated: 8, stored: 8, high_bit: 7, ..format }));
    }
    let len = if pairs { format.subsampled_count() } else { format.frame_bytes() };
    let first = number as u64 * len as u64;
    let mut stored = memory::zeros::<u8>(len)?;
    let is_big = image.data.syntax.endian == Endian::Big;
    let are_words = image.data.pixels.is_some_and(|pixels| pixels.are_words);
    match format.allocated {
        8 if are_words && is_big => read_swapped(image, at, first, &mut stored)?,
        8 => image.read_at(at + first, &mut stored)?,
        bits => {
            image.read_at(at + first, &mut stored)?;
            image.data.syntax.endian.to_native(&mut stored, bits as usize / 8);
        }
    }
    match pairs {
        true => Ok((expand_chroma(&stored)?, PixelFormat { planar: false, ..format })),
        false => Ok((stored, format)),
    }
}

/// Reads a frame of single bits as one byte each. Frames follow each other without padding, and the first pixel is the
/// lowest bit.
fn read_bits(image: &Image, number: usize, at: u64) -> Result<Vec<u8>, BoxError> {
    let count = image.format.count();
    let first = number as u64 * count as u64;
    let last = first + count as u64;
    let mut packed = memory::zeros::<u8>((last.div_ceil(8) - first / 8) as usize)?;
    image.read_at(at + first / 8, &mut packed)?;
    let mut bits = memory::zeros(count)?;
    for (i, value) in bits.iter_mut().enumerate() {
        let bit = (first % 8) as usize + i;
        *value = packed[bit / 8] >> (bit % 8) & 1;
    }
    Ok(bits)
}

/// Reads the bytes of a frame, from byte `first` on, out of 16-bit big-endian words, whose bytes are swapped. The frame
/// may begin or end within a word.
fn read_swapped(image: &Image, at: u64, first: u64, stored: &mut [u8]) -> Result<(), BoxError> {
    let begin = first / 2 * 2;
    let end = (first + stored.len() as u64).next_multiple_of(2);
    let mut words = memory::zeros::<u8>((end - begin) as usize)?;
    image.read_at(at + begin, &mut words)?;
    words.as_chunks_mut::<2>().0.iter_mut().for_each(|word| word.reverse());
    stored.copy_from_slice(&words[(first - begin) as usize..][..stored.len()]);
    Ok(())
}

/// Reads and decompresses a frame. Returns its samples in the machine's byte order, and their format.
fn read_compressed(
    image: &Image,
    fragments: &[Range<u64>],
) -> Result<(Vec<u8>, PixelFormat), BoxError> {
    let syntax = image.data.syntax;
    let mut packed = Vec::new();
    for fragment in fragments {
        let bytes = fragment.end - fragment.start;
        let input = Input::open(&image.path, syntax.deflated, fragment.start)?;
        packed.try_reserve(bytes as usize)?;
        input.take(bytes).read_to_end(&mut packed)?;
    }
    let mut format = image.format;
    let mut stored = memory::zeros::<u8>(format.frame_bytes())?;
    match syntax.compression {
        Compression::Rle => {
            decode_rle(&packed, &format, &mut stored)?;
            // Decoding interleaved the planes.
            format.planar = false;
        }
        Compression::Jpeg | Compression::JpegOf12Bits | Compression::JpegLossless => {
            memory::catch(|| decode_jpeg(&packed, &mut format, &mut stored))?;
        }
        #[cfg(feature = "jpeg2000")]
        Compression::Jpeg2000 => {
            super::jpeg2000::decode(&packed, &format, &mut stored)?;
            (format.planar, format.ybr) = (false, false);
        }
        Compression::None => unreachable!("compressed"),
    }
    Ok((stored, format))
}

/// Decodes RLE (PS3.5, annex G): one segment for each byte of a pixel, the high byte of a sample first.
fn decode_rle(packed: &[u8], format: &PixelFormat, stored: &mut [u8]) -> Result<(), BoxError> {
    let bytes = format.allocated as usize / 8;
    let pixel = bytes * format.samples;
    let header = packed.get(..64).ok_or("RLE data end within their header")?;
    let word =
        |i: usize| u32::from_le_bytes(header[4 * i..][..4].try_into().expect("four")) as usize;
    if word(0) != pixel || pixel > 15 {
        return Err(format!("{} segments of RLE data; expected {pixel}", word(0)).into());
    }
    for segment in 0..pixel {
        // Byte of the little-endian pixel that this segment fills.
        let byte = segment / bytes * bytes + (bytes - 1 - segment % bytes);
        let mut input =
            packed.get(word(segment + 1)..).ok_or("invalid offset of a segment of RLE data")?;
        let mut out = stored.iter_mut().skip(byte).step_by(pixel);
        let short = "RLE data end early";
        while out.len() > 0 {
            let (&control, rest) = input.split_first().ok_or(short)?;
            input = rest;
            match control {
                0..128 => {
                    let count = usize::from(control) + 1;
                    let count = count.min(out.len());
                    let (literal, rest) = input.split_at_checked(count).ok_or(short)?;
                    input = rest;
                    literal.iter().zip(&mut out).for_each(|(&byte, out)| *out = byte);
                }
                128 => {}
                _ => {
                    let (&byte, rest) = input.split_first().ok_or(short)?;
                    input = rest;
                    out.by_ref().take(257 - usize::from(control)).for_each(|out| *out = byte);
                }
            }
        }
    }
    Ok(())
}

/// Decodes a JPEG picture. A byte of padding may follow it.
fn decode_jpeg(packed: &[u8], format: &mut PixelFormat, stored: &mut [u8]) -> error::Result<()> {
    let colour = match format.samples == 3 && !format.ybr {
        true => ColourSource::Fallback(ColourModel::Rgb),
        false => ColourSource::FromFile,
    };
    let file = JpegFile::parse(packed, &Container { colour, tables: &[] })?;
    let ([width, height], count) = (file.frame.size, file.frame.components.len());
    let refused = |message: String| Err(Error::bad_input(message));
    if [width, height, count] != [format.columns, format.rows, format.samples] {
        return refused(format!(
            "JPEG picture of {width}x{height} pixels of {count} samples; expected {}x{} of {}",
            format.columns, format.rows, format.samples
        ));
    }
    if file.precision > format.allocated || format.allocated > 16 {
        let (found, expected) = (file.precision, format.allocated.min(16));
        return refused(format!("JPEG picture of {found} bits per sample; expected {expected}"));
    }
    format.planar = false;
    if format.allocated == 8 && file.process != Process::Lossless {
        let (samples, damage) = file.decode(1)?;
        stored.copy_from_slice(&samples);
        format.ybr = false;
        return damage.map_or(Ok(()), |damage| refused(damage.to_string()));
    }
    let samples = file.decode_16_bits()?;
    match format.allocated {
        8 => stored.iter_mut().zip(&samples).for_each(|(to, &sample)| *to = sample as u8),
        _ => stored.copy_from_slice(bytemuck::cast_slice(&samples)),
    }
    Ok(())
}

/// Expands Y, Y, Cb, Cr of two pixels to Y, Cb, Cr of each (YBR_FULL_422; PS3.3, C.7.6.3.1.2).
fn expand_chroma(pairs: &[u8]) -> Result<Vec<u8>, BoxError> {
    let mut pixels = memory::room(pairs.len() / 2 * 3)?;
    for &[first, second, blue, red] in pairs.as_chunks().0 {
        pixels.extend([first, blue, red, second, blue, red]);
    }
    Ok(pixels)
}

fn grey(stored: &[u8], format: &PixelFormat) -> Result<Vec<u8>, BoxError> {
    let pixels = format.rows * format.columns;
    let mut grey = memory::zeros(pixels)?;
    for (i, grey) in grey.iter_mut().enumerate() {
        let [r, g, b] = match format.planar {
            true => [stored[i], stored[pixels + i], stored[2 * pixels + i]],
            false => [stored[3 * i], stored[3 * i + 1], stored[3 * i + 2]],
        }
        .map(f64::from);
        let [r, g, b] = match format.ybr {
            // PS3.3, C.7.6.3.1.2.
            true => {
                let (y, b, r) = (r, g - 128.0, b - 128.0);
                [y + 1.402 * r, y - 0.3441 * b - 0.7141 * r, y + 1.772 * b]
                    .map(|v| v.round().clamp(0.0, 255.0))
            }
            false => [r, g, b],
        };
        *grey = ((r + g + b) / 3.0).round() as u8;
    }
    Ok(grey)
}

/// Takes the significant bits of each stored sample, inverts MONOCHROME1 as ITK does, and rescales them to values of
/// type `to`. Both are in the machine's byte order. Returns whether none was clipped to the range of `to`.
fn convert(
    stored: &[u8],
    format: &PixelFormat,
    scale: Option<Scale>,
    to: Dtype,
    values: &mut [u8],
) -> bool {
    let is_whole = format.stored == format.allocated && !format.inverted;
    if !format.float && is_whole && scale.is_none() && to == format.dtype() {
        values.copy_from_slice(stored);
        return true;
    }
    let (low, high) = format.range();
    let number = |bits: u32| {
        // Shift left to drop the bits above the high bit, then right, which repeats the sign, to drop those below.
        let (up, down) = (31 - format.high_bit, 32 - format.stored);
        let number = match format.signed {
            true => f64::from((bits << up) as i32 >> down),
            false => f64::from(bits << up >> down),
        };
        if format.inverted { low + high - number } else { number }
    };
    let words = stored.as_chunks().0.iter();
    match (format.float, format.allocated) {
        (true, 64) => {
            let doubles = stored.as_chunks().0.iter().map(|bytes| f64::from_ne_bytes(*bytes));
            rescale(doubles, scale, to, values)
        }
        (true, _) => rescale(words.map(|word| f32::from_ne_bytes(*word).into()), scale, to, values),
        (_, 8) => rescale(stored.iter().map(|&byte| number(byte.into())), scale, to, values),
        (_, 16) => {
            let halves = stored.as_chunks().0.iter();
            let numbers = halves.map(|half| number(u16::from_ne_bytes(*half).into()));
            rescale(numbers, scale, to, values)
        }
        _ => rescale(words.map(|word| number(u32::from_ne_bytes(*word))), scale, to, values),
    }
}
