//! A page of a TIFF file: type of samples, and location of strips or tiles.

use std::ops::Range;

use super::{
    directory::{Directory, TiffFile},
    old_jpeg,
    storage::{Compression, Fax, Photometric, Predictor, SampleFormat, sample_type},
    tag,
};
use crate::{data::dtype::Dtype, io::image::error::BoxError};

/// Approximate bytes of the parts of a split uncompressed strip.
const PART: usize = 1 << 20;
/// Maximum decompressed size, in bytes, of a strip or tile that is missing, as in the sparse files that GDAL writes.
const MAX_MISSING_CHUNK: u64 = 64 << 20;

/// Offsets and lengths of the strips or tiles of a page.
#[derive(Clone, Debug, Default)]
pub struct ChunkTable {
    offsets: Vec<u64>,
    /// Lengths in bytes. The list is shorter than `offsets` if the file does not state all lengths.
    lengths: Vec<u64>,
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

    /// Memory of the table in bytes.
    pub fn bytes(&self) -> u64 {
        ((self.offsets.len() + self.lengths.len()) * size_of::<u64>()) as u64
    }
}

#[derive(Clone, Debug)]
pub struct Page {
    /// Pixels across and down.
    pub size: [usize; 2],
    pub bits: u32,
    pub format: SampleFormat,
    /// The type of samples in memory.
    pub dtype: Dtype,
    /// Samples per pixel.
    pub samples: usize,
    pub photometric: Photometric,
    /// Meanings of the samples after the colours: 1 associated alpha, 2 unassociated alpha, 0 unspecified.
    pub extra: Vec<u64>,
    /// Whether each channel is stored in separate chunks.
    pub is_planar: bool,
    pub compression: Compression,
    pub predictor: Predictor,
    /// Whether the directory states a predictor that does not apply to the compression.
    pub has_idle_predictor: bool,
    /// Whether the lowest bit of each byte is first (fill order 2).
    pub is_reversed: bool,
    pub is_little_endian: bool,
    /// Whether chunks are tiles; otherwise strips.
    pub is_tiled: bool,
    /// Pixels across and down of a chunk: a strip or a tile.
    pub chunk: [usize; 2],
    /// Offsets and lengths of the chunks in the file.
    pub table: ChunkTable,
    /// JPEG tables that all chunks share.
    pub tables: Vec<u8>,
    /// Number of pixels, across and down, that share a sample of Cb and Cr.
    pub subsampling: [usize; 2],
}

impl Page {
    pub fn read(file: &TiffFile<'_>, directory: &Directory) -> Result<Self, BoxError> {
        if directory.find(tag::DNG_VERSION).is_some() {
            return Err(
                "camera raw (DNG) is not supported: convert it to TIFF by darktable-cli or dcraw -T"
                    .into(),
            );
        }
        let number = |tag| file.first_number(directory, tag);
        let or = |tag, otherwise| Ok::<u64, BoxError>(number(tag)?.unwrap_or(otherwise));
        let side = |tag| -> Result<usize, BoxError> {
            let side = number(tag)?.ok_or("its width or height is missing")?;
            Ok(u32::try_from(side)? as usize)
        };
        let size = [side(tag::WIDTH)?, side(tag::HEIGHT)?];
        let samples = or(tag::SAMPLES_PER_PIXEL, 1)?;
        // The tag is a u16.
        let samples = usize::from(u16::try_from(samples)?).max(1);
        let bits = Self::uniform_value(file, directory, tag::BITS, 1, samples)?;
        let format = Self::uniform_value(file, directory, tag::SAMPLE_FORMAT, 1, samples)?;
        let (format, dtype) = sample_type(bits, format)?;
        let compression = Compression::from_tag(or(tag::COMPRESSION, 1)?)?;
        let photometric = match number(tag::PHOTOMETRIC)? {
            Some(number) => Photometric::from_tag(number)?,
            // Some writers omit the tag.
            None if samples >= 3 => Photometric::Rgb,
            None => Photometric::MinIsBlack,
        };
        let mut page = Self {
            size,
            bits: bits as u32,
            format,
            dtype,
            samples,
            photometric,
            extra: file.numbers(directory, tag::EXTRA_SAMPLES, samples)?.unwrap_or_default(),
            is_planar: samples > 1 && or(tag::PLANAR, 1)? == 2,
            compression,
            predictor: Predictor::None,
            has_idle_predictor: false,
            is_reversed: or(tag::FILL_ORDER, 1)? == 2 && !compression.is_jpeg(),
            is_little_endian: file.is_little_endian,
            is_tiled: directory.find(tag::TILE_WIDTH).is_some(),
            chunk: size,
            table: ChunkTable::default(),
            tables: Vec::new(),
            subsampling: [1, 1],
        };
        if photometric == Photometric::YCbCr {
            page.subsampling = subsampling(file, directory)?;
        }
        page.check_storage()?;
        if let Compression::Fax(Fax::Group3 { is_2d }) = &mut page.compression {
            *is_2d = or(tag::T4_OPTIONS, 0)? & 1 == 1;
        }
        page.read_predictor(or(tag::PREDICTOR, 1)?)?;
        if compression == Compression::OldJpeg
            && let Some([offset, length]) = old_jpeg::whole_stream(file, directory)
        {
            (page.is_tiled, page.is_planar, page.chunk) =
                (false, false, size.map(|side| side.max(1)));
            let (offsets, lengths) = (vec![offset], vec![length]);
            let file_bytes = file.bytes.len();
            page.table = ChunkTable { offsets, lengths, file_bytes, is_split: false };
            return Ok(page);
        }
        if compression == Compression::OldJpeg && page.is_planar {
            return Err("old-style JPEG in planes is not supported".into());
        }
        page.find_chunks(file, directory)?;
        match compression {
            Compression::Jpeg => {
                let tables = directory.find(tag::JPEG_TABLES);
                page.tables =
                    tables.map(|entry| file.value(entry)).transpose()?.unwrap_or_default();
            }
            Compression::OldJpeg => {
                page.tables = old_jpeg::tables(file, directory, page.chunk_samples())?;
            }
            _ => {}
        }
        Ok(page)
    }

    /// Refuses kinds of samples that are not supported with the compression or the colours.
    fn check_storage(&self) -> Result<(), BoxError> {
        let Self { bits, compression, subsampling, .. } = *self;
        if compression.is_jpeg() && (bits != 8 || self.format != SampleFormat::Unsigned) {
            return Err(format!("JPEG of {bits} bits in TIFF is not supported").into());
        }
        if matches!(compression, Compression::Fax(_)) && (bits != 1 || self.chunk_samples() != 1) {
            return Err("CCITT fax compression is for samples of 1 bit".into());
        }
        if self.photometric == Photometric::YCbCr
            && self.is_planar
            && subsampling != [1, 1]
            && !compression.is_jpeg()
        {
            return Err("planar YCbCr with subsampled Cb and Cr is not supported".into());
        }
        Ok(())
    }

    /// Value of a tag with one value per sample, which must be equal; `otherwise` without the tag.
    fn uniform_value(
        file: &TiffFile<'_>,
        directory: &Directory,
        tag: u16,
        otherwise: u64,
        samples: usize,
    ) -> Result<u64, BoxError> {
        let found = file.numbers(directory, tag, samples)?.unwrap_or_default();
        let Some(&first) = found.first() else { return Ok(otherwise) };
        match found.iter().all(|&number| number == first) {
            true => Ok(first),
            false => Err("its channels are of different types, which is not supported".into()),
        }
    }

    fn read_predictor(&mut self, number: u64) -> Result<(), BoxError> {
        // As in libtiff, other compressions have no predictor.
        use Compression::{Deflate, Lzma, Lzw, Zstd};
        if !matches!(self.compression, Lzw | Deflate | Zstd | Lzma) {
            self.has_idle_predictor = number != 1;
            return Ok(());
        }
        let is_whole = matches!(self.bits, 8 | 16 | 32 | 64);
        self.predictor = match number {
            1 => Predictor::None,
            2 if is_whole => Predictor::Horizontal,
            3 if self.format == SampleFormat::Float => Predictor::FloatingPoint,
            other => {
                let bits = self.bits;
                return Err(format!(
                    "predictor {other} is not supported for samples of {bits} bits"
                )
                .into());
            }
        };
        Ok(())
    }

    /// Warning about a predictor that is ignored.
    pub fn loss(&self) -> Option<String> {
        let name = self.compression.name();
        self.has_idle_predictor.then(|| match self.compression {
            Compression::None => "its predictor is ignored: it is not compressed".to_owned(),
            _ => format!("its predictor is ignored: {name} compression has none"),
        })
    }

    /// Whether samples are integers of 64 bits, which are read as f64.
    pub fn has_long_integers(&self) -> bool {
        self.bits == 64 && self.format != SampleFormat::Float
    }

    /// Samples of a pixel in one chunk.
    pub fn chunk_samples(&self) -> usize {
        if self.is_planar { 1 } else { self.samples }
    }

    /// Number of planes of chunks.
    pub fn planes(&self) -> usize {
        if self.is_planar { self.samples } else { 1 }
    }

    /// Number of chunks across and down.
    pub fn grid(&self) -> [usize; 2] {
        [0, 1].map(|axis| self.size[axis].div_ceil(self.chunk[axis]))
    }

    /// Number of chunks of all planes.
    pub fn chunk_count(&self) -> usize {
        let [across, down] = self.grid();
        across.saturating_mul(down).saturating_mul(self.planes())
    }

    /// Whether several pixels share samples of Cb and Cr. JPEG data state their subsampling themselves.
    pub fn is_subsampled(&self) -> bool {
        self.photometric == Photometric::YCbCr
            && !self.compression.is_jpeg()
            && !self.is_planar
            && self.samples == 3
            && self.subsampling != [1, 1]
    }

    /// Bytes of a decompressed row of a chunk; with subsampling, of all rows that share samples of Cb and Cr.
    pub fn chunk_row_bytes(&self) -> u64 {
        let [across, down] = self.subsampling;
        let samples = match self.is_subsampled() {
            true => self.chunk[0].div_ceil(across) as u64 * (across * down + 2) as u64,
            false => self.chunk[0] as u64 * self.chunk_samples() as u64,
        };
        samples.saturating_mul(self.bits.into()).div_ceil(8)
    }

    /// Bytes of `rows` decompressed rows of a chunk.
    pub fn chunk_bytes(&self, rows: usize) -> u64 {
        let rows = if self.is_subsampled() { rows.div_ceil(self.subsampling[1]) } else { rows };
        self.chunk_row_bytes().saturating_mul(rows as u64)
    }

    /// Rows of the image in row `chunk_row` of chunks.
    pub fn rows_in(&self, chunk_row: usize) -> Range<usize> {
        let first = chunk_row * self.chunk[1];
        first..(first + self.chunk[1]).min(self.size[1])
    }

    /// Number of colour samples per pixel, without extra samples; an error if it is not supported.
    pub fn colours(&self) -> Result<usize, BoxError> {
        let colours = self.photometric.colours();
        match self.samples < colours {
            // Some writers state RGB for grey images.
            true if self.photometric == Photometric::Rgb && self.samples < 3 => Ok(1),
            true => Err(format!("{} samples per pixel, expected {colours}", self.samples).into()),
            false => Ok(colours),
        }
    }

    pub fn type_name(&self) -> String {
        let letter = match self.format {
            SampleFormat::Unsigned => 'u',
            SampleFormat::Signed => 'i',
            SampleFormat::Float => 'f',
        };
        format!("{letter}{}", self.bits)
    }

    /// Reads the size and the locations of chunks.
    fn find_chunks(&mut self, file: &TiffFile<'_>, directory: &Directory) -> Result<(), BoxError> {
        let [width, height] = self.size;
        // An image without pixels is rejected later. Here it has no chunks, and must not divide by 0.
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
        if missing > 0 && self.chunk_bytes(self.chunk[1]) > MAX_MISSING_CHUNK {
            return Err(format!("{missing} of its {count} strips or tiles are missing").into());
        }
        let file_bytes = file.bytes.len();
        self.table = ChunkTable { offsets, lengths, file_bytes, is_split: false };
        self.split_strips();
        Ok(())
    }

    /// Pixels across and down of a strip or tile.
    fn chunk_size(
        &self,
        file: &TiffFile<'_>,
        directory: &Directory,
    ) -> Result<[usize; 2], BoxError> {
        let number = |tag| file.first_number(directory, tag);
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

    /// Splits a single uncompressed strip into parts that are read like strips, by all threads, and of which only some
    /// need to be in memory.
    fn split_strips(&mut self) {
        let is_one = !self.is_tiled && self.chunk[1] >= self.size[1];
        if self.compression != Compression::None || !is_one || self.is_subsampled() {
            return;
        }
        let rows = (PART as u64 / self.chunk_row_bytes().max(1)).clamp(1, u32::MAX.into());
        self.table.is_split = true;
        self.chunk[1] = (rows as usize).min(self.size[1]);
    }

    /// Offset and length in bytes of chunk `number`. The length is limited to the maximum of a chunk. Sparse files have
    /// chunks with an offset or a length of 0.
    pub fn location(&self, number: usize) -> [u64; 2] {
        if !self.table.is_split {
            let [across, down] = self.grid();
            let [offset, bytes] = self.stored(number, self.rows_in(number / across % down).len());
            return [offset, bytes.min(self.max_packed())];
        }
        let down = self.grid()[1];
        let [offset, bytes] = self.stored(number / down, self.size[1]);
        let rows = self.rows_in(number % down);
        let before = self.chunk_bytes(rows.start);
        match offset {
            0 => [0, 0],
            _ => [
                offset.saturating_add(before),
                bytes.saturating_sub(before).min(self.chunk_bytes(rows.len())),
            ],
        }
    }

    /// Offset and length in bytes of a stored strip or tile with `rows` rows of the image.
    fn stored(&self, number: usize, rows: usize) -> [u64; 2] {
        let ChunkTable { offsets, lengths, file_bytes, .. } = &self.table;
        let offset = offsets[number];
        let length = match lengths.get(number) {
            None | Some(0) if offset == 0 => 0,
            // Some writers omit the length.
            None | Some(0) if self.compression == Compression::None => {
                self.chunk_bytes(if self.is_tiled { self.chunk[1] } else { rows })
            }
            // At least 1, even after the end of the file: 0 would mean a sparse file.
            None => file_bytes.saturating_sub(offset).max(1),
            Some(&length) => length,
        };
        [offset, length]
    }

    /// Maximum number of bytes that are read of a chunk. Without it, strips that share the bytes of a long strip would
    /// take quadratic time.
    pub fn max_packed(&self) -> u64 {
        let unpacked = self.chunk_bytes(self.chunk[1]);
        match self.compression {
            Compression::None => unpacked,
            // Tables and metadata precede the image.
            Compression::Jpeg | Compression::OldJpeg => {
                unpacked.saturating_mul(4).saturating_add(128 << 10)
            }
            // The shortest runs of both colours have 9 bits, and an end of line has 12 and zeros before it.
            Compression::Fax(_) => unpacked.saturating_mul(8).saturating_add(64 << 10),
            // LZW turns a byte into at most 18 bits.
            _ => unpacked.saturating_mul(4).saturating_add(4 << 10),
        }
    }
}

/// The number of pixels, across and down, that share a sample of Cb and Cr; without the tag, 2 and 2.
fn subsampling(file: &TiffFile<'_>, directory: &Directory) -> Result<[usize; 2], BoxError> {
    let found = file.numbers(directory, tag::YCBCR_SUBSAMPLING, 2)?.unwrap_or(vec![2, 2]);
    match found[..] {
        [across @ (1 | 2 | 4), down @ (1 | 2 | 4)] => Ok([across as usize, down as usize]),
        _ => Err("unsupported chroma subsampling".into()),
    }
}
