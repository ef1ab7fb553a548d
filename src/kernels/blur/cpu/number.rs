//! The numbers in which sums are computed, and their conversion from and to samples.

use bytemuck::Pod;
use pulp::Simd;

use crate::data::division::{RoundedF64, RoundedU16, RoundedU32};

/// A type of sums. Integers wrap around.
pub trait Number: Sample<Self> + Default + 'static {
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    /// `self * weight + sum` with a single rounding.
    fn fused(self, weight: Self, sum: Self) -> Self;
    /// `self * weight + sum` of numbers that need no rounding, with a fused instruction if SIMD level `S` has one.
    fn exact<S: Simd>(self, weight: Self, sum: Self) -> Self;
}

macro_rules! integers {
    ($($type:ty),+) => {
        $(impl Number for $type {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn fused(self, weight: Self, sum: Self) -> Self {
                self.wrapping_mul(weight).wrapping_add(sum)
            }
            #[inline(always)]
            fn exact<S: Simd>(self, weight: Self, sum: Self) -> Self {
                self.fused(weight, sum)
            }
        })+
    };
}
integers!(i16, u16, u32);

macro_rules! floats {
    ($($type:ty),+) => {
        $(impl Number for $type {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn fused(self, weight: Self, sum: Self) -> Self {
                self.mul_add(weight, sum)
            }
            #[inline(always)]
            fn exact<S: Simd>(self, weight: Self, sum: Self) -> Self {
                // AVX2 and above; elsewhere `mul_add` would call a function.
                match const { cfg!(target_arch = "aarch64") || size_of::<S::f32s>() >= 32 } {
                    true => self.mul_add(weight, sum),
                    false => self * weight + sum,
                }
            }
        })+
    };
}
floats!(f32, f64);

/// A stored sample, which is converted to `N` to be summed.
pub trait Sample<N>: Pod + Send + Sync {
    fn widen(self) -> N;
    /// Converts the constant outside.
    fn from_f64(value: f64) -> Self;
}

macro_rules! samples {
    ($($from:ty => $to:ty),+) => {
        $(impl Sample<$to> for $from {
            #[inline(always)]
            fn widen(self) -> $to {
                self as $to
            }
            fn from_f64(value: f64) -> Self {
                value as Self
            }
        })+
    };
}
samples!(u8 => u16, u8 => u32, u8 => f32, u16 => u32, u16 => f64);
samples!(u8 => i16, i16 => i16, u16 => u16, u32 => u32, f32 => f32, f32 => f64, f64 => f64);

impl Sample<f64> for u32 {
    #[inline(always)]
    fn widen(self) -> f64 {
        // It is below 2^31. Every SIMD level can convert i32, but not u32.
        f64::from(self as i32)
    }
    fn from_f64(value: f64) -> Self {
        value as Self
    }
}

/// A rule that rounds a sum to a stored sample.
pub trait Round<N, D>: Copy + Send + Sync {
    fn round(self, sum: N) -> D;
}

/// [`Rounding::Shift`](super::Rounding::Shift) of a sum below 2^32.
#[derive(Clone, Copy)]
pub struct ShiftU32(pub u32);

impl ShiftU32 {
    #[inline(always)]
    fn shift(self, sum: u32) -> u32 {
        sum.wrapping_add(1 << self.0 >> 1) >> self.0
    }
}

/// [`Rounding::Shift`](super::Rounding::Shift) by at least 1 of an integer below 2^52, as a multiplication by 2^-shift.
#[derive(Clone, Copy)]
pub struct ScaleF64(f64);

impl ScaleF64 {
    pub fn shift(shift: u32) -> Self {
        Self(0.5f64.powi(shift as i32))
    }

    /// floor(sum / 2^shift + 1/2) is the integer nearest to (sum + 1/2) / 2^shift, which is never halfway between two
    /// integers. Adding 2^52 rounds to an integer in the low bits of the float.
    #[inline(always)]
    fn nearest(self, sum: f64) -> u32 {
        ((sum + 0.5) * self.0 + 4_503_599_627_370_496.0).to_bits() as u32
    }
}

/// [`Rounding::None`](super::Rounding::None). All NaN get the same bits.
#[derive(Clone, Copy)]
pub struct NoRounding;

/// Converts an integer below 2^31. Every SIMD level can convert to i32, but not to u32.
#[inline(always)]
fn to_u32(sum: f32) -> u32 {
    sum as i32 as u32
}

/// Rounds half up and clamps to u16. `f32::round` and casts give the same result, but are not instructions of all SIMD
/// levels. Floats from 2^23 on have no fraction bits, so the addition of 2^23 rounds, ties to even, and leaves the
/// integer in the low bits.
#[inline(always)]
pub fn nearest_u16(sum: f32) -> u16 {
    const TO_WHOLE: f32 = (1 << 23) as f32;
    let sum = if sum > 0.0 { sum } else { 0.0 };
    let sum = if sum < 65535.0 { sum } else { 65535.0 };
    let whole = sum + TO_WHOLE;
    let is_half_above = sum - (whole - TO_WHOLE) == 0.5;
    whole.to_bits().wrapping_add(u32::from(is_half_above)) as u16
}

macro_rules! round {
    ($($from:ty => $to:ty: $rule:ty, |$self:ident, $sum:ident| $body:expr;)+) => {
        $(impl Round<$from, $to> for $rule {
            #[inline(always)]
            fn round(self, $sum: $from) -> $to {
                let $self = self;
                $body
            }
        })+
    };
}
round! {
    f32 => u8: ShiftU32, |s, sum| s.shift(to_u32(sum)) as u8;
    f32 => u16: ShiftU32, |s, sum| s.shift(to_u32(sum)) as u16;
    u32 => u8: ShiftU32, |s, sum| s.shift(sum) as u8;
    u32 => u16: ShiftU32, |s, sum| s.shift(sum) as u16;
    u32 => u8: RoundedF64, |s, sum| s.divide(sum) as u8;
    u32 => u16: RoundedF64, |s, sum| s.divide(sum) as u16;
    u32 => u8: RoundedU32, |s, sum| s.divide(sum) as u8;
    u16 => u8: RoundedU16, |s, sum| s.divide(sum) as u8;
    u32 => u32: RoundedF64, |s, sum| s.divide(sum);
    f64 => u32: RoundedF64, |s, sum| s.divide_f64(sum);
    f64 => u16: ScaleF64, |s, sum| s.nearest(sum) as u16;
    f64 => u32: ScaleF64, |s, sum| s.nearest(sum);
    u16 => u16: NoRounding, |_s, sum| sum;
    u32 => u32: NoRounding, |_s, sum| sum;
    i16 => i16: NoRounding, |_s, sum| sum;
    i16 => u8: NoRounding, |_s, sum| sum as u8;
    f32 => f32: NoRounding, |_s, sum| if sum.is_nan() { f32::NAN } else { sum };
    f64 => f32: NoRounding, |_s, sum| if sum.is_nan() { f32::NAN } else { sum as f32 };
    f64 => f64: NoRounding, |_s, sum| if sum.is_nan() { f64::NAN } else { sum };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_rounded_like_round() {
        let near = |whole: u32| {
            let half = whole as f32 + 0.5;
            [whole as f32, half.next_down(), half, half.next_up(), -half]
        };
        let others = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e-45, 3e9, -3e9];
        for sum in (0..=65536).flat_map(near).chain(others) {
            assert_eq!(nearest_u16(sum), sum.round() as u16, "{sum}");
        }
    }
}
