//! The binary fields of NIfTI headers.

use crate::{
    data::{
        dtype::Dtype,
        placement::{Placement, Space},
    },
    io::volume::{
        fields::BinaryFields,
        header::{BoxError, Endian, StoredType},
        rotation::rotation,
    },
};

/// Bytes of the header of version 1 and of version 2.
pub const SIZE_1: u32 = 348;
pub const SIZE_2: u32 = 540;
/// Units of length by their codes.
pub const UNITS: [Option<&str>; 8] =
    [None, Some("m"), Some("mm"), Some("um"), None, None, None, None];
/// Sample types and their codes.
pub const TYPES: [(i16, Dtype); 10] = [
    (2, Dtype::U8),
    (4, Dtype::I16),
    (8, Dtype::I32),
    (16, Dtype::F32),
    (64, Dtype::F64),
    (256, Dtype::I8),
    (512, Dtype::U16),
    (768, Dtype::U32),
    (1024, Dtype::I64),
    (1280, Dtype::U64),
];

/// Codes of the types of colours of 8 bits, and the number of colours.
const COLORS: [(i16, usize); 2] = [(128, 3), (2304, 4)];

/// The code of samples of a number of colours of a type.
pub fn color_type(dtype: Dtype, colors: usize) -> Option<i16> {
    let found = COLORS.iter().find(|(_, count)| *count == colors && dtype == Dtype::U8);
    found.map(|(code, _)| *code)
}

/// The offsets of a field in version 1 and in version 2.
pub type Field = [usize; 2];
pub const MAGIC: Field = [344, 4];
pub const DIM: Field = [40, 16];
pub const INTENT_CODE: Field = [68, 504];
pub const DATATYPE: Field = [70, 12];
pub const BITS: Field = [72, 14];
pub const PIXDIM: Field = [76, 104];
pub const OFFSET: Field = [108, 168];
pub const SLOPE: Field = [112, 176];
pub const INTERCEPT: Field = [116, 184];
pub const UNIT: Field = [123, 500];
pub const QFORM: Field = [252, 344];
pub const SFORM: Field = [254, 348];
/// Quaternion b, c, d, then the offset.
pub const QUATERNION: Field = [256, 352];
/// The rows of the sform.
pub const ROWS: Field = [280, 400];
pub const DESCRIPTION: Field = [148, 240];
pub const AUXILIARY: Field = [228, 320];
pub const INTENT_NAME: Field = [328, 508];
pub const DIM_INFO: Field = [39, 524];
/// Three floats.
pub const INTENT_PARAMETERS: Field = [56, 80];
pub const SLICE_START: Field = [74, 224];
pub const SLICE_END: Field = [120, 232];
pub const SLICE_CODE: Field = [122, 496];
/// `cal_max` and `cal_min`.
pub const DISPLAY_RANGE: [Field; 2] = [[124, 192], [128, 200]];
pub const SLICE_DURATION: Field = [132, 208];
pub const TIME_OFFSET: Field = [136, 216];

/// The fields of a header of version 1, or of version 2.
pub struct Fields<'a> {
    pub bytes: BinaryFields<'a>,
    pub is_version_2: bool,
}

impl<'a> Fields<'a> {
    /// The fields of the header `bytes`; `None` if they do not begin with the size of one.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let size = *bytes.first_chunk()?;
        let (endian, size) = match [u32::from_le_bytes(size), u32::from_be_bytes(size)] {
            [size @ (SIZE_1 | SIZE_2), _] => (Endian::Little, size),
            [_, size @ (SIZE_1 | SIZE_2)] => (Endian::Big, size),
            _ => return None,
        };
        Some(Self { bytes: BinaryFields { bytes, endian }, is_version_2: size == SIZE_2 })
    }

    fn offset(&self, field: Field) -> usize {
        field[usize::from(self.is_version_2)]
    }

    pub fn text(&self, field: Field, len: usize) -> String {
        self.bytes.text(self.offset(field), len)
    }

    /// The `len` bytes of a field.
    pub fn raw(&self, field: Field, len: usize) -> &[u8] {
        &self.bytes.bytes[self.offset(field)..][..len]
    }

    pub fn intent_parameters(&self) -> [f64; 3] {
        std::array::from_fn(|i| self.real(INTENT_PARAMETERS, i))
    }

    pub fn int(&self, field: Field) -> i32 {
        if self.is_version_2 { self.bytes.i32(field[1]) } else { self.bytes.i16(field[0]).into() }
    }

    /// The number `i` of a field of floats.
    pub fn real(&self, field: Field, i: usize) -> f64 {
        match self.is_version_2 {
            true => self.bytes.f64(field[1] + 8 * i),
            false => self.bytes.f32(field[0] + 4 * i),
        }
    }

    /// The number `i` of a field of sizes.
    pub fn size(&self, field: Field, i: usize) -> i64 {
        match self.is_version_2 {
            true => self.bytes.i64(field[1] + 8 * i),
            false => self.bytes.i16(field[0] + 2 * i).into(),
        }
    }

    /// A field of one byte in version 1.
    pub fn code(&self, field: Field) -> i32 {
        if self.is_version_2 { self.bytes.i32(field[1]) } else { self.bytes.bytes[field[0]].into() }
    }

    /// The size of an axis, counted from 1; 1 for those that the header does not count.
    pub fn dim(&self, axis: usize) -> i64 {
        if axis as i64 <= self.size(DIM, 0) { self.size(DIM, axis) } else { 1 }
    }

    /// Offset of the samples.
    pub fn sample_offset(&self) -> f64 {
        if self.is_version_2 { self.bytes.i64(OFFSET[1]) as f64 } else { self.bytes.f32(OFFSET[0]) }
    }

    /// The type of a stored number, and how many a sample has.
    pub fn stored(&self) -> Result<(StoredType, usize), BoxError> {
        let datatype = self.bytes.i16(self.offset(DATATYPE));
        if let Some((_, dtype)) = TYPES.iter().find(|(code, _)| *code == datatype) {
            return Ok((StoredType::As(*dtype), 1));
        }
        if let Some((_, colors)) = COLORS.iter().find(|(code, _)| *code == datatype) {
            return Ok((StoredType::As(Dtype::U8), *colors));
        }
        let kind = match datatype {
            1 => "single bits",
            32 | 1792 | 2048 => "complex numbers",
            1536 => "128-bit floats",
            other => return Err(format!("unknown sample type {other}").into()),
        };
        Err(format!("{kind} are not supported").into())
    }

    fn unit(&self) -> Option<String> {
        UNITS[(self.code(UNIT) & 7) as usize].map(str::to_owned)
    }

    /// The map in use: the sform, else the qform, else `pixdim` alone.
    pub fn placement(&self) -> Placement {
        let unit = self.unit();
        if self.int(SFORM) > 0 {
            let row = |i: usize| std::array::from_fn(|axis| self.real(ROWS, 4 * i + axis));
            let rows: [[f64; 4]; 3] = std::array::from_fn(row);
            return Placement {
                steps: std::array::from_fn(|axis| rows.map(|row| row[axis])),
                first: rows.map(|row| row[3]),
                space: Some(Space::Ras),
                unit,
            };
        }
        if self.int(QFORM) <= 0 {
            return Placement { unit, ..Placement::axis_aligned(self.spacing(), [0.0; 3]) };
        }
        self.qform()
    }

    fn spacing(&self) -> [f64; 3] {
        [1, 2, 3].map(|axis| match self.real(PIXDIM, axis).abs() {
            0.0 => 1.0,
            size => size,
        })
    }

    /// The map of `pixdim` and the quaternion, whatever its code.
    pub fn qform(&self) -> Placement {
        let [b, c, d, x, y, z] = std::array::from_fn(|i| self.real(QUATERNION, i));
        let rotation = rotation([b, c, d]);
        let handedness = if self.real(PIXDIM, 0) < 0.0 { -1.0 } else { 1.0 };
        let spacing = self.spacing();
        let spacing = [spacing[0], spacing[1], handedness * spacing[2]];
        let steps = std::array::from_fn(|axis| rotation.map(|row| row[axis] * spacing[axis]));
        Placement { steps, first: [x, y, z], space: Some(Space::Ras), unit: self.unit() }
    }
}
