//! Pyramids of volumes: the levels, and the samples of a level from those of the finer level before it.
//!
//! A sample of the next level is the mean of a group of up to 2 x 2 x 2 samples of this one, fewer at the end of an odd
//! axis. Integers are rounded, halves upwards. For labels, it is the first of the group. Each level is made of
//! the stored samples of the level before, so that shards and whole jobs give the same bytes.

use super::{dtype::Scalar, samples::Samples};
use crate::{
    for_dtype,
    util::{error::Result, memory, parallel::Parallel},
};

/// Maximum size of the last level along each axis, by default.
pub const SMALL: usize = 256;
/// Maximum number of levels: 2^32 samples along an axis become 1.
const MAX_LEVELS: usize = 32;

/// A level of a pyramid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Number of samples along x, y and z.
    pub dims: [usize; 3],
    /// Number of samples of the first level that one sample of this level covers, along each axis.
    pub factors: [usize; 3],
}

impl Level {
    /// For each axis, 2 if `next` has half the samples of this level, else 1.
    pub fn steps(&self, next: &Self) -> [usize; 3] {
        std::array::from_fn(|axis| next.factors[axis] / self.factors[axis])
    }
}

/// The levels of a volume of `dims` whose samples are `spacing` apart: `count`, or as many as it takes until no axis is
/// longer than [`SMALL`]. The axes with the densest samples are halved first, so that voxels become cubes.
pub fn levels(dims: [usize; 3], spacing: [f64; 3], count: Option<usize>) -> Vec<Level> {
    let mut levels = vec![Level { dims, factors: [1; 3] }];
    while levels.len() < count.unwrap_or(MAX_LEVELS).min(MAX_LEVELS) {
        let Level { dims, factors } = levels[levels.len() - 1];
        let is_small = dims.iter().all(|&len| len <= SMALL);
        if dims == [1; 3] || (is_small && count.is_none()) {
            break;
        }
        let width = |axis: usize| spacing[axis].abs() * factors[axis] as f64;
        let long = (0..3).filter(|&axis| dims[axis] > 1);
        let densest = long.clone().map(width).fold(f64::INFINITY, f64::min);
        // Axes within a factor of 1.5 of the densest are halved together. NaN compares with nothing: all are halved.
        let halves = |axis: usize| {
            dims[axis] > 1
                && width(axis).partial_cmp(&(1.5 * densest)) != Some(std::cmp::Ordering::Greater)
        };
        let step: [usize; 3] = std::array::from_fn(|axis| if halves(axis) { 2 } else { 1 });
        levels.push(Level {
            dims: std::array::from_fn(|axis| dims[axis].div_ceil(step[axis])),
            factors: std::array::from_fn(|axis| factors[axis] * step[axis]),
        });
    }
    levels
}

/// The samples of the next level: for each group of `steps` samples along x, y and z the mean, or the first if they
/// `are_labels`. Along each axis there are `dims / steps` groups, rounded up.
pub fn halved(
    samples: &Samples,
    dims: [usize; 3],
    steps: [usize; 3],
    are_labels: bool,
) -> Result<Samples> {
    let next: [usize; 3] = std::array::from_fn(|axis| dims[axis].div_ceil(steps[axis]));
    let mut made = Samples::zeros(samples.dtype(), next.iter().product())?;
    for_dtype!(samples.dtype(), T in [u8 i8 u16 i16 u32 i32 f32 f64] => {
        let from: &[T] = bytemuck::cast_slice(samples.as_bytes());
        let to: &mut [T] = bytemuck::cast_slice_mut(made.as_bytes_mut());
        // A piece of work is several rows, of about 16,384 samples together.
        let rows = 16_384usize.div_ceil(next[0]);
        to.chunks_mut(next[0] * rows).enumerate().par_each(|(piece, to)| {
            let mut sums = memory::room(dims[0]).unwrap_or_else(memory::raise);
            for (i, to) in to.chunks_exact_mut(next[0]).enumerate() {
                let (y, z) = ((piece * rows + i) % next[1], (piece * rows + i) / next[1]);
                let window = Window { dims, steps, y: y * steps[1], z: z * steps[2] };
                if are_labels { window.first(from, to) } else { window.means(from, &mut sums, to) }
            }
        });
    }, other => unreachable!("samples are not of {other}"));
    Ok(made)
}

/// The rows that one row of the next level is made of: up to two along y and z from `y` and `z` on.
struct Window {
    dims: [usize; 3],
    steps: [usize; 3],
    y: usize,
    z: usize,
}

impl Window {
    fn row<'a, T>(&self, from: &'a [T], y: usize, z: usize) -> &'a [T] {
        let [width, height, _] = self.dims;
        &from[(z * height + y) * width..][..width]
    }

    /// The first sample of each group.
    fn first<T: Copy>(&self, from: &[T], to: &mut [T]) {
        let row = self.row(from, self.y, self.z).iter();
        to.iter_mut().zip(row.step_by(self.steps[0])).for_each(|(to, &v)| *to = v);
    }

    /// The mean of each group. `sums` is scratch memory.
    fn means<T: Mean>(&self, from: &[T], sums: &mut Vec<T::Sum>, to: &mut [T]) {
        let Self { dims, steps, y, z } = *self;
        let ends = [(y + steps[1]).min(dims[1]), (z + steps[2]).min(dims[2])];
        sums.clear();
        sums.extend(self.row(from, y, z).iter().map(|&v| v.widened()));
        let others = (z..ends[1]).flat_map(|z| (y..ends[0]).map(move |y| (y, z))).skip(1);
        for (y, z) in others {
            let row = self.row(from, y, z);
            sums.iter_mut().zip(row).for_each(|(sum, &v)| *sum += v.widened());
        }
        // 1, 2 or 4, a power of two as all counts of samples here.
        let rows = (ends[0] - y) * (ends[1] - z);
        let shift = rows.trailing_zeros();
        if steps[0] == 1 {
            to.iter_mut().zip(&*sums).for_each(|(to, &sum)| *to = T::mean(sum, shift));
            return;
        }
        let (pairs, single) = sums.as_chunks();
        for (to, &[left, right]) in to.iter_mut().zip(pairs) {
            *to = T::mean(left + right, shift + 1);
        }
        if let ([.., to], [sum]) = (to, single) {
            *to = T::mean(*sum, shift);
        }
    }
}

/// Samples that have a mean.
trait Mean: Scalar {
    /// A type that holds the sum of eight samples.
    type Sum: Copy + Send + std::ops::AddAssign + std::ops::Add<Output = Self::Sum>;

    /// The sum of this one sample.
    fn widened(self) -> Self::Sum;

    /// `sum / 2^shift`; integers are rounded, halves upwards.
    fn mean(sum: Self::Sum, shift: u32) -> Self;
}

macro_rules! means {
    ($($type:ident $sum:ident)+) => {
        $(impl Mean for $type {
            type Sum = $sum;

            fn widened(self) -> $sum {
                self.into()
            }

            fn mean(sum: $sum, shift: u32) -> Self {
                // An arithmetic shift rounds down, negative numbers too.
                ((sum + (1 << shift >> 1)) >> shift) as $type
            }
        })+
    };
}

means! { u8 u32 i8 i32 u16 u32 i16 i32 u32 u64 i32 i64 }

macro_rules! float_means {
    ($($type:ident)+) => {
        $(impl Mean for $type {
            type Sum = f64;

            #[allow(clippy::useless_conversion, reason = "one of the types is f64 itself")]
            fn widened(self) -> f64 {
                self.into()
            }

            #[allow(clippy::unnecessary_cast, reason = "one of the types is f64 itself")]
            fn mean(sum: f64, shift: u32) -> Self {
                (sum / f64::from(1u32 << shift)) as $type
            }
        })+
    };
}

float_means! { f32 f64 }

/// Whether all `bytes` are 0.
pub fn is_zero(bytes: &[u8]) -> bool {
    let (head, words, tail) = bytemuck::pod_align_to::<u8, u64>(bytes);
    words.iter().all(|&word| word == 0) && head.iter().chain(tail).all(|&byte| byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::dtype::Dtype;

    #[test]
    fn levels_become_cubes() {
        let dims = |dims, spacing, count| -> Vec<[usize; 3]> {
            levels(dims, spacing, count).iter().map(|level| level.dims).collect()
        };
        let even = [1.0; 3];
        assert_eq!(dims([512, 300, 256], even, None), [[512, 300, 256], [256, 150, 128]]);
        assert_eq!(dims([200, 1, 7], even, None), [[200, 1, 7]]);
        let flat = dims([3000, 3000, 30], [0.25, 0.25, 1.0], None);
        let expected =
            [[3000, 3000, 30], [1500, 1500, 30], [750, 750, 30], [375, 375, 15], [188, 188, 8]];
        assert_eq!(flat, expected);
        assert_eq!(dims([5, 1, 1], even, Some(9)), [[5, 1, 1], [3, 1, 1], [2, 1, 1], [1, 1, 1]]);
        assert_eq!(dims([999, 999, 999], even, Some(1)).len(), 1);
        assert_eq!(dims([600, 9, 9], [f64::NAN; 3], None), [[600, 9, 9], [300, 5, 5], [150, 3, 3]]);
        let all = levels([10, 10, 10], [1.0, 2.0, 4.0], Some(3));
        assert_eq!(all[0].steps(&all[1]), [2, 1, 1]);
        assert_eq!((all[2].factors, all[2].dims), ([4, 2, 1], [3, 5, 10]));
    }

    /// One sample by the definition, in f64.
    fn naive(
        from: &[f64],
        dims: [usize; 3],
        steps: [usize; 3],
        at: [usize; 3],
        round: bool,
    ) -> f64 {
        let range =
            |axis: usize| at[axis] * steps[axis]..((at[axis] + 1) * steps[axis]).min(dims[axis]);
        let (mut sum, mut count) = (0.0, 0.0);
        for z in range(2) {
            for y in range(1) {
                for x in range(0) {
                    sum += from[(z * dims[1] + y) * dims[0] + x];
                    count += 1.0;
                }
            }
        }
        if round { (sum / count + 0.5).floor() } else { sum / count }
    }

    #[test]
    #[allow(clippy::unnecessary_cast, reason = "one of the types is f64 itself")]
    fn means_are_those_of_the_definition() {
        for dtype in Dtype::SAMPLES {
            for dims in [[1, 1, 1], [2, 2, 2], [7, 5, 3], [1, 9, 4], [65, 3, 2]] {
                for steps in [[2, 2, 2], [2, 1, 1], [1, 2, 1], [1, 1, 2], [1, 1, 1]] {
                    let mut samples = Samples::zeros(dtype, dims.iter().product()).unwrap();
                    let mut value = 12345u64;
                    let mut values = Vec::new();
                    for_dtype!(dtype, T in [u8 i8 u16 i16 u32 i32 f32 f64] => {
                        for v in bytemuck::cast_slice_mut::<u8, T>(samples.as_bytes_mut()) {
                            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                            *v = (value >> 40) as i32 as T;
                            values.push(*v as f64);
                        }
                    }, _ => {});
                    let made = halved(&samples, dims, steps, false).unwrap();
                    let first = halved(&samples, dims, steps, true).unwrap();
                    let next: [usize; 3] = std::array::from_fn(|i| dims[i].div_ceil(steps[i]));
                    assert_eq!(made.len(), next.iter().product::<usize>());
                    for i in 0..made.len() {
                        let at = [i % next[0], i / next[0] % next[1], i / next[0] / next[1]];
                        let expected = naive(&values, dims, steps, at, !dtype.is_float());
                        let from = (at[2] * steps[2] * dims[1] + at[1] * steps[1]) * dims[0];
                        for_dtype!(dtype, T in [u8 i8 u16 i16 u32 i32 f32 f64] => {
                            let made: &[T] = bytemuck::cast_slice(made.as_bytes());
                            assert_eq!(made[i], expected as T, "{dtype} {dims:?} {steps:?} {at:?}");
                            let first: &[T] = bytemuck::cast_slice(first.as_bytes());
                            assert_eq!(first[i] as f64, values[from + at[0] * steps[0]]);
                        }, _ => {});
                    }
                }
            }
        }
    }
}
