//! Binary numbers: a raw file, or a `.npy` file behind its header.

use std::io::{self, Read};

use crate::{
    data::{dtype::Dtype, number::Number},
    util::memory,
};

/// How a number is stored. 8- and 16-bit integers are widened to 32 bits when read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    stored: Dtype,
    swapped: bool,
}

impl Element {
    /// A little-endian number of type `dtype`.
    pub fn little_endian(dtype: Dtype) -> Self {
        Self { stored: dtype, swapped: cfg!(target_endian = "big") }
    }

    /// Parses NumPy's type description, such as `<f4`.
    pub fn from_descr(descr: &str) -> Option<Self> {
        let (order, name) = descr.split_at_checked(1)?;
        let stored = Dtype::from_numpy(name)?;
        let big = match order {
            "<" | "|" | "=" => false,
            ">" => true,
            _ => return None,
        };
        Some(Self { stored, swapped: big != cfg!(target_endian = "big") })
    }

    /// The type in the file.
    pub fn stored(self) -> Dtype {
        self.stored
    }

    /// Whether the file has the most significant byte first.
    pub fn is_big_endian(self) -> bool {
        self.swapped != cfg!(target_endian = "big")
    }

    /// The type once read.
    pub fn dtype(self) -> Dtype {
        match self.stored {
            Dtype::U8 | Dtype::U16 => Dtype::U32,
            Dtype::I8 | Dtype::I16 => Dtype::I32,
            whole => whole,
        }
    }

    /// Bytes in the file.
    pub fn size(self) -> usize {
        self.stored.size()
    }

    /// Reads up to `most` numbers into `values`, which must be empty. `there` of them are expected to follow; memory
    /// for these is allocated at once. Returns the number of bytes read, which is no multiple of [`Element::size`] when
    /// the data end within a number.
    ///
    /// # Errors
    /// Errors of reading; `OutOfMemory`.
    pub fn read<T: Number>(
        self,
        input: &mut impl Read,
        values: &mut Vec<T>,
        most: usize,
        there: usize,
    ) -> io::Result<usize> {
        if self.stored == T::DTYPE {
            let bytes = read_part(input, values, most, there)?;
            if self.swapped {
                let bytes: &mut [u8] = bytemuck::cast_slice_mut(values);
                bytes.chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
            }
            return Ok(bytes);
        }
        let mut narrow: Vec<u8> = Vec::new();
        let [most, there] = [most, there].map(|numbers| numbers.saturating_mul(self.size()));
        let bytes = read_part(input, &mut narrow, most, there)?;
        let wide = |bits: u32| -> T { bytemuck::cast_slice(&[bits])[0] };
        let pair = |pair: &[u8]| match self.swapped {
            false => u16::from_ne_bytes([pair[0], pair[1]]),
            true => u16::from_ne_bytes([pair[1], pair[0]]),
        };
        let pairs = narrow.chunks_exact(2);
        match self.stored {
            Dtype::U8 => values.extend(narrow.iter().map(|&b| wide(b.into()))),
            Dtype::I8 => values.extend(narrow.iter().map(|&b| wide(i32::from(b as i8) as u32))),
            Dtype::U16 => values.extend(pairs.map(|p| wide(pair(p).into()))),
            Dtype::I16 => values.extend(pairs.map(|p| wide(i32::from(pair(p) as i16) as u32))),
            _ => unreachable!("read above"),
        }
        Ok(bytes)
    }
}

/// [`Element::read`] of numbers that are stored as they are in memory.
pub fn read_part<T: bytemuck::Pod>(
    input: &mut impl Read,
    values: &mut Vec<T>,
    most: usize,
    there: usize,
) -> io::Result<usize> {
    // Memory grows with the data that arrive, since a header may claim any length.
    const STEP: usize = 1 << 24;
    let there = there.min(most);
    let mut bytes = 0;
    // A vector that is as long is used again; a new one has untouched pages, which all threads map as they read.
    if values.capacity() < there {
        *values = memory::zeros(there).map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes = fill(input, bytemuck::cast_slice_mut(values))?;
        values.truncate(bytes / size_of::<T>());
        if bytes < there * size_of::<T>() {
            return Ok(bytes);
        }
    }
    while values.len() < most {
        let (first, step) = (values.len(), STEP.min(most - values.len()));
        values.try_reserve(step).map_err(|_| io::ErrorKind::OutOfMemory)?;
        values.resize(first + step, T::zeroed());
        let read = fill(input, bytemuck::cast_slice_mut(&mut values[first..]))?;
        bytes += read;
        values.truncate(first + read / size_of::<T>());
        if read < step * size_of::<T>() {
            break;
        }
    }
    Ok(bytes)
}

/// Reads until `bytes` are full or the data end; returns the number of bytes read.
pub fn fill(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match input.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
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
