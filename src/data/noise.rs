//! Seeded noise for benchmarks and tests: SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom
//! Number Generators, OOPSLA 2014).
//!
//! Number n is `mix(seed + (n + 1) * GAMMA)`. It depends on no other number, so all cores can fill one vector.

use crate::util::{error::Result, parallel};

/// 2^64 divided by the golden ratio, made odd.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// An endless sequence of uniform 64-bit numbers after a seed.
#[derive(Clone, Debug)]
pub struct Noise(pub u64);

impl Noise {
    /// The number `n` places ahead in the sequence, counted from 0.
    pub fn at(&self, n: u64) -> u64 {
        let z = self.0.wrapping_add(n.wrapping_add(1).wrapping_mul(GAMMA));
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "an endless sequence needs no Option")]
    pub fn next(&mut self) -> u64 {
        let number = self.at(0);
        self.0 = self.0.wrapping_add(GAMMA);
        number
    }

    /// The next number, uniform in 0..1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The upper bytes of the next `len` numbers.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 56) as u8).collect()
    }

    /// `value` of each of the first `len` numbers, computed by all cores.
    pub fn collect<T: Send>(&self, len: usize, value: impl Fn(u64) -> T + Sync) -> Result<Vec<T>> {
        parallel::generated(len, |n| value(self.at(n as u64)))
    }

    /// The upper halves of the first `len` numbers, computed by all cores.
    pub fn u32s(&self, len: usize) -> Result<Vec<u32>> {
        self.collect(len, |number| (number >> 32) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // Of Vigna's splitmix64.c.
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        let mut noise = Noise(1_234_567);
        assert_eq!(noise.collect(5, |number| number).unwrap(), expected);
        assert_eq!([(); 5].map(|()| noise.next()), expected);
    }
}
