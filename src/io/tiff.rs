//! TIFF: what the image crate does not read (grey floats, half floats, grey with alpha), a writer for
//! all that images hold, and EXIF, which in TIFF is spread over the file's own directories.

use std::io::{Cursor, Seek, Write};

use ::tiff::{
    ColorType, TiffResult,
    decoder::{Decoder, DecodingResult, Limits},
    encoder::{
        DirectoryEncoder, TiffEncoder, TiffKind, TiffKindBig, TiffKindStandard,
        colortype::{Gray8, Gray16, Gray32Float, RGB8, RGB16, RGB32Float},
    },
    tags::{ByteOrder, ExtraSamples, IfdPointer, SampleFormat, Tag, Type, ValueBuffer},
};
use image::metadata::Orientation;

use super::image::{BoxError, Image, LONGEST_EXIF};
use crate::data::samples::Samples;

/// A file of a kind that the image crate refuses.
pub struct TiffFile<'a> {
    decoder: Decoder<Cursor<&'a [u8]>>,
    /// Pixels a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA.
    pub channels: usize,
    /// Bytes of a sample in the file.
    size: usize,
}

impl<'a> TiffFile<'a> {
    /// Opens a file; nothing where it is broken or of another kind.
    pub fn open(bytes: &'a [u8]) -> Option<Self> {
        let mut decoder = Decoder::new(Cursor::new(bytes)).ok()?;
        let format = decoder.find_tag_unsigned_vec::<u16>(Tag::SampleFormat).ok()?;
        let format = format.and_then(|formats| SampleFormat::from_u16(*formats.first()?));
        let (bits, channels) = match decoder.colortype().ok()? {
            ColorType::Gray(bits) => (bits, 1),
            // A second sample is taken for alpha whatever the file calls it.
            ColorType::Multiband { bit_depth, num_samples: 2 } => (bit_depth, 2),
            ColorType::RGB(bits) => (bits, 3),
            ColorType::RGBA(bits) => (bits, 4),
            _ => return None,
        };
        let known = match format.unwrap_or(SampleFormat::Uint) {
            SampleFormat::IEEEFP => matches!(bits, 16 | 32),
            SampleFormat::Uint => channels == 2 && matches!(bits, 8 | 16),
            _ => false,
        };
        let (width, height) = decoder.dimensions().ok()?;
        known.then_some(Self {
            decoder,
            width: width as usize,
            height: height as usize,
            channels,
            size: usize::from(bits) / 8,
        })
    }

    /// Bytes that decoding takes.
    pub fn bytes(&self) -> u64 {
        let samples = (self.width as u64).saturating_mul(self.height as u64 * self.channels as u64);
        // Halves are held as they are and as floats.
        samples.saturating_mul(if self.size == 2 { 6 } else { self.size as u64 })
    }

    /// The colour profile.
    pub fn icc(&mut self) -> Option<Vec<u8>> {
        self.decoder.get_tag_u8_vec(Tag::IccProfile).ok()
    }

    /// How the picture is to be turned.
    pub fn orientation(&mut self) -> Orientation {
        let value = self.decoder.find_tag_unsigned(Tag::Orientation).ok().flatten();
        value.and_then(Orientation::from_exif).unwrap_or(Orientation::NoTransforms)
    }

    /// Decodes the samples, `limit` bytes at most.
    ///
    /// # Errors
    /// When the file is broken.
    pub fn read(self, limit: u64) -> Result<Samples, BoxError> {
        let all = self.width * self.height * self.channels;
        let mut limits = Limits::default();
        limits.decoding_buffer_size = all * self.size;
        limits.intermediate_buffer_size = usize::try_from(limit)?;
        limits.ifd_value_size = usize::try_from(limit)?;
        let mut decoder = self.decoder.with_limits(limits);
        let mut decoded = DecodingResult::U8(Vec::new());
        let planes = decoder.read_image_to_buffer(&mut decoded)?.planes;
        let samples = match decoded {
            DecodingResult::U8(values) => Samples::U8(interleaved(values, planes)),
            DecodingResult::U16(values) => Samples::U16(interleaved(values, planes)),
            DecodingResult::F16(values) => {
                let values = values.into_iter().map(f32::from).collect();
                Samples::F32(interleaved(values, planes))
            }
            DecodingResult::F32(values) => Samples::F32(interleaved(values, planes)),
            _ => return Err("its samples are of a type that is not known here".into()),
        };
        match samples.len() == all {
            true => Ok(samples),
            false => Err("there are too few samples".into()),
        }
    }
}

/// Pixel by pixel what lies in one plane a channel.
fn interleaved<T: Copy>(values: Vec<T>, planes: usize) -> Vec<T> {
    if planes < 2 {
        return values;
    }
    let plane = values.len() / planes;
    (0..plane * planes).map(|i| values[i % planes * plane + i / planes]).collect()
}

/// Encodes an image, with its colour profile and `exif`, which begins with its TIFF header. What does
/// not fit 4 GiB becomes a BigTIFF.
///
/// # Errors
/// When the encoder fails.
pub fn encode(image: &Image, exif: Option<&[u8]>) -> Result<Vec<u8>, BoxError> {
    let metadata = image.icc.as_ref().map_or(0, Vec::len) + exif.map_or(0, <[u8]>::len);
    // Besides, each strip of a megabyte has an entry.
    let len = image.samples.as_bytes().len() + 2 * metadata + (1 << 20);
    Ok(match u32::try_from(len) {
        Ok(_) => encode_as::<TiffKindStandard>(image, exif)?,
        Err(_) => encode_as::<TiffKindBig>(image, exif)?,
    })
}

fn encode_as<K: TiffKind>(image: &Image, exif: Option<&[u8]>) -> TiffResult<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = TiffEncoder::<_, K>::new_generic(Cursor::new(&mut bytes))?;
    let exif = exif.and_then(Exif::of_block).unwrap_or_default();
    let pointers = exif.0.write_below(&mut encoder)?;
    let (width, height) = (image.width as u32, image.height as u32);
    macro_rules! write {
        ($colour:ty, $values:expr) => {{
            let mut picture = encoder.new_image::<$colour>(width, height)?;
            if image.has_alpha() {
                picture.extra_samples(&[ExtraSamples::UnassociatedAlpha])?;
            }
            if let Some(icc) = &image.icc {
                picture.encoder().write_tag(Tag::IccProfile, &icc[..])?;
            }
            exif.0.write_values(picture.encoder(), &pointers)?;
            picture.write_data($values)?;
        }};
    }
    match (&image.samples, image.channels) {
        (Samples::U8(values), 1 | 2) => write!(Gray8, values),
        (Samples::U8(values), _) => write!(RGB8, values),
        (Samples::U16(values), 1 | 2) => write!(Gray16, values),
        (Samples::U16(values), _) => write!(RGB16, values),
        (Samples::F32(values), 1 | 2) => write!(Gray32Float, values),
        (Samples::F32(values), _) => write!(RGB32Float, values),
        (other, _) => unreachable!("images hold no {}", other.dtype()),
    }
    Ok(bytes)
}

/// The EXIF of a TIFF file, its orientation left out, as a block of its own such as other formats hold,
/// beginning with a TIFF header; and whether some of it is missing there.
pub fn exif(bytes: &[u8]) -> Option<(Vec<u8>, bool)> {
    let mut decoder = Decoder::new(Cursor::new(bytes)).ok()?;
    let first = decoder.ifd_pointer()?;
    let exif = Exif::read(&mut decoder, first)?;
    let block = exif.to_block().ok()?;
    Some((block, exif.1))
}

/// What describes a picture rather than how it is stored: EXIF 2.32, table 4, without the orientation,
/// which is obeyed; and the titles that Windows writes.
const KEPT: [u16; 19] = [
    270, 271, 272, 282, 283, 296, 305, 306, 315, 316, 318, 319, 33432, 40091, 40092, 40093, 40094,
    40095, 18246,
];
/// Tags that hold where other directories are: EXIF, GPS, and within EXIF, Interoperability.
const BELOW: [u16; 3] = [34665, 34853, 40965];
/// The unit of what is no resolution but a ratio.
const NO_UNIT: u16 = 1;

/// A directory and those below it.
#[derive(Default)]
struct Directory {
    values: Vec<(Tag, ValueBuffer)>,
    below: Vec<(Tag, Directory)>,
}

/// A picture's description, and whether some of it could not be read.
#[derive(Default)]
struct Exif(Directory, bool);

impl Exif {
    /// Reads a block. The decoder wants a picture in each file: it gets one of a pixel behind the block.
    fn of_block(block: &[u8]) -> Option<Self> {
        let little = block.starts_with(b"II*\0");
        if !little && !block.starts_with(b"MM\0*") {
            return None;
        }
        let half = |v: u16| if little { v.to_le_bytes() } else { v.to_be_bytes() };
        let word = |v: u32| if little { v.to_le_bytes() } else { v.to_be_bytes() };
        let first = *block[4..].first_chunk()?;
        let first = if little { u32::from_le_bytes(first) } else { u32::from_be_bytes(first) };
        let mut file = block.to_vec();
        file.resize(block.len().next_multiple_of(2), 0);
        let picture = word(u32::try_from(file.len()).ok()?);
        file[4..8].copy_from_slice(&picture);
        // Width, height, white is 0, where it is, and its length: a LONG each.
        let entries = [(256, 1), (257, 1), (262, 0), (273, 0), (279, 0)];
        file.extend(half(entries.len() as u16));
        for (tag, value) in entries {
            file.extend([half(tag), half(Type::LONG.to_u16())].concat());
            file.extend([word(1), word(value)].concat());
        }
        file.extend(word(0));
        let mut decoder = Decoder::new(Cursor::new(&file[..])).ok()?;
        Self::read(&mut decoder, IfdPointer(first.into()))
    }

    /// Reads what describes the picture whose directory is at `first`; nothing where nothing does.
    fn read(decoder: &mut Decoder<Cursor<&[u8]>>, first: IfdPointer) -> Option<Self> {
        let mut room = LONGEST_EXIF;
        let mut missing = false;
        let mut directory = Directory::read(decoder, first, 0, &mut room, &mut missing)?;
        let no_unit = |(tag, value): &(Tag, ValueBuffer)| {
            tag.to_u16() == 296 && value.as_bytes() == NO_UNIT.to_ne_bytes()
        };
        if directory.values.iter().any(no_unit) {
            let resolution = [282, 283, 296];
            directory.values.retain(|(tag, _)| !resolution.contains(&tag.to_u16()));
        }
        let empty = directory.values.is_empty() && directory.below.is_empty();
        (!empty).then_some(Self(directory, missing))
    }

    fn to_block(&self) -> TiffResult<Vec<u8>> {
        let mut block = Vec::new();
        let mut encoder = TiffEncoder::<_, TiffKindStandard>::new_generic(Cursor::new(&mut block))?;
        let pointers = self.0.write_below(&mut encoder)?;
        let mut directory = encoder.image_directory()?;
        self.0.write_values(&mut directory, &pointers)?;
        directory.finish()?;
        Ok(block)
    }
}

impl Directory {
    /// Reads a directory, `depth` of them down, and those below it, as far as there is `room`.
    fn read(
        decoder: &mut Decoder<Cursor<&[u8]>>,
        pointer: IfdPointer,
        depth: usize,
        room: &mut usize,
        missing: &mut bool,
    ) -> Option<Self> {
        let found = decoder.read_directory(pointer).ok()?;
        let mut directory = Self::default();
        for (tag, entry) in found.iter() {
            let number = tag.to_u16();
            let mut tags = decoder.read_directory_tags(&found);
            if BELOW.contains(&number) && depth < BELOW.len() - 1 {
                let pointer = tags.find_tag(tag).ok().flatten().and_then(|v| v.into_u64().ok());
                let below = pointer.and_then(|pointer| {
                    Self::read(decoder, IfdPointer(pointer), depth + 1, room, missing)
                });
                match below {
                    Some(below) => directory.below.push((tag, below)),
                    None => *missing = true,
                }
                continue;
            }
            if depth == 0 && !KEPT.contains(&number) {
                continue;
            }
            // No type takes more than eight bytes; those of BigTIFF are unknown elsewhere.
            let fits = entry.count() <= *room as u64 / 8
                || entry.count() <= *room as u64 && is_bytes(entry.field_type());
            let known = entry.field_type().to_u16() <= Type::IFD.to_u16();
            let mut value = ValueBuffer::empty(Type::BYTE);
            if !fits || !known || !matches!(tags.find_tag_buf(tag, &mut value), Ok(Some(_))) {
                *missing = true;
                continue;
            }
            value.set_byte_order(ByteOrder::native());
            *room = room.saturating_sub(value.as_bytes().len() + ENTRY);
            directory.values.push((tag, value));
        }
        Some(directory)
    }

    /// Writes the directories below this one and returns where they are.
    fn write_below<W: Write + Seek, K: TiffKind>(
        &self,
        encoder: &mut TiffEncoder<W, K>,
    ) -> TiffResult<Vec<(Tag, K::OffsetType)>> {
        let mut pointers = Vec::new();
        for (tag, below) in &self.below {
            let deeper = below.write_below(encoder)?;
            let mut directory = encoder.extra_directory()?;
            below.write_values(&mut directory, &deeper)?;
            pointers.push((*tag, directory.finish_with_offsets()?.offset));
        }
        Ok(pointers)
    }

    /// Writes the values of this directory, and where those below it are.
    fn write_values<W: Write + Seek, K: TiffKind>(
        &self,
        directory: &mut DirectoryEncoder<'_, W, K>,
        pointers: &[(Tag, K::OffsetType)],
    ) -> TiffResult<()> {
        for (tag, value) in &self.values {
            directory.write_tag_buf(*tag, value)?;
        }
        for (tag, pointer) in pointers {
            directory.write_tag(*tag, pointer)?;
        }
        Ok(())
    }
}

/// Bytes of an entry in a directory.
const ENTRY: usize = 12;

fn is_bytes(kind: Type) -> bool {
    matches!(kind, Type::BYTE | Type::SBYTE | Type::ASCII | Type::UNDEFINED)
}
