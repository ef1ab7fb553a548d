//! Numbers that arrays hold: the types that `scan` and `sort` know.

use std::{
    fmt::{Debug, Display},
    str::FromStr,
};

/// The type of an array's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NumberType {
    /// 32-bit unsigned integer.
    U32,
    /// 32-bit signed integer.
    I32,
    /// 32-bit IEEE 754 float.
    F32,
    /// 64-bit unsigned integer.
    U64,
    /// 64-bit signed integer.
    I64,
    /// 64-bit IEEE 754 float.
    F64,
}

impl NumberType {
    /// Every type.
    pub const ALL: [Self; 6] = [Self::U32, Self::I32, Self::F32, Self::U64, Self::I64, Self::F64];

    /// Bytes a number.
    pub fn size(self) -> usize {
        match self {
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Whether it has negative numbers.
    pub fn is_signed(self) -> bool {
        !matches!(self, Self::U32 | Self::U64)
    }

    /// Its name, as Rust and WGSL call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F64 => "f64",
        }
    }
}

impl Display for NumberType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for NumberType {
    type Err = String;

    /// Rust's, C's and NumPy's spellings.
    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "u32" | "uint32" | "uint" => Self::U32,
            "i32" | "int32" | "int" => Self::I32,
            "f32" | "float32" | "float" => Self::F32,
            "u64" | "uint64" => Self::U64,
            "i64" | "int64" => Self::I64,
            "f64" | "float64" | "double" => Self::F64,
            _ => return Err(format!("`{text}` is none of u32 i32 f32 u64 i64 f64")),
        })
    }
}

/// A Rust type that is one of [`NumberType`].
pub trait Number:
    bytemuck::Pod
    + Debug
    + Default
    + Display
    + FromStr<Err: Display>
    + PartialEq
    + PartialOrd
    + Send
    + Sync
{
    /// Which one.
    const TYPE: NumberType;
    /// One.
    const ONE: Self;
    /// The number nearest to a small integer; negative ones wrap around where there are none.
    fn from_small(integer: i32) -> Self;
    /// The nearest number; integers end at the bounds of the type.
    fn from_f64(value: f64) -> Self;
}

macro_rules! numbers {
    ($($type:ident $number:ident $one:literal;)+) => {
        $(impl Number for $type {
            const TYPE: NumberType = NumberType::$number;
            const ONE: Self = $one;
            fn from_small(integer: i32) -> Self {
                integer as Self
            }
            fn from_f64(value: f64) -> Self {
                value as Self
            }
        })+
    };
}

numbers! {
    u32 U32 1;
    i32 I32 1;
    f32 F32 1.0;
    u64 U64 1;
    i64 I64 1;
    f64 F64 1.0;
}

/// Evaluates an expression with `$T` naming the Rust type of a [`NumberType`].
#[macro_export]
macro_rules! for_number {
    ($number:expr, $T:ident => $body:expr) => {
        match $number {
            $crate::data::number::NumberType::U32 => {
                type $T = u32;
                $body
            }
            $crate::data::number::NumberType::I32 => {
                type $T = i32;
                $body
            }
            $crate::data::number::NumberType::F32 => {
                type $T = f32;
                $body
            }
            $crate::data::number::NumberType::U64 => {
                type $T = u64;
                $body
            }
            $crate::data::number::NumberType::I64 => {
                type $T = i64;
                $body
            }
            $crate::data::number::NumberType::F64 => {
                type $T = f64;
                $body
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_reads_back_its_own_name_and_size() {
        for number in NumberType::ALL {
            assert_eq!(number.name().parse(), Ok(number));
            for_number!(number, T => {
                assert_eq!((T::TYPE, size_of::<T>()), (number, number.size()));
            });
        }
        assert!("u16".parse::<NumberType>().is_err());
    }
}
