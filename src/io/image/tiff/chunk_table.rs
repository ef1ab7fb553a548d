//! Offsets and lengths of the strips and tiles of a page.

use super::{
    directory::{Directory, File},
    page::{Compression, Page},
    tag,
};
use crate::io::image::codec::BoxError;

/// Approximate bytes of a part into which a large uncompressed strip is split.
const PART: usize = 1 << 20;
/// Maximum decompressed size, in bytes, of a strip or tile that is missing, as in the sparse files that GDAL writes.
const MOST_MISSING: u64 = 64 << 20;

/// Offsets and lengths of the strips or tiles of a page, as the file states them.
#[derive(Clone, Debug, Default)]
pub struct ChunkTable {
    offsets: Vec<u64>,
    /// Lengths in bytes; shorter than `offsets` if the file does not state all of them.
    lengths: Vec<u64>,
    /// Bytes of the file.
    file_bytes: u64,
    /// Whether the only strip of each plane is split into several chunks.
    is_split: bool,
}

impl ChunkTable {
    /// Offset of a strip or tile; 0 if it is missing.
    pub fn offset(&self, number: usize) -> u64 {
        self.offsets.get(number).copied().unwrap_or(0)
    }

    /// Adds `bytes` to all offsets.
    pub fn move_by(&mut self, bytes: u64) {
        self.offsets.iter_mut().for_each(|offset| *offset = offset.saturating_add(bytes));
    }

    /// Bytes of memory that the table takes.
    pub fn bytes(&self) -> u64 {
        ((self.offsets.len() + self.lengths.len()) * size_of::<u64>()) as u64
    }
}

impl Page {
    /// Reads the size and the locations of chunks.
    ///
    /// # Errors
    /// If the page has fewer strips or tiles than its size requires, or does not state their lengths.
    pub(super) fn find_chunks(
        &mut self,
        file: &File<'_>,
        directory: &Directory,
    ) -> Result<(), BoxError> {
        let [width, height] = self.size;
        // A picture without pixels is refused later. Here it has no chunks, and must not divide by 0.
        if width == 0 || height == 0 {
            self.chunk = [1, 1];
            return Ok(());
        }
        self.chunk = self.chunk_size(file, directory)?;
        let count = self.chunk_count();
        let numbers = |tiles, strips| match self.is_tiled {
            // Some writers use the tags of strips for tiles, too.
            true if directory.find(tiles).is_some() => file.numbers(directory, tiles, count),
            _ => file.numbers(directory, strips, count),
        };
        let offsets = numbers(tag::TILE_OFFSETS, tag::STRIP_OFFSETS)?;
        let offsets = offsets.ok_or("the offsets of its strips or tiles are missing")?;
        if offsets.len() < count {
            return Err(format!(
                "it has {} strips or tiles, but its size requires {count}",
                offsets.len()
            )
            .into());
        }
        let lengths = numbers(tag::TILE_BYTES, tag::STRIP_BYTES)?.unwrap_or_default();
        let is_unknown = offsets[lengths.len()..].iter().any(|&offset| offset != 0);
        if is_unknown && count > 1 && self.compression != Compression::None {
            return Err("the lengths of its strips or tiles are missing".into());
        }
        let missing = offsets.iter().filter(|&&offset| offset == 0).count();
        if missing > 0 && self.chunk_bytes(self.chunk[1]) > MOST_MISSING {
            return Err(format!("{missing} of its {count} strips or tiles are missing").into());
        }
        let file_bytes = file.bytes.len();
        self.table = ChunkTable { offsets, lengths, file_bytes, is_split: false };
        self.split_strips();
        Ok(())
    }

    /// Pixels across and down of a strip or tile.
    fn chunk_size(&self, file: &File<'_>, directory: &Directory) -> Result<[usize; 2], BoxError> {
        let number = |tag| file.number_of(directory, tag);
        let [width, height] = self.size;
        if self.is_tiled {
            let side = |tag| -> Result<usize, BoxError> {
                let side = number(tag)?.filter(|&side| side > 0);
                Ok(u32::try_from(side.ok_or("its tiles have no size")?)? as usize)
            };
            return Ok([side(tag::TILE_WIDTH)?, side(tag::TILE_HEIGHT)?]);
        }
        let rows = number(tag::ROWS_PER_STRIP)?.filter(|&rows| rows > 0);
        Ok([width, rows.unwrap_or(u64::MAX).min(height as u64) as usize])
    }

    /// Splits a single uncompressed strip into parts that are handled as strips, so that all threads read them, and
    /// only some of them need to be in memory.
    fn split_strips(&mut self) {
        let is_one = !self.is_tiled && self.chunk[1] >= self.size[1];
        if self.compression != Compression::None || !is_one || self.is_subsampled() {
            return;
        }
        let rows = (PART as u64 / self.chunk_row_bytes().max(1)).clamp(1, u32::MAX.into());
        self.table.is_split = true;
        self.chunk[1] = (rows as usize).min(self.size[1]);
    }

    /// Offset and length in bytes of chunk `number`. The length is limited to what a chunk can take. Sparse files have
    /// chunks with an offset or a length of 0.
    pub fn location(&self, number: usize) -> [u64; 2] {
        if !self.table.is_split {
            let [across, down] = self.grid();
            let [offset, bytes] = self.stored(number, self.rows_of(number / across % down).len());
            return [offset, bytes.min(self.most_packed())];
        }
        let down = self.grid()[1];
        let [offset, bytes] = self.stored(number / down, self.size[1]);
        let rows = self.rows_of(number % down);
        let before = self.chunk_bytes(rows.start);
        match offset {
            0 => [0, 0],
            _ => [
                offset.saturating_add(before),
                bytes.saturating_sub(before).min(self.chunk_bytes(rows.len())),
            ],
        }
    }

    /// Offset and length in bytes of a stored strip or tile with `rows` rows of the picture.
    fn stored(&self, number: usize, rows: usize) -> [u64; 2] {
        let ChunkTable { offsets, lengths, file_bytes, .. } = &self.table;
        let offset = offsets[number];
        let length = match lengths.get(number) {
            None | Some(0) if offset == 0 => 0,
            // Some writers omit the length.
            None | Some(0) if self.compression == Compression::None => {
                self.chunk_bytes(if self.is_tiled { self.chunk[1] } else { rows })
            }
            None => file_bytes.saturating_sub(offset),
            Some(&length) => length,
        };
        [offset, length]
    }

    /// Maximum number of bytes that are read of a chunk. Otherwise, strips that all share the bytes of a long one would
    /// take time that grows with the square of the file's length.
    pub fn most_packed(&self) -> u64 {
        let unpacked = self.chunk_bytes(self.chunk[1]);
        match self.compression {
            Compression::None => unpacked,
            // Tables and segments with metadata precede the picture.
            Compression::Jpeg => unpacked.saturating_mul(4).saturating_add(128 << 10),
            // LZW turns a byte into at most 18 bits.
            _ => unpacked.saturating_mul(4).saturating_add(4 << 10),
        }
    }
}
