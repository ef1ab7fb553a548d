//! Conversion of stored numbers to sample values: rescaled by the header's slope and intercept, and of a type that
//! samples have.

use std::io::{self, Read};

use half::f16;

use super::format::{Endian, Scale, Stored};
use crate::{data::dtype::Dtype, for_dtype};

/// The sample type of values stored as `stored`: the stored type, but a float type where values are rescaled, 64-bit
/// integers or 16-bit floats.
pub fn dtype(stored: Stored, scale: Option<Scale>) -> Dtype {
    match (stored, scale) {
        (Stored::F16, _) => Dtype::F32,
        (Stored::As(Dtype::U64 | Dtype::I64), _) => Dtype::F64,
        (Stored::As(own), None) => own,
        (Stored::As(own), Some(_)) => match own {
            Dtype::U32 | Dtype::I32 | Dtype::F64 => Dtype::F64,
            _ => Dtype::F32,
        },
    }
}

/// Reads stored numbers and fills `values`, the bytes of samples of type `to` (f32 or f64), with their rescaled values.
///
/// # Errors
/// What reading fails with.
#[allow(clippy::unnecessary_cast, reason = "one of the types is f64 itself")]
pub fn read(
    input: &mut impl Read,
    (stored, endian): (Stored, Endian),
    scale: Option<Scale>,
    to: Dtype,
    values: &mut [u8],
) -> io::Result<()> {
    const STEP: usize = 1 << 14;
    let mut numbers = [0; 8 * STEP];
    for values in values.chunks_mut(STEP * to.size()) {
        let count = values.len() / to.size();
        let numbers = &mut numbers[..count * stored.size()];
        input.read_exact(numbers)?;
        endian.make_native(numbers, stored.size());
        let numbers = &*numbers;
        let scaled = |number: f64| match scale {
            Some(Scale { slope, intercept }) => slope * number + intercept,
            None => number,
        };
        let mut put = |i: usize, value: f64| match to {
            Dtype::F32 => values[4 * i..4 * i + 4].copy_from_slice(&(value as f32).to_ne_bytes()),
            _ => values[8 * i..8 * i + 8].copy_from_slice(&value.to_ne_bytes()),
        };
        match stored {
            Stored::F16 => {
                for (i, bits) in numbers.as_chunks().0.iter().enumerate() {
                    put(i, scaled(f16::from_ne_bytes(*bits).into()));
                }
            }
            Stored::As(own) => for_dtype!(own, T in [u8 i8 u16 i16 u32 i32 u64 i64 f32 f64] => {
                for (i, bytes) in numbers.as_chunks().0.iter().enumerate() {
                    put(i, scaled(T::from_ne_bytes(*bytes) as f64));
                }
            }),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_type_becomes_values() {
        let scale = Some(Scale { slope: 0.5, intercept: -1.0 });
        let big = [0xff, 0xfe];
        let mut values = [0u8; 4];
        let i16_ = (Stored::As(Dtype::I16), Endian::Big);
        read(&mut &big[..], i16_, scale, Dtype::F32, &mut values).unwrap();
        assert_eq!(f32::from_ne_bytes(values), -2.0);
        let mut values = [0u8; 16];
        let numbers: Vec<u8> = [3u64, 1 << 53].iter().flat_map(|n| n.to_le_bytes()).collect();
        let u64_ = (Stored::As(Dtype::U64), Endian::Little);
        read(&mut &numbers[..], u64_, None, Dtype::F64, &mut values).unwrap();
        assert_eq!(values[..8], 3f64.to_ne_bytes());
        assert_eq!(values[8..], (2f64.powi(53)).to_ne_bytes());
        assert!(read(&mut &numbers[..9], u64_, None, Dtype::F64, &mut values).is_err());
        assert_eq!(dtype(Stored::As(Dtype::U16), None), Dtype::U16);
        assert_eq!(dtype(Stored::As(Dtype::U16), scale), Dtype::F32);
        assert_eq!(dtype(Stored::As(Dtype::I32), scale), Dtype::F64);
    }
}
