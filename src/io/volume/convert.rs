//! Conversion of stored numbers to sample values.

use std::io::{self, Read};

use half::f16;

use super::header::{Endian, Scale, StoredType};
use crate::{
    data::dtype::{Dtype, Scalar},
    for_dtype,
};

/// Reads stored numbers and fills `values`, the bytes of samples of type `to`, with their rescaled values.
#[allow(clippy::unnecessary_cast, reason = "one of the types is f64 itself")]
pub fn read(
    input: &mut impl Read,
    (stored, endian): (StoredType, Endian),
    scale: Option<Scale>,
    to: Dtype,
    values: &mut [u8],
) -> io::Result<()> {
    const STEP: usize = 1 << 12;
    let (mut bytes, mut numbers) = ([0; 8 * STEP], [0.0; STEP]);
    for values in values.chunks_mut(STEP * to.size()) {
        let numbers = &mut numbers[..values.len() / to.size()];
        let bytes = &mut bytes[..numbers.len() * stored.size()];
        input.read_exact(bytes)?;
        endian.to_native(bytes, stored.size());
        let pairs = numbers.iter_mut();
        match stored {
            StoredType::F16 => pairs
                .zip(bytes.as_chunks().0)
                .for_each(|(number, bytes)| *number = f16::from_ne_bytes(*bytes).into()),
            StoredType::As(own) => {
                for_dtype!(own, T in [u8 i8 u16 i16 u32 i32 u64 i64 f32 f64] => {
                    pairs
                        .zip(bytes.as_chunks().0)
                        .for_each(|(number, bytes)| *number = T::from_ne_bytes(*bytes) as f64);
                });
            }
        }
        rescale(numbers.iter().copied(), scale, to, values);
    }
    Ok(())
}

/// Rescales numbers to values of type `to`. Returns whether none was clipped to the range of an integer type.
#[allow(clippy::unnecessary_cast, reason = "one of the types is f64 itself")]
pub fn rescale(
    numbers: impl Iterator<Item = f64>,
    scale: Option<Scale>,
    to: Dtype,
    values: &mut [u8],
) -> bool {
    let mut fits = true;
    for_dtype!(to, T in [u8 i8 u16 i16 u32 i32 f32 f64] => {
        let values = values.chunks_exact_mut(size_of::<T>());
        for (value, number) in values.zip(numbers) {
            let number = scale.map_or(number, |Scale { slope, intercept }| slope * number + intercept);
            let stored = number as T;
            fits &= stored as f64 == number || T::DTYPE.is_float();
            value.copy_from_slice(&stored.to_ne_bytes());
        }
    }, _ => unreachable!("not a sample type"));
    fits
}
