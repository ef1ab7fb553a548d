//! The container format of JPEG: marker segments, up to the entropy-coded data of each scan (ITU-T T.81, annex B).
//! Supported are the kinds of nearly all files: 8 bits, sequential or progressive DCT, Huffman coding.

use std::ops::Range;

use super::{damage::Damage, entropy::Selection, huffman::Huffman};
use crate::{
    data::jpeg::{self, ColourModel, Frame, ZIGZAG},
    memory::{self, raise},
};

/// Second bytes of markers (T.81, table B.1).
mod marker {
    pub const TEM: u8 = 0x01;
    /// The last of the reserved markers.
    pub const RES_LAST: u8 = 0xbf;
    pub const SOI: u8 = 0xd8;
    pub const EOI: u8 = 0xd9;
    pub const SOF0: u8 = 0xc0;
    pub const SOF2: u8 = 0xc2;
    pub const DHT: u8 = 0xc4;
    pub const RST0: u8 = 0xd0;
    pub const RST7: u8 = 0xd7;
    pub const SOS: u8 = 0xda;
    pub const DQT: u8 = 0xdb;
    pub const DRI: u8 = 0xdd;
    pub const APP0: u8 = 0xe0;
    pub const APP1: u8 = 0xe1;
    pub const APP2: u8 = 0xe2;
    pub const APP14: u8 = 0xee;
    pub const APP15: u8 = 0xef;
    pub const COM: u8 = 0xfe;
}

/// A file whose headers are read.
#[derive(Debug)]
pub struct File<'a> {
    pub bytes: &'a [u8],
    pub progressive: bool,
    /// Width and height in pixels.
    pub size: [usize; 2],
    /// The components in the order of the frame header.
    pub components: Vec<Component>,
    /// Number of minimum coded units (MCU) across and down, in scans of several components.
    pub mcus: [usize; 2],
    pub scans: Vec<Scan>,
    /// Number of coefficients, 64 for each component, that have bits which no scan contains.
    pub unsent: usize,
    /// Number of bytes between segments that belong to none.
    pub stray: usize,
    /// EXIF, from its TIFF header on.
    pub exif: Option<Vec<u8>>,
    /// Parts of the ICC profile, with their numbers.
    icc: Vec<(u8, &'a [u8])>,
}

/// A component of the frame (B.2.2).
#[derive(Debug)]
pub struct Component {
    id: u8,
    /// Blocks of the component in an MCU, across and down: its sampling factors H and V.
    pub sampling: [usize; 2],
    quantization_table: usize,
    /// Number of blocks that hold its samples, across and down.
    pub blocks: [usize; 2],
    /// The quantization steps, row by row.
    pub quantization: [u16; 64],
}

/// A scan: a selection of coefficients of some components (B.2.3).
#[derive(Debug)]
pub struct Scan {
    pub members: Vec<Member>,
    pub selection: Selection,
    /// Whether the scan adds one bit to coefficients of an earlier scan.
    pub refines: bool,
    /// MCUs between restarts; 0 for none (B.2.4.4).
    pub restart_interval: usize,
    /// Range of its entropy-coded data in the file.
    pub data: Range<usize>,
}

/// A component in a scan, with its Huffman tables.
#[derive(Debug)]
pub struct Member {
    /// Index in [`File::components`].
    pub component: usize,
    pub dc: Option<Huffman>,
    pub ac: Option<Huffman>,
}

impl Member {
    /// The table of DC coefficients, in a scan that has them.
    pub fn dc_table(&self) -> &Huffman {
        self.dc.as_ref().expect("checked with the header of the scan")
    }

    /// The table of AC coefficients, in a scan that has them.
    pub fn ac_table(&self) -> &Huffman {
        self.ac.as_ref().expect("checked with the header of the scan")
    }
}

/// Files with more pixels per byte than this are left to a decoder that takes less memory for them.
const MOST_PIXELS_A_BYTE: usize = 512;
/// Bytes of a JFIF segment (T.871, 10.1). Programs take a shorter one for another kind of segment.
const JFIF_LEN: usize = 14;
/// The largest sampling factor (B.2.2).
const MOST_SAMPLING: usize = 4;

impl<'a> File<'a> {
    /// Reads everything but the coefficients: the file and its frame; `None` if it is of another kind, or damaged
    /// before its first scan. Of a file that is cut off behind that, the scans that begin before the end are read.
    pub fn parse(bytes: &'a [u8]) -> Option<(Self, Frame)> {
        let mut parser = Parser::new(bytes);
        let mut segments = Segments::new(bytes)?;
        while let Some((marker, body)) = segments.next() {
            match marker {
                marker::EOI => break,
                marker::TEM | marker::RST0..=marker::RST7 => continue,
                // Such a marker is reserved, so the data of a scan are damaged.
                ..=marker::RES_LAST if parser.has_scans() => break,
                _ => {}
            }
            // Without a body, the file is cut off.
            let Some(body) = body else { break };
            if marker == marker::SOS {
                let at = segments.at;
                segments.at += data_len(&bytes[at..], parser.restart_interval > 0);
                parser.scan(body, at..segments.at)?;
            } else {
                parser.segment(marker, body)?;
            }
        }
        parser.file.stray = segments.stray;
        parser.finish()
    }

    /// Whether the file has so many pixels per byte that a decoder that takes less memory is preferable.
    pub fn is_thin(&self) -> bool {
        self.size.iter().product::<usize>() / MOST_PIXELS_A_BYTE > self.bytes.len()
    }

    /// A message about what is missing of the picture, once all scans are read.
    pub fn in_words(&self, damage: &Damage) -> Option<String> {
        damage.in_words([self.unsent, 64 * self.components.len()], self.stray)
    }

    /// A [`Damage`] of this picture's size, without any damage.
    pub fn no_damage(&self) -> Damage {
        let most = self.components.iter().map(|c| c.sampling[1]).max().unwrap_or(1);
        Damage::none(self.mcus[1], 8 * most, self.size[1])
    }

    /// The ICC profile, joined from its parts (ICC.1:2010, B.4).
    pub fn icc(&self) -> Option<Vec<u8>> {
        let mut parts = self.icc.clone();
        parts.sort_by_key(|&(number, _)| number);
        (!parts.is_empty()).then(|| parts.iter().flat_map(|(_, data)| *data).copied().collect())
    }

    /// Blocks of a component across, including those that only fill up the last MCU.
    pub fn columns(&self, component: &Component) -> usize {
        self.mcus[0] * component.sampling[0]
    }

    /// Rows of blocks of a component, including those that only fill up the last MCU.
    pub fn rows(&self, component: &Component) -> usize {
        self.mcus[1] * component.sampling[1]
    }

    /// Approximate number of bytes that decoding allocates.
    pub fn bytes_needed(&self) -> u64 {
        let samples: usize = self.size.iter().product::<usize>() * self.components.len();
        // 64 coefficients of two bytes, a mask in `nonzero`, and a separate DC coefficient.
        const A_BLOCK: usize = 140;
        let blocks: usize = self.components.iter().map(|c| self.columns(c) * self.rows(c)).sum();
        (samples + blocks * A_BLOCK + self.bytes.len()) as u64
    }

    /// Reads the frame header (B.2.2).
    fn frame(&mut self, body: &[u8]) -> Option<()> {
        let (&[8, h1, h0, w1, w0, count], components) = body.split_first_chunk()? else {
            return None;
        };
        let [width, height] = [[w1, w0], [h1, h0]].map(|v| usize::from(u16::from_be_bytes(v)));
        let (components, rest) = components.as_chunks::<3>();
        if components.len() != usize::from(count) || !rest.is_empty() {
            return None;
        }
        let samplings: Vec<[usize; 2]> = match components {
            // Sampling factors of a single component have no effect (A.2.2).
            [_] => vec![[1, 1]],
            _ => components
                .iter()
                .map(|c| [usize::from(c[1] >> 4), usize::from(c[1] & 15)])
                .collect(),
        };
        let valid = |factor: &usize| (1..=MOST_SAMPLING).contains(factor);
        if !matches!(components.len(), 1 | 3 | 4) || !samplings.iter().flatten().all(valid) {
            return None;
        }
        let most = [0, 1].map(|axis| samplings.iter().map(|s| s[axis]).max().unwrap_or(1));
        if width * height == 0 {
            return None;
        }
        self.size = [width, height];
        self.mcus = [0, 1].map(|axis| self.size[axis].div_ceil(8 * most[axis]));
        for (i, &[id, _, table]) in components.iter().enumerate() {
            let sampling = samplings[i];
            let blocks = [0, 1].map(|a| (self.size[a] * sampling[a]).div_ceil(most[a]).div_ceil(8));
            let quantization_table = (table < 4).then_some(usize::from(table))?;
            let quantization = [0; 64];
            let component = Component { id, sampling, quantization_table, blocks, quantization };
            self.components.push(component);
        }
        Some(())
    }
}

/// The state that segments set for the scans that follow, and the coefficients that scans contain so far.
struct Parser<'a> {
    file: File<'a>,
    quantization: [Option<[u16; 64]>; 4],
    /// Huffman tables of class 0 (DC) and 1 (AC).
    huffman: [[Option<Huffman>; 4]; 2],
    restart_interval: usize,
    is_jfif: bool,
    /// The colour transform in the Adobe segment: 0 for none, 1 for YCbCr, 2 for YCCK (ITU-T T.872, 6.5.3).
    adobe_transform: Option<u8>,
    /// For each component and coefficient, the number of low bits that scans do not contain yet; `None` without any
    /// scan of the coefficient.
    lacking: [[Option<u32>; 64]; 4],
    /// For each component, a mask of the coefficients of which scans were missing when a later one came.
    skipped: [u64; 4],
}

impl<'a> Parser<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            file: File {
                bytes,
                progressive: false,
                size: [0; 2],
                components: Vec::new(),
                mcus: [0; 2],
                scans: Vec::new(),
                unsent: 0,
                stray: 0,
                exif: None,
                icc: Vec::new(),
            },
            quantization: [None; 4],
            huffman: Default::default(),
            restart_interval: 0,
            is_jfif: false,
            adobe_transform: None,
            lacking: [[None; 64]; 4],
            skipped: [0; 4],
        }
    }

    fn has_scans(&self) -> bool {
        !self.file.scans.is_empty()
    }

    /// Reads a segment other than a scan header.
    fn segment(&mut self, marker: u8, body: &'a [u8]) -> Option<()> {
        match marker {
            marker::SOF0..=marker::SOF2 if self.file.components.is_empty() => {
                self.file.progressive = marker == marker::SOF2;
                self.file.frame(body)?;
            }
            marker::DHT => read_huffman(body, &mut self.huffman)?,
            marker::DQT => read_quantization(body, &mut self.quantization)?,
            marker::DRI => {
                self.restart_interval = usize::from(u16::from_be_bytes(*body.first_chunk()?));
            }
            marker::APP0 if body.starts_with(b"JFIF\0") => self.is_jfif |= body.len() >= JFIF_LEN,
            marker::APP14 if body.starts_with(b"Adobe") => {
                self.adobe_transform = body.get(11).copied();
            }
            marker::APP1 if self.file.exif.is_none() => {
                self.file.exif = body.strip_prefix(b"Exif\0\0").map(<[u8]>::to_vec);
            }
            marker::APP2 => {
                let part = body.strip_prefix(b"ICC_PROFILE\0");
                if let Some(&[number, _count, ref data @ ..]) = part {
                    self.file.icc.push((number, data));
                }
            }
            marker::APP0..=marker::APP15 | marker::COM => {}
            _ => return None,
        }
        Some(())
    }

    /// Reads a scan header. The scans of a progressive file should continue those before them; as in libjpeg, one that
    /// does not is read all the same.
    fn scan(&mut self, body: &[u8], data: Range<usize>) -> Option<()> {
        let scan = self.scan_header(body, data)?;
        let Selection { start, end, low_bit } = scan.selection;
        for member in &scan.members {
            let component = &mut self.file.components[member.component];
            let lacking = &mut self.lacking[member.component];
            // The quantization table counts that is defined when the component's first scan begins (B.2.4.1).
            if lacking.iter().all(Option::is_none) {
                component.quantization = self.quantization[component.quantization_table]?;
            }
            for place in start..=end {
                let lacks = &mut lacking[place as usize];
                if *lacks != scan.refines.then_some(low_bit + 1) {
                    self.file.progressive.then_some(())?;
                    self.skipped[member.component] |= 1 << place;
                }
                *lacks = Some(low_bit);
            }
        }
        self.file.scans.push(scan);
        Some(())
    }

    /// Reads the scan header (B.2.3; the limits of progressive scans are in G.1.1.1).
    fn scan_header(&self, body: &[u8], data: Range<usize>) -> Option<Scan> {
        let progressive = self.file.progressive;
        let (&count, rest) = body.split_first()?;
        let (members, tail) = rest.split_at_checked(2 * usize::from(count))?;
        let &[start, end, bits] = tail else { return None };
        let (high_bit, low_bit) = (u32::from(bits >> 4), u32::from(bits & 15));
        let selection = match progressive {
            true => Selection { start: start.into(), end: end.into(), low_bit },
            false => Selection { start: 0, end: 63, low_bit: 0 },
        };
        let refines = progressive && high_bit > 0;
        if progressive {
            let dc_or_ac = if start == 0 { end == 0 } else { end < 64 && count == 1 };
            let one_bit = high_bit == 0 || high_bit == low_bit + 1;
            (dc_or_ac && one_bit && start <= end && low_bit < 14).then_some(())?;
        }
        let members = members.as_chunks::<2>().0.iter().map(|&[id, tables]| {
            let component = self.file.components.iter().position(|c| c.id == id)?;
            let table =
                |class: usize, number: u8| self.huffman[class].get(usize::from(number))?.clone();
            let (dc, ac) = (table(0, tables >> 4), table(1, tables & 15));
            let lacks_dc = selection.start == 0 && !refines && dc.is_none();
            let lacks_ac = selection.end > 0 && ac.is_none();
            (!lacks_dc && !lacks_ac).then_some(Member { component, dc, ac })
        });
        let members: Vec<Member> = members.collect::<Option<_>>()?;
        // Components are in the order of the frame header, so none occurs twice.
        let ordered = members.is_sorted_by(|a, b| a.component < b.component);
        let restart_interval = self.restart_interval;
        (ordered && !members.is_empty()).then_some(Scan {
            members,
            selection,
            refines,
            restart_interval,
            data,
        })
    }

    /// The file and its frame, if all components have DC coefficients.
    fn finish(self) -> Option<(File<'a>, Frame)> {
        let mut file = self.file;
        let all = self.lacking[..file.components.len()].iter().zip(self.skipped);
        let is_unsent =
            |skipped: u64, k: usize, lacks: Option<u32>| lacks != Some(0) || skipped >> k & 1 == 1;
        let unsent = |(lacking, skipped): (&[Option<u32>; 64], u64)| {
            lacking.iter().enumerate().filter(|&(k, lacks)| is_unsent(skipped, k, *lacks)).count()
        };
        file.unsent = all.map(unsent).sum();
        let ids: Vec<u8> = file.components.iter().map(|component| component.id).collect();
        let complete = self.lacking[..ids.len()].iter().all(|lacking| lacking[0].is_some());
        // As libjpeg chooses: by the JFIF segment, else the Adobe segment, else the identifiers of the components.
        let colour = match (&ids[..], self.is_jfif, self.adobe_transform) {
            ([_], ..) => ColourModel::Grey,
            ([_, _, _], true, _) => ColourModel::YCbCr,
            ([_, _, _], _, Some(0)) | (b"RGB", _, None) => ColourModel::Rgb,
            ([_, _, _], ..) => ColourModel::YCbCr,
            (_, _, Some(0) | None) => ColourModel::Cmyk,
            _ => ColourModel::Ycck,
        };
        let component =
            |c: &Component| jpeg::Component { sampling: c.sampling, steps: c.quantization };
        let components = file.components.iter().map(component).collect();
        let frame = Frame { size: file.size, colour, components };
        (complete && !file.scans.is_empty()).then_some((file, frame))
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
fn read_huffman(mut body: &[u8], tables: &mut [[Option<Huffman>; 4]; 2]) -> Option<()> {
    while let Some((&kind, rest)) = body.split_first() {
        let (counts, rest) = rest.split_first_chunk::<16>()?;
        let symbols = counts.iter().map(|&count| usize::from(count)).sum();
        let (symbols, rest) = rest.split_at_checked(symbols)?;
        let table = tables.get_mut(usize::from(kind >> 4))?.get_mut(usize::from(kind & 15))?;
        let new = Huffman::new(counts, symbols)?;
        *table = Some(if kind >> 4 == 1 { new.of_coefficients() } else { new });
        body = rest;
    }
    Some(())
}

/// A walk over the marker segments of a file.
///
/// As in libjpeg, bytes where a marker is expected are skipped up to the next marker.
#[derive(Debug)]
pub struct Segments<'a> {
    bytes: &'a [u8],
    /// End of the last segment.
    pub at: usize,
    /// Number of bytes skipped so far.
    pub stray: usize,
}

impl<'a> Segments<'a> {
    /// The segments after the marker SOI; `None` if `bytes` do not begin with it.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        bytes.starts_with(&[0xff, marker::SOI]).then_some(Self { bytes, at: 2, stray: 0 })
    }
}

impl<'a> Iterator for Segments<'a> {
    /// The second byte of the marker, and the parameters, which are empty for markers without any; `None` where the
    /// file ends within them.
    type Item = (u8, Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.at;
        let (at, marker) = next_marker(self.bytes, start)?;
        // Any number of fill bytes 0xff may precede a marker (B.1.1.2).
        let fill = self.bytes[start..at].iter().rev().take_while(|&&byte| byte == 0xff).count();
        self.stray += at - start - fill;
        self.at = at + 2;
        if marker <= marker::RES_LAST || (marker::RST0..=marker::EOI).contains(&marker) {
            return Some((marker, Some(&[])));
        }
        let rest = &self.bytes[self.at..];
        let len = rest.first_chunk().map_or(0, |len| usize::from(u16::from_be_bytes(*len))).max(2);
        self.at = (self.at + len).min(self.bytes.len());
        Some((marker, rest.get(2..len)))
    }
}

/// Offset and second byte of the next marker from `start` on: 0xff before a byte other than 0, which is stuffing, and
/// 0xff, which is a fill byte.
fn next_marker(bytes: &[u8], start: usize) -> Option<(usize, u8)> {
    let is_marker = |pair: &[u8]| pair[0] == 0xff && !matches!(pair[1], 0 | 0xff);
    let at = start + bytes.get(start..)?.windows(2).position(is_marker)?;
    Some((at, bytes[at + 1]))
}

/// The length of a scan's data: up to a marker other than a restart, or the end of the file. With restarts, a reserved
/// marker, which no file should contain, only ends the data up to the next restart.
fn data_len(bytes: &[u8], restarts: bool) -> usize {
    let mut at = 0;
    while let Some((found, marker)) = next_marker(bytes, at) {
        match marker {
            marker::RST0..=marker::RST7 => {}
            ..=marker::RES_LAST if restarts => {}
            _ => return found,
        }
        at = found + 2;
    }
    bytes.len()
}

/// A restart interval: entropy-coded data between restart markers.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Range in the unstuffed data of the scan.
    pub data: Range<usize>,
    /// The number, 0 to 7, of the restart marker before the interval; `None` for the first one.
    pub restart: Option<u8>,
}

/// The data of a scan without the 0 that is stuffed behind each 0xff (B.1.1.5), and its restart intervals.
pub fn unstuffed(raw: &[u8]) -> (Vec<u8>, Vec<Interval>) {
    let mut data = memory::room(raw.len()).unwrap_or_else(raise);
    let mut intervals = Vec::new();
    let mut restart = None;
    let (mut start, mut at) = (0, 0);
    while let Some(len) = raw[at..].iter().position(|&byte| byte == 0xff) {
        data.extend_from_slice(&raw[at..at + len]);
        at += len;
        match raw.get(at + 1) {
            Some(0) => data.push(0xff),
            Some(&number @ marker::RST0..=marker::RST7) => {
                intervals.push(Interval { data: start..data.len(), restart });
                (start, restart) = (data.len(), Some(number - marker::RST0));
            }
            // A fill byte (B.1.1.2).
            Some(0xff) | None => {
                at += 1;
                continue;
            }
            // A reserved marker: the data up to the next marker are lost.
            Some(_) => {
                at = next_marker(raw, at + 2).map_or(raw.len(), |(at, _)| at);
                continue;
            }
        }
        at += 2;
    }
    data.extend_from_slice(&raw[at..]);
    intervals.push(Interval { data: start..data.len(), restart });
    (data, intervals)
}
