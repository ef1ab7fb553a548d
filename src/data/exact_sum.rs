//! Sums of f64 without rounding: they depend neither on the order of the numbers nor on how the numbers are divided
//! among threads, devices or processes. The sum is rounded once, when it is read.
//!
//! ```text
//! digit        0      1      2    ...   33 34   ...   100     101
//! counts     2^-1074                     1            2^2126  sign and carries
//! ```
//! A fixed-point number whose digits have 32 bits and are held in i64, so that 2^31 additions need no carry (Neal, Fast
//! Exact Summation Using Small and Large Superaccumulators, 2015; the digits here overlap by 32 bits).

use serde::{Deserialize, Serialize};

/// Number of 32-bit digits. The lowest bit is 2^-1074, as in f64. 2^64 squares of the largest f64 sum up to less
/// than 2^2048 * 2^64, which fits.
const DIGITS: usize = 102;
/// Bits of the fraction.
const FRACTION: u32 = 1074;
/// Number of additions after which carries are propagated.
const MAX_ADDITIONS: u32 = 1 << 30;

/// An exact sum.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct ExactSum {
    digits: [i64; DIGITS],
    /// Number of additions since the last carry.
    added: u32,
    /// The sum of all infinities and NaN.
    special: f64,
}

/// Digits after carry propagation, and the bits of `special`.
#[derive(Serialize, Deserialize)]
struct Stored(Vec<i64>, u64);

impl From<ExactSum> for Stored {
    fn from(mut sum: ExactSum) -> Self {
        sum.carry();
        Self(sum.digits.to_vec(), sum.special.to_bits())
    }
}

impl TryFrom<Stored> for ExactSum {
    type Error = &'static str;

    fn try_from(Stored(digits, special): Stored) -> Result<Self, &'static str> {
        let digits: [i64; DIGITS] = digits.try_into().map_err(|_| "expected 102 digits")?;
        let is_carried = digits[..DIGITS - 1].iter().all(|digit| (0..1 << 32).contains(digit));
        match is_carried && digits[DIGITS - 1].unsigned_abs() < 1 << 32 {
            true => Ok(Self { digits, added: 1, special: f64::from_bits(special) }),
            false => Err("a digit has more than 32 bits"),
        }
    }
}

impl Default for ExactSum {
    fn default() -> Self {
        Self { digits: [0; DIGITS], added: 0, special: 0.0 }
    }
}

impl PartialEq for ExactSum {
    fn eq(&self, other: &Self) -> bool {
        let carried = |sum: &Self| {
            let mut sum = sum.clone();
            sum.carry();
            (sum.digits, sum.special.to_bits())
        };
        carried(self) == carried(other)
    }
}

impl ExactSum {
    /// Adds `value * times`.
    #[inline]
    pub fn add_times(&mut self, value: f64, times: u64) {
        match parts(value) {
            Some((mantissa, place, is_negative)) => {
                let product = u128::from(mantissa) * u128::from(times);
                self.add_bits(product, place as i32, is_negative);
            }
            None => self.special += value,
        }
    }

    /// Adds `value * value * times`.
    #[inline]
    pub fn add_square(&mut self, value: f64, times: u64) {
        let Some((mantissa, place, _)) = parts(value) else {
            self.special += value * value;
            return;
        };
        // Without its trailing zeros, the square of a 32-bit number has no more than 64 bits.
        let zeros = mantissa.trailing_zeros() % u64::BITS;
        let mantissa = u128::from(mantissa >> zeros);
        let (square, place) = (mantissa * mantissa, 2 * (place + zeros) as i32 - FRACTION as i32);
        let times = u128::from(times);
        self.add_bits(u128::from(square as u64) * times, place, false);
        self.add_bits((square >> 64) * times, place + 64, false);
    }

    /// Adds `sum * factor`.
    pub fn add_product(&mut self, sum: &Self, factor: f64) {
        let (magnitude, is_negative) = sum.magnitude();
        self.special += match sum.special != 0.0 || !factor.is_finite() {
            true => sum.value() * factor,
            false => 0.0,
        };
        let Some((mantissa, place, flips)) = parts(factor) else { return };
        for (digit, number) in magnitude.digits.into_iter().zip(0..) {
            let product = digit as u128 * u128::from(mantissa);
            let place = 32 * number + place as i32 - FRACTION as i32;
            self.add_bits(product, place, is_negative != flips);
        }
    }

    /// Adds `bits * 2^(place - 1074)`, or subtracts it if `is_negative`. Bits below 2^-1074 are dropped.
    #[inline]
    fn add_bits(&mut self, bits: u128, place: i32, is_negative: bool) {
        // Half of the bits at a time, since they are shifted by up to 31.
        for (half, place) in [(bits as u64, place), ((bits >> 64) as u64, place + 64)] {
            if half == 0 {
                continue;
            }
            let (half, place) = match u32::try_from(place) {
                Ok(place) => (half, place),
                Err(_) => (half.checked_shr(place.unsigned_abs()).unwrap_or(0), 0),
            };
            let (digit, wide) = ((place / 32) as usize, u128::from(half) << (place % 32));
            let parts = [wide as u32, (wide >> 32) as u32, (wide >> 64) as u32].map(i64::from);
            match (self.digits.get_mut(digit..digit + 3), is_negative) {
                (Some(digits), false) => {
                    digits.iter_mut().zip(parts).for_each(|(digit, part)| *digit += part);
                }
                (Some(digits), true) => {
                    digits.iter_mut().zip(parts).for_each(|(digit, part)| *digit -= part);
                }
                (None, _) => {
                    self.special += if is_negative { -f64::INFINITY } else { f64::INFINITY }
                }
            }
        }
        self.count(2);
    }

    /// Adds another sum.
    pub fn add_sum(&mut self, other: &Self) {
        self.digits.iter_mut().zip(other.digits).for_each(|(digit, more)| *digit += more);
        self.special += other.special;
        self.count(other.added);
    }

    fn count(&mut self, more: u32) {
        self.added += more;
        if self.added >= MAX_ADDITIONS {
            self.carry();
        }
    }

    /// Propagates carries. All digits but the last are from 0 to 2^32 - 1 afterwards.
    fn carry(&mut self) {
        let mut carry = 0;
        let last = DIGITS - 1;
        for digit in &mut self.digits[..last] {
            *digit += carry;
            carry = *digit >> 32;
            *digit &= 0xffff_ffff;
        }
        self.digits[last] += carry;
        self.added = 1;
    }

    /// The absolute value after carry propagation, and whether the sum is negative.
    fn magnitude(&self) -> (Self, bool) {
        let mut sum = self.clone();
        sum.carry();
        let is_negative = sum.digits[DIGITS - 1] < 0;
        if is_negative {
            sum.digits.iter_mut().for_each(|digit| *digit = -*digit);
            sum.carry();
        }
        (sum, is_negative)
    }

    /// The sum, rounded to the nearest f64, ties to even.
    pub fn value(&self) -> f64 {
        if self.special != 0.0 {
            return self.special;
        }
        let (sum, is_negative) = self.magnitude();
        let Some(top) = sum.digits.iter().rposition(|&digit| digit != 0) else { return 0.0 };
        // The upper four digits, at least 97 bits. Lower digits matter only in that they break a tie: a sticky bit.
        let low = top.saturating_sub(3);
        let upper = sum.digits[low..=top].iter().rev();
        let mut upper = upper.fold(0u128, |upper, &digit| upper << 32 | digit as u128);
        upper |= u128::from(sum.digits[..low].iter().any(|&digit| digit != 0));
        let (mut value, mut exponent) = (upper as f64, 32 * low as i32 - FRACTION as i32);
        while exponent != 0 {
            let step = exponent.clamp(-1000, 1000);
            value *= f64::from_bits(((1023 + step) as u64) << 52);
            exponent -= step;
        }
        if is_negative { -value } else { value }
    }
}

/// The mantissa m, the place p and the sign of a finite number, which is m * 2^(p - 1074).
fn parts(value: f64) -> Option<(u64, u32, bool)> {
    let bits = value.to_bits();
    let exponent = (bits >> 52) as u32 & 0x7ff;
    // With the implicit bit, which only subnormal numbers lack.
    let mantissa = bits & ((1 << 52) - 1) | u64::from(exponent > 0) << 52;
    (exponent < 0x7ff).then_some((mantissa, exponent.max(1) - 1, bits >> 63 == 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::noise::Noise;

    fn sum(values: impl IntoIterator<Item = f64>) -> ExactSum {
        let mut sum = ExactSum::default();
        values.into_iter().for_each(|value| sum.add_times(value, 1));
        sum
    }

    #[test]
    fn sums_are_rounded_once() {
        for (values, expected) in [
            (vec![], 0.0),
            (vec![1e300, 1.0, -1e300], 1.0),
            (vec![0.1; 10], 1.0),
            (vec![f64::MAX, f64::MAX, -f64::MAX], f64::MAX),
            (vec![f64::MAX, f64::MAX], f64::INFINITY),
            (vec![f64::MIN_POSITIVE / 2.0, -f64::MIN_POSITIVE], -f64::MIN_POSITIVE / 2.0),
            // A tie goes to the even neighbour, and what is less or more than one does not.
            (vec![9007199254740992.0, 1.0], 9007199254740992.0),
            (vec![9007199254740992.0, 1.0, 1e-300], 9007199254740994.0),
            (vec![9007199254740994.0, 1.0], 9007199254740996.0),
            (vec![-9007199254740992.0, -1.0, -1e-300], -9007199254740994.0),
            (vec![1.0, f64::NEG_INFINITY], f64::NEG_INFINITY),
        ] {
            assert_eq!(sum(values.clone()).value(), expected, "{values:?}");
        }
        assert!(sum([f64::INFINITY, f64::NEG_INFINITY]).value().is_nan());
    }

    #[test]
    fn order_and_division_do_not_matter() {
        let mut noise = Noise(7);
        let bits: Vec<u64> = bytemuck::pod_collect_to_vec(&noise.bytes(8 * 3000));
        let values: Vec<f64> =
            bits.into_iter().map(f64::from_bits).filter(|value| value.abs() < 1e300).collect();
        let whole = sum(values.iter().copied());
        assert_eq!(sum(values.iter().rev().copied()), whole);
        for parts in [2, 7, 64] {
            let mut joined = ExactSum::default();
            for part in values.chunks(values.len().div_ceil(parts)).rev() {
                let text = serde_json::to_string(&sum(part.iter().copied())).unwrap();
                joined.add_sum(&serde_json::from_str(&text).unwrap());
            }
            assert_eq!((&joined, joined.value()), (&whole, whole.value()));
        }
        // Integers of that size are exact in i128, the reference.
        let small: Vec<f64> = values.iter().map(|value| (value.to_bits() >> 20) as f64).collect();
        let expected: i128 = small.iter().map(|&value| value as i128).sum();
        assert_eq!(sum(small).value(), expected as f64);
    }

    /// Products of 40-bit integers, scaled by powers of two, against i128, which holds them exactly.
    #[test]
    fn products_are_exact() {
        let mut noise = Noise(8);
        let integers: Vec<i128> =
            (0..500).map(|_| i128::from(noise.next() >> 24) - (1 << 39)).collect();
        for scale in [1.0, 2f64.powi(-300), 2f64.powi(200)] {
            let (mut squares, mut times) = (ExactSum::default(), ExactSum::default());
            let all = sum(integers.iter().map(|&n| n as f64 * scale));
            for (&n, i) in integers.iter().zip(1..) {
                squares.add_square(n as f64 * scale, i);
                times.add_times(n as f64 * scale, i);
            }
            let expected: i128 = integers.iter().zip(1..).map(|(n, i)| n * n * i).sum();
            squares.add_times(-(expected as f64) * scale * scale, 1);
            assert_eq!(
                squares.value(),
                (expected - expected as f64 as i128) as f64 * scale * scale
            );
            let expected: i128 = integers.iter().zip(1..).map(|(n, i)| n * i).sum();
            assert_eq!(times.value(), expected as f64 * scale);
            let total: i128 = integers.iter().sum();
            for factor in [3i128, -12_345_678_901] {
                let mut product = ExactSum::default();
                product.add_product(&all, factor as f64);
                assert_eq!(product.value(), (total * factor) as f64 * scale);
            }
        }
        let mut squares = ExactSum::default();
        squares.add_square(1e200, 1);
        assert_eq!(squares.value(), f64::INFINITY);
    }

    #[test]
    fn carries_are_passed_on_in_time() {
        let mut all = sum([1.0]);
        for _ in 0..40 {
            let twice = all.clone();
            all.add_sum(&twice);
        }
        assert_eq!(all.value(), 2f64.powi(40));
        assert!(serde_json::from_str::<ExactSum>("[[1,2],0]").is_err());
    }
}
