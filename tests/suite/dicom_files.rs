//! DICOM files that tests build attribute by attribute: explicit VR, little-endian.

use std::{collections::BTreeMap, fs, path::Path};

/// Attributes of a data set or of an item in a sequence, by tag.
#[derive(Clone, Default)]
pub struct Attributes(BTreeMap<u32, Vec<u8>>);

/// The transfer syntax of uncompressed pixels.
pub const PLAIN: &str = "1.2.840.10008.1.2.1";
pub const JPEG_LS: &str = "1.2.840.10008.1.2.4.80";

fn element(tag: u32, kind: &[u8; 2], value: &[u8], is_fragmented: bool) -> Vec<u8> {
    let tag = [(tag >> 16) as u16, tag as u16].map(u16::to_le_bytes).concat();
    let padding = if kind == b"UI" || kind[0] == b'O' { 0 } else { b' ' };
    let value = [value, &vec![padding; value.len() % 2]].concat();
    let len = if is_fragmented { u32::MAX } else { value.len() as u32 };
    let len = match kind {
        b"OB" | b"OW" | b"OV" | b"SQ" | b"UN" => [&[0, 0][..], &len.to_le_bytes()].concat(),
        _ => (len as u16).to_le_bytes().to_vec(),
    };
    [&tag[..], kind, &len, &value].concat()
}

fn item(value: &[u8]) -> Vec<u8> {
    [&[0xfe, 0xff, 0, 0xe0][..], &(value.len() as u32).to_le_bytes(), value].concat()
}

impl Attributes {
    /// The attributes of a grey picture in the series `1.2.3.4`.
    pub fn picture([columns, rows]: [u16; 2], bits: u16) -> Self {
        Self::default()
            .text(0x0020_000e, b"UI", "1.2.3.4")
            .numbers(0x0028_0002, &[1])
            .text(0x0028_0004, b"CS", "MONOCHROME2")
            .numbers(0x0028_0010, &[rows])
            .numbers(0x0028_0011, &[columns])
            .numbers(0x0028_0100, &[bits])
            .numbers(0x0028_0101, &[bits])
            .numbers(0x0028_0102, &[bits - 1])
            .numbers(0x0028_0103, &[0])
    }

    /// Adds position and spacing of pixels; rows run along x, columns along y.
    pub fn placed(self, first: [f64; 3], spacing: [f64; 2]) -> Self {
        self.decimals(0x0020_0032, &first)
            .decimals(0x0020_0037, &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0])
            .decimals(0x0028_0030, &spacing)
    }

    pub fn bytes(mut self, tag: u32, kind: &[u8; 2], value: &[u8]) -> Self {
        self.0.insert(tag, element(tag, kind, value, false));
        self
    }

    pub fn text(self, tag: u32, kind: &[u8; 2], value: &str) -> Self {
        self.bytes(tag, kind, value.as_bytes())
    }

    pub fn numbers(self, tag: u32, values: &[u16]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.bytes(tag, b"US", &bytes)
    }

    pub fn longs(self, tag: u32, values: &[u32]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.bytes(tag, b"UL", &bytes)
    }

    pub fn decimals(self, tag: u32, values: &[f64]) -> Self {
        let values: Vec<String> = values.iter().map(f64::to_string).collect();
        self.text(tag, b"DS", &values.join("\\"))
    }

    pub fn sequence(self, tag: u32, items: &[Self]) -> Self {
        let items: Vec<u8> = items.iter().flat_map(|all| item(&all.encoded())).collect();
        self.bytes(tag, b"SQ", &items)
    }

    /// Adds the pixels.
    pub fn pixels(self, bytes: &[u8]) -> Self {
        self.bytes(0x7fe0_0010, b"OW", bytes)
    }

    /// Adds pixels of 16 bits.
    pub fn words(self, samples: &[u16]) -> Self {
        let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        self.pixels(&bytes)
    }

    /// Adds compressed pixels with a Basic Offset Table.
    pub fn fragments(mut self, table: &[u32], fragments: &[&[u8]]) -> Self {
        let table: Vec<u8> = table.iter().flat_map(|offset| offset.to_le_bytes()).collect();
        let mut value = item(&table);
        for fragment in fragments {
            value.extend(item(&[fragment, &vec![0; fragment.len() % 2][..]].concat()));
        }
        value.extend([0xfe, 0xff, 0xdd, 0xe0, 0, 0, 0, 0]);
        self.0.insert(0x7fe0_0010, element(0x7fe0_0010, b"OB", &value, true));
        self
    }

    fn encoded(&self) -> Vec<u8> {
        self.0.values().flatten().copied().collect()
    }

    /// Writes a file of the transfer syntax `syntax`.
    pub fn write(&self, path: impl AsRef<Path>, syntax: &str) {
        let syntax = element(0x0002_0010, b"UI", syntax.as_bytes(), false);
        let len = element(0x0002_0000, b"UL", &(syntax.len() as u32).to_le_bytes(), false);
        let bytes = [&[0; 128][..], b"DICM", &len, &syntax, &self.encoded()].concat();
        fs::write(path, bytes).unwrap();
    }
}

/// An image header of Siemens with fields of numbers, in the newer or the older form.
pub fn siemens_header(fields: &[(&str, &[&str])], is_new: bool) -> Vec<u8> {
    let number = |n: usize| (n as u32).to_le_bytes();
    let mut bytes = if is_new { b"SV10\x04\x03\x02\x01".to_vec() } else { Vec::new() };
    bytes.extend([number(fields.len()), number(77)].concat());
    for (name, values) in fields {
        let mut name = name.as_bytes().to_vec();
        name.resize(64, 0);
        // There are at least six items, the rest of which are empty.
        let items = values.len().max(6);
        bytes.extend(name);
        bytes.extend(
            [number(values.len()), *b"FD\0\0", number(4), number(items), number(77)].concat(),
        );
        for i in 0..items {
            let text = values.get(i).map_or(Vec::new(), |value| format!("{value}\0").into_bytes());
            let len = text.len();
            let first = if is_new { len } else { len + 6 };
            bytes.extend([number(first), number(len), number(77), number(len)].concat());
            bytes.extend(&text);
            bytes.extend(vec![0; len.next_multiple_of(4) - len]);
        }
    }
    bytes
}
