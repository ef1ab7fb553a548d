//! The encoder: markers (ITU-T T.81, annex B) around one sequential scan.
//!
//! Bands of MCU rows are encoded in parallel; each is a restart interval (T.81, E.1.4).

use std::{borrow::Cow, ops::Range};

use super::{
    Frame, SparseCoefficients, ZIGZAG, forward,
    huffman_encoder::{BitWriter, HuffmanCodes, HuffmanTable},
    marker,
};
use crate::util::{
    error::{Error, Result},
    parallel::Parallel,
    simd,
};

/// The picture to be encoded.
#[derive(Clone, Copy, Debug)]
pub enum Picture<'a> {
    /// Rows from the top, u8 samples, grey or RGB.
    Pixels(&'a [u8]),
    /// Quantized coefficients.
    Coefficients(&'a SparseCoefficients),
}

/// Approximate number of pixels of a restart interval.
const BAND: usize = 1 << 19;

/// Encodes a picture with metadata segments: second byte of the marker, and parameters of at most 65,533 bytes. If
/// `optimized`, Huffman tables are computed for this picture, which makes the file smaller but takes longer. Sides have
/// 1 to 65,535 pixels.
pub fn encode(
    frame: &Frame,
    picture: Picture<'_>,
    segments: &[(u8, Vec<u8>)],
    optimized: bool,
) -> Result<Vec<u8>> {
    if frame.size.iter().any(|side| !(1..=usize::from(u16::MAX)).contains(side)) {
        return Err(Error::bad_input(
            "JPEG images have 1 to 65,535 pixels per side; write .png or .tif",
        ));
    }
    let [across, down] = frame.mcus();
    let [width, height] = frame.max_sampling().map(|max| 8 * max);
    // The restart interval is stated in 16 bits, so it has at most 65,535 MCUs.
    let max = usize::from(u16::MAX) / across.max(1);
    let rows = (BAND / (across * width * height).max(1)).clamp(1, max.max(1));
    let interval = if down > rows { across * rows } else { 0 };
    let bands = (0..down).step_by(rows).map(|first| first..down.min(first + rows));
    let mut file = vec![0xff, marker::SOI];
    segments.iter().for_each(|(marker, body)| segment(&mut file, *marker, &[body]));
    if optimized {
        let read = |rows| Band::new(frame, picture, rows);
        let bands: Vec<Band<'_>> = bands.par_map(read).into_iter().collect::<Result<_>>()?;
        let tables = optimal_tables(&bands);
        headers(&mut file, frame, interval as u16, &tables);
        let codes = tables.each_ref().map(HuffmanTable::codes);
        append(&mut file, bands.iter().par_map(|band| band.encoded(&codes)));
    } else {
        let tables = HuffmanTable::standard();
        headers(&mut file, frame, interval as u16, &tables);
        let codes = tables.each_ref().map(HuffmanTable::codes);
        let encoded = |rows| Ok(Band::new(frame, picture, rows)?.encoded(&codes));
        append(&mut file, bands.par_map(encoded).into_iter().collect::<Result<_>>()?);
    }
    file.extend([0xff, marker::EOI]);
    Ok(file)
}

/// Appends restart intervals with the markers between them.
fn append(file: &mut Vec<u8>, intervals: Vec<Vec<u8>>) {
    file.reserve(intervals.iter().map(|interval| interval.len() + 2).sum());
    for (number, interval) in intervals.iter().enumerate() {
        if number > 0 {
            file.extend([0xff, marker::RST0 + ((number - 1) % 8) as u8]);
        }
        file.extend(interval);
    }
}

/// Appends the headers before the data of the scan. `tables` are those of luma, then those of chroma.
fn headers(file: &mut Vec<u8>, frame: &Frame, interval: u16, tables: &[HuffmanTable; 4]) {
    let count = frame.components.len();
    // Luma has the first table of each kind, chroma the second.
    let kinds = count.min(2);
    for (number, component) in frame.components.iter().take(kinds).enumerate() {
        let steps = ZIGZAG.map(|place| component.steps[usize::from(place)] as u8);
        segment(file, marker::DQT, &[&[number as u8], &steps]);
    }
    let mut body = vec![8];
    frame.size.iter().rev().for_each(|&side| body.extend((side as u16).to_be_bytes()));
    body.push(count as u8);
    for (c, component) in frame.components.iter().enumerate() {
        let [across, down] = component.sampling.map(|factor| factor as u8);
        body.extend([c as u8 + 1, across << 4 | down, u8::from(c > 0)]);
    }
    segment(file, marker::SOF0, &[&body]);
    for (i, HuffmanTable { counts, symbols }) in tables.iter().take(2 * kinds).enumerate() {
        let class_and_number = 16 * (i % 2) + i / 2;
        segment(file, marker::DHT, &[&[class_and_number as u8], counts, symbols]);
    }
    if interval > 0 {
        segment(file, marker::DRI, &[&interval.to_be_bytes()]);
    }
    let mut body = vec![count as u8];
    for c in 0..count as u8 {
        body.extend([c + 1, if c > 0 { 0x11 } else { 0 }]);
    }
    body.extend([0, 63, 0]);
    segment(file, marker::SOS, &[&body]);
}

/// Appends a marker segment: marker, length and parameters.
fn segment(file: &mut Vec<u8>, marker: u8, parts: &[&[u8]]) {
    let len: usize = 2 + parts.iter().map(|part| part.len()).sum::<usize>();
    file.extend([0xff, marker]);
    file.extend((len as u16).to_be_bytes());
    parts.iter().for_each(|part| file.extend(*part));
}

/// The Huffman tables that code all `bands` in the fewest bits.
fn optimal_tables(bands: &[Band<'_>]) -> [HuffmanTable; 4] {
    let counts = bands.iter().par_map(|band| {
        let mut counts = [[0u64; 256]; 4];
        band.symbols(|table, symbol, _, _| counts[table][symbol] += 1);
        counts
    });
    std::array::from_fn(|table| {
        let sum = |symbol: usize| counts.iter().map(|counts| counts[table][symbol]).sum();
        HuffmanTable::for_counts(&std::array::from_fn(sum))
    })
}

/// The MCU rows of a restart interval.
struct Band<'a> {
    /// The frame of the whole picture, and the numbers of the rows.
    frame: &'a Frame,
    rows: Range<usize>,
    /// Coefficients from row `first` on.
    coefficients: Cow<'a, SparseCoefficients>,
    first: usize,
}

impl<'a> Band<'a> {
    fn new(frame: &'a Frame, picture: Picture<'a>, rows: Range<usize>) -> Result<Self> {
        let (coefficients, first) = match picture {
            Picture::Coefficients(all) => (Cow::Borrowed(all), 0),
            Picture::Pixels(pixels) => {
                (Cow::Owned(forward::band(frame, pixels, rows.clone())?), rows.start)
            }
        };
        Ok(Self { frame, rows, coefficients, first })
    }

    fn encoded(&self, codes: &[HuffmanCodes; 4]) -> Vec<u8> {
        let mut out = BitWriter::default();
        simd::vectorize(
            #[inline(always)]
            || {
                self.symbols(
                    #[inline(always)]
                    |table, symbol, bits, count| {
                        let (code, len) = codes[table][symbol];
                        out.put(code << count | bits, len + count);
                    },
                );
            },
        );
        out.finish()
    }

    /// Calls `emit` with each symbol: the number of its table, the symbol, and the bits after it with their number
    /// (T.81, F.1.2).
    #[inline(always)]
    fn symbols(&self, mut emit: impl FnMut(usize, usize, u32, u32)) {
        let Self { frame, coefficients, .. } = self;
        let real = |c: usize| frame.samples(c).map(|samples| samples.div_ceil(8));
        // For each component: its sampling, blocks across, blocks with samples, and first block of the current row.
        let mut components: Vec<_> = (0..frame.components.len())
            .map(|c| {
                let ([h, v], [across, _]) = (frame.components[c].sampling, frame.blocks(c));
                let first = (self.rows.start - self.first) * v * across;
                ([h, v], across, real(c), coefficients.frame.first_block(c) + first, 0i32)
            })
            .collect();
        for row in self.rows.clone() {
            for mcu in 0..frame.mcus()[0] {
                for (c, ([h, v], across, real, first, last)) in components.iter_mut().enumerate() {
                    let tables = if c > 0 { 2 } else { 0 };
                    for (y, x) in (0..*v).flat_map(|y| (0..*h).map(move |x| (y, x))) {
                        // Blocks that only fill up an MCU repeat the DC coefficient and have no AC coefficients.
                        if mcu * *h + x >= real[0] || row * *v + y >= real[1] {
                            emit(tables, 0, 0, 0);
                            emit(tables + 1, END_OF_BLOCK, 0, 0);
                            continue;
                        }
                        let block = coefficients.blocks[*first + y * *across + mcu * *h + x];
                        let dc = i32::from(block.dc());
                        let (size, bits) = magnitude(dc - *last);
                        emit(tables, size as usize & 255, bits, size);
                        *last = dc;
                        let mut before = 0;
                        for entry in coefficients.entries_of(block) {
                            let mut run = entry.index() - before - 1;
                            before = entry.index();
                            while run > 15 {
                                emit(tables + 1, SIXTEEN_ZEROS, 0, 0);
                                run -= 16;
                            }
                            let (size, bits) = magnitude(entry.value().into());
                            emit(tables + 1, (run << 4 | size) as usize & 255, bits, size);
                        }
                        if before < 63 {
                            emit(tables + 1, END_OF_BLOCK, 0, 0);
                        }
                    }
                }
            }
            for ([_, v], across, _, first, _) in &mut components {
                *first += *v * *across;
            }
        }
    }
}

/// The symbol for sixteen zeros in a row (ZRL).
const SIXTEEN_ZEROS: usize = 0xf0;
/// The symbol for the end of a block (EOB).
const END_OF_BLOCK: usize = 0;

/// The number of bits of a value's magnitude, and these bits. Negative values are coded as `value - 1` (T.81, F.1.2.1).
#[inline(always)]
fn magnitude(value: i32) -> (u32, u32) {
    let size = 32 - value.unsigned_abs().leading_zeros();
    (size, (value + (value >> 31)) as u32 & ((1 << size) - 1))
}
