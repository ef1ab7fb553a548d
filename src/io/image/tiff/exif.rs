//! EXIF, which in a TIFF file is spread over the file's own directories, and in other formats is a block
//! that begins with a TIFF header: read from either, written as either.

use std::io::{Cursor, Seek, Write};

use ::tiff::{
    TiffResult,
    decoder::Decoder,
    encoder::{DirectoryEncoder, TiffEncoder, TiffKind, TiffKindStandard},
    tags::{ByteOrder, IfdPointer, Tag, Type, ValueBuffer},
};

use crate::io::image::metadata::LONGEST_EXIF;

/// Tags of the first directory that describe a picture rather than how it is stored (EXIF 2.32, table
/// 4, without the orientation, which is applied), and the titles that Windows writes.
const KEPT: [u16; 19] = [
    270, 271, 272, 282, 283, 296, 305, 306, 315, 316, 318, 319, 33432, 40091, 40092, 40093, 40094,
    40095, 18246,
];
/// Tags that point to other directories: EXIF, GPS, and within EXIF, Interoperability.
const POINTERS: [u16; 3] = [34665, 34853, 40965];
/// Resolution across and down, and its unit.
const RESOLUTION: [u16; 3] = [282, 283, RESOLUTION_UNIT];
const RESOLUTION_UNIT: u16 = 296;
/// The unit of a resolution that is only the aspect ratio of pixels.
const NO_UNIT: u16 = 1;
/// Bytes of an entry in a directory.
const ENTRY: usize = 12;

/// The EXIF of a TIFF file as a block.
pub struct Block {
    /// The block.
    pub block: Vec<u8>,
    /// Whether some of the file's EXIF cannot be read or is too long.
    pub is_partial: bool,
}

/// The EXIF of a TIFF file without its orientation; nothing where there is none.
pub fn of_file(bytes: &[u8]) -> Option<Block> {
    let mut decoder = Decoder::new(Cursor::new(bytes)).ok()?;
    let first = decoder.ifd_pointer()?;
    let exif = Exif::read(&mut decoder, first)?;
    let block = exif.to_block().ok()?;
    Some(Block { block, is_partial: exif.is_partial })
}

/// A directory and those that it points to.
#[derive(Default)]
struct Directory {
    values: Vec<(Tag, ValueBuffer)>,
    children: Vec<(Tag, Directory)>,
}

/// The description of a picture.
#[derive(Default)]
pub struct Exif {
    root: Directory,
    is_partial: bool,
}

impl Exif {
    /// Reads a block. The decoder reads files only of at least one picture, so the first directory
    /// becomes that of a picture of one pixel behind the block.
    pub fn of_block(block: &[u8]) -> Option<Self> {
        let little = block.starts_with(b"II*\0");
        if !little && !block.starts_with(b"MM\0*") {
            return None;
        }
        let short = |v: u16| if little { v.to_le_bytes() } else { v.to_be_bytes() };
        let long = |v: u32| if little { v.to_le_bytes() } else { v.to_be_bytes() };
        let first = *block[4..].first_chunk()?;
        let first = if little { u32::from_le_bytes(first) } else { u32::from_be_bytes(first) };
        let mut file = block.to_vec();
        file.resize(block.len().next_multiple_of(2), 0);
        let picture = long(u32::try_from(file.len()).ok()?);
        file[4..8].copy_from_slice(&picture);
        // Width, height, photometric interpretation, strip offset and strip length, a LONG each.
        let entries = [(256, 1), (257, 1), (262, 0), (273, 0), (279, 0)];
        file.extend(short(entries.len() as u16));
        for (tag, value) in entries {
            file.extend([short(tag), short(Type::LONG.to_u16())].concat());
            file.extend([long(1), long(value)].concat());
        }
        file.extend(long(0));
        let mut decoder = Decoder::new(Cursor::new(&file[..])).ok()?;
        Self::read(&mut decoder, IfdPointer(first.into()))
    }

    /// Reads the description of the picture whose directory is at `first`; nothing where it is empty.
    fn read(decoder: &mut Decoder<Cursor<&[u8]>>, first: IfdPointer) -> Option<Self> {
        let mut reader = Reader { decoder, room: LONGEST_EXIF, is_partial: false };
        let mut root = reader.directory(first, 0)?;
        let has_no_unit = root.values.iter().any(|(tag, value)| {
            tag.to_u16() == RESOLUTION_UNIT && value.as_bytes() == NO_UNIT.to_ne_bytes()
        });
        if has_no_unit {
            root.values.retain(|(tag, _)| !RESOLUTION.contains(&tag.to_u16()));
        }
        let is_empty = root.values.is_empty() && root.children.is_empty();
        (!is_empty).then_some(Self { root, is_partial: reader.is_partial })
    }

    fn to_block(&self) -> TiffResult<Vec<u8>> {
        let mut block = Vec::new();
        let mut encoder = TiffEncoder::<_, TiffKindStandard>::new_generic(Cursor::new(&mut block))?;
        let pointers = self.write_children(&mut encoder)?;
        let mut directory = encoder.image_directory()?;
        self.write_values(&mut directory, &pointers)?;
        directory.finish()?;
        Ok(block)
    }

    /// Writes all directories but the first, and returns where the first's children are.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn write_children<W: Write + Seek, K: TiffKind>(
        &self,
        encoder: &mut TiffEncoder<W, K>,
    ) -> TiffResult<Vec<(Tag, K::OffsetType)>> {
        self.root.write_children(encoder)
    }

    /// Writes the values of the first directory, and where its children are.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn write_values<W: Write + Seek, K: TiffKind>(
        &self,
        directory: &mut DirectoryEncoder<'_, W, K>,
        pointers: &[(Tag, K::OffsetType)],
    ) -> TiffResult<()> {
        self.root.write_values(directory, pointers)
    }
}

/// Reads directories, which may point to each other in circles and claim values of any length.
struct Reader<'a, 'b> {
    decoder: &'a mut Decoder<Cursor<&'b [u8]>>,
    /// Bytes that the values still to come may have in all.
    room: usize,
    is_partial: bool,
}

impl Reader<'_, '_> {
    /// Reads the directory at `pointer`, which lies `depth` below the first, and its children.
    fn directory(&mut self, pointer: IfdPointer, depth: usize) -> Option<Directory> {
        let found = self.decoder.read_directory(pointer).ok()?;
        let mut directory = Directory::default();
        for (tag, entry) in found.iter() {
            let number = tag.to_u16();
            let mut tags = self.decoder.read_directory_tags(&found);
            if POINTERS.contains(&number) && depth < POINTERS.len() - 1 {
                let pointer = tags.find_tag(tag).ok().flatten().and_then(|v| v.into_u64().ok());
                let child = pointer.and_then(|at| self.directory(IfdPointer(at), depth + 1));
                match child {
                    Some(child) => directory.children.push((tag, child)),
                    None => self.is_partial = true,
                }
                continue;
            }
            if depth == 0 && !KEPT.contains(&number) {
                continue;
            }
            // A value takes at most 8 bytes. The types of BigTIFF are unknown to EXIF.
            let fits = entry.count() <= self.room as u64 / 8
                || entry.count() <= self.room as u64 && is_byte(entry.field_type());
            let known = entry.field_type().to_u16() <= Type::IFD.to_u16();
            let mut value = ValueBuffer::empty(Type::BYTE);
            if !fits || !known || !matches!(tags.find_tag_buf(tag, &mut value), Ok(Some(_))) {
                self.is_partial = true;
                continue;
            }
            value.set_byte_order(ByteOrder::native());
            self.room = self.room.saturating_sub(value.as_bytes().len() + ENTRY);
            directory.values.push((tag, value));
        }
        Some(directory)
    }
}

fn is_byte(kind: Type) -> bool {
    matches!(kind, Type::BYTE | Type::SBYTE | Type::ASCII | Type::UNDEFINED)
}

impl Directory {
    fn write_children<W: Write + Seek, K: TiffKind>(
        &self,
        encoder: &mut TiffEncoder<W, K>,
    ) -> TiffResult<Vec<(Tag, K::OffsetType)>> {
        let mut pointers = Vec::new();
        for (tag, child) in &self.children {
            let deeper = child.write_children(encoder)?;
            let mut directory = encoder.extra_directory()?;
            child.write_values(&mut directory, &deeper)?;
            pointers.push((*tag, directory.finish_with_offsets()?.offset));
        }
        Ok(pointers)
    }

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
