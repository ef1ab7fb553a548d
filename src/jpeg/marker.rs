//! The marker syntax of JPEG (ITU-T T.81, annex B): segments, and entropy-coded data between restart markers.

use std::ops::Range;

use crate::util::memory::{self, raise};

/// Second bytes of markers (T.81, table B.1).
pub const TEM: u8 = 0x01;
/// The last of the reserved markers.
pub const RES_LAST: u8 = 0xbf;
pub const SOF0: u8 = 0xc0;
pub const SOF1: u8 = 0xc1;
pub const SOF2: u8 = 0xc2;
pub const SOF3: u8 = 0xc3;
pub const DHT: u8 = 0xc4;
pub const JPG: u8 = 0xc8;
pub const SOF9: u8 = 0xc9;
pub const DAC: u8 = 0xcc;
pub const SOF15: u8 = 0xcf;
pub const RST0: u8 = 0xd0;
pub const RST7: u8 = 0xd7;
pub const SOI: u8 = 0xd8;
pub const EOI: u8 = 0xd9;
pub const SOS: u8 = 0xda;
pub const DQT: u8 = 0xdb;
pub const DNL: u8 = 0xdc;
pub const DRI: u8 = 0xdd;
pub const APP0: u8 = 0xe0;
pub const APP1: u8 = 0xe1;
pub const APP2: u8 = 0xe2;
pub const APP8: u8 = 0xe8;
pub const APP13: u8 = 0xed;
pub const APP14: u8 = 0xee;
/// Start of frame of JPEG-LS (T.87), and its preset parameters.
pub const SOF55: u8 = 0xf7;
pub const LSE: u8 = 0xf8;
pub const COM: u8 = 0xfe;

/// An iterator over the marker segments of a file. As in libjpeg, bytes where a marker is expected are skipped up to
/// the next marker.
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
        bytes.starts_with(&[0xff, SOI]).then_some(Self { bytes, at: 2, stray: 0 })
    }

    /// Skips the data of a scan, and returns their range: up to a marker other than a restart, or the end of the file.
    /// With restarts, a reserved marker, which no file should contain, only ends the data up to the next restart.
    pub fn scan_data(&mut self, has_restarts: bool) -> Range<usize> {
        let start = self.at;
        while let Some((found, marker)) = next_marker(self.bytes, self.at) {
            match marker {
                RST0..=RST7 => {}
                ..=RES_LAST if has_restarts => {}
                _ => {
                    self.at = found;
                    return start..found;
                }
            }
            self.at = found + 2;
        }
        self.at = self.bytes.len();
        start..self.at
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
        if marker <= RES_LAST || (RST0..=EOI).contains(&marker) {
            return Some((marker, Some(&[])));
        }
        let rest = &self.bytes[self.at..];
        let len = rest.first_chunk().map_or(0, |len| usize::from(u16::from_be_bytes(*len))).max(2);
        self.at = (self.at + len).min(self.bytes.len());
        Some((marker, rest.get(2..len)))
    }
}

/// Offset and second byte of the next marker from `start` on: 0xff followed by a byte other than 0 (stuffing) and 0xff
/// (fill byte).
fn next_marker(bytes: &[u8], start: usize) -> Option<(usize, u8)> {
    let is_marker = |pair: &[u8]| pair[0] == 0xff && !matches!(pair[1], 0 | 0xff);
    let at = start + bytes.get(start..)?.windows(2).position(is_marker)?;
    Some((at, bytes[at + 1]))
}

/// A restart interval: entropy-coded data between restart markers.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Range in the unstuffed data of the scan.
    pub data: Range<usize>,
    /// The number, 0 to 7, of the restart marker before the interval; `None` for the first one.
    pub restart: Option<u8>,
}

/// The data of a scan without the 0 that is stuffed after each 0xff (B.1.1.5), and its restart intervals.
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
            Some(&number @ RST0..=RST7) => {
                intervals.push(Interval { data: start..data.len(), restart });
                (start, restart) = (data.len(), Some(number - RST0));
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
