//! Attributes of a data set that a volume needs: tags, value representations (VR) and values.

use std::collections::BTreeMap;

use crate::{
    data::dtype::Dtype,
    io::volume::{
        convert,
        header::{Endian, StoredType},
    },
};

/// The tag of an attribute (PS3.6): its group in the high 16 bits, its element in the low 16.
pub type Tag = u32;

pub const SYNTAX: Tag = 0x0002_0010;
pub const IMAGE_TYPE: Tag = 0x0008_0008;
pub const INSTANCE_UID: Tag = 0x0008_0018;
pub const MODALITY: Tag = 0x0008_0060;
pub const DESCRIPTION: Tag = 0x0008_103e;
pub const THICKNESS: Tag = 0x0018_0050;
pub const ECHO: Tag = 0x0018_0086;
pub const BETWEEN: Tag = 0x0018_0088;
/// Frame Time and Frame Time Vector, to which the Frame Increment Pointer of frames at several times points.
pub const FRAME_TIMES: [Tag; 2] = [0x0018_1063, 0x0018_1065];
pub const IMAGER_SPACING: Tag = 0x0018_1164;
pub const ACQUISITION_MATRIX: Tag = 0x0018_1310;
/// Number of tiles in a mosaic of Siemens.
pub const TILES: Tag = 0x0019_100a;
pub const SERIES_UID: Tag = 0x0020_000e;
pub const SERIES_NUMBER: Tag = 0x0020_0011;
pub const ACQUISITION: Tag = 0x0020_0012;
pub const INSTANCE: Tag = 0x0020_0013;
pub const POSITION: Tag = 0x0020_0032;
pub const ORIENTATION: Tag = 0x0020_0037;
pub const TEMPORAL_POSITION: Tag = 0x0020_0100;
pub const TEMPORAL_INDEX: Tag = 0x0020_9128;
pub const DIMENSIONS: Tag = 0x0020_9157;
/// Position and orientation of an ultrasound volume, in its own coordinates.
pub const VOLUME_POSITION: Tag = 0x0020_9301;
pub const VOLUME_ORIENTATION: Tag = 0x0020_9302;
pub const SAMPLES: Tag = 0x0028_0002;
pub const PHOTOMETRIC: Tag = 0x0028_0004;
pub const PLANAR: Tag = 0x0028_0006;
pub const FRAMES: Tag = 0x0028_0008;
pub const INCREMENT: Tag = 0x0028_0009;
pub const ROWS: Tag = 0x0028_0010;
pub const COLUMNS: Tag = 0x0028_0011;
pub const SPACING: Tag = 0x0028_0030;
pub const ALLOCATED: Tag = 0x0028_0100;
pub const STORED: Tag = 0x0028_0101;
pub const HIGH_BIT: Tag = 0x0028_0102;
pub const SIGNED: Tag = 0x0028_0103;
pub const SMALLEST: Tag = 0x0028_0106;
pub const LARGEST: Tag = 0x0028_0107;
pub const PADDING: Tag = 0x0028_0120;
pub const INTERCEPT: Tag = 0x0028_1052;
pub const SLOPE: Tag = 0x0028_1053;
/// Descriptor of the tables of a palette: that of red. Those of green and blue are equal (PS3.3, C.7.6.3.1.5).
pub const PALETTE: Tag = 0x0028_1101;
/// Tables of red, green and blue.
pub const PALETTE_DATA: [Tag; 3] = [0x0028_1201, 0x0028_1202, 0x0028_1203];
/// The same, compressed.
pub const PALETTE_SEGMENTS: [Tag; 3] = [0x0028_1221, 0x0028_1222, 0x0028_1223];
pub const LUT: Tag = 0x0028_3000;
/// The image header of Siemens, of which [`csa::parse`](super::csa::parse) reads a few fields.
pub const CSA: Tag = 0x0029_1010;
pub const DETECTORS: Tag = 0x0054_0022;
pub const SLICE_VECTOR: Tag = 0x0054_0080;
pub const SEGMENTATION: Tag = 0x0062_0001;
pub const SEGMENTS: Tag = 0x0062_0002;
pub const SEGMENT_NUMBER: Tag = 0x0062_0004;
pub const SEGMENT_LABEL: Tag = 0x0062_0005;
/// The segment that a frame shows.
pub const SEGMENT: Tag = 0x0062_000b;
/// Number of tiles in a grid of UIH, and the sequence of their attributes.
pub const GRID_TILES: Tag = 0x0065_1050;
pub const GRID_FRAMES: Tag = 0x0065_1051;
pub const OFFSETS: Tag = 0x3004_000c;
pub const DOSE_SCALE: Tag = 0x3004_000e;
pub const SHARED: Tag = 0x5200_9229;
pub const PER_FRAME: Tag = 0x5200_9230;
/// Extended Offset Table.
pub const OFFSET_TABLE: Tag = 0x7fe0_0001;
pub const F32_PIXELS: Tag = 0x7fe0_0008;
pub const F64_PIXELS: Tag = 0x7fe0_0009;
pub const PIXELS: Tag = 0x7fe0_0010;
pub const ITEM: Tag = 0xfffe_e000;
pub const ITEM_END: Tag = 0xfffe_e00d;
pub const SEQUENCE_END: Tag = 0xfffe_e0dd;

/// The value representation of an attribute, which files of implicit VR do not state; `None` for attributes that are
/// skipped.
pub fn representation(tag: Tag) -> Option<[u8; 2]> {
    Some(*match tag {
        SYNTAX | SERIES_UID | INSTANCE_UID => b"UI",
        MODALITY | PHOTOMETRIC | IMAGE_TYPE | SEGMENTATION => b"CS",
        DESCRIPTION | SEGMENT_LABEL => b"LO",
        SERIES_NUMBER | ACQUISITION | INSTANCE | FRAMES | TEMPORAL_POSITION | ECHO => b"IS",
        THICKNESS | BETWEEN | IMAGER_SPACING | POSITION | ORIENTATION | SPACING | INTERCEPT
        | SLOPE | OFFSETS | DOSE_SCALE | GRID_TILES => b"DS",
        SAMPLES | PLANAR | ROWS | COLUMNS | ALLOCATED | STORED | HIGH_BIT | SIGNED | SMALLEST
        | LARGEST | PADDING | ACQUISITION_MATRIX | TILES | PALETTE | SLICE_VECTOR
        | SEGMENT_NUMBER | SEGMENT => b"US",
        DIMENSIONS | TEMPORAL_INDEX => b"UL",
        VOLUME_POSITION | VOLUME_ORIENTATION => b"FD",
        INCREMENT => b"AT",
        OFFSET_TABLE => b"OV",
        CSA => b"OB",
        _ if PALETTE_DATA.contains(&tag) || PALETTE_SEGMENTS.contains(&tag) => b"OW",
        LUT => b"SQ",
        _ => return None,
    })
}

/// An attribute's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text without padding at its ends.
    Text(String),
    /// Numbers, stored as text (DS, IS) or in binary.
    Numbers(Vec<f64>),
    /// Bytes, in the order of the file.
    Bytes(Vec<u8>),
}

/// Attributes by tag.
#[derive(Clone, Debug, Default)]
pub struct Attributes(pub BTreeMap<Tag, Value>);

impl Attributes {
    /// The text of an attribute; `None` if it is missing or empty.
    pub fn text(&self, tag: Tag) -> Option<&str> {
        match self.0.get(&tag)? {
            Value::Text(text) => Some(text.as_str()).filter(|text| !text.is_empty()),
            _ => None,
        }
    }

    /// All numbers of an attribute.
    pub fn numbers(&self, tag: Tag) -> Option<&[f64]> {
        match self.0.get(&tag)? {
            Value::Numbers(numbers) => Some(numbers),
            _ => None,
        }
    }

    /// The first number of an attribute.
    pub fn number(&self, tag: Tag) -> Option<f64> {
        self.numbers(tag)?.first().copied()
    }

    /// An attribute of exactly `N` numbers, all finite.
    pub fn vector<const N: usize>(&self, tag: Tag) -> Option<[f64; N]> {
        let numbers: [f64; N] = self.numbers(tag)?.try_into().ok()?;
        numbers.iter().all(|v| v.is_finite()).then_some(numbers)
    }

    /// The bytes of an attribute.
    pub fn bytes(&self, tag: Tag) -> Option<&[u8]> {
        match self.0.get(&tag)? {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Whether the data set has the attribute.
    pub fn has(&self, tag: Tag) -> bool {
        self.0.contains_key(&tag)
    }
}

/// Parses a value: numbers of binary VRs and of DS and IS, bytes of OB and OW, text of all others.
pub fn parse_value(bytes: &[u8], kind: [u8; 2], endian: Endian) -> Value {
    let dtype = match &kind {
        b"US" => Dtype::U16,
        b"SS" => Dtype::I16,
        b"UL" => Dtype::U32,
        b"SL" => Dtype::I32,
        b"FL" => Dtype::F32,
        b"FD" => Dtype::F64,
        b"OV" => Dtype::U64,
        b"OB" | b"OW" => return Value::Bytes(bytes.to_vec()),
        // A tag is two numbers of 16 bits.
        b"AT" => {
            let parts = parse_value(bytes, *b"US", endian);
            let Value::Numbers(parts) = parts else { return parts };
            let tags = parts.as_chunks().0.iter();
            return Value::Numbers(
                tags.map(|[group, element]| group * 65536.0 + element).collect(),
            );
        }
        _ => {
            let text = String::from_utf8_lossy(bytes);
            let text = text.trim_matches([' ', '\0']);
            return match &kind {
                b"DS" | b"IS" => Value::Numbers(
                    text.split('\\').map_while(|part| part.trim().parse().ok()).collect(),
                ),
                _ => Value::Text(text.to_owned()),
            };
        }
    };
    let mut numbers = vec![0.0; bytes.len() / dtype.size()];
    let values: &mut [u8] = bytemuck::cast_slice_mut(&mut numbers);
    convert::read(&mut &bytes[..], (StoredType::As(dtype), endian), None, Dtype::F64, values)
        .expect("the lengths match");
    Value::Numbers(numbers)
}
