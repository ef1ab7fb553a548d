//! EXIF, which a TIFF file stores in its directories, and other formats as a block that begins with a TIFF header.

use image::metadata::Orientation;

use super::{
    directory::{Entry, TiffFile, kind, sizes},
    tag,
    tree::{DirectoryTree, TagValue, header},
};
use crate::io::image::{
    metadata::{MetadataBlock, strip_exif_prefix},
    probe::Probe,
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
    /// Whether some values cannot be read or are too long.
    pub is_partial: bool,
}

impl Exif {
    pub fn from_block(block: &[u8]) -> Option<Self> {
        let file = TiffFile::open_block(block).ok()?;
        let mut wanted = IMAGE_TAGS.to_vec();
        wanted.extend(RESOLUTION);
        Self::read(&file, file.first_directory, &wanted)
    }

    /// Reads the EXIF data of the page with the directory at `first`, without the orientation; `None` if there are
    /// none. With `describes_pages`, the description tag is about all pages and not part of EXIF.
    pub fn from_page(file: &TiffFile<'_>, first: u64, describes_pages: bool) -> Option<Self> {
        let is_kept = |tag: &u16| !describes_pages || *tag != tag::DESCRIPTION;
        let wanted: Vec<u16> = IMAGE_TAGS.into_iter().filter(is_kept).collect();
        Self::read(file, first, &wanted)
    }

    /// Reads the directory at `first` with its children. Only the tags `wanted` of the first directory are read.
    fn read(file: &TiffFile<'_>, first: u64, wanted: &[u16]) -> Option<Self> {
        let mut reader =
            Reader { file, wanted, room: MetadataBlock::Exif.max_len(), is_partial: false };
        let root = reader.directory(first, 0)?;
        (!root.is_empty()).then_some(Self { root, is_partial: reader.is_partial })
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

    pub fn to_block(&self) -> Vec<u8> {
        let (mut block, _) = header(false);
        self.root.write(&mut block, 0, false, 0);
        block
    }
}

/// Adds a block of EXIF to a probe: size, texts and orientation.
pub fn add_to_probe(probe: &mut Probe, exif: Option<Vec<u8>>) {
    let Some(block) = exif.map(strip_exif_prefix) else { return };
    probe.add_block(MetadataBlock::Exif, Some(&block));
    let texts = Exif::from_block(&block).map_or_else(Vec::new, |exif| exif.texts().collect());
    probe.metadata.extend(texts.into_iter().map(|(name, text)| (name.to_owned(), text)));
    let orientation = Orientation::from_exif_chunk(&block).unwrap_or(Orientation::NoTransforms);
    if orientation != Orientation::NoTransforms {
        probe.metadata.push(("orientation".into(), format!("{orientation:?}, in EXIF")));
    }
    probe.is_transposed = orientation.to_exif() > 4;
}

/// Whether a block of EXIF describes the image, not only the file. This includes blocks that cannot be read.
pub fn describes_image(block: &[u8]) -> bool {
    /// Tags of the software, the date of the file, and the computer.
    const FILE_TAGS: [u16; 3] = [305, 306, 316];
    let Some(Exif { root, .. }) = Exif::from_block(block) else { return true };
    let is_about_image = |tag| !FILE_TAGS.contains(tag) && !RESOLUTION.contains(tag);
    !root.children.is_empty() || root.values.iter().any(|value| is_about_image(&value.tag))
}

/// Sets the width and height of the image that a block of EXIF states (PixelXDimension and PixelYDimension), if any.
pub fn set_size(block: &mut [u8], size: [usize; 2]) {
    let sides = |file: &TiffFile<'_>| {
        let first = file.directory(file.first_directory).ok()?;
        let exif = file.directory(file.first_number(&first, POINTERS[0]).ok()??).ok()?;
        Some([40962, 40963].map(|tag| exif.find(tag).copied()))
    };
    let Ok(file) = TiffFile::open_block(block) else { return };
    let (is_little_endian, sides) = (file.is_little_endian, sides(&file));
    drop(file);
    for (entry, side) in sides.into_iter().flatten().zip(size) {
        let Some(Entry { kind: kind @ (kind::SHORT | kind::LONG), count: 1, at, .. }) = entry
        else {
            continue;
        };
        let len = if kind == kind::SHORT { 2 } else { 4 };
        let mut bytes = (side as u32).to_le_bytes();
        if !is_little_endian {
            bytes[..len].reverse();
        }
        block[at as usize..][..len].copy_from_slice(&bytes[..len]);
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
            let Some(bytes) = value else {
                self.is_partial = true;
                continue;
            };
            self.room = self.room.saturating_sub(bytes.len() + ENTRY);
            tree.values.push(TagValue { tag: entry.tag, kind: entry.kind, bytes });
        }
        Some(tree)
    }
}
