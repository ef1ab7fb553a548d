//! EXIF, which in a TIFF file is spread over the file's own directories, and in other formats is a block
//! that begins with a TIFF header: read from either, written as either.

use std::sync::Arc;

use super::{
    bytes::Bytes,
    directory::{File, kind, sizes},
    stack, tag,
    tree::{Tree, Value, header},
};
use crate::io::image::metadata::LONGEST_EXIF;

/// Tags of the first directory that describe a picture rather than how it is stored (EXIF 2.32, table
/// 4, without the orientation, which is applied, and the resolution, which is told apart), and the titles that Windows
/// writes.
const KEPT: [u16; 16] =
    [270, 271, 272, 305, 306, 315, 316, 318, 319, 33432, 40091, 40092, 40093, 40094, 40095, 18246];
/// Resolution across and down, and its unit.
pub const RESOLUTION: [u16; 3] = [tag::X_RESOLUTION, tag::Y_RESOLUTION, tag::RESOLUTION_UNIT];
/// Tags that point to other directories: EXIF, GPS, and within EXIF, Interoperability.
const POINTERS: [u16; 3] = [34665, 34853, 40965];
/// Bytes of an entry in a directory.
const ENTRY: usize = 12;

/// Text without the NUL that ends it.
fn text(value: &Value) -> &[u8] {
    value.bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// The description of a picture.
#[derive(Debug, Default)]
pub struct Exif {
    /// The first directory and those below it.
    pub root: Tree,
    /// Whether some of the file's EXIF cannot be read or is too long.
    pub is_partial: bool,
}

impl Exif {
    /// Reads a block.
    pub fn of_block(block: &[u8]) -> Option<Self> {
        let bytes: Arc<dyn Bytes + '_> = Arc::new(block);
        let file = File::open(bytes).ok()?;
        let mut kept = KEPT.to_vec();
        kept.extend(RESOLUTION);
        Self::read(&file, file.first, &kept, usize::MAX)
    }

    /// Reads the description of the page whose directory is at `first`, one of `pages`, without its orientation; nothing
    /// where it is empty.
    pub fn of_page(file: &File<'_>, first: u64, pages: usize) -> Option<Self> {
        Self::read(file, first, &KEPT, pages)
    }

    /// Reads the description whose directory is at `first`, with the tags `kept` of that directory.
    fn read(file: &File<'_>, first: u64, kept: &[u16], pages: usize) -> Option<Self> {
        let mut reader = Reader { file, kept, room: LONGEST_EXIF, is_partial: false };
        let mut root = reader.directory(first, 0)?;
        // A description that tells of pages is not that of a picture. That of ImageJ has the distance of slices.
        root.values.retain(|value| {
            let by = || stack::writer(&String::from_utf8_lossy(text(value)));
            value.tag != tag::DESCRIPTION
                || match by() {
                    Some(stack::Writer::ImageJ) => pages > 1,
                    by => by.is_none(),
                }
        });
        (!root.is_empty()).then_some(Self { root, is_partial: reader.is_partial })
    }

    /// Whether it says anything of the picture, and not only of the file: the program that wrote it, when, and where.
    pub fn describes(&self) -> bool {
        /// Software, date of the file, computer.
        const OF_FILE: [u16; 3] = [305, 306, 316];
        !self.root.children.is_empty()
            || self
                .root
                .values
                .iter()
                .any(|value| !OF_FILE.contains(&value.tag) && !RESOLUTION.contains(&value.tag))
    }

    /// As a block.
    pub fn to_block(&self) -> Vec<u8> {
        let (mut block, _) = header(false);
        self.root.write(&mut block, false, 0);
        block
    }
}

/// Reads directories, which may point to each other in circles and claim values of any length.
struct Reader<'a, 'b> {
    file: &'a File<'b>,
    /// Tags of the first directory.
    kept: &'a [u16],
    /// Bytes that the values still to come may have in all.
    room: usize,
    is_partial: bool,
}

impl Reader<'_, '_> {
    /// Reads the directory at `at`, which lies `depth` below the first, and its children.
    fn directory(&mut self, at: u64, depth: usize) -> Option<Tree> {
        let found = self.file.directory(at).ok()?;
        let mut tree = Tree::default();
        for entry in found.entries() {
            if POINTERS.contains(&entry.tag) && depth < POINTERS.len() - 1 {
                let pointer = self.file.number_of(&found, entry.tag).ok().flatten();
                match pointer.and_then(|at| self.directory(at, depth + 1)) {
                    Some(child) => tree.children.push((entry.tag, child)),
                    None => self.is_partial = true,
                }
                continue;
            }
            let is_there = tree.values.iter().any(|value| value.tag == entry.tag);
            if depth == 0 && !self.kept.contains(&entry.tag) || is_there {
                continue;
            }
            let len = sizes(entry.kind)
                .map_or(u64::MAX, |[size, _]| entry.count.saturating_mul(size as u64));
            // The types of BigTIFF are unknown to EXIF.
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
            tree.values.push(Value { tag: entry.tag, kind: entry.kind, bytes });
        }
        Some(tree)
    }
}
