//! The two processes of JPEG (ITU-T T.81) that DICOM alone uses: marker segments of both, and the scan of lossless JPEG
//! (process 14, annex H), the common compression of scanners: each sample is predicted from its neighbours, and the
//! difference is Huffman coded. Scans of lossy JPEG of 12 bits (process 4) are in `jpeg_12_bits`.

use super::{jpeg_12_bits, pixels::Kind};
use crate::{
    data::jpeg::ZIGZAG,
    io::{
        image::jpeg::{BitReader, Huffman, Segments},
        volume::format::BoxError,
    },
    memory,
};

/// What the marker segments before the scan say.
#[derive(Default)]
pub struct Picture {
    /// Whether samples are predicted (lossless), not transformed.
    is_lossless: bool,
    /// Bits per sample.
    pub precision: u32,
    rows: usize,
    columns: usize,
    /// Quantization table (0 to 3) of each component.
    pub components: Vec<u8>,
    /// Huffman tables of differences (lossless) or of DC coefficients.
    pub tables: [Option<Huffman>; 4],
    /// Huffman tables of AC coefficients.
    pub ac_tables: [Option<Huffman>; 4],
    /// Quantization tables, in row order (no zigzag).
    pub quantization: [Option<[u16; 64]>; 4],
    /// Restart interval: samples or blocks of each component between two restart markers; 0 without restarts.
    pub restart: usize,
}

/// Decodes `packed` into samples of `kind`, in the machine's byte order.
///
/// # Errors
/// When the picture is broken, or its size or depth is not that of `kind`.
pub fn decode(packed: &[u8], kind: &Kind, stored: &mut [u8]) -> Result<(), BoxError> {
    let mut picture = Picture::default();
    let mut segments = Segments::new(packed).ok_or("it does not begin as JPEG")?;
    let short = "it ends within a header";
    while let Some((marker, body)) = segments.next() {
        let body = body.ok_or(short)?;
        match marker {
            0xc1 | 0xc3 => {
                picture.is_lossless = marker == 0xc3;
                picture.frame(body).ok_or(short)?;
            }
            0xdb => picture.quantization(body).ok_or("it has a broken quantization table")?,
            0xc4 => picture.tables(body).ok_or("it has a broken Huffman table")?,
            0xdd => {
                picture.restart = usize::from(u16::from_be_bytes([
                    *body.first().ok_or(short)?,
                    *body.get(1).ok_or(short)?,
                ]));
            }
            0xda => {
                picture.check(kind)?;
                let rest = &packed[segments.at..];
                return match picture.is_lossless {
                    true => picture.scan(body, rest, kind, stored),
                    false => jpeg_12_bits::scan(&picture, body, rest, kind, stored),
                };
            }
            0xc0..=0xcf if marker != 0xc8 && marker != 0xcc => {
                return Err("it is JPEG of another kind than its transfer syntax says".into());
            }
            0xd9 => break,
            _ => {}
        }
    }
    Err("it has no scan".into())
}

impl Picture {
    /// Frame header (B.2.2).
    fn frame(&mut self, body: &[u8]) -> Option<()> {
        let [precision, a, b, c, d, count, components @ ..] = body else { return None };
        self.precision = (*precision).into();
        self.rows = u16::from_be_bytes([*a, *b]).into();
        self.columns = u16::from_be_bytes([*c, *d]).into();
        let components = components.get(..3 * usize::from(*count))?;
        self.components = components.chunks(3).map(|component| component[2]).collect();
        Some(())
    }

    /// Quantization tables (DQT, B.2.4.1).
    fn quantization(&mut self, mut body: &[u8]) -> Option<()> {
        while let [id, rest @ ..] = body {
            let wide = id >> 4 == 1;
            let (values, after) = rest.split_at_checked(if wide { 128 } else { 64 })?;
            let mut table = [0; 64];
            for (i, &place) in ZIGZAG.iter().enumerate() {
                table[usize::from(place)] = match wide {
                    true => u16::from_be_bytes([values[2 * i], values[2 * i + 1]]),
                    false => values[i].into(),
                };
            }
            *self.quantization.get_mut(usize::from(id & 15))? = Some(table);
            body = after;
        }
        Some(())
    }

    /// Huffman tables (DHT, B.2.4.2).
    fn tables(&mut self, mut body: &[u8]) -> Option<()> {
        while let [id, rest @ ..] = body {
            let counts: &[u8; 16] = rest.first_chunk()?;
            let symbols: usize = counts.iter().map(|&count| usize::from(count)).sum();
            let symbols = rest.get(16..16 + symbols)?;
            let tables = if id >> 4 == 0 { &mut self.tables } else { &mut self.ac_tables };
            *tables.get_mut(usize::from(id & 15))? = Some(Huffman::new(counts, symbols)?);
            body = &rest[16 + symbols.len()..];
        }
        Some(())
    }

    /// Compares the frame header with the attributes of the data set.
    fn check(&self, kind: &Kind) -> Result<(), BoxError> {
        let count = self.components.len();
        if [self.columns, self.rows, count] != [kind.columns, kind.rows, kind.samples] {
            return Err(format!(
                "its picture is {}x{} of {count} samples, not {}x{} of {}",
                self.columns, self.rows, kind.columns, kind.rows, kind.samples
            )
            .into());
        }
        if !(2..=16).contains(&self.precision)
            || self.precision > kind.allocated
            || kind.allocated > 16
        {
            return Err(format!("it has {} bits a sample", self.precision).into());
        }
        Ok(())
    }

    /// Decodes a lossless scan (annex H) with all components interleaved.
    fn scan(
        &self,
        header: &[u8],
        data: &[u8],
        kind: &Kind,
        stored: &mut [u8],
    ) -> Result<(), BoxError> {
        let count = self.components.len();
        let short = "it ends within a header";
        let body = header.get(1..1 + 2 * count + 3).ok_or(short)?;
        if usize::from(header[0]) != count {
            return Err("its components are in several scans, which is not read".into());
        }
        let mut tables = Vec::new();
        for component in body[..2 * count].chunks(2) {
            let table = self.tables.get(usize::from(component[1] >> 4)).and_then(Option::as_ref);
            tables.push(table.ok_or("a Huffman table is missing")?);
        }
        let (predictor, shift) = (body[2 * count], u32::from(body[2 * count + 2] & 15));
        if !(1..=7).contains(&predictor) || shift >= self.precision {
            return Err("its prediction is of no known kind".into());
        }
        let row = self.columns * count;
        if !self.restart.is_multiple_of(self.columns) {
            return Err("its restarts are not at the beginning of rows".into());
        }
        let rows_a_segment =
            if self.restart == 0 { self.rows } else { self.restart / self.columns };
        let mut above = memory::zeros::<i32>(row)?;
        let mut line = memory::zeros::<i32>(row)?;
        let mut segments = segments(data).into_iter();
        let bytes = kind.allocated as usize / 8;
        let mut out = stored.chunks_exact_mut(row * bytes);
        for first in (0..self.rows).step_by(rows_a_segment) {
            let segment = segments.next().ok_or("its data end early")?;
            let mut bits = BitReader::new(&segment);
            for y in 0..rows_a_segment.min(self.rows - first) {
                for i in 0..row {
                    let left = i.checked_sub(count).map(|left| line[left]);
                    let predicted = match (left, y) {
                        (None, 0) => 1 << (self.precision - shift - 1),
                        (Some(left), 0) => left,
                        (None, _) => above[i],
                        (Some(left), _) => predict(predictor, left, above[i], above[i - count]),
                    };
                    let size = bits.symbol(tables[i % count]).filter(|&size| size <= 16);
                    let difference = match size.ok_or("it holds a code that is none")? {
                        16 => 1 << 15,
                        size => bits.signed(size),
                    };
                    line[i] = (predicted + difference) & 0xffff;
                }
                let out = out.next().ok_or("it has too many rows")?;
                for (out, &value) in out.chunks_exact_mut(bytes).zip(&line) {
                    let value = (value << shift) as u16;
                    match bytes {
                        1 => out[0] = value as u8,
                        _ => out.copy_from_slice(&value.to_ne_bytes()),
                    }
                }
                std::mem::swap(&mut above, &mut line);
            }
            if bits.is_past_end() {
                return Err("its data end early".into());
            }
        }
        Ok(())
    }
}

/// The prediction of a sample from those to its left, above it, and above its left (table H.1).
fn predict(predictor: u8, left: i32, above: i32, corner: i32) -> i32 {
    match predictor {
        1 => left,
        2 => above,
        3 => corner,
        4 => left + above - corner,
        5 => left + ((above - corner) >> 1),
        6 => above + ((left - corner) >> 1),
        _ => (left + above) >> 1,
    }
}

/// Splits entropy-coded data at the restart markers and removes stuffed zero bytes. Any other marker ends the data.
pub fn segments(data: &[u8]) -> Vec<Vec<u8>> {
    let mut segments = vec![Vec::new()];
    let mut bytes = data.iter().copied();
    while let Some(byte) = bytes.next() {
        let last = segments.last_mut().expect("there is always one");
        match byte {
            // Fill bytes 0xff may precede the code of a marker (B.1.1.2).
            0xff => match bytes.by_ref().find(|&byte| byte != 0xff) {
                Some(0) => last.push(0xff),
                Some(0xd0..=0xd7) => segments.push(Vec::new()),
                _ => break,
            },
            byte => last.push(byte),
        }
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_predicted_as_the_standard_says() {
        // Left 10, above 14, corner 11.
        for (predictor, value) in [(1, 10), (2, 14), (3, 11), (4, 13), (5, 11), (6, 13), (7, 12)] {
            assert_eq!(predict(predictor, 10, 14, 11), value, "{predictor}");
        }
    }

    #[test]
    fn restarts_part_the_data() {
        let found = segments(&[1, 0xff, 0, 2, 0xff, 0xd0, 3, 0xff, 0xff, 0xd1, 4, 0xff, 0xd9, 5]);
        assert_eq!(found[0], [1, 0xff, 2]);
        assert_eq!(found[1..], [vec![3], vec![4]]);
    }
}
