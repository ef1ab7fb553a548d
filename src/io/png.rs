//! PNG by rows: a reader, and an encoder that compresses bands of rows in parallel to one zlib stream,
//! whose parts end on whole bytes (RFC 1950, RFC 1951; PNG specification, third edition).

use std::{
    fs::File,
    io::{self, BufReader, Write},
};

use flate2::{Compress, Compression, FlushCompress};
use image::metadata::Orientation;
use rayon::prelude::*;

use super::{
    Source,
    image::{LONGEST_EXIF, LONGEST_ICC, capped},
};
use crate::{
    data::samples::Dtype,
    error::{Error, Result},
};

/// A PNG file being read, some rows at a time, its samples expanded to whole bytes.
#[expect(missing_debug_implementations, reason = "the decoder has none")]
pub struct PngRows {
    reader: png::Reader<BufReader<File>>,
    name: String,
    /// Pixels a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA.
    pub channels: usize,
    /// u8 or u16.
    pub dtype: Dtype,
    /// The colour profile.
    pub icc: Option<Vec<u8>>,
    /// EXIF, beginning with its TIFF header.
    pub exif: Option<Vec<u8>>,
    /// Whether the picture's EXIF says that it is to be turned or mirrored.
    pub is_turned: bool,
}

impl PngRows {
    /// Opens a file; nothing where it is no PNG file or has no rows in order.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(source: &Source) -> Result<Option<Self>> {
        let Some(path) = source.path() else { return Ok(None) };
        let name = source.to_string();
        if source.size()?.is_none() {
            return Ok(None);
        }
        let file = File::open(path).map_err(|error| Error::io("read", path, error))?;
        let mut decoder = png::Decoder::new(BufReader::with_capacity(1 << 16, file));
        decoder.set_transformations(png::Transformations::EXPAND);
        // What is wrong with it, others tell.
        let Ok(reader) = decoder.read_info() else { return Ok(None) };
        let info = reader.info();
        if info.interlaced {
            return Ok(None);
        }
        let (colour, depth) = reader.output_color_type();
        let dtype = if depth == png::BitDepth::Sixteen { Dtype::U16 } else { Dtype::U8 };
        let exif = info.exif_metadata.as_deref().map(<[u8]>::to_vec);
        let mut exif = capped(exif, LONGEST_EXIF, "EXIF", source);
        let icc = info.icc_profile.as_deref().map(<[u8]>::to_vec);
        let turned = exif.as_mut().and_then(|exif| Orientation::remove_from_exif_chunk(exif));
        Ok(Some(Self {
            name,
            width: info.width as usize,
            height: info.height as usize,
            channels: colour.samples(),
            dtype,
            icc: capped(icc, LONGEST_ICC, "a colour profile", source),
            exif,
            is_turned: turned.is_some_and(|turned| turned != Orientation::NoTransforms),
            reader,
        }))
    }

    /// Bytes a row.
    pub fn row_bytes(&self) -> usize {
        self.width * self.channels * self.dtype.size()
    }

    /// Reads the next rows, as many as `rows` takes.
    ///
    /// # Errors
    /// When the file is broken.
    pub fn read(&mut self, rows: &mut [u8]) -> Result<()> {
        let (bytes, wide) = (self.row_bytes(), self.dtype == Dtype::U16);
        let broken = |name: &str| Error::bad_input(format_args!("cannot decode {name}"));
        for row in rows.chunks_exact_mut(bytes) {
            match self.reader.read_row(row) {
                Ok(Some(_)) => {}
                Ok(None) => return Err(broken(&self.name).caused_by("there are too few rows")),
                Err(error) => return Err(broken(&self.name).caused_by(error)),
            }
            if wide && cfg!(target_endian = "little") {
                row.as_chunks_mut::<2>().0.iter_mut().for_each(|sample| sample.reverse());
            }
        }
        Ok(())
    }

    /// Whether any of the rows to come has a pixel that is not opaque.
    ///
    /// # Errors
    /// When the file is broken.
    pub fn any_transparent(&mut self) -> Result<bool> {
        let pixel = self.channels * self.dtype.size();
        let mut row = vec![0; self.row_bytes()];
        for _ in 0..self.height {
            self.read(&mut row)?;
            let alpha = pixel - self.dtype.size();
            if row.chunks_exact(pixel).any(|pixel| pixel[alpha..].iter().any(|&byte| byte != 255)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// What is written before the pixels, and how.
#[derive(Clone, Copy, Debug)]
pub struct Png<'a> {
    /// Pixels a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA.
    pub channels: u8,
    /// Bytes a sample: 1, or 2 with the most significant first.
    pub sample_bytes: u8,
    /// The colour profile.
    pub icc: Option<&'a [u8]>,
    /// EXIF, beginning with its TIFF header.
    pub exif: Option<&'a [u8]>,
    /// Effort, 0 (none) to 9.
    pub compression: u8,
}

/// Bytes of a band before compression.
const BAND: usize = 1 << 20;

impl<'a> Png<'a> {
    /// Encodes `pixels`: rows from the top, samples of 16 bits with the most significant byte first.
    ///
    /// # Errors
    /// Whatever writing fails with.
    pub fn write(&self, pixels: &[u8], output: impl Write) -> io::Result<()> {
        let mut writer = self.start(output)?;
        writer.rows(pixels)?;
        writer.finish().map(drop)
    }

    /// Writes what comes before the pixels.
    ///
    /// # Errors
    /// Whatever writing fails with.
    pub fn start<W: Write>(&self, mut output: W) -> io::Result<PngWriter<W>> {
        output.write_all(b"\x89PNG\r\n\x1a\n")?;
        let mut header = Vec::with_capacity(13);
        header.extend(self.width.to_be_bytes());
        header.extend(self.height.to_be_bytes());
        let colour = [0, 4, 2, 6][usize::from(self.channels) - 1];
        header.extend([8 * self.sample_bytes, colour, 0, 0, 0]);
        chunk(&mut output, b"IHDR", &[&header])?;
        if let Some(icc) = self.icc {
            let mut data = b"ICC profile\0\0".to_vec();
            data.extend(zlib(icc)?);
            chunk(&mut output, b"iCCP", &[&data])?;
        }
        if let Some(exif) = self.exif {
            chunk(&mut output, b"eXIf", &[exif])?;
        }
        // A 32 KiB window, no dictionary; the check bits make the header a multiple of 31.
        chunk(&mut output, b"IDAT", &[&[0x78, 0x01]])?;
        let row = self.width as usize * usize::from(self.channels * self.sample_bytes);
        Ok(PngWriter {
            output,
            compression: self.compression,
            row: row.max(1),
            above: Vec::new(),
            pending: Vec::new(),
            sum: 1,
        })
    }
}

/// A PNG file being written, some rows at a time. Its bytes do not depend on how many.
#[derive(Debug)]
pub struct PngWriter<W> {
    output: W,
    compression: u8,
    /// Bytes a row.
    row: usize,
    /// The row above the next; empty at the top.
    above: Vec<u8>,
    /// Rows that do not fill a band yet.
    pending: Vec<u8>,
    /// The Adler-32 of what has been written.
    sum: u32,
}

impl<W: Write> PngWriter<W> {
    /// Writes the next rows.
    ///
    /// # Errors
    /// Whatever writing fails with.
    pub fn rows(&mut self, mut pixels: &[u8]) -> io::Result<()> {
        let band = (BAND / self.row).max(1) * self.row;
        if !self.pending.is_empty() {
            let (more, rest) = pixels.split_at(pixels.len().min(band - self.pending.len()));
            self.pending.extend_from_slice(more);
            pixels = rest;
            if self.pending.len() == band {
                let full = std::mem::take(&mut self.pending);
                self.bands(&full, band)?;
            }
        }
        let (full, rest) = pixels.split_at(pixels.len() / band * band);
        self.pending.extend_from_slice(rest);
        self.bands(full, band)
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// Whatever writing fails with.
    pub fn finish(mut self) -> io::Result<W> {
        let rest = std::mem::take(&mut self.pending);
        self.bands(&rest, rest.len().max(1))?;
        // An empty last block of fixed codes.
        chunk(&mut self.output, b"IDAT", &[&[0x03, 0x00], &self.sum.to_be_bytes()])?;
        chunk(&mut self.output, b"IEND", &[])?;
        Ok(self.output)
    }

    /// Writes bands of `band` bytes each.
    fn bands(&mut self, pixels: &[u8], band: usize) -> io::Result<()> {
        let Some(last) = pixels.len().checked_sub(self.row) else { return Ok(()) };
        let Self { row, compression, .. } = *self;
        let first = &self.above[..];
        let encoded: Vec<io::Result<Band>> = pixels
            .par_chunks(band)
            .enumerate()
            .map(|(number, rows)| {
                let above = match number {
                    0 => first,
                    _ => &pixels[number * band - row..][..row],
                };
                let filtered = filter(rows, row, above, compression == 0);
                let adler = adler32(&filtered);
                Ok(Band { data: deflate(&filtered, compression)?, adler, len: filtered.len() })
            })
            .collect();
        for band in encoded {
            let Band { data, adler, len } = band?;
            self.sum = combine(self.sum, adler, len);
            chunk(&mut self.output, b"IDAT", &[&data])?;
        }
        self.above = pixels[last..].to_vec();
        Ok(())
    }
}

/// `rows` of `row` bytes each, behind the numbers of their filters.
fn filter<'a>(rows: &'a [u8], row: usize, mut above: &'a [u8], plain: bool) -> Vec<u8> {
    let mut filtered = Vec::with_capacity(rows.len() / row * (row + 1));
    for here in rows.chunks_exact(row) {
        if plain || above.is_empty() {
            filtered.push(NONE);
            filtered.extend_from_slice(here);
        } else {
            filtered.push(UP);
            filtered.extend(here.iter().zip(above).map(|(h, a)| h.wrapping_sub(*a)));
        }
        above = here;
    }
    filtered
}

const NONE: u8 = 0;
const UP: u8 = 2;

struct Band {
    data: Vec<u8>,
    adler: u32,
    len: usize,
}

fn chunk(output: &mut impl Write, name: &[u8; 4], parts: &[&[u8]]) -> io::Result<()> {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let len = u32::try_from(len).map_err(|_| io::Error::other("a PNG chunk is too long"))?;
    let mut crc = crc32fast::Hasher::new();
    crc.update(name);
    output.write_all(&len.to_be_bytes())?;
    output.write_all(name)?;
    for part in parts {
        crc.update(part);
        output.write_all(part)?;
    }
    output.write_all(&crc.finalize().to_be_bytes())
}

/// A part of a deflate stream, ending on a whole byte.
fn deflate(data: &[u8], level: u8) -> io::Result<Vec<u8>> {
    let mut state = Compress::new(Compression::new(level.into()), false);
    let mut out = Vec::with_capacity(data.len() / 2 + 1024);
    loop {
        let start = state.total_in() as usize;
        state
            .compress_vec(&data[start..], &mut out, FlushCompress::Sync)
            .map_err(io::Error::other)?;
        // A flush is through when there was room left for more.
        if state.total_in() as usize == data.len() && out.len() < out.capacity() {
            return Ok(out);
        }
        out.reserve(out.capacity() / 2 + 4096);
    }
}

fn zlib(data: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data)?;
    encoder.finish()
}

fn adler32(data: &[u8]) -> u32 {
    let mut adler = simd_adler32::Adler32::new();
    adler.write(data);
    adler.finish()
}

/// The Adler-32 of two stretches of bytes in a row, of which the second has `len`: its low half is
/// 1 + the sum of all bytes, its high half the sum of all low halves, both modulo 65521.
fn combine(first: u32, second: u32, len: usize) -> u32 {
    const BASE: u64 = 65521;
    let halves = |adler: u32| (u64::from(adler & 0xffff), u64::from(adler >> 16));
    let ((a, b), (c, d)) = (halves(first), halves(second));
    let low = (a + c + BASE - 1) % BASE;
    let high = (b + d + (len as u64 % BASE) * ((a + BASE - 1) % BASE)) % BASE;
    (high << 16 | low) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_parts_combine() {
        let data: Vec<u8> = (0..100_000u32).map(|i| (i.wrapping_mul(i) >> 3) as u8).collect();
        for cut in [0, 1, 65_521, 99_999, 100_000] {
            let (a, b) = data.split_at(cut);
            assert_eq!(combine(adler32(a), adler32(b), b.len()), adler32(&data));
        }
    }

    #[test]
    fn many_bands_decode_to_the_same_pixels() {
        for (width, height, compression) in
            [(1, 1, 1), (1000, 900, 0), (1000, 900, 1), (700, 2100, 6)]
        {
            let pixels: Vec<u8> =
                (0..width * height * 3u32).map(|i| ((i / 7) ^ (i >> 9)) as u8).collect();
            let (icc, exif) = (Some(&b"profile"[..]), Some(&b"MM\0*"[..]));
            let png = Png { width, height, channels: 3, sample_bytes: 1, icc, exif, compression };
            let mut file = Vec::new();
            png.write(&pixels, &mut file).unwrap();
            // In pieces of any number of rows it is the same file.
            for rows in [1, 7, 500] {
                let mut writer = png.start(Vec::new()).unwrap();
                for piece in pixels.chunks(rows * width as usize * 3) {
                    writer.rows(piece).unwrap();
                }
                assert!(writer.finish().unwrap() == file, "{rows} rows at a time");
            }
            let decoded = image::load_from_memory(&file).unwrap().into_rgb8().into_raw();
            assert!(decoded == pixels, "{width} {height} {compression}");
        }
    }
}
