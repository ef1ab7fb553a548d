//! Sums of f64 without rounding: they depend neither on the order of the numbers nor on how the numbers are divided
//! among threads, devices or processes. The sum is rounded once, when it is read.
//!
//! ```text
//! digit        0      1      2    ...   33 34   ...   66     67
//! counts     2^-1074                     1            2^1038  sign and carries
//! ```
//! A fixed-point number whose digits have 32 bits and are held in i64, so that 2^31 additions need no carry (Neal, Fast
//! Exact Summation Using Small and Large Superaccumulators, 2015; the digits here overlap by 32 bits).

use serde::{Deserialize, Serialize};

/// Digits of 32 bits: 2^-1074 is the least f64, and 2^1024 is above the greatest.
const DIGITS: usize = 68;
/// Bits of the fraction.
const FRACTION: u32 = 1074;
/// Additions after which carries are passed on.
const MOST: u32 = 1 << 30;

/// A sum.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct ExactSum {
    digits: [i64; DIGITS],
    /// Additions since the last carry.
    added: u32,
    /// The sum of all infinities and NaN.
    special: f64,
}

/// Digits with all carries passed on, and the bits of `special`.
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
        let digits: [i64; DIGITS] = digits.try_into().map_err(|_| "a sum has 68 digits")?;
        let is_carried = digits[..DIGITS - 1].iter().all(|digit| (0..1 << 32).contains(digit));
        match is_carried && digits[DIGITS - 1].unsigned_abs() < 1 << 32 {
            true => Ok(Self { digits, added: 1, special: f64::from_bits(special) }),
            false => Err("a digit of a sum has 32 bits"),
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
    /// Adds a number.
    #[inline]
    pub fn add(&mut self, value: f64) {
        let bits = value.to_bits();
        let exponent = (bits >> 52) as u32 & 0x7ff;
        if exponent == 0x7ff {
            self.special += value;
            return;
        }
        // With the implicit bit, which only subnormal numbers lack.
        let mantissa = bits & ((1 << 52) - 1) | u64::from(exponent > 0) << 52;
        // The number is mantissa * 2^(place - 1074).
        let place = exponent.max(1) - 1;
        let digit = (place / 32) as usize;
        let wide = u128::from(mantissa) << (place % 32);
        let parts = [wide as u32, (wide >> 32) as u32, (wide >> 64) as u32].map(i64::from);
        let digits = &mut self.digits[digit..digit + 3];
        match bits >> 63 == 0 {
            true => digits.iter_mut().zip(parts).for_each(|(digit, part)| *digit += part),
            false => digits.iter_mut().zip(parts).for_each(|(digit, part)| *digit -= part),
        }
        self.count(1);
    }

    /// Adds an integer.
    pub fn add_integer(&mut self, value: u128) {
        let (digit, shift) = ((FRACTION / 32) as usize, FRACTION % 32);
        for i in 0..4 {
            let part = u64::from((value >> (32 * i)) as u32) << shift;
            self.digits[digit + i] += i64::from(part as u32);
            self.digits[digit + i + 1] += (part >> 32) as i64;
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
        if self.added >= MOST {
            self.carry();
        }
    }

    /// Passes carries on: all digits but the last are then from 0 to 2^32 - 1.
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

    /// The sum, rounded to the nearest f64, ties to even.
    pub fn value(&self) -> f64 {
        if self.special != 0.0 {
            return self.special;
        }
        let mut sum = self.clone();
        sum.carry();
        let is_negative = sum.digits[DIGITS - 1] < 0;
        if is_negative {
            sum.digits.iter_mut().for_each(|digit| *digit = -*digit);
            sum.carry();
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::noise::Noise;

    fn sum(values: impl IntoIterator<Item = f64>) -> ExactSum {
        let mut sum = ExactSum::default();
        values.into_iter().for_each(|value| sum.add(value));
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

    #[test]
    fn integers_of_128_bits_are_added() {
        let mut all = ExactSum::default();
        all.add_integer(u128::MAX);
        all.add(-(2f64.powi(128)));
        assert_eq!(all.value(), -1.0);
        all.add_integer(12_345_678_901_234_567_890);
        assert_eq!(all.value(), 12_345_678_901_234_567_889u128 as f64);
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
