//! The encoder: markers (ITU-T T.81, annex B), JFIF (T.871, 10), ICC profile and EXIF around one sequential scan.
//!
//! Bands of MCU rows are encoded in parallel; each is a restart interval (T.81, E.1.4).

use std::ops::Range;

use super::{
    beside,
    huffman_encode::{BitWriter, CHROMA, Codes, Counts, LUMA, Symbols, Table},
};
use crate::{
    data::{
        image::Metadata,
        jpeg::{
            Frame, SparseBlock, SparseCoefficients, ZIGZAG,
            forward::{Divisor, McuRow},
        },
    },
    io::image::{
        codec::Texts,
        metadata::{XMP_NAME, density_of},
    },
    parallel::Parallel,
};

/// The blocks of a frame, or the pixels from which they are computed.
enum Blocks<'a> {
    Pixels { pixels: &'a [u8], divisors: Vec<Divisor> },
    Coefficients(&'a SparseCoefficients),
}

/// The blocks of a component in a row of MCUs.
trait BlockRows {
    /// Codes block `x` of row `y` of the MCU row to `out`.
    fn code<S: Symbols>(
        &self,
        x: usize,
        y: usize,
        last: &mut i32,
        tables: &[S::Table; 2],
        out: &mut S,
    );
}

/// Blocks with all coefficients, and the number of blocks in a row.
struct Dense<'a>(&'a [[i16; 64]], usize);

impl BlockRows for Dense<'_> {
    #[inline(always)]
    fn code<S: Symbols>(
        &self,
        x: usize,
        y: usize,
        last: &mut i32,
        tables: &[S::Table; 2],
        out: &mut S,
    ) {
        out.block(&self.0[y * self.1 + x], last, tables);
    }
}

/// Blocks with their nonzero coefficients only, the number of blocks in a row, and the picture that they are from.
struct Sparse<'a>(&'a [SparseBlock], usize, &'a SparseCoefficients);

impl BlockRows for Sparse<'_> {
    #[inline(always)]
    fn code<S: Symbols>(
        &self,
        x: usize,
        y: usize,
        last: &mut i32,
        tables: &[S::Table; 2],
        out: &mut S,
    ) {
        let block = self.0[y * self.1 + x];
        out.sparse_block(block.dc(), self.2.entries_of(block), last, tables);
    }
}

/// Approximate number of pixels of a restart interval.
const BAND: usize = 1 << 19;
/// Maximal bytes of an ICC profile in one segment: 65,533 without the identifier and two numbers.
const ICC_PART: usize = 65_533 - 14;

/// Encodes `pixels`: rows from the top, u8 samples, grey or RGB. If `optimized`, Huffman tables are computed for this
/// picture, which makes the file smaller but takes longer.
///
/// # Errors
/// If a side has no pixel or more than 65,535, or the ICC profile is too long.
pub fn encode_pixels(
    frame: &Frame,
    pixels: &[u8],
    metadata: &Metadata,
    optimized: bool,
) -> Result<Vec<u8>, &'static str> {
    let divisors = frame.components.iter().map(|c| Divisor::new(&c.steps)).collect();
    encode(frame, &Blocks::Pixels { pixels, divisors }, metadata, optimized)
}

/// Encodes quantized coefficients.
///
/// # Errors
/// As [`encode_pixels`].
pub fn encode_coefficients(
    coefficients: &SparseCoefficients,
    metadata: &Metadata,
    optimized: bool,
) -> Result<Vec<u8>, &'static str> {
    encode(&coefficients.frame, &Blocks::Coefficients(coefficients), metadata, optimized)
}

fn encode(
    frame: &Frame,
    blocks: &Blocks<'_>,
    metadata: &Metadata,
    optimized: bool,
) -> Result<Vec<u8>, &'static str> {
    let [across, down] = frame.mcus();
    let [width, height] = frame.most().map(|most| 8 * most);
    // The restart interval is stated in 16 bits, so it has at most 65,535 MCUs.
    let most = usize::from(u16::MAX) / across.max(1);
    let rows = (BAND / (across * width * height).max(1)).clamp(1, most.max(1));
    let interval = if down > rows { across * rows } else { 0 };
    let scan = Scan::new(frame);
    let intervals = || (0..down).step_by(rows).map(|first| first..down.min(first + rows));
    let tables = match optimized {
        true => scan.tables(blocks, intervals()),
        false => [LUMA, CHROMA],
    };
    let mut file = header(frame, metadata, interval as u16, &tables)?;
    let codes = tables.each_ref().map(|pair| pair.each_ref().map(Codes::new));
    let parts = intervals().par_map(|rows| {
        let mut out = BitWriter::default();
        scan.interval(blocks, rows, &codes, &mut out);
        out.finish()
    });
    file.reserve(parts.iter().map(|part| part.len() + 2).sum());
    for (number, part) in parts.iter().enumerate() {
        if number > 0 {
            file.extend([0xff, RST0 + ((number - 1) % 8) as u8]);
        }
        file.extend(part);
    }
    file.extend([0xff, EOI]);
    Ok(file)
}

// Markers (T.81, table B.1).
const SOF0: u8 = 0xc0;
const DHT: u8 = 0xc4;
const RST0: u8 = 0xd0;
const SOI: u8 = 0xd8;
const EOI: u8 = 0xd9;
const SOS: u8 = 0xda;
const DQT: u8 = 0xdb;
const DRI: u8 = 0xdd;
const APP0: u8 = 0xe0;
const COM: u8 = 0xfe;

/// The bytes of a file before the data of its scan.
fn header(
    frame: &Frame,
    metadata: &Metadata,
    interval: u16,
    tables: &[[Table; 2]; 2],
) -> Result<Vec<u8>, &'static str> {
    let [width, height] = frame.size.map(u16::try_from);
    let (Ok(width @ 1..), Ok(height @ 1..)) = (width, height) else {
        return Err("JPEG pictures have 1 to 65,535 pixels a side");
    };
    let mut file = vec![0xff, SOI];
    metadata_segments(&mut file, metadata)?;
    let chroma = frame.components.len() > 1;
    for (table, component) in frame.components.iter().take(1 + usize::from(chroma)).enumerate() {
        let steps = ZIGZAG.map(|place| component.steps[usize::from(place)] as u8);
        segment(&mut file, DQT, &[&[table as u8], &steps]);
    }
    let mut body = vec![8];
    body.extend(height.to_be_bytes());
    body.extend(width.to_be_bytes());
    body.push(frame.components.len() as u8);
    for (c, component) in frame.components.iter().enumerate() {
        let [across, down] = component.sampling.map(|factor| factor as u8);
        body.extend([c as u8 + 1, across << 4 | down, u8::from(c > 0)]);
    }
    segment(&mut file, SOF0, &[&body]);
    for (number, [dc, ac]) in tables.iter().take(1 + usize::from(chroma)).enumerate() {
        for (class, Table { counts, symbols }) in [(0, dc), (1, ac)] {
            segment(&mut file, DHT, &[&[class << 4 | number as u8], counts, symbols]);
        }
    }
    if interval > 0 {
        segment(&mut file, DRI, &[&interval.to_be_bytes()]);
    }
    let mut body = vec![frame.components.len() as u8];
    for c in 0..frame.components.len() as u8 {
        body.extend([c + 1, if c > 0 { 0x11 } else { 0 }]);
    }
    body.extend([0, 63, 0]);
    segment(&mut file, SOS, &[&body]);
    Ok(file)
}

/// Appends JFIF's segment and the segments of metadata.
fn metadata_segments(file: &mut Vec<u8>, metadata: &Metadata) -> Result<(), &'static str> {
    segment(file, APP0, &[b"JFIF\0", &beside::jfif(density_of(metadata))]);
    if let Some(exif) = &metadata.exif {
        segment(file, APP0 + 1, &[b"Exif\0\0", exif]);
    }
    if let Some(xmp) = &metadata.xmp {
        segment(file, APP0 + 1, &[XMP_NAME, xmp]);
    }
    if let Some(iptc) = &metadata.iptc {
        segment(file, APP0 + 13, &[&beside::photoshop(iptc)]);
    }
    if let Some(icc) = &metadata.icc {
        let parts = icc.chunks(ICC_PART);
        let count =
            u8::try_from(parts.len()).map_err(|_| "the ICC profile is too long for JPEG")?;
        for (part, number) in parts.zip(1..) {
            segment(file, APP0 + 2, &[b"ICC_PROFILE\0", &[number, count], part]);
        }
    }
    for text in metadata.texts.iter().filter(|text| Texts::COMMENT.hold(&text.keyword)) {
        segment(file, COM, &[text.text.as_bytes()]);
    }
    Ok(())
}

/// Appends a marker segment: marker, length and parameters.
fn segment(file: &mut Vec<u8>, marker: u8, parts: &[&[u8]]) {
    let len: usize = 2 + parts.iter().map(|part| part.len()).sum::<usize>();
    file.extend([0xff, marker]);
    file.extend((len as u16).to_be_bytes());
    parts.iter().for_each(|part| file.extend(*part));
}

/// The only scan of a file.
struct Scan<'a> {
    frame: &'a Frame,
    /// For each component, the number of blocks with samples, across and down.
    real: Vec<[usize; 2]>,
}

impl<'a> Scan<'a> {
    fn new(frame: &'a Frame) -> Self {
        let components = 0..frame.components.len();
        let real = components.map(|c| frame.samples(c).map(|samples| samples.div_ceil(8)));
        Self { frame, real: real.collect() }
    }

    /// The Huffman tables that code all `intervals`, ranges of MCU rows, in the fewest bits: for luma and for chroma,
    /// those of DC and of AC coefficients.
    fn tables(
        &self,
        blocks: &Blocks<'_>,
        intervals: impl ExactSizeIterator<Item = Range<usize>> + Send,
    ) -> [[Table; 2]; 2] {
        let parts = intervals.par_map(|rows| {
            let mut counts = Counts([[0; 256]; 4]);
            self.interval(blocks, rows, &[[0, 1], [2, 3]], &mut counts);
            counts
        });
        let count = |table: usize, symbol: usize| parts.iter().map(|c| c.0[table][symbol]).sum();
        let table =
            |table: usize| Table::for_counts(&std::array::from_fn(|symbol| count(table, symbol)));
        [[table(0), table(1)], [table(2), table(3)]]
    }

    /// Codes the MCU rows `rows`, one restart interval, to `out`. `tables` are those of luma and of chroma, each of DC
    /// and of AC coefficients.
    fn interval<S: Symbols>(
        &self,
        blocks: &Blocks<'_>,
        rows: Range<usize>,
        tables: &[[S::Table; 2]; 2],
        out: &mut S,
    ) {
        let mut last = [0; 4];
        let components = 0..self.frame.components.len();
        match blocks {
            Blocks::Pixels { pixels, divisors } => {
                let mut room = McuRow::new(self.frame);
                let strides: Vec<usize> = components.map(|c| room.stride(c)).collect();
                for row in rows {
                    let blocks = room.transform(self.frame, divisors, pixels, row);
                    let parts = blocks.iter().zip(&strides).map(|(b, &stride)| Dense(b, stride));
                    self.mcu_row(row, &parts.collect::<Vec<_>>(), &mut last, tables, out);
                }
            }
            Blocks::Coefficients(sparse) => {
                let firsts: Vec<usize> =
                    components.clone().map(|c| self.frame.first_block(c)).collect();
                for row in rows {
                    let part = |c: usize| {
                        let across = self.frame.blocks(c)[0];
                        let first = row * self.frame.components[c].sampling[1] * across;
                        Sparse(&sparse.blocks[firsts[c] + first..], across, sparse)
                    };
                    let parts: Vec<_> = components.clone().map(part).collect();
                    self.mcu_row(row, &parts, &mut last, tables, out);
                }
            }
        }
    }

    /// Codes a row of MCUs (T.81, A.2.3).
    fn mcu_row<S: Symbols, B: BlockRows>(
        &self,
        number: usize,
        blocks: &[B],
        last: &mut [i32; 4],
        tables: &[[S::Table; 2]; 2],
        out: &mut S,
    ) {
        let [across, _] = self.frame.mcus();
        for mcu in 0..across {
            for (c, blocks) in blocks.iter().enumerate() {
                let [h, v] = self.frame.components[c].sampling;
                let tables = &tables[usize::from(c > 0)];
                for (x, y) in (0..v).flat_map(|y| (0..h).map(move |x| (mcu * h + x, y))) {
                    // Blocks that only fill up an MCU repeat the DC coefficient and have no AC coefficients.
                    match x < self.real[c][0] && number * v + y < self.real[c][1] {
                        true => blocks.code(x, y, &mut last[c], tables, out),
                        false => out.empty_block(tables),
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{data::jpeg::Quality, io::image::jpeg::decode};

    #[test]
    fn intervals_decode_to_what_one_piece_does() {
        for (channels, half_chroma) in [(1, false), (3, false), (3, true)] {
            let (width, height) = (1003, 1301);
            let pixels: Vec<u8> =
                (0..width * height * channels).map(|i| ((i / 5) ^ (i >> 11)) as u8).collect();
            let frame = Frame::for_pixels([width, height], channels, Quality(90), half_chroma);
            let metadata = Metadata {
                icc: Some(vec![7; 70_000]),
                exif: Some(b"MM\0*".to_vec()),
                ..Metadata::default()
            };
            let encoded = |optimized| encode_pixels(&frame, &pixels, &metadata, optimized).unwrap();
            let (bands, optimized) = (encoded(false), encoded(true));
            let divisors = frame.components.iter().map(|c| Divisor::new(&c.steps)).collect();
            let blocks = Blocks::Pixels { pixels: &pixels, divisors };
            let tables = [LUMA, CHROMA];
            let mut one = header(&frame, &metadata, 0, &tables).unwrap();
            let codes = tables.map(|pair| pair.each_ref().map(Codes::new));
            let mut out = BitWriter::default();
            Scan::new(&frame).interval(&blocks, 0..frame.mcus()[1], &codes, &mut out);
            one.extend(out.finish());
            one.extend([0xff, EOI]);
            let restarts = |bytes: &[u8]| bytes.windows(2).any(|pair| pair == [0xff, RST0]);
            assert!(restarts(&bands) && !restarts(&one));
            let decoded = |bytes: &[u8]| image::load_from_memory(bytes).unwrap();
            assert!(decoded(&bands) == decoded(&one), "{channels} {half_chroma}");
            // Restart intervals are read in parallel.
            let own = |bytes: &[u8]| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
                let (image, damage) = pool.install(|| decode(bytes, u64::MAX)).unwrap();
                (image.samples.as_bytes().to_vec(), damage)
            };
            assert!(own(&bands) == own(&one), "{channels} {half_chroma}");
            // With one byte missing, the damage is reported or the pixels differ.
            let cut = [&bands[..bands.len() / 2], &bands[bands.len() / 2 + 1..]].concat();
            assert!(own(&cut).1.is_some() || own(&cut).0 != own(&one).0);
            assert!(decoded(&optimized) == decoded(&one), "{channels} {half_chroma}");
            assert!(optimized.len() < bands.len(), "{channels} {half_chroma}");
        }
    }
}
