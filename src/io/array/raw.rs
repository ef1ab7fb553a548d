//! Binary numbers: a raw file, or a `.npy` file after its header.

use std::io::{self, Read};

use half::f16;

use crate::{
    data::{dtype::Dtype, number::Number},
    io::source::read_full,
    util::memory,
};

/// Storage of a number. Integers of 8 and 16 bits are widened to 32 bits when read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// The type in the file; f32 for 16-bit floats.
    pub stored: Dtype,
    /// Whether the most significant byte comes first in the file.
    pub is_big_endian: bool,
    /// Whether the numbers are booleans of NumPy, bytes that are 0 or 1.
    pub is_bool: bool,
    /// Whether the numbers are 16-bit floats, which become f32.
    pub is_f16: bool,
}

impl From<Dtype> for Element {
    fn from(stored: Dtype) -> Self {
        Self { stored, is_big_endian: false, is_bool: false, is_f16: false }
    }
}

impl Element {
    /// Parses NumPy's type description, such as `<f4`.
    pub fn from_descr(descr: &str) -> Option<Self> {
        let (order, name) = descr.split_at_checked(1)?;
        let is_f16 = name == "f2";
        let stored = if is_f16 { Dtype::F32 } else { Dtype::from_numpy(name)? };
        let is_big_endian = match order {
            "<" | "|" | "=" => false,
            ">" => true,
            _ => return None,
        };
        Some(Self { stored, is_big_endian, is_bool: name == "b1", is_f16 })
    }

    /// The type after reading.
    pub fn dtype(self) -> Dtype {
        match self.stored {
            Dtype::U8 | Dtype::U16 => Dtype::U32,
            Dtype::I8 | Dtype::I16 => Dtype::I32,
            other => other,
        }
    }

    /// Bytes of a number in the file.
    pub fn size(self) -> usize {
        if self.is_f16 { 2 } else { self.stored.size() }
    }

    /// The name of the stored type.
    pub fn name(self) -> &'static str {
        if self.is_f16 { "f16" } else { self.stored.name() }
    }

    /// Reads up to `max` numbers into `values`, which must be empty. Memory for `expected` of them is allocated at once.
    /// Returns the number of bytes read; it is not a multiple of [`Element::size`] if the data end within a number.
    pub fn read<T: Number>(
        self,
        input: &mut impl Read,
        values: &mut Vec<T>,
        max: usize,
        expected: usize,
    ) -> io::Result<usize> {
        if self.stored == T::DTYPE && !self.is_f16 {
            let bytes = read_values(input, values, max, expected)?;
            if self.is_big_endian {
                let bytes: &mut [u8] = bytemuck::cast_slice_mut(values);
                bytes.chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
            }
            return Ok(bytes);
        }
        let mut narrow: Vec<u8> = Vec::new();
        let [max, expected] = [max, expected].map(|numbers| numbers.saturating_mul(self.size()));
        let bytes = read_values(input, &mut narrow, max, expected)?;
        let wide = |bits: u32| -> T { bytemuck::cast_slice(&[bits])[0] };
        let decode = if self.is_big_endian { u16::from_be_bytes } else { u16::from_le_bytes };
        let pairs = narrow.as_chunks().0.iter().map(|&pair| decode(pair));
        match self.stored {
            Dtype::U8 => values.extend(narrow.iter().map(|&b| wide(b.into()))),
            Dtype::I8 => values.extend(narrow.iter().map(|&b| wide(i32::from(b as i8) as u32))),
            Dtype::U16 => values.extend(pairs.map(|v| wide(v.into()))),
            Dtype::I16 => values.extend(pairs.map(|v| wide(i32::from(v as i16) as u32))),
            Dtype::F32 => values.extend(pairs.map(|v| wide(f16::from_bits(v).to_f32().to_bits()))),
            _ => unreachable!("read above"),
        }
        Ok(bytes)
    }
}

/// As [`Element::read`], for numbers that are stored as in memory.
pub fn read_values<T: bytemuck::Pod>(
    input: &mut impl Read,
    values: &mut Vec<T>,
    max: usize,
    expected: usize,
) -> io::Result<usize> {
    // Memory grows with the data that arrive, since a header may claim any length.
    const STEP: usize = 1 << 24;
    let expected = expected.min(max);
    let mut bytes = 0;
    // A vector that is long enough is reused; a new one has untouched pages, which all threads map as they read.
    if values.capacity() < expected {
        *values = memory::zeros(expected).map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes = read_full(input, bytemuck::cast_slice_mut(values))?;
        values.truncate(bytes / size_of::<T>());
        if bytes < expected * size_of::<T>() {
            return Ok(bytes);
        }
    }
    while values.len() < max {
        let (first, step) = (values.len(), STEP.min(max - values.len()));
        values.try_reserve(step).map_err(|_| io::ErrorKind::OutOfMemory)?;
        values.resize(first + step, T::zeroed());
        let read = read_full(input, bytemuck::cast_slice_mut(&mut values[first..]))?;
        bytes += read;
        values.truncate(first + read / size_of::<T>());
        if read < step * size_of::<T>() {
            break;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_and_swapped_numbers_are_widened() {
        let read = |descr: &str, bytes: &[u8]| {
            let mut values = Vec::<i32>::new();
            Element::from_descr(descr).unwrap().read(&mut &bytes[..], &mut values, 9, 1).unwrap();
            values
        };
        assert_eq!(read("|i1", &[1, 0xff]), [1, -1]);
        assert_eq!(read("<i2", &[1, 0xff]), [-255]);
        assert_eq!(read(">i2", &[1, 0xff]), [511]);
        assert_eq!(read(">i4", &[0, 0, 1, 2, 9]), [258]);
    }
}
