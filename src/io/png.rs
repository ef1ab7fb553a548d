//! A PNG encoder that compresses bands of rows in parallel: one zlib stream, whose parts end on whole
//! bytes (RFC 1950, RFC 1951; PNG specification, third edition).

use std::io::{self, Write};

use flate2::{Compress, Compression, FlushCompress, Status};
use rayon::prelude::*;

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

impl Png<'_> {
    /// Encodes `pixels`: rows from the top.
    ///
    /// # Errors
    /// Whatever writing fails with.
    pub fn write(&self, pixels: &[u8], mut output: impl Write) -> io::Result<()> {
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
        let row = self.width as usize * usize::from(self.channels * self.sample_bytes);
        let rows = (BAND / row.max(1)).max(1);
        let bands = (self.height as usize).div_ceil(rows).max(1);
        let encoded: Vec<io::Result<Band>> = (0..bands)
            .into_par_iter()
            .map(|number| {
                let first = number * rows;
                let last = (first + rows).min(self.height as usize);
                let filtered = self.filter(pixels, row, first, last);
                let adler = adler32(&filtered);
                let data = deflate(&filtered, self.compression, number + 1 == bands)?;
                Ok(Band { data, adler, len: filtered.len() })
            })
            .collect();
        let mut sum = 1;
        for (number, band) in encoded.into_iter().enumerate() {
            let Band { data, adler, len } = band?;
            sum = combine(sum, adler, len);
            // 32 KiB window, no dictionary; the check bits make the header a multiple of 31.
            let head: &[u8] = if number == 0 { &[0x78, 0x01] } else { &[] };
            let tail = sum.to_be_bytes();
            let tail: &[u8] = if number + 1 == bands { &tail } else { &[] };
            chunk(&mut output, b"IDAT", &[head, &data, tail])?;
        }
        chunk(&mut output, b"IEND", &[])
    }

    /// The rows `first..last`, each behind the number of its filter.
    fn filter(&self, pixels: &[u8], row: usize, first: usize, last: usize) -> Vec<u8> {
        let mut filtered = Vec::with_capacity((last - first) * (row + 1));
        for y in first..last {
            let here = &pixels[y * row..][..row];
            match y.checked_sub(1) {
                Some(above) if self.compression > 0 => {
                    let above = &pixels[above * row..][..row];
                    filtered.push(UP);
                    filtered.extend(here.iter().zip(above).map(|(h, a)| h.wrapping_sub(*a)));
                }
                _ => {
                    filtered.push(NONE);
                    filtered.extend_from_slice(here);
                }
            }
        }
        filtered
    }
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
fn deflate(data: &[u8], level: u8, last: bool) -> io::Result<Vec<u8>> {
    let mut state = Compress::new(Compression::new(level.into()), false);
    let flush = if last { FlushCompress::Finish } else { FlushCompress::Sync };
    let mut out = Vec::with_capacity(data.len() / 2 + 1024);
    loop {
        let start = state.total_in() as usize;
        let status =
            state.compress_vec(&data[start..], &mut out, flush).map_err(io::Error::other)?;
        let done = match status {
            Status::StreamEnd => true,
            // A flush is through when there was room left for more.
            _ => !last && state.total_in() as usize == data.len() && out.len() < out.capacity(),
        };
        if done {
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
            let decoded = image::load_from_memory(&file).unwrap().into_rgb8().into_raw();
            assert!(decoded == pixels, "{width} {height} {compression}");
        }
    }
}
