//! The pixels of DICOM frames (PS3.5, chapter 8 and annexes A and G): decompressed (RLE, JPEG), reduced to their
//! significant bits, and rescaled to values.

use std::{
    io::{self, Read},
    ops::Range,
    path::Path,
};

use super::{
    Image,
    dataset::{
        ALLOCATED, Attributes, COLUMNS, Dataset, F32_PIXELS, F64_PIXELS, HIGH_BIT, ITEM, Input,
        LARGEST, PADDING, PHOTOMETRIC, PIXELS, PLANAR, Packing, Pixels, ROWS, SAMPLES, SIGNED,
        SMALLEST, STORED, Tag,
    },
};
use crate::{
    data::{dtype::Dtype, jpeg::ColourModel},
    io::{
        jpeg::{Colour, Context, File, Process},
        volume::format::{BoxError, Endian, Scale},
    },
    util::{
        error::{self, Error},
        memory,
    },
};

/// How the pixels of a file are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    pub columns: usize,
    pub rows: usize,
    /// Samples per pixel (0028,0002): 1 of grey, 3 of colours.
    pub samples: usize,
    /// Whether the samples of a colour are stored as three planes (Planar Configuration, 0028,0006).
    pub planar: bool,
    /// Whether colours are stored as luminance and chroma, YCbCr.
    pub ybr: bool,
    /// Whether two pixels of a row share their chroma, stored as Y, Y, Cb, Cr. Decoders of JPEG undo that themselves.
    pub pairs: bool,
    /// Whether the least number is the brightest (MONOCHROME1).
    pub inverted: bool,
    /// Bits that a stored sample takes (Bits Allocated, 0028,0100): 1, 8, 16 or 32; 64 of floats.
    pub allocated: u32,
    /// Number of significant bits of a stored sample (Bits Stored, 0028,0101).
    pub stored: u32,
    /// Position of the highest significant bit (High Bit, 0028,0102).
    pub high_bit: u32,
    pub signed: bool,
    pub float: bool,
}

impl Kind {
    /// Reads and checks the attributes of the Image Pixel module (PS3.3, C.7.6.3).
    pub fn of(top: &Attributes, pixels: &Pixels) -> Result<Self, BoxError> {
        let number = |tag: Tag| top.number(tag);
        let side = |tag: Tag, name: &str| {
            let side = number(tag).filter(|&side| (1.0..=65535.0).contains(&side));
            side.map(|side| side as usize).ok_or_else(|| format!("it has no {name}"))
        };
        let float = pixels.tag != PIXELS;
        let allocated = match (pixels.tag, number(ALLOCATED)) {
            (F32_PIXELS, _) => 32,
            (F64_PIXELS, _) => 64,
            (_, Some(bits)) if [1.0, 8.0, 16.0, 32.0].contains(&bits) => bits as u32,
            (_, Some(bits)) => {
                return Err(format!("samples of {bits} bits are not supported").into());
            }
            (_, None) => return Err("it does not say of how many bits its samples are".into()),
        };
        let stored = number(STORED).map_or(allocated, |bits| bits as u32);
        let stored = if (1..=allocated).contains(&stored) { stored } else { allocated };
        let high_bit = number(HIGH_BIT).map_or(stored - 1, |bit| bit as u32);
        let high_bit =
            if (stored - 1..allocated).contains(&high_bit) { high_bit } else { stored - 1 };
        let photometric = top.text(PHOTOMETRIC).unwrap_or("MONOCHROME2");
        let samples = number(SAMPLES).unwrap_or(1.0);
        let (samples, ybr) = match (photometric, samples) {
            ("MONOCHROME1" | "MONOCHROME2", 1.0) => (1, false),
            ("RGB", 3.0) => (3, false),
            // Decoders of JPEG and JPEG 2000 return RGB.
            ("YBR_FULL" | "YBR_FULL_422" | "YBR_PARTIAL_420" | "YBR_ICT", 3.0) => (3, true),
            (other, samples) => {
                let other: String = other.chars().filter(|c| !c.is_control()).take(20).collect();
                return Err(
                    format!("pixels of {samples} samples as {other} are not supported").into()
                );
            }
        };
        if samples == 3 && allocated != 8 {
            return Err(format!("colours of {allocated} bits are not supported").into());
        }
        if float && samples != 1 {
            return Err("colours as floats are not supported".into());
        }
        Ok(Self {
            columns: side(COLUMNS, "columns")?,
            rows: side(ROWS, "rows")?,
            samples,
            planar: number(PLANAR) == Some(1.0),
            ybr,
            pairs: ybr && photometric == "YBR_FULL_422",
            inverted: photometric == "MONOCHROME1",
            allocated,
            stored,
            high_bit,
            signed: number(SIGNED) == Some(1.0),
            float,
        })
    }

    /// Number of samples of a frame.
    fn count(&self) -> usize {
        self.rows * self.columns * self.samples
    }

    /// Number of stored samples of a frame whose pixels share their chroma in pairs: Y of each, Cb and Cr of every
    /// second.
    fn count_of_pairs(&self) -> usize {
        2 * self.rows * self.columns
    }

    /// Bytes of a frame that is not compressed.
    pub fn frame_bytes(&self) -> usize {
        (self.count() * self.allocated as usize).div_ceil(8)
    }

    /// The least and the greatest stored number that the file states, padding included (Smallest and Largest Image
    /// Pixel Value, Pixel Padding Value).
    pub fn told_range(&self, top: &Attributes) -> Option<(f64, f64)> {
        let (least, most) = self.range();
        // Some writers state the range of signed pixels as unsigned numbers (US in place of SS).
        let wrapped = |v: f64| if v > most { v - 2.0 * (most + 1.0) } else { v };
        let number = |tag| top.number(tag).map(|v| if self.signed { wrapped(v) } else { v });
        let (low, high) = (number(SMALLEST)?, number(LARGEST)?);
        let padding = number(PADDING).unwrap_or(low);
        let sane = least <= low && low < high && high <= most && !self.float && !self.inverted;
        sane.then_some((low.min(padding), high.max(padding)))
    }

    /// The least and the greatest number of that many significant bits.
    fn range(&self) -> (f64, f64) {
        match self.signed {
            true => (-(2f64.powi(self.stored as i32 - 1)), 2f64.powi(self.stored as i32 - 1) - 1.0),
            false => (0.0, 2f64.powi(self.stored as i32) - 1.0),
        }
    }

    /// The type of stored samples.
    pub fn dtype(&self) -> Dtype {
        match (self.float, self.allocated, self.signed) {
            (true, 64, _) => Dtype::F64,
            (true, ..) => Dtype::F32,
            (_, 32, true) => Dtype::I32,
            (_, 32, false) => Dtype::U32,
            (_, 16, true) => Dtype::I16,
            (_, 16, false) => Dtype::U16,
            (_, _, true) => Dtype::I8,
            (_, _, false) => Dtype::U8,
        }
    }

    /// The properties that must be equal in all slices of a volume; the others are set to fixed values.
    pub fn comparable(&self) -> Self {
        // Significant bits may differ: each file's samples are reduced to numbers by its own.
        Self { planar: false, ybr: false, pairs: false, stored: 1, high_bit: 0, ..*self }
    }

    /// The type of rescaled values: that of the stored samples where it holds all values, else the first of a list that
    /// does. `told` is the range of the stored numbers, if the file states one.
    pub fn dtype_of_values(&self, scale: Option<Scale>, told: Option<(f64, f64)>) -> Dtype {
        let own = self.dtype();
        let Some(Scale { slope, intercept }) = scale else { return own };
        if self.float {
            return own;
        }
        if slope.fract() != 0.0 || intercept.fract() != 0.0 {
            return if self.stored > 24 { Dtype::F64 } else { Dtype::F32 };
        }
        let (low, high) = told.unwrap_or_else(|| self.range());
        let ends = [slope * low + intercept, slope * high + intercept];
        let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let holds = |dtype: &Dtype| {
            let bits = 8 * dtype.size() as i32;
            match dtype.is_signed() {
                true => low >= -(2f64.powi(bits - 1)) && high < 2f64.powi(bits - 1),
                false => low >= 0.0 && high < 2f64.powi(bits),
            }
        };
        let all = [own, Dtype::I16, Dtype::U16, Dtype::I32, Dtype::U32];
        all.into_iter().find(holds).unwrap_or(Dtype::F64)
    }
}

/// Where the bytes of each frame are, as offsets in the data set.
#[derive(Clone, Debug, PartialEq)]
pub enum Frames {
    /// Uncompressed frames, one behind the other from offset `at` on; `pairs` as in [`Kind::pairs`].
    Plain { at: u64, pairs: bool },
    /// Compressed frames, each of one or more fragments.
    Packed(Vec<Vec<Range<u64>>>),
}

/// Finds the `count` frames of a file of `len` bytes.
///
/// # Errors
/// When they are not all there.
pub fn frames(
    path: &Path,
    data: &Dataset,
    kind: &Kind,
    count: usize,
    len: u64,
) -> Result<Frames, BoxError> {
    let pixels = data.pixels.expect("looked at before");
    let all = kind.count() as u64 * u64::from(kind.allocated) * count as u64;
    let Some(there) = pixels.len else {
        if data.syntax.packing == Packing::None {
            return Err("its pixels have no length".into());
        }
        return fragments(path, data, &pixels, count, len).map(Frames::Packed);
    };
    if data.syntax.packing != Packing::None {
        return Err("its pixels are said to be packed and are not".into());
    }
    // A byte of deflated data becomes at most 1,032 bytes.
    let rest = match data.syntax.deflated {
        true => len.saturating_mul(1032),
        false => len.saturating_sub(pixels.at),
    };
    let rest = rest.min(there);
    // Some writers state YBR_FULL_422 though every pixel has its own chroma. The length tells.
    let pairs = kind.pairs && rest < all.div_ceil(8);
    let all = if pairs { all / 3 * 2 } else { all };
    if pairs && !kind.columns.is_multiple_of(2) {
        let columns = kind.columns;
        return Err(format!("{columns} columns are no pairs, as YBR_FULL_422 has them").into());
    }
    if rest < all.div_ceil(8) {
        let all = all.div_ceil(8);
        return Err(format!("its pixels take {all} bytes, but there are only {rest}").into());
    }
    Ok(Frames::Plain { at: pixels.at, pairs })
}

/// The fragments of each frame (PS3.5, A.4): one a frame if there are as many as frames, else split at the offsets of
/// the Basic Offset Table.
fn fragments(
    path: &Path,
    data: &Dataset,
    pixels: &Pixels,
    count: usize,
    len: u64,
) -> Result<Vec<Vec<Range<u64>>>, BoxError> {
    let (offsets, found) = items(path, data, pixels, count, len)?;
    if count == 1 {
        return Ok(vec![found]);
    }
    if found.len() == count {
        return Ok(found.into_iter().map(|fragment| vec![fragment]).collect());
    }
    let header = |fragment: &Range<u64>| fragment.start - 8;
    let first = found.first().map_or(0, header);
    let mut frames: Vec<Vec<Range<u64>>> = Vec::new();
    for fragment in found {
        let begins_frame = offsets.binary_search(&(header(&fragment) - first)).is_ok();
        match frames.last_mut() {
            Some(last) if !begins_frame => last.push(fragment),
            _ => frames.push(vec![fragment]),
        }
    }
    match frames.len() == count {
        true => Ok(frames),
        false => Err(format!("it tells of {count} frames, but {} are found", frames.len()).into()),
    }
}

/// Reads the headers of all items of compressed pixels: the sorted offsets of the Basic Offset Table, which is the
/// first item, and the bytes of the fragments in the file of `len` bytes. Offsets are those of the items' headers,
/// counted from that of the first fragment.
fn items(
    path: &Path,
    data: &Dataset,
    pixels: &Pixels,
    count: usize,
    len: u64,
) -> Result<(Vec<u64>, Vec<Range<u64>>), BoxError> {
    /// Most fragments of a file.
    const MOST: usize = 1 << 22;
    let mut input = Input::open(path, data.syntax.deflated, pixels.at)?;
    let mut at = pixels.at;
    let mut table: Option<Vec<u64>> = None;
    let mut found: Vec<Range<u64>> = Vec::new();
    while let Some(bytes) = item_len(&mut input)? {
        at += 8;
        if at.saturating_add(bytes) > len {
            return Err("the file ends within its pixels".into());
        }
        if table.is_none() {
            table = Some(offset_table(&mut input, bytes, count)?);
        } else {
            found.push(at..at + bytes);
            input.skip(bytes)?;
        }
        at += bytes;
        if found.len() > MOST {
            return Err("it has too many fragments".into());
        }
    }
    Ok((table.unwrap_or_default(), found))
}

/// Reads the header of an item: its length in bytes; `None` at the end of the items.
fn item_len(input: &mut Input) -> io::Result<Option<u64>> {
    let mut head = [0; 8];
    match input.read_exact(&mut head) {
        Ok(()) => {}
        // Files without the closing mark are common.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let [a, b, c, d, len @ ..] = head;
    let tag = u32::from(u16::from_le_bytes([a, b])) << 16 | u32::from(u16::from_le_bytes([c, d]));
    Ok((tag == ITEM).then_some(u32::from_le_bytes(len).into()))
}

/// Reads a Basic Offset Table of `bytes` bytes: at most `count` offsets, sorted.
fn offset_table(input: &mut Input, bytes: u64, count: usize) -> io::Result<Vec<u64>> {
    let mut table = Vec::new();
    let known = bytes.min(4 * count as u64);
    (&mut *input).take(known).read_to_end(&mut table)?;
    input.skip(bytes - known)?;
    let offsets = table.as_chunks().0.iter();
    let mut offsets: Vec<u64> = offsets.map(|offset| u32::from_le_bytes(*offset).into()).collect();
    offsets.sort_unstable();
    Ok(offsets)
}

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
            if is_big != cfg!(target_endian = "big") {
                stored.chunks_exact_mut(bits as usize / 8).for_each(<[u8]>::reverse);
            }
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
        true => Colour::Default(ColourModel::Rgb),
        false => Colour::Stated,
    };
    let file = File::parse(packed, &Context { colour, tables: &[] })?;
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
    if kind.float {
        let number = |bytes: &[u8]| match bytes.len() {
            4 => f64::from(f32::from_ne_bytes(bytes.try_into().expect("four"))),
            _ => f64::from_ne_bytes(bytes.try_into().expect("eight")),
        };
        let size = kind.allocated as usize / 8;
        each(stored.chunks_exact(size).map(number), scale, to, values);
        return true;
    }
    let whole = kind.stored == kind.allocated && !kind.inverted;
    if whole && scale.is_none() && to == kind.dtype() {
        values.copy_from_slice(stored);
        return true;
    }
    // Shift left to drop the bits above the high bit, then right, which repeats the sign, to drop those below.
    let up = 31 - kind.high_bit;
    let down = 32 - kind.stored;
    let (signed, inverted) = (kind.signed, kind.inverted);
    let (low, high) = kind.range();
    let cut = |bits: u32| {
        let number = match signed {
            true => f64::from((bits << up) as i32 >> down),
            false => f64::from(bits << up >> down),
        };
        if inverted { low + high - number } else { number }
    };
    if let Some(scale) = whole_scale(scale).filter(|_| kind.allocated <= 16 && to.size() <= 2) {
        let (low, high) = (low as i32, high as i32);
        let cut = |bits: u32| {
            let number = match signed {
                true => (bits << up) as i32 >> down,
                false => (bits << up >> down) as i32,
            };
            if inverted { low + high - number } else { number }
        };
        return match kind.allocated {
            8 => each_whole(stored.iter().map(|&byte| cut(byte.into())), scale, to, values),
            _ => {
                let words = stored.as_chunks().0.iter();
                let numbers = words.map(|word| cut(u16::from_ne_bytes(*word).into()));
                each_whole(numbers, scale, to, values)
            }
        };
    }
    match kind.allocated {
        8 => each(stored.iter().map(|&byte| cut(byte.into())), scale, to, values),
        16 => {
            let words = stored.as_chunks().0.iter();
            each(words.map(|word| cut(u16::from_ne_bytes(*word).into())), scale, to, values);
        }
        _ => {
            let words = stored.as_chunks().0.iter();
            each(words.map(|word| cut(u32::from_ne_bytes(*word))), scale, to, values);
        }
    }
    true
}

/// Slope and intercept as integers, where they are whole and small enough that no product with 16 bits overflows.
fn whole_scale(scale: Option<Scale>) -> Option<[i32; 2]> {
    let Scale { slope, intercept } = scale.unwrap_or(Scale { slope: 1.0, intercept: 0.0 });
    let is_whole = |v: f64| v.fract() == 0.0 && v.abs() < 16384.0;
    (is_whole(slope) && is_whole(intercept)).then_some([slope as i32, intercept as i32])
}

/// Rescales numbers of at most 16 bits to values of an integer type `to` of at most 16 bits, clipped to its range.
/// Returns whether none was clipped.
fn each_whole(
    numbers: impl Iterator<Item = i32>,
    [slope, intercept]: [i32; 2],
    to: Dtype,
    values: &mut [u8],
) -> bool {
    let [low, high] = match to {
        Dtype::I8 => [i8::MIN.into(), i8::MAX.into()],
        Dtype::U8 => [0, u8::MAX.into()],
        Dtype::I16 => [i16::MIN.into(), i16::MAX.into()],
        _ => [0, u16::MAX.into()],
    };
    let mut outside = 0;
    let mut scaled = |number: i32| {
        let value = slope * number + intercept;
        let held = value.clamp(low, high);
        outside |= value ^ held;
        held
    };
    match to.size() {
        1 => {
            for (value, number) in values.iter_mut().zip(numbers) {
                *value = scaled(number) as u8;
            }
        }
        _ => {
            for (value, number) in values.as_chunks_mut().0.iter_mut().zip(numbers) {
                *value = (scaled(number) as u16).to_ne_bytes();
            }
        }
    }
    outside == 0
}

/// Rescales numbers to values of type `to`.
#[allow(clippy::unnecessary_cast, reason = "one of the types is f64 itself")]
fn each(numbers: impl Iterator<Item = f64>, scale: Option<Scale>, to: Dtype, values: &mut [u8]) {
    let Scale { slope, intercept } = scale.unwrap_or(Scale { slope: 1.0, intercept: 0.0 });
    crate::for_dtype!(to, T in [u8 i8 u16 i16 u32 i32 f32 f64] => {
        let values = values.chunks_exact_mut(size_of::<T>());
        for (value, number) in values.zip(numbers) {
            value.copy_from_slice(&((slope * number + intercept) as T).to_ne_bytes());
        }
    }, _ => unreachable!("no type of samples"));
}
