//! The pixels of DICOM frames (PS3.5, chapter 8 and annexes A and G): decompressed (RLE, JPEG), reduced to their
//! significant bits, and rescaled to values.

use std::{io::Read, ops::Range};

use super::{
    dataset::{Input, Packing},
    frames::Frames,
    image::Image,
    kind::Kind,
};
use crate::{
    data::dtype::{Dtype, Scalar},
    io::volume::format::{BoxError, Endian, Scale},
    jpeg::{ColourModel, ColourSource, Container, JpegFile, Process},
    util::{
        error::{self, Error},
        memory,
    },
};

/// Reads frame `number` as values of type `to`, in the machine's byte order. Returns false where `to` does not hold all
/// of them, so that some are clipped: then the range that the file states is wrong.
///
/// # Errors
/// When the frame cannot be read or is broken.
pub fn read(
    image: &Image,
    number: usize,
    (scale, to): (Option<Scale>, Dtype),
    values: &mut [u8],
) -> Result<bool, BoxError> {
    let (mut stored, kind) = match &image.frames {
        Frames::Plain { at, pairs } => plain(image, number, *at, *pairs)?,
        Frames::Packed(_) if image.kind.allocated < 8 => return Err("its bits are packed".into()),
        Frames::Packed(frames) => unpacked(image, &frames[number])?,
    };
    if kind.samples == 3 {
        stored = grey(&stored, &kind)?;
    }
    Ok(convert(&stored, &kind, scale, to, values))
}

/// Reads an uncompressed frame: its samples in the machine's byte order, and how they are stored now.
fn plain(image: &Image, number: usize, at: u64, pairs: bool) -> Result<(Vec<u8>, Kind), BoxError> {
    let kind = image.kind;
    if kind.allocated == 1 {
        let stored = single_bits(image, number, at)?;
        return Ok((stored, Kind { allocated: 8, stored: 8, high_bit: 7, ..kind }));
    }
    let len = if pairs { kind.count_of_pairs() } else { kind.frame_bytes() };
    let first = number as u64 * len as u64;
    let mut stored = memory::zeros::<u8>(len)?;
    let is_big = image.data.syntax.endian == Endian::Big;
    let are_words = image.data.pixels.is_some_and(|pixels| pixels.words);
    match kind.allocated {
        8 if are_words && is_big => swapped_bytes(image, at, first, &mut stored)?,
        8 => image.read_at(at + first, &mut stored)?,
        bits => {
            image.read_at(at + first, &mut stored)?;
            image.data.syntax.endian.make_native(&mut stored, bits as usize / 8);
        }
    }
    match pairs {
        true => Ok((apart(&stored)?, Kind { planar: false, ..kind })),
        false => Ok((stored, kind)),
    }
}

/// Reads a frame of single bits as one byte for each: frames follow each other without padding, and the first pixel is
/// the lowest bit.
fn single_bits(image: &Image, number: usize, at: u64) -> Result<Vec<u8>, BoxError> {
    let count = image.kind.count();
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

/// Reads the bytes of a frame out of 16-bit big-endian words, from byte `first` on: bytes are swapped in pairs.
/// The frame may begin or end within a pair.
fn swapped_bytes(image: &Image, at: u64, first: u64, stored: &mut [u8]) -> Result<(), BoxError> {
    let begin = first / 2 * 2;
    let end = (first + stored.len() as u64).next_multiple_of(2);
    let mut words = memory::zeros::<u8>((end - begin) as usize)?;
    image.read_at(at + begin, &mut words)?;
    words.as_chunks_mut::<2>().0.iter_mut().for_each(|word| word.reverse());
    stored.copy_from_slice(&words[(first - begin) as usize..][..stored.len()]);
    Ok(())
}

/// Reads and decompresses a frame: its samples in the machine's byte order, and how they are stored now.
fn unpacked(image: &Image, fragments: &[Range<u64>]) -> Result<(Vec<u8>, Kind), BoxError> {
    let syntax = image.data.syntax;
    let mut packed = Vec::new();
    for fragment in fragments {
        let bytes = fragment.end - fragment.start;
        let input = Input::open(&image.path, syntax.deflated, fragment.start)?;
        packed.try_reserve(bytes as usize)?;
        input.take(bytes).read_to_end(&mut packed)?;
    }
    let mut kind = image.kind;
    let mut stored = memory::zeros::<u8>(kind.frame_bytes())?;
    match syntax.packing {
        Packing::Rle => {
            run_lengths(&packed, &kind, &mut stored)?;
            // Decoding interleaved the planes.
            kind.planar = false;
        }
        Packing::Jpeg | Packing::JpegOf12Bits | Packing::JpegLossless => {
            memory::catch(|| jpeg(&packed, &mut kind, &mut stored))?;
        }
        #[cfg(feature = "jpeg2000")]
        Packing::Jpeg2000 => {
            super::jpeg2000::decode(&packed, &kind, &mut stored)?;
            (kind.planar, kind.ybr) = (false, false);
        }
        Packing::None => unreachable!("packed"),
    }
    Ok((stored, kind))
}

/// Decodes run lengths (PS3.5, annex G): one segment for each byte of a pixel, the high byte of a sample first.
fn run_lengths(packed: &[u8], kind: &Kind, stored: &mut [u8]) -> Result<(), BoxError> {
    let bytes = kind.allocated as usize / 8;
    let pixel = bytes * kind.samples;
    let header = packed.get(..64).ok_or("it ends within the header of run lengths")?;
    let word =
        |i: usize| u32::from_le_bytes(header[4 * i..][..4].try_into().expect("four")) as usize;
    if word(0) != pixel || pixel > 15 {
        return Err(format!("it has {} segments of run lengths, not {pixel}", word(0)).into());
    }
    for segment in 0..pixel {
        // Byte of the little-endian pixel that this segment fills.
        let place = segment / bytes * bytes + (bytes - 1 - segment % bytes);
        let mut input = packed.get(word(segment + 1)..).ok_or("a segment begins behind its end")?;
        let mut out = stored.iter_mut().skip(place).step_by(pixel);
        let short = "its run lengths end early";
        loop {
            if out.len() == 0 {
                break;
            }
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
    if cfg!(target_endian = "big") && bytes > 1 {
        stored.chunks_exact_mut(bytes).for_each(<[u8]>::reverse);
    }
    Ok(())
}

/// Decodes a JPEG picture. A byte of padding may follow it.
fn jpeg(packed: &[u8], kind: &mut Kind, stored: &mut [u8]) -> error::Result<()> {
    let colour = match kind.samples == 3 && !kind.ybr {
        true => ColourSource::Default(ColourModel::Rgb),
        false => ColourSource::Stated,
    };
    let file = JpegFile::parse(packed, &Container { colour, tables: &[] })?;
    let ([width, height], count) = (file.frame.size, file.frame.components.len());
    let refused = |message: String| Err(Error::bad_input(message));
    if [width, height, count] != [kind.columns, kind.rows, kind.samples] {
        return refused(format!(
            "its picture is {width}x{height} of {count} samples, not {}x{} of {}",
            kind.columns, kind.rows, kind.samples
        ));
    }
    if file.precision > kind.allocated || kind.allocated > 16 {
        return refused(format!("its picture has {} bits per sample", file.precision));
    }
    kind.planar = false;
    if kind.allocated == 8 && file.process != Process::Lossless {
        let (samples, damage) = file.decode()?;
        stored.copy_from_slice(&samples);
        kind.ybr = false;
        return damage.map_or(Ok(()), |damage| refused(damage.to_string()));
    }
    let samples = file.decode_16_bits()?;
    match kind.allocated {
        8 => stored.iter_mut().zip(&samples).for_each(|(to, &sample)| *to = sample as u8),
        _ => stored.copy_from_slice(bytemuck::cast_slice(&samples)),
    }
    Ok(())
}

/// Y, Cb, Cr of each pixel from Y, Y, Cb, Cr of each two (YBR_FULL_422; PS3.3, C.7.6.3.1.2).
fn apart(pairs: &[u8]) -> Result<Vec<u8>, BoxError> {
    let mut pixels = memory::room(pairs.len() / 2 * 3)?;
    for &[first, second, blue, red] in pairs.as_chunks().0 {
        pixels.extend([first, blue, red, second, blue, red]);
    }
    Ok(pixels)
}

/// The mean of red, green and blue of each pixel.
fn grey(stored: &[u8], kind: &Kind) -> Result<Vec<u8>, BoxError> {
    let pixels = kind.rows * kind.columns;
    let mut grey = memory::zeros(pixels)?;
    for (i, grey) in grey.iter_mut().enumerate() {
        let [r, g, b] = match kind.planar {
            true => [stored[i], stored[pixels + i], stored[2 * pixels + i]],
            false => [stored[3 * i], stored[3 * i + 1], stored[3 * i + 2]],
        }
        .map(f64::from);
        let [r, g, b] = match kind.ybr {
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
/// type `to`. Bytes are in the machine's order on both sides. Returns whether `to` holds all values.
fn convert(stored: &[u8], kind: &Kind, scale: Option<Scale>, to: Dtype, values: &mut [u8]) -> bool {
    let is_whole = kind.stored == kind.allocated && !kind.inverted;
    if !kind.float && is_whole && scale.is_none() && to == kind.dtype() {
        values.copy_from_slice(stored);
        return true;
    }
    let (low, high) = kind.range();
    let number = |bits: u32| {
        // Shift left to drop the bits above the high bit, then right, which repeats the sign, to drop those below.
        let (up, down) = (31 - kind.high_bit, 32 - kind.stored);
        let number = match kind.signed {
            true => f64::from((bits << up) as i32 >> down),
            false => f64::from(bits << up >> down),
        };
        if kind.inverted { low + high - number } else { number }
    };
    let words = stored.as_chunks().0.iter();
    match (kind.float, kind.allocated) {
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

/// Rescales numbers to values of type `to`. Returns whether none was clipped to the range of an integer type.
#[allow(clippy::unnecessary_cast, reason = "one of the types is f64 itself")]
fn rescale(
    numbers: impl Iterator<Item = f64>,
    scale: Option<Scale>,
    to: Dtype,
    values: &mut [u8],
) -> bool {
    let Scale { slope, intercept } = scale.unwrap_or(Scale { slope: 1.0, intercept: 0.0 });
    let mut fits = true;
    crate::for_dtype!(to, T in [u8 i8 u16 i16 u32 i32 f32 f64] => {
        let values = values.chunks_exact_mut(size_of::<T>());
        for (value, number) in values.zip(numbers) {
            let number = slope * number + intercept;
            let held = number as T;
            fits &= held as f64 == number || T::DTYPE.is_float();
            value.copy_from_slice(&held.to_ne_bytes());
        }
    }, _ => unreachable!("no type of samples"));
    fits
}
