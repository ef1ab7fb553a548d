//! Exact division of integers by a known divisor: a multiplication by its reciprocal.
//!
//! With F = ceil(2^k / d) and e = F d - 2^k (so 0 <= e < d):
//!
//! ```text
//! floor(n / d) = floor(n F / 2^k)   for every integer 0 <= n <= N, if N e < 2^k
//! ```
//!
//! since n F / 2^k = n / d + n e / (d 2^k), where the last term is less than 1 / d, and n / d lies at
//! least 1 / d below the next integer. Larger k make e / 2^k smaller and F larger, so that the bits
//! that n F may take are what limits k. (Granlund and Montgomery, Division by Invariant Integers using
//! Multiplication, 1994, theorem 4.2; Warren, Hacker's Delight, chapter 10.)
//!
//! Rounded quotients add floor(d / 2) to n.

use std::ops::Range;

/// The ratio `times / divisor` in lowest terms, so that floor(n times / divisor) takes the fewest bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// The numerator.
    pub times: u32,
    /// The denominator.
    pub divisor: u32,
}

impl Ratio {
    /// The ratio of two numbers, at least one of which is not 0.
    pub fn new(times: u32, divisor: u32) -> Self {
        // Euclid's algorithm: the greatest common divisor.
        let (mut common, mut rest) = (times, divisor);
        while rest > 0 {
            (common, rest) = (rest, common % rest);
        }
        Self { times: times / common, divisor: divisor / common }
    }
}

/// floor(n / d) as `n * factor >> shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reciprocal {
    /// F above.
    pub factor: u64,
    /// k above.
    pub shift: u32,
}

impl Reciprocal {
    /// The reciprocal that is exact for every n up to `largest`, with a factor of at most `largest_factor` and the
    /// largest shift in `shifts` that allows both; `None` if no shift does.
    pub fn new(
        divisor: u64,
        largest: u64,
        largest_factor: u64,
        mut shifts: Range<u32>,
    ) -> Option<Self> {
        let factor = |shift: u32| (1u64 << shift).div_ceil(divisor);
        let shift = shifts.rfind(|&shift| {
            let excess = factor(shift) * divisor - (1 << shift);
            let is_exact = u128::from(largest) * u128::from(excess) < 1 << shift;
            factor(shift) <= largest_factor && is_exact
        })?;
        Some(Self { factor: factor(shift), shift })
    }
}

/// floor((n * 2^up + floor(d / 2)) / d) of u32 as `(n * factor + addend) >> shift` in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundedU32 {
    /// 2^up / d.
    pub factor: u32,
    /// floor(d / 2) / d.
    pub addend: u64,
    /// At least 32.
    pub shift: u32,
}

impl RoundedU32 {
    /// For quotients up to 255; `None` if the factor does not fit.
    pub fn new(up: u32, divisor: u32) -> Option<Self> {
        let divisor = u64::from(divisor);
        // n F < 256 d F, about 2^(8 + shift): shifts below 56 keep it within 64 bits.
        let largest_factor = u64::from(u32::MAX >> up);
        let Reciprocal { factor, shift } =
            Reciprocal::new(divisor, 256 * divisor, largest_factor, 32..56)?;
        Some(Self { factor: (factor << up) as u32, addend: factor * (divisor / 2), shift })
    }

    /// The quotient.
    #[inline(always)]
    pub fn divide(self, n: u32) -> u32 {
        ((u64::from(n) * u64::from(self.factor) + self.addend) >> self.shift) as u32
    }
}

/// floor((n + floor(d / 2)) / d) of u16, in 16-bit lanes: the high half of a product, shifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundedU16 {
    half: u16,
    factor: u16,
    /// The reciprocal's shift less 16.
    shift: u32,
}

impl RoundedU16 {
    /// For quotients up to 255; `None` if n or the factor does not fit.
    pub fn new(divisor: u32) -> Option<Self> {
        let half = u16::try_from(divisor / 2).ok()?;
        let largest = u16::try_from(255 * divisor + u32::from(half)).ok()?;
        let Reciprocal { factor, shift } =
            Reciprocal::new(divisor.into(), largest.into(), u16::MAX.into(), 16..32)?;
        Some(Self { half, factor: factor as u16, shift: shift - 16 })
    }

    /// The quotient.
    #[inline(always)]
    pub fn divide(self, n: u16) -> u16 {
        let product = u32::from(n.wrapping_add(self.half)) * u32::from(self.factor);
        ((product >> 16) as u16) >> self.shift
    }
}

/// floor((n * 2^up + floor(d / 2)) / d) of u32, in f64: for divisors and quotients whose reciprocal
/// does not fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundedF64 {
    scale: f64,
    addend: f64,
    inverse: f64,
}

impl RoundedF64 {
    /// For quotients below 2^24 and divisors below 2^27, or quotients below 2^16 and divisors below 2^32.
    pub fn new(up: u32, divisor: u32) -> Self {
        let addend = f64::from(divisor / 2) + 0.5;
        Self { scale: f64::from(1 << up), addend, inverse: 1.0 / f64::from(divisor) }
    }

    /// The quotient.
    #[inline(always)]
    pub fn divide(self, n: u32) -> u32 {
        self.divide_f64(n.into())
    }

    /// The quotient of a whole number below 2^52 / 2^up.
    ///
    /// For integers x, floor(x / d) is the integer nearest to y = (x + 1/2) / d - 1/2, and y is at least 1 / (2 d) away
    /// from the middle between two: more than its rounding error of about y 2^-52. Adding 2^52 rounds y to an integer,
    /// in the low bits of the float.
    #[inline(always)]
    pub fn divide_f64(self, n: f64) -> u32 {
        let x_and_half = n * self.scale + self.addend;
        let magic = 4_503_599_627_370_496.0;
        (x_and_half * self.inverse - 0.5 + magic).to_bits() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares `divide` with the exact quotient before and after each of its steps up to `max`.
    fn check(up: u32, divisor: u32, max: u64, divide: impl Fn(u32) -> u32) {
        let d = u64::from(divisor);
        let exact = |n: u64| ((n << up) + d / 2) / d;
        for quotient in 1..=max {
            let first = (quotient * d - d / 2).div_ceil(1 << up);
            assert!(exact(first - 1) < quotient && exact(first) >= quotient);
            for n in [first - 1, first, first + 1] {
                let Ok(n) = u32::try_from(n) else { return };
                let expected = exact(n.into());
                if expected <= max {
                    assert_eq!(u64::from(divide(n)), expected, "{n} * 2^{up} / {divisor}");
                }
            }
        }
        assert_eq!(divide(0), 0);
    }

    #[test]
    fn ratios_are_in_lowest_terms() {
        for (times, divisor, reduced) in [
            (256, 1_275_000, (32, 159_375)),
            (100, 255_000, (1, 2550)),
            (7, 12, (7, 12)),
            (0, 9, (0, 1)),
        ] {
            let Ratio { times, divisor } = Ratio::new(times, divisor);
            assert_eq!((times, divisor), reduced);
        }
    }

    #[test]
    fn reciprocals_are_exact_up_to_the_largest_and_no_larger_factor_is() {
        for divisor in 1..300 {
            for largest in [1, divisor, 255 * divisor, 1 << 20] {
                let Some(found) = Reciprocal::new(divisor, largest, 1 << 24, 0..32) else {
                    continue;
                };
                assert!(found.factor <= 1 << 24);
                let quotient = |n: u64| (n * found.factor) >> found.shift;
                let steps =
                    (0..=largest / divisor).flat_map(|q| [q * divisor, (q + 1) * divisor - 1]);
                for n in steps.filter(|&n| n <= largest) {
                    assert_eq!(quotient(n), n / divisor, "{n} / {divisor}");
                }
            }
        }
        assert_eq!(Reciprocal::new(7, 1 << 30, u16::MAX.into(), 0..32), None);
    }

    #[test]
    fn small_divisors_are_exact_in_16_and_32_bits() {
        // The reciprocal of 1 has 33 bits.
        assert_eq!(RoundedU32::new(0, 1), None);
        for divisor in 2..=4096 {
            let wide = RoundedU32::new(0, divisor).expect("small divisors have a reciprocal");
            check(0, divisor, 255, |n| wide.divide(n));
            if let Some(narrow) = RoundedU16::new(divisor) {
                let fits = |n: u32| u16::try_from(n).is_ok_and(|n| n <= u16::MAX - narrow.half);
                check(0, divisor, 255, |n| match fits(n) {
                    true => narrow.divide(n as u16).into(),
                    false => (n + divisor / 2) / divisor,
                });
            }
        }
        // Boxes of up to 15 x 15 taps.
        assert!((1..8).all(|radius: u32| RoundedU16::new((2 * radius + 1).pow(2)).is_some()));
        assert_eq!(RoundedU16::new(257), None);
    }

    #[test]
    fn large_divisors_are_exact() {
        for (up, divisor) in [(0, 9), (0, 25), (2, 1001 * 1001), (0, 3 * 257), (1, 129 * 515)] {
            let wide = RoundedU32::new(up, divisor).expect("it has a reciprocal");
            check(up, divisor, 255, |n| wide.divide(n));
        }
        for (up, divisor) in [(0, 1), (8, 9), (10, 601 * 601), (4, 16001 * 16001), (0, 1 << 27)] {
            let float = RoundedF64::new(up, divisor);
            check(up, divisor, 65535, |n| float.divide(n));
        }
        for divisor in [257, 20_001] {
            let (float, exact) = (RoundedF64::new(0, divisor), |n: u64| {
                (n + u64::from(divisor) / 2) / u64::from(divisor)
            });
            for quotient in (1..1 << 24).step_by(997) {
                let first = quotient * u64::from(divisor) - u64::from(divisor / 2);
                for n in [first - 1, first, first + 1] {
                    assert_eq!(u64::from(float.divide_f64(n as f64)), exact(n), "{n} / {divisor}");
                }
            }
        }
        assert_eq!(RoundedU32::new(20, 3), None);
    }
}
