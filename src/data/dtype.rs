//! Types of samples and of array numbers.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The type of one sample or number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// 64-bit unsigned integer.
    U64,
    /// 64-bit signed integer.
    I64,
    /// 32-bit IEEE 754 float.
    F32,
    /// 64-bit IEEE 754 float.
    F64,
}

impl Dtype {
    /// Every type.
    pub const ALL: [Self; 10] = [
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::U32,
        Self::I32,
        Self::U64,
        Self::I64,
        Self::F32,
        Self::F64,
    ];

    /// Types of the samples of images and volumes ([`Samples`](super::samples::Samples)).
    pub const SAMPLES: [Self; 8] =
        [Self::U8, Self::I8, Self::U16, Self::I16, Self::U32, Self::I32, Self::F32, Self::F64];

    /// Types of the numbers of arrays ([`Number`](super::number::Number)).
    pub const NUMBERS: [Self; 6] =
        [Self::U32, Self::I32, Self::F32, Self::U64, Self::I64, Self::F64];

    /// All spellings of the type, in lower case: Rust's, then NumPy's, then C's.
    fn spellings(self) -> &'static [&'static str] {
        match self {
            Self::U8 => &["u8", "uint8", "uchar", "byte", "ubyte"],
            Self::I8 => &["i8", "int8", "char", "schar"],
            Self::U16 => &["u16", "uint16", "ushort"],
            Self::I16 => &["i16", "int16", "short"],
            Self::U32 => &["u32", "uint32", "uint"],
            Self::I32 => &["i32", "int32", "int"],
            Self::U64 => &["u64", "uint64"],
            Self::I64 => &["i64", "int64"],
            Self::F32 => &["f32", "float32", "float"],
            Self::F64 => &["f64", "float64", "double"],
        }
    }

    /// The name in Rust and WGSL.
    pub fn name(self) -> &'static str {
        self.spellings()[0]
    }

    /// The name in NumPy.
    pub fn numpy_name(self) -> &'static str {
        self.spellings()[1]
    }

    /// The code in NumPy, without a byte order: `u2`, `f8`.
    pub fn numpy_code(self) -> String {
        let kind = match (self.is_float(), self.is_signed()) {
            (true, _) => 'f',
            (false, true) => 'i',
            (false, false) => 'u',
        };
        format!("{kind}{}", self.size())
    }

    /// The type of a NumPy code. A boolean, `b1`, is a byte.
    pub fn from_numpy(code: &str) -> Option<Self> {
        let code = if code == "b1" { "u1" } else { code };
        Self::ALL.into_iter().find(|dtype| dtype.numpy_code() == code)
    }

    /// Parses the name of one of the types `known`, in upper or lower case.
    pub fn parse_one_of(known: &[Self], text: &str) -> Result<Self, String> {
        let spelled = text.to_ascii_lowercase();
        let found = known.iter().find(|dtype| dtype.spellings().contains(&spelled.as_str()));
        found.copied().ok_or_else(|| {
            let names: Vec<_> = known.iter().map(|dtype| dtype.name()).collect();
            format!("expected one of {}", names.join(" "))
        })
    }

    /// Size in bytes.
    pub fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Whether this is a floating-point type.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Whether the type has negative values.
    pub fn is_signed(self) -> bool {
        !matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Dtype {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse_one_of(&Self::ALL, text)
    }
}

/// Evaluates an expression with `$T` as the Rust type of a [`Dtype`] that is one of those listed. For others, evaluates
/// the last expression:
/// `for_dtype!(dtype, T in [u32 f32] => size_of::<T>(), other => panic!("{other}"))`.
#[macro_export]
macro_rules! for_dtype {
    ($dtype:expr, $T:ident in [$($type:ident)+] => $body:expr $(, $other:pat => $otherwise:expr)?) => {
        match $dtype {
            $(<$type as $crate::data::dtype::Scalar>::DTYPE => {
                type $T = $type;
                $body
            })+
            $($other => $otherwise,)?
        }
    };
}

/// A Rust type with a [`Dtype`].
pub trait Scalar: bytemuck::Pod + Send + Sync {
    /// The [`Dtype`] of this type.
    const DTYPE: Dtype;
}

macro_rules! scalars {
    ($($type:ident $dtype:ident)+) => {
        $(impl Scalar for $type {
            const DTYPE: Dtype = Dtype::$dtype;
        })+
    };
}

scalars! { u8 U8 i8 I8 u16 U16 i16 I16 u32 U32 i32 I32 u64 U64 i64 I64 f32 F32 f64 F64 }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_reads_back_its_own_name_and_size() {
        for dtype in Dtype::ALL {
            assert_eq!(dtype.name().to_uppercase().parse(), Ok(dtype));
            for_dtype!(dtype, T in [u8 i8 u16 i16 u32 i32 u64 i64 f32 f64] => {
                assert_eq!((T::DTYPE, size_of::<T>()), (dtype, dtype.size()));
                assert_eq!(T::DTYPE.name(), std::any::type_name::<T>());
                assert_eq!(T::DTYPE.is_signed(), -1.0 as T != 0 as T);
                assert_eq!(T::DTYPE.is_float(), 0.5 as T != 0 as T);
            });
        }
        assert_eq!(Dtype::parse_one_of(&[Dtype::U8], "u7"), Err("expected one of u8".to_owned()));
        assert!(Dtype::parse_one_of(&Dtype::NUMBERS, "u16").is_err());
        assert!(Dtype::parse_one_of(&Dtype::SAMPLES, "u64").is_err());
    }
}
