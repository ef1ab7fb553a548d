//! Numeric types of samples and of arrays.

use std::fmt::{Debug, Display, LowerExp};
use std::str::FromStr;

use super::dtype::Scalar;

/// A numeric type of samples or of arrays.
pub trait Number:
    Scalar + Debug + Default + Display + LowerExp + FromStr<Err: Display> + PartialEq + PartialOrd
{
    /// One.
    const ONE: Self;
    /// The number nearest to a small integer. Negative integers wrap around in unsigned types.
    fn from_small(integer: i32) -> Self;
    /// The nearest number; integers saturate at the bounds of the type.
    fn from_f64(value: f64) -> Self;
}

macro_rules! numbers {
    ($($type:ident)+) => {
        $(impl Number for $type {
            const ONE: Self = 1 as Self;
            fn from_small(integer: i32) -> Self {
                integer as Self
            }
            fn from_f64(value: f64) -> Self {
                value as Self
            }
        })+
    };
}

numbers! { u8 i8 u16 i16 u32 i32 f32 u64 i64 f64 }

/// Evaluates an expression with `$T` as the Rust type of a [`Dtype`](crate::data::dtype::Dtype) out of
/// [`Dtype::NUMBERS`](crate::data::dtype::Dtype::NUMBERS). Panics for other types, which no array has.
#[macro_export]
macro_rules! for_number {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::for_dtype!($dtype, $T in [u32 i32 f32 u64 i64 f64] => $body,
            other => unreachable!("arrays hold no {other}"))
    };
}
