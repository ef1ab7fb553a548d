//! The pixels of DICOM frames (PS3.5, chapter 8 and annexes A and G): decompressed, reduced to their significant bits,
//! and rescaled to values.

use std::{
    io::Read,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    dataset::{self, Input},
    decode,
    frames::Frames,
    image::Image,
    palette,
    pixel_format::PixelFormat,
    syntax::Compression,
};
use crate::{
    data::dtype::Dtype,
    io::volume::{
        convert::rescale,
        header::{BoxError, Endian, Scale},
    },
    util::memory,
};

/// A frame in grey: its samples in the machine's byte order, and their format.
type Frame = (Vec<u8>, PixelFormat);

/// The numbers of an image and of its frame, and that frame.
type CachedFrame = ((usize, usize), Arc<Frame>);

/// The mosaic that was read last, with the numbers of its image and frame: its slices are read one after the other.
#[derive(Debug, Default)]
pub struct MosaicCache(Mutex<Option<CachedFrame>>);

impl MosaicCache {
    fn frame(&self, key: (usize, usize), image: &Image) -> Result<Arc<Frame>, BoxError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((known, frame)) if *known == key => Ok(frame.clone()),
            _ => {
                // Frees the memory of the frame before.
                *known = None;
                let frame = Arc::new(read_frame(image, key.1)?);
                *known = Some((key, frame.clone()));
                Ok(frame)
            }
        }
    }
}

/// Reads a slice of image number `index` as values of type `to`, in the machine's byte order. Returns whether none was
/// clipped to the range of `to`, as happens if the range that the file states is wrong.
pub fn read(
    (image, index): (&Image, usize),
    slice: usize,
    (scale, to): (Option<Scale>, Dtype),
    cache: &MosaicCache,
    values: &mut [u8],
) -> Result<bool, BoxError> {
    let (frame, tile) = image.location(slice);
    let Some(mosaic) = &image.mosaic else {
        let (samples, format) = read_frame(image, frame)?;
        return Ok(convert(&samples, &format, scale, to, values));
    };
    let frame = cache.frame((index, frame), image)?;
    let (samples, format) = &*frame;
    let size = format.allocated as usize / 8;
    let mut own = memory::zeros(values.len() / to.size() * size)?;
    mosaic.copy(tile, format.columns, size, samples, &mut own);
    Ok(convert(&own, format, scale, to, values))
}

/// Bytes of memory that reading a slice takes in addition to its samples.
pub fn scratch(image: &Image) -> u64 {
    let (samples, bytes) = (image.stored.count() as u64, image.stored.frame_bytes() as u64);
    let palette = if image.stored.palette.is_some() { 4 * samples + (2 << 20) } else { 0 };
    let decoder = match image.data.syntax.compression {
        #[cfg(feature = "jpeg2000")]
        Compression::Jpeg2000 => 12 * samples,
        Compression::JpegLs => 2 * samples,
        _ => bytes,
    };
    2 * bytes + palette + decoder
}

/// Reads a frame, and makes grey of colours.
fn read_frame(image: &Image, number: usize) -> Result<Frame, BoxError> {
    let (stored, format) = match &image.frames {
        Frames::Plain { at, pairs } => read_plain(image, number, *at, *pairs)?,
        Frames::Compressed(frames) => read_compressed(image, &frames[number])?,
    };
    match format.palette {
        Some(bits) => Ok((look_up(image, &stored, &format)?, format.with_bits(bits))),
        None if format.samples == 3 => Ok((grey(&stored, &format)?, format)),
        None => Ok((stored, format)),
    }
}

/// The grey of the colours of a palette at the indices `stored`.
fn look_up(image: &Image, stored: &[u8], format: &PixelFormat) -> Result<Vec<u8>, BoxError> {
    let data = dataset::read(&image.source)?;
    let (table, first) = palette::grey(&data.top, image.data.syntax.endian)?;
    let mut indices = memory::zeros::<i32>(format.count())?;
    convert(stored, format, None, Dtype::I32, bytemuck::cast_slice_mut(&mut indices));
    let color =
        |&index: &i32| table[(i64::from(index) - first).clamp(0, table.len() as i64 - 1) as usize];
    if format.palette == Some(8) {
        return Ok(indices.iter().map(|index| color(index) as u8).collect());
    }
    let mut values = memory::zeros(2 * indices.len())?;
    for (value, index) in values.as_chunks_mut().0.iter_mut().zip(&indices) {
        *value = color(index).to_ne_bytes();
    }
    Ok(values)
}

/// Reads an uncompressed frame. Returns its samples in the machine's byte order, and their format.
fn read_plain(
    image: &Image,
    number: usize,
    at: u64,
    pairs: bool,
) -> Result<(Vec<u8>, PixelFormat), BoxError> {
    let format = image.stored;
    if format.allocated == 1 {
        return Ok((read_bits(image, number, at)?, format.with_bits(8)));
    }
    let len = if pairs { format.frame_bytes() / 3 * 2 } else { format.frame_bytes() };
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
    if pairs {
        let pixels = expand_chroma(&stored, format.allocated as usize / 8)?;
        return Ok((pixels, PixelFormat { planar: false, ..format }));
    }
    Ok((stored, format))
}

/// Reads a frame of single bits as one byte each. Frames follow each other without padding, and the first pixel is the
/// lowest bit.
fn read_bits(image: &Image, number: usize, at: u64) -> Result<Vec<u8>, BoxError> {
    let count = image.stored.count();
    let first = number as u64 * count as u64;
    let last = first + count as u64;
    let mut packed = memory::zeros::<u8>((last.div_ceil(8) - first / 8) as usize)?;
    image.read_at(at + first / 8, &mut packed)?;
    unpack_bits(&packed, (first % 8) as usize, count)
}

/// Unpacks `count` single bits from bit `first` on, the lowest bit of a byte first.
fn unpack_bits(packed: &[u8], first: usize, count: usize) -> Result<Vec<u8>, BoxError> {
    let mut bits = memory::zeros(count)?;
    for (i, value) in bits.iter_mut().enumerate() {
        let bit = first + i;
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
        let input = Input::open(&image.source, syntax.deflated, fragment.start)?;
        packed.try_reserve(bytes as usize)?;
        input.take(bytes).read_to_end(&mut packed)?;
    }
    let mut format = image.stored;
    if format.allocated == 1 {
        if syntax.compression != Compression::Deflate {
            return Err("compression of single bits is not supported".into());
        }
        let mut bits = memory::zeros::<u8>(format.frame_bytes())?;
        decode::inflate(&packed, &mut bits)?;
        return Ok((unpack_bits(&bits, 0, format.count())?, format.with_bits(8)));
    }
    let mut stored = memory::zeros::<u8>(format.frame_bytes())?;
    decode::decode(&packed, syntax.compression, &mut format, &mut stored)?;
    Ok((stored, format))
}

/// Expands Y, Y, Cb, Cr of two pixels to Y, Cb, Cr of each, in samples of `size` bytes (YBR_FULL_422; PS3.3,
/// C.7.6.3.1.2).
fn expand_chroma(pairs: &[u8], size: usize) -> Result<Vec<u8>, BoxError> {
    let mut pixels = memory::room(pairs.len() / 2 * 3)?;
    for pair in pairs.chunks_exact(4 * size) {
        let (luma, chroma) = pair.split_at(2 * size);
        for luma in luma.chunks_exact(size) {
            pixels.extend(luma);
            pixels.extend(chroma);
        }
    }
    Ok(pixels)
}

/// The mean of red, green and blue, in samples of the same size.
fn grey(stored: &[u8], format: &PixelFormat) -> Result<Vec<u8>, BoxError> {
    let pixels = format.rows * format.columns;
    let size = format.allocated as usize / 8;
    let mut grey = memory::zeros(pixels * size)?;
    let number = |i: usize| {
        let mut bytes = [0; 4];
        bytes[..size].copy_from_slice(&stored[i * size..][..size]);
        f64::from(u32::from_le_bytes(bytes))
    };
    let max = 2f64.powi(format.stored as i32) - 1.0;
    let half = ((max + 1.0) / 2.0).floor();
    for (i, grey) in grey.chunks_exact_mut(size).enumerate() {
        let [r, g, b] = match format.planar {
            true => [i, pixels + i, 2 * pixels + i],
            false => [3 * i, 3 * i + 1, 3 * i + 2],
        }
        .map(number);
        let [r, g, b] = match format.ybr {
            // PS3.3, C.7.6.3.1.2.
            true => {
                let (y, b, r) = (r, g - half, b - half);
                [y + 1.402 * r, y - 0.3441 * b - 0.7141 * r, y + 1.772 * b]
                    .map(|v| v.round().clamp(0.0, max))
            }
            false => [r, g, b],
        };
        let mean = ((r + g + b) / 3.0).round() as u32;
        grey.copy_from_slice(&mean.to_le_bytes()[..size]);
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
