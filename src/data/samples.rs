//! Samples of images and volumes: values of any supported type in one flat vector.

use super::dtype::{Dtype, Scalar};
use crate::{
    for_dtype,
    util::{
        error::{Error, Result},
        memory, parallel,
    },
};

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

/// Evaluates an expression on the vector of a [`Samples`], whatever its type.
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

macro_rules! samples_from_vectors {
    ($($type:ident $dtype:ident)+) => {
        $(impl From<Vec<$type>> for Samples {
            fn from(values: Vec<$type>) -> Self {
                Self::$dtype(values)
            }
        })+
    };
}

samples_from_vectors! { u8 U8 i8 I8 u16 U16 i16 I16 u32 U32 i32 I32 f32 F32 f64 F64 }

impl Samples {
    /// A copy.
    pub fn copy(&self) -> Result<Self> {
        let mut copy = Self::zeros(self.dtype(), self.len())?;
        copy.as_bytes_mut().copy_from_slice(self.as_bytes());
        Ok(copy)
    }

    /// `len` zeros of type `dtype`. The type must be in [`Dtype::SAMPLES`].
    pub fn zeros(dtype: Dtype, len: usize) -> Result<Self> {
        for_dtype!(dtype, T in [u8 i8 u16 i16 u32 i32 f32 f64] => Ok(memory::zeros::<T>(len)?.into()),
            other => Err(Error::bad_input(format_args!("unsupported sample type {other}"))))
    }

    /// The type of the samples.
    pub fn dtype(&self) -> Dtype {
        fn dtype<T: Scalar>(_: &[T]) -> Dtype {
            T::DTYPE
        }
        for_samples!(self, values => dtype(values))
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        for_samples!(self, values => values.len())
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first sample as a number.
    pub fn first(&self) -> Option<f64> {
        for_samples!(self, values => {
            #[allow(clippy::cast_lossless, clippy::unnecessary_cast)]
            values.first().map(|&value| value as f64)
        })
    }

    /// A copy of the samples `range`.
    ///
    /// # Panics
    /// If the range leaves the samples.
    pub fn part(&self, range: std::ops::Range<usize>) -> Self {
        for_samples!(self, values => values[range].to_vec().into())
    }

    /// Keeps only the samples of `range`.
    pub fn keep(&mut self, range: std::ops::Range<usize>) -> Result<()> {
        for_samples!(self, values => match range.start {
            0 => values.truncate(range.end),
            // All cores copy to other memory faster than one core moves to the front.
            _ => *values = parallel::mapped(&values[range], |&value| value)?,
        });
        Ok(())
    }

    /// The samples `before`, with `more` samples of type `dtype` after them, whose values are arbitrary. Reuses the
    /// memory of `spare`, which has that type.
    pub fn extended(
        before: Option<&Self>,
        more: usize,
        dtype: Dtype,
        spare: Option<Self>,
    ) -> Result<Self> {
        let len = before.map_or(0, Self::len) + more;
        let mut samples = match spare {
            Some(mut spare) => {
                for_samples!(&mut spare, values => memory::resize(values, len)).map(|()| spare)
            }
            None => Self::zeros(dtype, len),
        }?;
        let before = before.map_or(&[][..], Self::as_bytes);
        samples.as_bytes_mut()[..before.len()].copy_from_slice(before);
        Ok(samples)
    }

    /// Appends `more` samples of the same type.
    pub fn append(&mut self, more: &Self) -> Result<()> {
        assert_eq!(self.dtype(), more.dtype(), "samples of one type are appended");
        for_samples!(self, values => {
            memory::reserve(values, more.len())?;
            values.extend_from_slice(bytemuck::cast_slice(more.as_bytes()));
        });
        Ok(())
    }

    /// The samples as little-endian bytes.
    pub fn as_bytes(&self) -> &[u8] {
        for_samples!(self, values => bytemuck::cast_slice(values))
    }

    /// The samples as mutable little-endian bytes.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        for_samples!(self, values => bytemuck::cast_slice_mut(values))
    }

    /// The same values as samples of type `dtype`; integers are rounded and clamped to its range, NaN becomes 0.
    #[allow(clippy::unnecessary_cast, reason = "one of the types is f64 itself")]
    pub fn converted(&self, dtype: Dtype) -> Result<Self> {
        const STEP: usize = 1 << 12;
        let mut converted = Self::zeros(dtype, self.len())?;
        let mut values = [0.0; STEP];
        for start in (0..self.len()).step_by(STEP) {
            let range = start..self.len().min(start + STEP);
            let values = &mut values[..range.len()];
            for_samples!(self, from => {
                values.iter_mut().zip(&from[range.clone()]).for_each(|(value, &from)| *value = from as f64);
            });
            let bytes =
                &mut converted.as_bytes_mut()[range.start * dtype.size()..range.end * dtype.size()];
            for_dtype!(dtype, T in [u8 i8 u16 i16 u32 i32 f32 f64] => {
                let to: &mut [T] = bytemuck::cast_slice_mut(bytes);
                let whole = |value: f64| if T::DTYPE.is_float() { value } else { value.round() };
                to.iter_mut().zip(values.iter()).for_each(|(to, &value)| *to = whole(value) as T);
            }, _ => {});
        }
        Ok(converted)
    }

    /// Reverses the bytes of every sample, to convert between little and big endian.
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
    fn every_type_has_its_samples() {
        for dtype in Dtype::SAMPLES {
            let samples = Samples::zeros(dtype, 3).unwrap();
            assert_eq!((samples.dtype(), samples.as_bytes().len()), (dtype, 3 * dtype.size()));
        }
        assert!(Samples::zeros(Dtype::U64, 3).is_err());
    }

    #[test]
    fn values_are_converted() {
        let floats = Samples::F64(vec![-1.5, 0.4, 254.6, 300.0, f64::NAN]);
        assert_eq!(floats.converted(Dtype::U8).unwrap(), Samples::U8(vec![0, 0, 255, 255, 0]));
        assert_eq!(floats.converted(Dtype::I16).unwrap(), Samples::I16(vec![-2, 0, 255, 300, 0]));
        let many: Vec<u16> = (0..10_000).collect();
        let wide = Samples::U16(many.clone()).converted(Dtype::F32).unwrap();
        assert_eq!(wide.converted(Dtype::U16).unwrap(), Samples::U16(many));
        assert!(floats.converted(Dtype::U64).is_err());
    }
}
