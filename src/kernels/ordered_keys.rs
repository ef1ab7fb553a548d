//! Floats as signed integers of the same order, so that filters that only compare samples work on integers.
//!
//! -0 is less than +0, and NaN is greater than all numbers. All kinds of NaN become the same NaN.

use crate::{
    data::{
        float_key::{f32_to_key, f64_to_key, key_to_f32, key_to_f64},
        samples::Samples,
    },
    util::{error::Result, parallel},
};

const SIGN_32: u32 = 1 << 31;
const SIGN_64: u64 = 1 << 63;

#[inline(always)]
fn ordered_f32(value: f32) -> i32 {
    (f32_to_key(if value.is_nan() { f32::NAN } else { value }) ^ SIGN_32) as i32
}

#[inline(always)]
fn ordered_f64(value: f64) -> i64 {
    (f64_to_key(if value.is_nan() { f64::NAN } else { value }) ^ SIGN_64) as i64
}

/// An integer type that filters compare.
pub trait Value: bytemuck::Pod + Ord + Send + Sync {
    /// The smallest value.
    const MIN: Self;
    /// The largest value.
    const MAX: Self;
}

macro_rules! values {
    ($($type:ident)+) => {
        $(impl Value for $type {
            const MIN: Self = Self::MIN;
            const MAX: Self = Self::MAX;
        })+
    };
}

values! { u8 i8 u16 i16 u32 i32 i64 }

/// A filter from integers to as many integers, of any type.
pub trait OrderFilter {
    /// The results for all values.
    ///
    /// # Errors
    /// Those of the filter.
    fn run<T: Value>(&self, values: &[T]) -> Result<Vec<T>>;
}

/// Runs `filter` on integer samples, and on the keys of floats.
///
/// # Errors
/// Those of the filter.
pub fn run_ordered(filter: &impl OrderFilter, samples: &Samples) -> Result<Samples> {
    Ok(match samples {
        Samples::U8(values) => Samples::U8(filter.run(values)?),
        Samples::I8(values) => Samples::I8(filter.run(values)?),
        Samples::U16(values) => Samples::U16(filter.run(values)?),
        Samples::I16(values) => Samples::I16(filter.run(values)?),
        Samples::U32(values) => Samples::U32(filter.run(values)?),
        Samples::I32(values) => Samples::I32(filter.run(values)?),
        Samples::F32(values) => {
            let keys = filter.run(&parallel::mapped(values, |&value| ordered_f32(value))?)?;
            Samples::F32(parallel::mapped(&keys, |&key| key_to_f32(key as u32 ^ SIGN_32))?)
        }
        Samples::F64(values) => {
            let keys = filter.run(&parallel::mapped(values, |&value| ordered_f64(value))?)?;
            Samples::F64(parallel::mapped(&keys, |&key| key_to_f64(key as u64 ^ SIGN_64))?)
        }
    })
}
