//! The headers of a JPEG file (ITU-T T.81, annex B), up to the entropy-coded data of each scan.

use std::{ops::Range, sync::Arc};

use super::{
    ColourModel, Component, Frame, ZIGZAG,
    damage::{Damage, DamageMap},
    entropy::Selection,
    huffman_decoder::HuffmanDecoder,
    huffman_encoder::HuffmanTable,
    marker::{self, Segments},
};
use crate::util::error::{Error, Result};

/// The headers of a JPEG file, and its scans.
#[derive(Debug, Default)]
pub struct JpegFile<'a> {
    pub(super) bytes: &'a [u8],
    /// How the samples are coded.
    pub process: Process,
    /// Bits per sample.
    pub precision: u32,
    /// Size, colours and components.
    pub frame: Frame,
    pub(super) scans: Vec<Scan>,
    /// The segments before the first scan: second byte of the marker, and parameters.
    pub segments: Vec<(u8, &'a [u8])>,
    /// Number of coefficients, of 64 for each component, with bits that no scan contains.
    unsent: usize,
    /// Number of bytes between segments that belong to no segment.
    stray: usize,
    /// Whether a segment after the first scan is invalid.
    is_broken: bool,
}

/// How samples are coded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Process {
    /// DCT, all bits of a block in one scan.
    #[default]
    Sequential,
    /// DCT, parts of each block in several scans.
    Progressive,
    /// Differences of neighbours (annex H).
    Lossless,
}

/// A scan: a selection of coefficients of some components (B.2.3).
#[derive(Debug)]
pub struct Scan {
    pub members: Vec<ScanComponent>,
    /// In lossless files, `start` is the predictor and `low_bit` the point transform.
    pub selection: Selection,
    /// Whether the scan adds one bit to coefficients of an earlier scan.
    pub refines: bool,
    /// MCUs between restarts; 0 for none (B.2.4.4).
    pub restart_interval: usize,
    /// Range of its entropy-coded data in the file.
    pub data: Range<usize>,
}

/// A component in a scan, with the Huffman tables that the scan needs.
#[derive(Debug)]
pub struct ScanComponent {
    /// Index in [`Frame::components`].
    pub component: usize,
    /// The table of DC coefficients, or of differences.
    pub dc: Arc<HuffmanDecoder>,
    /// The table of AC coefficients.
    pub ac: Arc<HuffmanDecoder>,
}

/// Properties of a JPEG stream that are stated by the file around it, such as TIFF.
#[derive(Clone, Copy, Debug, Default)]
pub struct Container<'a> {
    /// An abbreviated JPEG stream of tables (B.5) that the stream may lack.
    pub tables: &'a [u8],
    /// How the colour model is determined.
    pub colour: ColourSource,
}

/// How the colour model is determined. A model applies only if it has as many components as the stream.
#[derive(Clone, Copy, Debug, Default)]
pub enum ColourSource {
    /// By the JFIF segment, else the Adobe segment, else the identifiers of the components, as in libjpeg.
    #[default]
    FromFile,
    /// By this model, unless there is a JFIF or Adobe segment.
    Fallback(ColourModel),
    /// By this model, even if the file states another one.
    Forced(ColourModel),
}

/// Length of a JFIF segment in bytes (T.871, 10.1). A shorter one counts as another kind of segment, as in other
/// programs.
const JFIF_LEN: usize = 14;
/// The largest sampling factor (B.2.2).
const MAX_SAMPLING: usize = 4;

impl<'a> JpegFile<'a> {
    /// Reads everything but the coefficients. If the file is damaged after the header of its first scan, the scans
    /// before the damage are read.
    pub fn parse(bytes: &'a [u8], context: &Container<'_>) -> Result<Self> {
        let mut parser = Parser::default();
        parser.file.bytes = bytes;
        for (marker, body) in Segments::new(context.tables).into_iter().flatten() {
            if let (marker::DHT | marker::DQT | marker::DRI, Some(body)) = (marker, body) {
                parser.tables(marker, body)?;
            }
        }
        let mut segments = Segments::new(bytes)
            .ok_or_else(|| Error::bad_input("not a JPEG file: bad signature"))?;
        while let Some((marker, body)) = segments.next() {
            let has_scans = !parser.file.scans.is_empty();
            match marker {
                marker::EOI => break,
                marker::TEM | marker::RST0..=marker::RST7 => continue,
                // Such a marker is reserved, so the data of a scan are damaged.
                ..=marker::RES_LAST if has_scans => break,
                _ => {}
            }
            // Without a body, the file is cut off.
            let Some(body) = body else { break };
            let read = match marker {
                marker::SOS => parser.scan(body, segments.scan_data(parser.restart_interval > 0)),
                _ => parser.segment(marker, body),
            };
            if has_scans && read.is_err() {
                parser.file.is_broken = true;
                break;
            }
            read?;
        }
        parser.file.stray = segments.stray;
        parser.finish(context.colour)
    }

    /// Approximate number of bytes that decoding allocates besides the samples.
    pub fn scratch_bytes(&self) -> usize {
        // 64 coefficients of two bytes, a mask, and a separate DC coefficient.
        const A_BLOCK: usize = 64 * 2 + 8 + 2;
        match self.process {
            // Rows of blocks are in memory only until they are rendered.
            Process::Sequential if self.scans.len() == 1 => self.bytes.len(),
            _ => self.bytes.len() + A_BLOCK * self.frame.first_block(self.frame.components.len()),
        }
    }

    /// The most important damage. It is known once all scans are read.
    pub(super) fn damage(&self, map: &DamageMap) -> Option<Damage> {
        let (missing, rows) = (map.rows(&self.frame), self.frame.size[1]);
        let coefficients = 64 * self.frame.components.len();
        match self.unsent {
            _ if !map.has_rows() => Some(Damage::Empty),
            _ if missing > 0 => Some(Damage::Rows { missing, rows }),
            1.. => Some(Damage::Scans { unsent: self.unsent, coefficients }),
            _ if map.has_leftover() || self.is_broken => Some(Damage::Data),
            _ => (self.stray > 0).then_some(Damage::Stray(self.stray)),
        }
    }
}

/// State set by the segments so far for the following scans, and the coefficients that the scans so far contain.
#[derive(Default)]
struct Parser<'a> {
    file: JpegFile<'a>,
    components: Vec<ComponentState>,
    quantization: [Option<[u16; 64]>; 4],
    /// Huffman tables of class 0 (DC) and 1 (AC).
    huffman: [[Option<Arc<HuffmanDecoder>>; 4]; 2],
    restart_interval: usize,
}

/// The part of a component that the scans so far contain.
struct ComponentState {
    /// The identifier.
    id: u8,
    /// The number of the quantization table.
    table: usize,
    /// For each coefficient, the number of low bits that scans do not contain yet; `None` before its first scan.
    lacking: [Option<u32>; 64],
    /// A mask of the coefficients that a scan refines although an earlier scan of them is missing.
    skipped: u64,
}

impl<'a> Parser<'a> {
    /// Reads a segment other than a scan header.
    fn segment(&mut self, marker: u8, body: &'a [u8]) -> Result<()> {
        if self.file.scans.is_empty() {
            self.file.segments.push((marker, body));
        }
        match marker {
            marker::DHT | marker::DQT | marker::DRI => self.tables(marker, body),
            marker::DAC | marker::DNL | marker::APP0.. => Ok(()),
            marker::SOF0..=marker::SOF15 => self.frame(marker, body),
            _ => Err(Error::bad_input(format_args!("unknown JPEG marker 0xff{marker:02x}"))),
        }
    }

    /// Reads tables and the restart interval (B.2.4).
    fn tables(&mut self, marker: u8, body: &[u8]) -> Result<()> {
        let (read, what) = match marker {
            marker::DHT => (read_huffman(body, &mut self.huffman), "Huffman table"),
            marker::DQT => (read_quantization(body, &mut self.quantization), "quantization table"),
            _ => {
                let interval = body.first_chunk().map(|bytes| u16::from_be_bytes(*bytes).into());
                (interval.map(|interval| self.restart_interval = interval), "restart interval")
            }
        };
        read.ok_or_else(|| Error::bad_input(format_args!("invalid {what}")))
    }

    /// Reads the frame header (B.2.2).
    fn frame(&mut self, marker: u8, body: &[u8]) -> Result<()> {
        // Earlier scans belong to the first frame header.
        if !self.components.is_empty() {
            return Err(Error::bad_input("the JPEG file has two frame headers"));
        }
        self.file.process = match marker {
            marker::SOF0 | marker::SOF1 => Process::Sequential,
            marker::SOF2 => Process::Progressive,
            marker::SOF3 => Process::Lossless,
            marker::SOF9.. => {
                return Err(Error::bad_input(
                    "arithmetic-coded JPEG is not supported; convert it with `jpegtran FILE > out.jpg`",
                ));
            }
            _ => return Err(Error::bad_input("hierarchical JPEG is not supported")),
        };
        self.frame_fields(body).ok_or_else(|| Error::bad_input("invalid frame header"))
    }

    fn frame_fields(&mut self, body: &[u8]) -> Option<()> {
        let &[precision, h1, h0, w1, w0, count] = body.first_chunk()?;
        let (components, []) = body[6..].as_chunks::<3>() else { return None };
        let size = [[w1, w0], [h1, h0]].map(|v| usize::from(u16::from_be_bytes(v)));
        let is_valid = !size.contains(&0)
            && matches!(precision, 2..=16)
            && components.len() == usize::from(count)
            && matches!(count, 1 | 3 | 4);
        if !is_valid {
            return None;
        }
        for &[id, factors, table] in components {
            // Sampling factors of a single component have no effect (A.2.2).
            let sampling = match count {
                1 => [1, 1],
                _ => [factors >> 4, factors & 15].map(usize::from),
            };
            if sampling.iter().any(|factor| !(1..=MAX_SAMPLING).contains(factor)) || table > 3 {
                return None;
            }
            let table = table.into();
            self.components.push(ComponentState { id, table, lacking: [None; 64], skipped: 0 });
            self.file.frame.components.push(Component { sampling, steps: [0; 64] });
        }
        self.file.frame.size = size;
        self.file.precision = precision.into();
        Some(())
    }

    /// Reads a scan header. Each scan of a progressive file should continue the scans before it. As in libjpeg, a scan
    /// that does not is read, too.
    fn scan(&mut self, body: &[u8], data: Range<usize>) -> Result<()> {
        let scan = self.scan_header(body, data);
        let scan = scan.ok_or_else(|| Error::bad_input("invalid scan header"))?;
        let Selection { start, end, low_bit } = scan.selection;
        for &ScanComponent { component, .. } in &scan.members {
            if self.file.process == Process::Lossless {
                continue;
            }
            let ComponentState { table, lacking, skipped, .. } = &mut self.components[component];
            // The quantization table at the start of the component's first scan applies (B.2.4.1).
            if lacking.iter().all(Option::is_none) {
                let steps = self.quantization[*table];
                self.file.frame.components[component].steps =
                    steps.ok_or_else(|| Error::bad_input("a quantization table is missing"))?;
            }
            for place in start..=end {
                let lacks = &mut lacking[place as usize];
                if *lacks != scan.refines.then_some(low_bit + 1) {
                    if self.file.process == Process::Sequential {
                        return Err(Error::bad_input("two scans of the same component"));
                    }
                    *skipped |= 1 << place;
                }
                *lacks = Some(low_bit);
            }
        }
        self.file.scans.push(scan);
        Ok(())
    }

    /// Reads the scan header (B.2.3; the limits of progressive scans are in G.1.1.1, of lossless ones in H.1.2).
    fn scan_header(&self, body: &[u8], data: Range<usize>) -> Option<Scan> {
        let (&count, rest) = body.split_first()?;
        let (members, tail) = rest.split_at_checked(2 * usize::from(count))?;
        let &[start, end, bits] = tail else { return None };
        let (high_bit, low_bit) = (u32::from(bits >> 4), u32::from(bits & 15));
        let stated = Selection { start: start.into(), end: end.into(), low_bit };
        let (is_valid, selection, refines) = match self.file.process {
            Process::Sequential => (true, Selection { start: 0, end: 63, low_bit: 0 }, false),
            Process::Progressive => {
                let dc_or_ac = if start == 0 { end == 0 } else { end < 64 && count == 1 };
                let one_bit = high_bit == 0 || high_bit == low_bit + 1;
                (dc_or_ac && one_bit && start <= end && low_bit < 14, stated, high_bit > 0)
            }
            Process::Lossless => {
                ((1..=7).contains(&start) && low_bit < self.file.precision, stated, false)
            }
        };
        let is_lossless = self.file.process == Process::Lossless;
        let needs_dc = is_lossless || selection.start == 0 && !refines;
        let needs_ac = !is_lossless && selection.end > 0;
        let members = members.as_chunks::<2>().0.iter().map(|&[id, tables]| {
            let component = self.components.iter().position(|known| known.id == id)?;
            let table = |class: usize, number: u8| {
                let stated = self.huffman[class].get(usize::from(number))?.clone();
                stated.or_else(|| self.standard_table(class, number))
            };
            let (dc, ac) = (table(0, tables >> 4), table(1, tables & 15));
            let has_tables = (dc.is_some() || !needs_dc) && (ac.is_some() || !needs_ac);
            let [dc, ac] = [dc, ac].map(Option::unwrap_or_default);
            has_tables.then_some(ScanComponent { component, dc, ac })
        });
        let members: Vec<ScanComponent> = members.collect::<Option<_>>()?;
        // Components are in the order of the frame header, so none occurs twice.
        let is_ordered = members.is_sorted_by(|a, b| a.component < b.component);
        let restart_interval = self.restart_interval;
        let scan = Scan { members, selection, refines, restart_interval, data };
        (is_valid && is_ordered && !scan.members.is_empty()).then_some(scan)
    }

    /// The table of annex K.3 that sequential files of 8 bits may leave out, as frames of Motion JPEG do: number 0 is
    /// for luma, 1 for chroma.
    fn standard_table(&self, class: usize, number: u8) -> Option<Arc<HuffmanDecoder>> {
        let may_lack = self.file.process == Process::Sequential && self.file.precision == 8;
        let number = usize::from(number);
        (may_lack && number < 2).then(|| {
            let HuffmanTable { counts, symbols } = &HuffmanTable::standard()[2 * number + class];
            HuffmanDecoder::new(counts, symbols).map(Arc::new)
        })?
    }

    /// The file, if it has a scan.
    fn finish(self, colour: ColourSource) -> Result<JpegFile<'a>> {
        // As in libjpeg, lossless files without a JFIF or Adobe segment hold RGB.
        let colour = match (colour, self.file.process) {
            (ColourSource::FromFile, Process::Lossless) => ColourSource::Fallback(ColourModel::Rgb),
            _ => colour,
        };
        let mut file = self.file;
        if file.scans.is_empty() {
            return Err(Error::bad_input("the JPEG file has no scan"));
        }
        let unsent = |component: &ComponentState| {
            let lacking = component.lacking.iter().enumerate();
            let is_unsent = |k: usize| component.skipped >> k & 1 == 1;
            lacking.filter(|&(k, lacks)| *lacks != Some(0) || is_unsent(k)).count()
        };
        file.unsent = self.components.iter().map(unsent).sum();
        let ids: Vec<u8> = self.components.iter().map(|component| component.id).collect();
        file.frame.colour = colour_model(&ids, &file.segments, colour);
        Ok(file)
    }
}

/// The colour model of components with the identifiers `ids`.
fn colour_model(ids: &[u8], segments: &[(u8, &[u8])], colour: ColourSource) -> ColourModel {
    let mut is_jfif = false;
    // The colour transform in the Adobe segment: 0 for none, 1 for YCbCr, 2 for YCCK (ITU-T T.872, 6.5.3).
    let mut adobe = None;
    for (marker, body) in segments {
        match *marker {
            marker::APP0 => is_jfif |= body.starts_with(b"JFIF\0") && body.len() >= JFIF_LEN,
            marker::APP14 if body.starts_with(b"Adobe") => adobe = body.get(11).copied(),
            _ => {}
        }
    }
    let fits = |model: &ColourModel| model.components() == ids.len();
    match colour {
        ColourSource::Forced(model) if fits(&model) => return model,
        ColourSource::Fallback(model) if fits(&model) && !is_jfif && adobe.is_none() => {
            return model;
        }
        _ => {}
    }
    match (ids, is_jfif, adobe) {
        ([_], ..) => ColourModel::Grey,
        ([_, _, _], true, _) => ColourModel::YCbCr,
        ([_, _, _], _, Some(0)) | (b"RGB", _, None) => ColourModel::Rgb,
        ([_, _, _], ..) => ColourModel::YCbCr,
        (_, _, Some(0) | None) => ColourModel::Cmyk,
        _ => ColourModel::Ycck,
    }
}

/// Reads quantization tables (B.2.4.1).
fn read_quantization(mut body: &[u8], tables: &mut [Option<[u16; 64]>; 4]) -> Option<()> {
    while let Some((&kind, rest)) = body.split_first() {
        let wide = kind >> 4 == 1;
        let (values, rest) = rest.split_at_checked(if wide { 128 } else { 64 })?;
        let mut table = [0; 64];
        for (i, &place) in ZIGZAG.iter().enumerate() {
            table[usize::from(place)] = match wide {
                true => u16::from_be_bytes([values[2 * i], values[2 * i + 1]]),
                false => values[i].into(),
            };
        }
        *tables.get_mut(usize::from(kind & 15))? = Some(table);
        body = rest;
    }
    Some(())
}

/// Reads Huffman tables (B.2.4.2).
fn read_huffman(mut body: &[u8], tables: &mut [[Option<Arc<HuffmanDecoder>>; 4]; 2]) -> Option<()> {
    while let Some((&kind, rest)) = body.split_first() {
        let (counts, rest) = rest.split_first_chunk::<16>()?;
        let symbols = counts.iter().map(|&count| usize::from(count)).sum();
        let (symbols, rest) = rest.split_at_checked(symbols)?;
        let table = tables.get_mut(usize::from(kind >> 4))?.get_mut(usize::from(kind & 15))?;
        let new = HuffmanDecoder::new(counts, symbols)?;
        *table = Some(Arc::new(new));
        body = rest;
    }
    Some(())
}
