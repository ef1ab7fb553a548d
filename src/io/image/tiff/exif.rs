//! EXIF, which a TIFF file stores in its directories, and other formats as a block that begins with a TIFF header.

use std::ops::Range;

use super::{
    directory::{Directory, Entry, TiffFile, kind, sizes},
    map, tag,
    tree::{DirectoryTree, TagValue, header},
};
use crate::{
    data::image::Orientation,
    io::image::{
        metadata::{MetadataBlock, strip_exif_prefix},
        probe::Probe,
    },
};

/// Tags of the first directory that are kept: those that describe the image, not its storage (EXIF 2.32, table 4,
/// except the orientation, which is applied, and the resolution, which is kept as density), titles of documents and
/// pages, and the tags of Windows.
#[rustfmt::skip]
const IMAGE_TAGS: [u16; 26] = [
    269, 270, 271, 272, 285, 305, 306, 315, 316, 318, 319, 33432, 40091, 40092, 40093, 40094, 40095, 18246,
    // The position of a map (GeoTIFF 1.1), and GDAL's metadata of its samples.
    33550, 33922, 34264, 34735, 34736, 34737, 42112, 42113,
];
/// Tags of the resolution across and down, and of its unit.
pub const RESOLUTION: [u16; 3] = [tag::X_RESOLUTION, tag::Y_RESOLUTION, tag::RESOLUTION_UNIT];
/// Tags that point to other directories: EXIF, GPS and, within EXIF, Interoperability.
const POINTERS: [u16; 3] = [34665, 34853, 40965];
/// Tags of width and height in the directory of EXIF.
const PIXEL_DIMENSIONS: [u16; 2] = [40962, 40963];
/// Tags of offset and length of the thumbnail, in the second directory.
const THUMBNAIL: [u16; 2] = [513, 514];

/// The type of a tag in [`IMAGE_TAGS`]. Some readers fail at other types.
fn kind_of(tag: u16) -> u16 {
    match tag {
        318 | 319 => kind::RATIONAL,
        33550 | 33922 | 34264 | 34736 => kind::DOUBLE,
        18246 | 34735 => kind::SHORT,
        40091..=40095 => kind::BYTE,
        _ => kind::ASCII,
    }
}

/// Length in bytes of a directory entry.
const ENTRY: usize = 12;

/// A text value up to its first NUL.
fn text(value: &TagValue) -> &[u8] {
    value.bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

#[derive(Debug, Default)]
pub struct Exif {
    /// The first directory and the directories below it.
    pub root: DirectoryTree,
    /// Whether some values cannot be read, are too long, or do not apply to the upright image.
    pub is_partial: bool,
}

impl Exif {
    pub fn from_block(block: &[u8]) -> Option<Self> {
        let file = TiffFile::open_block(block).ok()?;
        Self::read(&file, file.first_directory, &IMAGE_TAGS)
    }

    /// Reads the EXIF data of the page with the directory at `first`, without the orientation. With `describes_pages`,
    /// the description tag is about all pages and not part of EXIF. The position of a map is kept with the size to which
    /// it applies.
    pub fn from_page(file: &TiffFile<'_>, first: u64, describes_pages: bool) -> Option<Self> {
        let is_kept = |tag: &u16| !describes_pages || *tag != tag::DESCRIPTION;
        let wanted: Vec<u16> = IMAGE_TAGS.into_iter().filter(is_kept).collect();
        let mut exif = Self::read(file, first, &wanted)?;
        let values = &mut exif.root.values;
        if values.iter().any(|value| map::TAGS.contains(&value.tag)) {
            let directory = file.directory(first).ok()?;
            if orientation(file, &directory).is_none_or(|stated| stated == 1) {
                let sides = [tag::WIDTH, tag::HEIGHT].into_iter().filter_map(|tag| {
                    let side = file.first_number(&directory, tag).ok()??;
                    Some(TagValue::longs(tag, &[side as u32]))
                });
                values.extend(sides);
            } else {
                values.retain(|value| !map::TAGS.contains(&value.tag));
                exif.is_partial = true;
            }
        }
        Some(exif)
    }

    /// Reads the directory at `first` with its children. Only the tags `wanted` of the first directory are read.
    fn read(file: &TiffFile<'_>, first: u64, wanted: &[u16]) -> Option<Self> {
        let mut reader =
            Reader { file, wanted, room: MetadataBlock::Exif.max_len(), is_partial: false };
        let root = reader.directory(first, 0)?;
        Some(Self { root, is_partial: reader.is_partial })
    }

    /// The texts of the first directory, with their names.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, String)> {
        const NAMES: [(u16, &str); 8] = [
            (269, "document"),
            (270, "description"),
            (271, "maker"),
            (272, "model"),
            (305, "software"),
            (306, "date"),
            (315, "artist"),
            (33432, "copyright"),
        ];
        NAMES.into_iter().filter_map(|(tag, name)| {
            let value = self.root.values.iter().find(|value| value.tag == tag)?;
            let text = String::from_utf8_lossy(text(value)).trim().to_owned();
            (value.kind == kind::ASCII && !text.is_empty()).then_some((name, text))
        })
    }

    /// The data as a block; `None` if there are no data.
    pub fn to_block(&self) -> Option<Vec<u8>> {
        let (mut block, _) = header(false);
        self.root.write(&mut block, 0, false, 0);
        (!self.root.is_empty()).then_some(block)
    }
}

/// Adds a block of EXIF to a probe: size, texts and orientation.
pub fn add_to_probe(probe: &mut Probe, exif: Option<Vec<u8>>) {
    let Some(block) = exif.map(strip_exif_prefix) else { return };
    probe.add_block(MetadataBlock::Exif, Some(&block));
    let texts = Exif::from_block(&block).map_or_else(Vec::new, |exif| exif.texts().collect());
    probe.metadata.extend(texts.into_iter().map(|(name, text)| (name.to_owned(), text)));
    let stated = open(&block).and_then(|(file, first)| orientation(&file, &first));
    let Some(stated) = stated.filter(|stated| *stated != 1) else { return };
    if let Some(named) = image::metadata::Orientation::from_exif(stated) {
        probe.metadata.push(("orientation".into(), format!("{named:?}, in EXIF")));
        probe.is_transposed = stated > 4;
    }
}

/// Splits EXIF into the block without orientation, and the orientation. Adds a loss if the block is too long.
pub fn read_exif(
    exif: Option<Vec<u8>>,
    losses: &mut Vec<String>,
) -> (Option<Vec<u8>>, Option<Orientation>) {
    let mut exif = exif.map(strip_exif_prefix);
    let orientation = exif.as_deref_mut().and_then(take_orientation);
    (MetadataBlock::Exif.capped(exif, losses), orientation)
}

/// Opens a block of EXIF, and reads its first directory.
fn open(block: &[u8]) -> Option<(TiffFile<'_>, Directory)> {
    let file = TiffFile::open_block(block).ok().filter(|file| !file.is_big_tiff())?;
    let first = file.directory(file.first_directory).ok()?;
    Some((file, first))
}

/// The number of the orientation that a directory states, of any numeric type.
pub fn orientation(file: &TiffFile<'_>, directory: &Directory) -> Option<u8> {
    directory.find(tag::ORIENTATION).filter(|entry| entry.count == 1)?;
    let number = *file.floats(directory, tag::ORIENTATION, 1)?.first()?;
    (1..=8).find(|&known| f64::from(known) == number)
}

/// Sets the orientation in a block of EXIF to upright and returns the former one, so that no viewer turns the upright
/// image again.
fn take_orientation(block: &mut [u8]) -> Option<Orientation> {
    let (file, first) = open(block)?;
    let found = orientation(&file, &first)?;
    let (entry, is_little_endian) = (*first.find(tag::ORIENTATION)?, file.is_little_endian);
    drop(file);
    set_number(block, entry, 1, is_little_endian);
    Orientation::from_exif(found)
}

/// Whether a block of EXIF describes the image, not only the file. This includes blocks that cannot be read.
pub fn describes_image(block: &[u8]) -> bool {
    /// Tags of the software, the date of the file, and the computer.
    const FILE_TAGS: [u16; 3] = [305, 306, 316];
    let Some(Exif { root, is_partial }) = Exif::from_block(block) else { return true };
    let is_about_image = |value: &TagValue| !FILE_TAGS.contains(&value.tag);
    is_partial || !root.children.is_empty() || root.values.iter().any(is_about_image)
}

/// Adapts a block of EXIF to an image of `size` that is written without thumbnail: sets the width and height that it
/// states, scales the position of a map, and removes the thumbnail, which shows other pixels.
pub fn adapt(block: &mut Vec<u8>, size: [usize; 2]) {
    let Some((file, first)) = open(block) else { return };
    let exif = file.first_number(&first, POINTERS[0]).ok().flatten();
    let exif = exif.and_then(|at| file.directory(at).ok()).unwrap_or_default();
    let tags = [(&first, [tag::WIDTH, tag::HEIGHT]), (&exif, PIXEL_DIMENSIONS)];
    let sides: Vec<(Entry, usize)> = tags
        .into_iter()
        .flat_map(|(directory, tags)| {
            tags.map(|tag| directory.find(tag).copied()).into_iter().zip(size)
        })
        .filter_map(|(entry, side)| Some((entry?, side)))
        .collect();
    let before = [tag::WIDTH, tag::HEIGHT].map(|tag| file.first_number(&first, tag).ok().flatten());
    let mut position = Vec::new();
    if let [Some(width), Some(height)] = before {
        let factor = [width as f64 / size[0] as f64, height as f64 / size[1] as f64];
        position = map::resized(&file, &first, factor);
    }
    let thumbnail = file.directory(first.next).ok().and_then(|second| {
        let [at, len] = THUMBNAIL.map(|tag| file.first_number(&second, tag).ok().flatten());
        // A wrong offset must not erase anything else.
        let is_jpeg = file.bytes.read(at?, 2).is_ok_and(|start| *start == [0xff, 0xd8]);
        is_jpeg.then_some(at?..at?.checked_add(len?)?)
    });
    let next_pointer = file.first_directory + first.len;
    let is_little_endian = file.is_little_endian;
    drop(file);
    for (entry, side) in sides {
        set_number(block, entry, side as u32, is_little_endian);
    }
    for (entry, values) in position {
        let places = block[entry.at as usize..].as_chunks_mut().0;
        for (place, value) in places.iter_mut().zip(values) {
            *place = if is_little_endian { value.to_le_bytes() } else { value.to_be_bytes() };
        }
    }
    if let Some(next) = block.get_mut(next_pointer as usize..).and_then(<[u8]>::first_chunk_mut) {
        *next = [0; 4];
    }
    if let Some(Range { start, end }) = thumbnail
        && end <= block.len() as u64
    {
        block[start as usize..end as usize].fill(0);
        if end == block.len() as u64 {
            block.truncate(start as usize);
        }
    }
}

/// Swaps the resolutions across and down in a block of EXIF.
pub fn swap_resolutions(block: &mut [u8]) {
    let Some((file, first)) = open(block) else { return };
    let [across, down] = [tag::X_RESOLUTION, tag::Y_RESOLUTION].map(|tag| first.find(tag).copied());
    drop(file);
    let (Some(across), Some(down)) = (across, down) else { return };
    let values = [across, down].map(|entry| {
        block.get(entry.at as usize..)?.get(..entry.bytes() as usize).map(<[u8]>::to_vec)
    });
    if let [Some(x), Some(y)] = values
        && across.kind == down.kind
        && x.len() == y.len()
    {
        block[across.at as usize..][..y.len()].copy_from_slice(&y);
        block[down.at as usize..][..x.len()].copy_from_slice(&x);
    }
}

/// Sets the value of an entry of one number. LONG stays LONG; other numbers of up to 4 bytes become SHORT, or LONG if they
/// are too large: the entry has room for both, after its type and count.
fn set_number(block: &mut [u8], entry: Entry, value: u32, is_little_endian: bool) {
    let Some([size, unit]) = sizes(entry.kind).filter(|_| entry.count == 1) else { return };
    let short = u16::try_from(value).map(u16::to_ne_bytes);
    let (kind, unit, mut bytes) = match (entry.kind, short) {
        (own, Ok(short)) if size <= 4 && own != kind::LONG => {
            (kind::SHORT, 2, [short, [0; 2]].concat())
        }
        _ if size <= 4 => (kind::LONG, 4, value.to_ne_bytes().to_vec()),
        (kind @ (kind::RATIONAL | kind::SRATIONAL), _) => {
            (kind, unit, [value, 1].map(u32::to_ne_bytes).concat())
        }
        (kind::DOUBLE, _) => (kind::DOUBLE, unit, f64::from(value).to_ne_bytes().to_vec()),
        (kind, _) => (kind, unit, u64::from(value).to_ne_bytes().to_vec()),
    };
    let mut kind = kind.to_ne_bytes();
    if cfg!(target_endian = "big") == is_little_endian {
        bytes.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
        kind.reverse();
    }
    let at = entry.at as usize;
    if size <= 4 {
        // Tag, type and count precede the value.
        block[at - 6..at - 4].copy_from_slice(&kind);
    }
    if let Some(place) = block.get_mut(at..).and_then(|rest| rest.get_mut(..bytes.len())) {
        place.copy_from_slice(&bytes);
    }
}

/// Reader of directories, which may point to each other in cycles and claim values of any length.
struct Reader<'a, 'b> {
    file: &'a TiffFile<'b>,
    /// Tags of the first directory that are read.
    wanted: &'a [u16],
    /// Maximum size in bytes of all values to come.
    room: usize,
    is_partial: bool,
}

impl Reader<'_, '_> {
    /// Reads the directory at `at`, which is `depth` levels below the first, and its children.
    fn directory(&mut self, at: u64, depth: usize) -> Option<DirectoryTree> {
        let found = self.file.directory(at).ok()?;
        let mut tree = DirectoryTree::default();
        for entry in found.entries() {
            if POINTERS.contains(&entry.tag) && depth < POINTERS.len() - 1 {
                let pointer = self.file.first_number(&found, entry.tag).ok().flatten();
                match pointer.and_then(|at| self.directory(at, depth + 1)) {
                    Some(child) => tree.children.push((entry.tag, child)),
                    None => self.is_partial = true,
                }
                continue;
            }
            let is_duplicate = tree.values.iter().any(|value| value.tag == entry.tag);
            if depth == 0 && !self.wanted.contains(&entry.tag) || is_duplicate {
                continue;
            }
            let len = sizes(entry.kind)
                .map_or(u64::MAX, |[size, _]| entry.count.saturating_mul(size as u64));
            // EXIF does not have the types of BigTIFF.
            let is_known = entry.kind <= kind::IFD;
            let value = match len <= self.room as u64 && is_known {
                true => self.file.value(entry).ok(),
                false => None,
            };
            let kind = if depth == 0 { kind_of(entry.tag) } else { entry.kind };
            let is_bytes = matches!(entry.kind, kind::BYTE | kind::UNDEFINED);
            let has_kind = entry.kind == kind || is_bytes && sizes(kind) == Some([1, 1]);
            let Some(mut bytes) = value.filter(|_| has_kind) else {
                self.is_partial = true;
                continue;
            };
            if kind == kind::ASCII && depth == 0 && bytes.last() != Some(&0) {
                bytes.push(0);
            }
            self.room = self.room.saturating_sub(bytes.len() + ENTRY);
            tree.values.push(TagValue { tag: entry.tag, kind, bytes });
        }
        Some(tree)
    }
}
