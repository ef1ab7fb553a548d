//! Decoding of strips and tiles to samples of a [`Dtype`](crate::data::dtype::Dtype) with the stored values, neither
//! scaled nor converted to other colours.

use std::{
    borrow::Cow,
    io::{self, BufReader, Read},
    sync::Arc,
};

use super::{
    fax, old_jpeg,
    page::Page,
    storage::{Compression, Predictor, SampleFormat},
    unpack::{ByteStream, MAX_DICTIONARY, decompress},
};
use crate::{
    data::dtype::Dtype,
    io::{
        Limits,
        image::{codec::ReadAt, error::BoxError, limits::check_scratch},
    },
    jpeg::{ColourModel, ColourSource, Container, JpegFile},
    util::memory,
};

/// Samples of a strip or tile.
pub struct DecodedChunk {
    /// Columns and rows.
    pub size: [usize; 2],
    /// Interleaved samples of the type of the page.
    pub samples: Vec<u8>,
    /// Whether parts of JPEG or fax data are missing.
    pub is_damaged: bool,
}

/// Decodes chunk `number`. `wanted` are the indices of the samples of each pixel that are extracted.
pub fn decode(
    page: &Page,
    bytes: &dyn ReadAt,
    number: usize,
    wanted: &[usize],
    limits: Limits,
) -> Result<DecodedChunk, BoxError> {
    let [across, down] = page.grid();
    let (column, row) = (number % across, number / across % down);
    let rows = page.rows_in(row).len();
    let columns = page.chunk[0].min(page.size[0] - column * page.chunk[0]);
    let size = [columns, rows];
    let [offset, len] = page.location(number);
    let sample = page.dtype.size();
    if offset == 0 || len == 0 {
        // Writers of sparse files (GDAL) omit chunks of zeros.
        let samples = memory::zeros(columns * rows * wanted.len() * sample)?;
        return Ok(DecodedChunk { size, samples, is_damaged: false });
    }
    check_scratch(limits, len.min(bytes.len()), "decoding a strip or tile")?;
    let mut packed = bytes.read(offset, len)?;
    let decoded = match page.compression {
        Compression::OldJpeg if !page.tables.is_empty() => {
            let stored = if page.is_tiled { page.chunk[1] } else { rows };
            let (count, size_stored) = (page.chunk_samples(), [page.chunk[0], stored]);
            let stream =
                old_jpeg::stream(&page.tables, &packed, size_stored, count, page.subsampling);
            stream.and_then(|stream| from_jpeg(page, &stream, &[], size, wanted, limits))
        }
        Compression::Jpeg | Compression::OldJpeg => {
            from_jpeg(page, &packed, &page.tables, size, wanted, limits)
        }
        compression => {
            let wanted_bytes = page.chunk_bytes(rows);
            let decoder_bytes = match compression {
                Compression::Fax(_) => fax::scratch(page.chunk[0], &packed),
                Compression::Lzma => wanted_bytes.min(MAX_DICTIONARY),
                _ => 0,
            };
            let needed = wanted_bytes.saturating_add(decoder_bytes);
            check_scratch(limits, needed, "decoding a strip or tile")?;
            let wanted_len = usize::try_from(wanted_bytes)?;
            if page.is_reversed {
                packed.to_mut().iter_mut().for_each(|byte| *byte = byte.reverse_bits());
            }
            let mut is_damaged = false;
            let rows_bytes = match compression {
                Compression::None if packed.len() < wanted_len => Err("it ends early".into()),
                Compression::None => Ok(packed),
                Compression::Fax(kind) => {
                    let mut rows = memory::zeros::<u8>(wanted_len)?;
                    is_damaged = fax::decode(kind, &packed, page.chunk[0], &mut rows)?;
                    Ok(Cow::Owned(rows))
                }
                _ => decompress_all(compression, &packed, wanted_len).map(Cow::Owned),
            };
            rows_bytes.and_then(|mut stored| {
                let samples = extract_samples(page, &mut stored, size, wanted)?;
                Ok(DecodedChunk { size, samples, is_damaged })
            })
        }
    };
    decoded.map_err(|error| {
        let name = if page.is_tiled { "tile" } else { "strip" };
        format!("{name} {number}: {error}").into()
    })
}

fn decompress_all(
    compression: Compression,
    packed: &[u8],
    len: usize,
) -> Result<Vec<u8>, BoxError> {
    let mut stored = memory::zeros(len)?;
    let mut input = decompress(compression, Box::new(packed), len as u64)?;
    read_all(&mut input, &mut stored)?;
    check_end(compression, &mut input)?;
    Ok(stored)
}

/// Reads data of deflate or LZMA after the last row up to the checksum, which may be the only sign of damage. Padding
/// rows of the last strip may precede it.
fn check_end(compression: Compression, input: &mut ByteStream<'_>) -> Result<(), BoxError> {
    /// Maximum number of bytes that are read.
    const MAX: u64 = 1 << 20;
    if !matches!(compression, Compression::Deflate | Compression::Lzma) {
        return Ok(());
    }
    match io::copy(&mut input.take(MAX), &mut io::sink()) {
        // Some writers omit the checksum.
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error.into()),
        _ => Ok(()),
    }
}

fn read_all(input: &mut ByteStream<'_>, stored: &mut [u8]) -> Result<(), BoxError> {
    input.read_exact(stored).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "it ends early".into(),
        io::ErrorKind::OutOfMemory => {
            "its LZMA dictionary is larger than 64 MiB, or than the free memory".into()
        }
        _ => error.into(),
    })
}

/// Extracts the `wanted` samples of each pixel from the decompressed rows of a chunk.
fn extract_samples(
    page: &Page,
    stored: &mut Cow<'_, [u8]>,
    size: [usize; 2],
    wanted: &[usize],
) -> Result<Vec<u8>, BoxError> {
    let [columns, rows] = size;
    let count = page.chunk_samples();
    let pixels = memory::zeros(columns * rows * wanted.len() * page.dtype.size())?;
    if page.is_subsampled() {
        return Ok(upsampled(page, stored, size, wanted, pixels));
    }
    let row_bytes = usize::try_from(page.chunk_row_bytes())?;
    let unit = page.bits as usize / 8;
    let is_whole = page.bits.is_multiple_of(8);
    if is_whole && unit > 1 && !page.is_little_endian && page.predictor != Predictor::FloatingPoint
    {
        stored.to_mut().chunks_exact_mut(unit).for_each(<[u8]>::reverse);
    }
    if page.predictor != Predictor::None {
        for row in stored.to_mut().chunks_exact_mut(row_bytes) {
            match page.predictor {
                Predictor::Horizontal => undo_differences(row, unit, count),
                _ => undo_float_predictor(row, unit, count)?,
            }
        }
    }
    let mut pixels = pixels;
    let out_row = columns * wanted.len() * page.dtype.size();
    if out_row == 0 {
        return Ok(pixels);
    }
    for (row, to) in stored.chunks_exact(row_bytes).zip(pixels.chunks_exact_mut(out_row)) {
        if unit == page.dtype.size() && is_whole {
            pick(row, to, unit, count, wanted);
        } else {
            widen(page, row, to, count, wanted);
        }
    }
    if page.has_long_integers() {
        for value in pixels.as_chunks_mut().0 {
            let number = match page.format {
                SampleFormat::Signed => i64::from_ne_bytes(*value) as f64,
                _ => u64::from_ne_bytes(*value) as f64,
            };
            *value = number.to_ne_bytes();
        }
    }
    Ok(pixels)
}

/// Undoes horizontal differencing (TIFF 6.0, section 14), for `count` samples per pixel of `unit` bytes each.
fn undo_differences(row: &mut [u8], unit: usize, count: usize) {
    macro_rules! add {
        ($type:ty, $size:literal) => {{
            let values = row.as_chunks_mut::<$size>().0;
            for i in count..values.len() {
                let before = <$type>::from_ne_bytes(values[i - count]);
                let sum = <$type>::from_ne_bytes(values[i]).wrapping_add(before);
                values[i] = sum.to_ne_bytes();
            }
        }};
    }
    match unit {
        1 => (count..row.len()).for_each(|i| row[i] = row[i].wrapping_add(row[i - count])),
        2 => add!(u16, 2),
        4 => add!(u32, 4),
        _ => add!(u64, 8),
    }
}

/// Undoes the floating point predictor (Adobe Photoshop TIFF Technical Note 3): a row has the highest bytes of all
/// samples, then the next ones, and so on, as differences.
fn undo_float_predictor(row: &mut [u8], unit: usize, count: usize) -> Result<(), BoxError> {
    undo_differences(row, 1, count);
    let planes = memory::copied(row)?;
    let values = row.len() / unit;
    for (i, value) in row.chunks_exact_mut(unit).enumerate() {
        for (index, byte) in value.iter_mut().enumerate() {
            *byte = planes[(unit - 1 - index) * values + i];
        }
    }
    Ok(())
}

/// Copies the `wanted` samples of each pixel, `unit` bytes each.
fn pick(row: &[u8], to: &mut [u8], unit: usize, count: usize, wanted: &[usize]) {
    if wanted.len() == count && wanted.iter().copied().eq(0..count) {
        return to.copy_from_slice(&row[..to.len()]);
    }
    let pixels = to.chunks_exact_mut(unit * wanted.len()).zip(row.chunks_exact(unit * count));
    for (to, pixel) in pixels {
        for (to, &sample) in to.chunks_exact_mut(unit).zip(wanted) {
            to.copy_from_slice(&pixel[sample * unit..][..unit]);
        }
    }
}

/// Expands samples that are stored with fewer bits than their type has.
fn widen(page: &Page, row: &[u8], to: &mut [u8], count: usize, wanted: &[usize]) {
    let (bits, size) = (page.bits as usize, page.dtype.size());
    let is_whole = bits.is_multiple_of(8);
    for (x, pixel) in to.chunks_exact_mut(size * wanted.len()).enumerate() {
        for (to, &sample) in pixel.chunks_exact_mut(size).zip(wanted) {
            let first = (x * count + sample) * bits;
            let value = match is_whole {
                // These bytes are little-endian by now.
                true => {
                    let bytes = &row[first / 8..][..bits / 8];
                    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte))
                }
                false => bits_at(row, first, bits),
            };
            put(page, value, to);
        }
    }
}

/// Reads `bits` bits of a row from bit `first` on, highest bit first in any byte order (TIFF 6.0, `FillOrder`).
fn bits_at(row: &[u8], first: usize, bits: usize) -> u32 {
    let last = first + bits - 1;
    let bytes = &row[first / 8..=last / 8];
    let all = bytes.iter().fold(0u64, |all, &byte| all << 8 | u64::from(byte));
    let mask = (1u64 << bits) - 1;
    (all >> (7 - last % 8) & mask) as u32
}

/// Writes a value of `page.bits` bits as a sample of the page's type.
fn put(page: &Page, value: u32, to: &mut [u8]) {
    let value = match page.format {
        SampleFormat::Unsigned => value,
        SampleFormat::Signed => {
            let unused = 32 - page.bits;
            ((value << unused) as i32 >> unused) as u32
        }
        SampleFormat::Float => match page.bits {
            16 => small_float(value, 5, 10),
            _ => small_float(value, 7, 16),
        }
        .to_bits(),
    };
    match page.dtype.size() {
        1 => to[0] = value as u8,
        2 => to.copy_from_slice(&(value as u16).to_ne_bytes()),
        _ => to.copy_from_slice(&value.to_ne_bytes()),
    }
}

/// Value of a float with fewer than 32 bits: sign bit, exponent and fraction.
fn small_float(bits: u32, exponent_bits: u32, fraction_bits: u32) -> f32 {
    let max = (1 << exponent_bits) - 1;
    let exponent = bits >> fraction_bits & max;
    let fraction = bits & ((1 << fraction_bits) - 1);
    let bias = max as i32 / 2;
    let scaled = f64::from(fraction) / f64::from(1u32 << fraction_bits);
    let value = match exponent {
        0 => scaled * 2f64.powi(1 - bias),
        e if e == max && fraction == 0 => f64::INFINITY,
        e if e == max => f64::NAN,
        e => (1.0 + scaled) * 2f64.powi(e as i32 - bias),
    };
    if bits >> (exponent_bits + fraction_bits) & 1 == 0 { value as f32 } else { -value as f32 }
}

/// Expands YCbCr with subsampled Cb and Cr (TIFF 6.0, section 21): each unit is the Y of `across * down` pixels, then
/// Cb and Cr, which apply to all pixels of the unit, as in libtiff.
fn upsampled(
    page: &Page,
    stored: &[u8],
    [columns, rows]: [usize; 2],
    wanted: &[usize],
    mut pixels: Vec<u8>,
) -> Vec<u8> {
    let [across, down] = page.subsampling;
    let unit = across * down + 2;
    let units = page.chunk[0].div_ceil(across);
    for y in 0..rows {
        for x in 0..columns {
            let unit = &stored[(y / down * units + x / across) * unit..][..unit];
            let ycbcr =
                [unit[y % down * across + x % across], unit[unit.len() - 2], unit[unit.len() - 1]];
            let to = &mut pixels[(y * columns + x) * wanted.len()..][..wanted.len()];
            to.iter_mut().zip(wanted).for_each(|(to, &sample)| *to = ycbcr[sample]);
        }
    }
    pixels
}

/// Decodes a chunk that is a JPEG stream; all chunks may share tables.
fn from_jpeg(
    page: &Page,
    packed: &[u8],
    tables: &[u8],
    [columns, rows]: [usize; 2],
    wanted: &[usize],
    limits: Limits,
) -> Result<DecodedChunk, BoxError> {
    use super::storage::Photometric::{Rgb, YCbCr};
    let count = page.chunk_samples();
    // The directory takes precedence over the colours in the JPEG stream.
    let colour = match (count, page.photometric) {
        (4, YCbCr) => return Err("JPEG of YCbCr with a fourth channel is not supported".into()),
        (4, _) => ColourSource::Forced(ColourModel::Raw),
        (_, Rgb) => ColourSource::Forced(ColourModel::Rgb),
        (_, YCbCr) => ColourSource::Forced(ColourModel::YCbCr),
        _ => ColourSource::FromFile,
    };
    let file = JpegFile::parse(packed, &Container { tables, colour })?;
    let needed = file.frame.pixel_bytes() + file.scratch_bytes();
    check_scratch(limits, needed as u64, "decoding a strip or tile")?;
    let ([width, height], channels) = (file.frame.size, file.frame.colour.channels());
    if channels != count {
        return Err(format!("its JPEG data have {channels} channels, expected {count}").into());
    }
    if width < columns || height < rows {
        return Err("the size of its JPEG data differs from the directory".into());
    }
    let (stored, damage) = file.decode(1)?;
    let mut samples = memory::zeros(columns * rows * wanted.len())?;
    let stored = stored.chunks_exact(width * count);
    for (row, to) in stored.zip(samples.chunks_exact_mut((columns * wanted.len()).max(1))) {
        pick(row, to, Dtype::U8.size(), count, wanted);
    }
    Ok(DecodedChunk { size: [columns, rows], samples, is_damaged: damage.is_some() })
}

/// A strip that is decompressed as a stream, because it is too large to be decompressed as a whole.
pub struct StripStream<'a> {
    input: ByteStream<'a>,
    /// Number of the next row of the strip.
    next: usize,
    /// Number of rows of the image in the strip.
    rows: usize,
}

impl<'a> StripStream<'a> {
    /// Opens strip `number`.
    pub fn open(page: &Page, bytes: Arc<dyn ReadAt + 'a>, number: usize) -> Result<Self, BoxError> {
        let [offset, len] = page.location(number);
        let range = FileRange { bytes, at: offset, left: len, is_reversed: page.is_reversed };
        let is_sparse = offset == 0 || len == 0;
        let input: Box<dyn io::BufRead + Send> = match is_sparse {
            true => Box::new(BufReader::new(io::repeat(0))),
            false => Box::new(BufReader::with_capacity(1 << 16, range)),
        };
        let compression = if is_sparse { Compression::None } else { page.compression };
        let input = decompress(compression, input, page.chunk_bytes(page.chunk[1]))?;
        // The strips of a plane follow those of the previous plane.
        let rows = page.rows_in(number % page.grid()[1].max(1)).len();
        Ok(Self { input, next: 0, rows })
    }

    /// Number of the next row of the strip.
    pub fn next(&self) -> usize {
        self.next
    }

    /// Reads the next `rows` rows.
    pub fn read(
        &mut self,
        page: &Page,
        rows: usize,
        wanted: &[usize],
    ) -> Result<DecodedChunk, BoxError> {
        let mut stored = memory::zeros(usize::try_from(page.chunk_bytes(rows))?)?;
        read_all(&mut self.input, &mut stored)?;
        self.next += rows;
        if self.next >= self.rows {
            check_end(page.compression, &mut self.input)?;
        }
        let size = [page.size[0], rows];
        let samples = extract_samples(page, &mut Cow::Owned(stored), size, wanted)?;
        Ok(DecodedChunk { size, samples, is_damaged: false })
    }
}

/// A range of a file as a stream.
struct FileRange<'a> {
    bytes: Arc<dyn ReadAt + 'a>,
    at: u64,
    left: u64,
    is_reversed: bool,
}

impl Read for FileRange<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let len = (to.len() as u64).min(self.left);
        let found = self.bytes.read(self.at, len).map_err(io::Error::other)?;
        to[..found.len()].copy_from_slice(&found);
        if self.is_reversed {
            to[..found.len()].iter_mut().for_each(|byte| *byte = byte.reverse_bits());
        }
        self.at += found.len() as u64;
        self.left -= found.len() as u64;
        Ok(found.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Damage may make deflated data longer, so that all rows exist and only the checksum is wrong.
    #[test]
    fn deflated_data_are_read_to_their_checksum() {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut encoder, &[7; 100]).unwrap();
        let mut packed = encoder.finish().unwrap();
        let unpack = |packed: &[u8]| decompress_all(Compression::Deflate, packed, 60);
        assert_eq!(unpack(&packed).unwrap(), [7; 60]);
        // Other readers take strips without a checksum.
        assert_eq!(unpack(&packed[..packed.len() - 4]).unwrap(), [7; 60]);
        *packed.last_mut().unwrap() ^= 1;
        assert!(unpack(&packed).is_err());
    }
}
