//! A projection, and what is known of its lines while their samples are read.

use serde::Serialize;

use crate::{
    data::{dtype::Dtype, float_key::key_to_f32, samples::Samples},
    util::{error::Result, memory, parallel},
};

/// How the samples of a line become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Maximum, of the type of the samples. NaN if one is NaN.
    Max,
    /// Minimum, of the type of the samples. NaN if one is NaN.
    Min,
    /// Mean as f32: the exact sum of integers, or the sum in f64 of floats, divided by their number.
    Mean,
    /// Sum as f64, which holds integers up to 2^53 exactly.
    Sum,
    /// Standard deviation of all samples (not of a sample of them) as f32.
    Std,
}

/// A projection along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Projection {
    /// How the samples of a line become one.
    pub method: Method,
    /// The axis whose samples become one: 0 for x.
    pub axis: usize,
}

/// Lines of which some or all samples have been reduced.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    /// Number of samples reduced in each line.
    pub count: usize,
    /// The intermediate values of each line.
    pub values: LineValues,
}

/// The intermediate values of each line.
#[derive(Clone, Debug, PartialEq)]
pub enum LineValues {
    /// Maximum or minimum.
    Extremes(Samples),
    /// Sum of integers.
    Sums(Vec<i64>),
    /// Sum of integers, and of their squares.
    Moments(Vec<(i64, u128)>),
    /// Sum of floats.
    FloatSums(Vec<f64>),
    /// The first float, and the sums of the differences from it and of their squares. Without the first, rounding would
    /// hide a deviation that is small compared with the mean.
    FloatMoments(Vec<[f64; 3]>),
}

/// A step of a projection: adds the samples of a grid to lines.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The projection.
    pub projection: Projection,
    /// The lines before this step; `None` at the start.
    pub before: Option<&'a Lines>,
}

/// Maximum and minimum of two samples. Of floats, NaN if one is NaN; -0 is less than 0.
pub trait Order: Copy + Send + Sync {
    /// The sample of a key of the shader.
    fn of_key(key: u32) -> Self;
    /// The maximum.
    fn larger(self, other: Self) -> Self;
    /// The minimum.
    fn smaller(self, other: Self) -> Self;
}

macro_rules! order {
    (integers $($integer:ident)+, floats $($float:ident)+) => {
        $(impl Order for $integer {
            fn of_key(key: u32) -> Self {
                (i64::from(key) + $integer::MIN as i64) as Self
            }
            fn larger(self, other: Self) -> Self {
                self.max(other)
            }
            fn smaller(self, other: Self) -> Self {
                self.min(other)
            }
        })+
        $(impl Order for $float {
            fn of_key(key: u32) -> Self {
                let value = key_to_f32(key);
                if value.is_nan() { Self::NAN } else { value as Self }
            }
            fn larger(self, other: Self) -> Self {
                let is_other = other.is_nan() || self.total_cmp(&other).is_lt();
                if is_other && !self.is_nan() { other } else { self }
            }
            fn smaller(self, other: Self) -> Self {
                let is_other = other.is_nan() || self.total_cmp(&other).is_gt();
                if is_other && !self.is_nan() { other } else { self }
            }
        })+
    };
}

order!(integers u8 i8 u16 i16 u32 i32, floats f32 f64);

impl Lines {
    /// No samples of `count` lines.
    pub fn empty(method: Method, dtype: Dtype, count: usize) -> Result<Self> {
        let values = match (method, dtype.is_float()) {
            (Method::Max | Method::Min, _) => LineValues::Extremes(Samples::zeros(dtype, count)?),
            (Method::Std, false) => LineValues::Moments(memory::filled((0, 0), count)),
            (Method::Std, true) => LineValues::FloatMoments(memory::zeros(count)?),
            (_, false) => LineValues::Sums(memory::zeros(count)?),
            (_, true) => LineValues::FloatSums(memory::zeros(count)?),
        };
        Ok(Self { count: 0, values })
    }

    /// The samples of the result.
    pub fn finish(self, method: Method) -> Result<Samples> {
        let count = self.count as f64;
        Ok(match self.values {
            LineValues::Extremes(samples) => samples,
            LineValues::Sums(sums) if method == Method::Sum => {
                parallel::mapped(&sums, |&sum| sum as f64)?.into()
            }
            LineValues::FloatSums(sums) if method == Method::Sum => sums.into(),
            LineValues::Sums(sums) => {
                parallel::mapped(&sums, |&sum| (sum as f64 / count) as f32)?.into()
            }
            LineValues::FloatSums(sums) => {
                parallel::mapped(&sums, |&sum| (sum / count) as f32)?.into()
            }
            LineValues::Moments(moments) => parallel::mapped(&moments, |&(sum, squares)| {
                // n² times the variance, exactly.
                let scaled = squares * self.count as u128 - u128::from(sum.unsigned_abs()).pow(2);
                ((scaled as f64).sqrt() / count) as f32
            })?
            .into(),
            LineValues::FloatMoments(moments) => {
                parallel::mapped(&moments, |&[_, sum, squares]| {
                    let variance = (squares - sum * sum / count) / count;
                    (if variance < 0.0 { 0.0 } else { variance.sqrt() }) as f32
                })?
                .into()
            }
        })
    }
}
