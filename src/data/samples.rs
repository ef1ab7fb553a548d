//! Sample values of any supported type in one flat vector, as images and volumes hold them.

use std::{fmt, str::FromStr};

use crate::error::Result;

/// The type of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// 8-bit unsigned integer.
    U8,
    /// 8-bit signed integer.
    I8,
    /// 16-bit unsigned integer.
    U16,
    /// 16-bit signed integer.
    I16,
    /// 32-bit unsigned integer.
    U32,
    /// 32-bit signed integer.
    I32,
    /// 32-bit IEEE 754 float.
    F32,
    /// 64-bit IEEE 754 float.
    F64,
}

impl Dtype {
    /// Bytes a sample.
    pub fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::F64 => "f64",
        })
    }
}

impl FromStr for Dtype {
    type Err = String;

    /// Every spelling in common use: Rust's, C's and NumPy's.
    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "u8" | "uint8" | "uchar" | "byte" | "ubyte" => Self::U8,
            "i8" | "int8" | "char" | "schar" => Self::I8,
            "u16" | "uint16" | "ushort" => Self::U16,
            "i16" | "int16" | "short" => Self::I16,
            "u32" | "uint32" | "uint" => Self::U32,
            "i32" | "int32" | "int" => Self::I32,
            "f32" | "float32" | "float" => Self::F32,
            "f64" | "float64" | "double" => Self::F64,
            _ => return Err(format!("`{text}` is none of u8 i8 u16 i16 u32 i32 f32 f64")),
        })
    }
}

/// A flat vector of samples of one [`Dtype`].
#[derive(Clone, Debug, PartialEq)]
pub enum Samples {
    /// 8-bit unsigned samples.
    U8(Vec<u8>),
    /// 8-bit signed samples.
    I8(Vec<i8>),
    /// 16-bit unsigned samples.
    U16(Vec<u16>),
    /// 16-bit signed samples.
    I16(Vec<i16>),
    /// 32-bit unsigned samples.
    U32(Vec<u32>),
    /// 32-bit signed samples.
    I32(Vec<i32>),
    /// 32-bit float samples.
    F32(Vec<f32>),
    /// 64-bit float samples.
    F64(Vec<f64>),
}

/// Runs one expression on the vector inside a [`Samples`], whatever its type.
#[macro_export]
macro_rules! for_samples {
    ($samples:expr, $values:ident => $body:expr) => {
        match $samples {
            $crate::data::samples::Samples::U8($values) => $body,
            $crate::data::samples::Samples::I8($values) => $body,
            $crate::data::samples::Samples::U16($values) => $body,
            $crate::data::samples::Samples::I16($values) => $body,
            $crate::data::samples::Samples::U32($values) => $body,
            $crate::data::samples::Samples::I32($values) => $body,
            $crate::data::samples::Samples::F32($values) => $body,
            $crate::data::samples::Samples::F64($values) => $body,
        }
    };
}

impl Samples {
    /// A copy.
    ///
    /// # Errors
    /// When the memory is not there.
    pub fn copy(&self) -> Result<Self> {
        let mut copy = Self::zeros(self.dtype(), self.len())?;
        copy.as_bytes_mut().copy_from_slice(self.as_bytes());
        Ok(copy)
    }

    /// `len` zeros of type `dtype`.
    ///
    /// # Errors
    /// When the memory is not there.
    pub fn zeros(dtype: Dtype, len: usize) -> Result<Self> {
        use crate::memory::zeros;
        Ok(match dtype {
            Dtype::U8 => Self::U8(zeros(len)?),
            Dtype::I8 => Self::I8(zeros(len)?),
            Dtype::U16 => Self::U16(zeros(len)?),
            Dtype::I16 => Self::I16(zeros(len)?),
            Dtype::U32 => Self::U32(zeros(len)?),
            Dtype::I32 => Self::I32(zeros(len)?),
            Dtype::F32 => Self::F32(zeros(len)?),
            Dtype::F64 => Self::F64(zeros(len)?),
        })
    }

    /// The samples' type.
    pub fn dtype(&self) -> Dtype {
        match self {
            Self::U8(_) => Dtype::U8,
            Self::I8(_) => Dtype::I8,
            Self::U16(_) => Dtype::U16,
            Self::I16(_) => Dtype::I16,
            Self::U32(_) => Dtype::U32,
            Self::I32(_) => Dtype::I32,
            Self::F32(_) => Dtype::F32,
            Self::F64(_) => Dtype::F64,
        }
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        for_samples!(self, values => values.len())
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of the samples `range`.
    ///
    /// # Panics
    /// When the range leaves the samples.
    pub fn part(&self, range: std::ops::Range<usize>) -> Self {
        match self {
            Self::U8(values) => Self::U8(values[range].to_vec()),
            Self::I8(values) => Self::I8(values[range].to_vec()),
            Self::U16(values) => Self::U16(values[range].to_vec()),
            Self::I16(values) => Self::I16(values[range].to_vec()),
            Self::U32(values) => Self::U32(values[range].to_vec()),
            Self::I32(values) => Self::I32(values[range].to_vec()),
            Self::F32(values) => Self::F32(values[range].to_vec()),
            Self::F64(values) => Self::F64(values[range].to_vec()),
        }
    }

    /// The samples as bytes in the machine's order.
    pub fn as_bytes(&self) -> &[u8] {
        for_samples!(self, values => bytemuck::cast_slice(values))
    }

    /// The samples as bytes in the machine's order, to be filled.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        for_samples!(self, values => bytemuck::cast_slice_mut(values))
    }

    /// Turns every sample's bytes around, between big and little endian.
    pub fn swap_bytes(&mut self) {
        match self.dtype().size() {
            1 => {}
            size => self.as_bytes_mut().chunks_exact_mut(size).for_each(<[u8]>::reverse),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_reads_back_its_own_name() {
        for name in ["u8", "i8", "u16", "i16", "u32", "i32", "f32", "f64"] {
            let dtype: Dtype = name.parse().unwrap();
            assert_eq!(dtype.to_string(), name);
            let samples = Samples::zeros(dtype, 3).unwrap();
            assert_eq!((samples.dtype(), samples.as_bytes().len()), (dtype, 3 * dtype.size()));
        }
        assert!("u7".parse::<Dtype>().is_err());
    }

    #[test]
    fn bytes_turn_around() {
        let mut samples = Samples::U16(vec![0x0102, 0xff00]);
        samples.swap_bytes();
        assert_eq!(samples, Samples::U16(vec![0x0201, 0x00ff]));
    }
}
