//! PNG encoder (PNG specification, third edition). Groups of rows are compressed in parallel, as parts of one zlib
//! stream.

use std::{
    borrow::Cow,
    io::{self, Write},
    mem,
};

use super::{
    ancillary,
    chunk::{SIGNATURE, chunk},
    zlib::{Checksum, DeflatedPart, HEADER, LAST_BLOCK, compress},
};
use crate::{
    data::{
        dtype::Dtype,
        image::{Image, Metadata},
    },
    io::image::{error::BoxError, pages::Encoding},
    util::parallel::Parallel,
};

/// The header of a file, and the effort of compression.
#[derive(Clone, Copy, Debug)]
pub struct Png<'a> {
    /// Pixels per row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Samples per pixel: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA.
    pub channels: u8,
    /// Bytes per sample: 1, or 2 in big-endian order.
    pub sample_bytes: u8,
    /// Metadata; those that PNG cannot store are skipped.
    pub metadata: &'a Metadata,
    /// Effort, 0 (none) to 9.
    pub compression: u8,
}

/// Approximate bytes, before compression, of a band: rows that are compressed together.
const BAND: usize = 1 << 20;

impl<'a> Png<'a> {
    /// Header for an image, whose samples are u8 or u16.
    pub fn for_image(image: &'a Image, encoding: &Encoding) -> Self {
        Self {
            width: image.width as u32,
            height: image.height as u32,
            channels: image.channels as u8,
            sample_bytes: image.samples.dtype().size() as u8,
            metadata: &image.metadata,
            compression: encoding.compression,
        }
    }

    /// Encodes `pixels`: rows from the top, u16 samples in big-endian order.
    pub fn write(&self, pixels: &[u8], output: impl Write) -> io::Result<()> {
        let mut writer = self.start(output)?;
        writer.rows(pixels)?;
        writer.finish().map(drop)
    }

    /// Writes all chunks before the pixels.
    pub fn start<W: Write>(&self, mut output: W) -> io::Result<PngWriter<W>> {
        output.write_all(SIGNATURE)?;
        let mut header = Vec::with_capacity(13);
        header.extend(self.width.to_be_bytes());
        header.extend(self.height.to_be_bytes());
        let colour = [0, 4, 2, 6][usize::from(self.channels) - 1];
        header.extend([8 * self.sample_bytes, colour, 0, 0, 0]);
        chunk(&mut output, b"IHDR", &[&header])?;
        ancillary::write_colours(self.metadata, &mut output)?;
        if let Some(icc) = &self.metadata.icc {
            let mut data = b"ICC profile\0\0".to_vec();
            data.extend(compress(icc)?);
            chunk(&mut output, b"iCCP", &[&data])?;
        }
        if let Some(exif) = &self.metadata.exif {
            chunk(&mut output, b"eXIf", &[exif])?;
        }
        ancillary::write(self.metadata, &mut output)?;
        chunk(&mut output, b"IDAT", &[&HEADER])?;
        let row = self.width as usize * usize::from(self.channels * self.sample_bytes);
        Ok(PngWriter {
            output,
            compression: self.compression,
            row: row.max(1),
            above: Vec::new(),
            pending: Vec::new(),
            checksum: Checksum::default(),
        })
    }
}

/// A PNG file being written by rows. Its bytes do not depend on the number of rows per call.
#[derive(Debug)]
pub struct PngWriter<W> {
    output: W,
    compression: u8,
    /// Bytes of a row.
    row: usize,
    /// The last row of the last band; empty before the first band.
    above: Vec<u8>,
    /// Rows that do not fill a band yet.
    pending: Vec<u8>,
    /// Checksum of the filtered rows written so far.
    checksum: Checksum,
}

impl<W: Write> PngWriter<W> {
    /// Writes the next rows.
    pub fn rows(&mut self, mut pixels: &[u8]) -> io::Result<()> {
        let band = (BAND / self.row).max(1) * self.row;
        if !self.pending.is_empty() {
            let (more, rest) = pixels.split_at(pixels.len().min(band - self.pending.len()));
            self.pending.extend_from_slice(more);
            pixels = rest;
            if self.pending.len() == band {
                let full = mem::take(&mut self.pending);
                self.bands(&full, band)?;
            }
        }
        let (full, rest) = pixels.split_at(pixels.len() / band * band);
        self.pending.extend_from_slice(rest);
        self.bands(full, band)
    }

    /// Writes the pending rows and the end of the file.
    pub fn finish(mut self) -> io::Result<W> {
        let rest = mem::take(&mut self.pending);
        self.bands(&rest, rest.len().max(1))?;
        chunk(&mut self.output, b"IDAT", &[&LAST_BLOCK, &self.checksum.0.to_be_bytes()])?;
        chunk(&mut self.output, b"IEND", &[])?;
        Ok(self.output)
    }

    /// Writes bands of `band` bytes each.
    fn bands(&mut self, pixels: &[u8], band: usize) -> io::Result<()> {
        let Some(last) = pixels.len().checked_sub(self.row) else {
            return Ok(());
        };
        let Self { row, compression, .. } = *self;
        let first = &self.above[..];
        let encode = |(number, rows): (usize, &[u8])| {
            let above = match number {
                0 => first,
                _ => &pixels[number * band - row..][..row],
            };
            DeflatedPart::compress(&filter(rows, row, above, compression == 0), compression)
        };
        for part in pixels.chunks(band).enumerate().par_map(encode) {
            let part = part?;
            self.checksum.append(&part);
            chunk(&mut self.output, b"IDAT", &[&part.blocks])?;
        }
        self.above = pixels[last..].to_vec();
        Ok(())
    }
}

/// Filters rows of `row` bytes each, and inserts the number of the filter before each row: `Up`, or `None` for the
/// first row of the image and for all rows if `plain`.
fn filter<'a>(rows: &'a [u8], row: usize, mut above: &'a [u8], plain: bool) -> Vec<u8> {
    const NONE: u8 = 0;
    const UP: u8 = 2;
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

/// Encodes an image.
pub fn encode(image: &Image, encoding: &Encoding) -> Result<Vec<u8>, BoxError> {
    let mut samples = Cow::Borrowed(&image.samples);
    if image.samples.dtype() == Dtype::U16 {
        let mut big_endian = image.samples.copy()?;
        big_endian.swap_bytes();
        samples = Cow::Owned(big_endian);
    }
    let mut bytes = Vec::new();
    Png::for_image(image, encoding).write(samples.as_bytes(), &mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_bands_decode_to_the_same_pixels() {
        let metadata = Metadata {
            icc: Some(b"profile".into()),
            exif: Some(b"MM\0*".into()),
            ..Metadata::default()
        };
        for (width, height, compression) in
            [(1, 1, 1), (1000, 900, 0), (1000, 900, 1), (700, 2100, 6)]
        {
            let pixels: Vec<u8> =
                (0..width * height * 3u32).map(|i| ((i / 7) ^ (i >> 9)) as u8).collect();
            let metadata = &metadata;
            let png = Png { width, height, channels: 3, sample_bytes: 1, metadata, compression };
            let mut file = Vec::new();
            png.write(&pixels, &mut file).unwrap();
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
