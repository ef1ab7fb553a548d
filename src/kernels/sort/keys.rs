//! Numbers as u32 keys in their order, and back without loss.

use crate::data::{
    float_key::{f32_of_key, key_of_f32},
    number::Number,
};

/// A number that is sorted by a u32 key.
pub trait Sortable: Number {
    /// The key.
    fn to_key(self) -> u32;
    /// The number of a key.
    fn from_key(key: u32) -> Self;
    /// The key for the opposite order; its own inverse.
    fn reverse(key: u32) -> u32 {
        !key
    }
}

impl Sortable for u32 {
    fn to_key(self) -> u32 {
        self
    }
    fn from_key(key: u32) -> Self {
        key
    }
}

impl Sortable for i32 {
    fn to_key(self) -> u32 {
        self as u32 ^ 1 << 31
    }
    fn from_key(key: u32) -> Self {
        (key ^ 1 << 31) as i32
    }
}

/// How many NaN have a sign. In total order they come first; keys are rotated by so many, to put them last.
const NEGATIVE_NAN: u32 = 0x007f_ffff;
/// The key of infinity: those above it are of NaN.
const INFINITY: u32 = key_of_f32(f32::INFINITY) - NEGATIVE_NAN;

impl Sortable for f32 {
    fn to_key(self) -> u32 {
        key_of_f32(self).wrapping_sub(NEGATIVE_NAN)
    }
    fn from_key(key: u32) -> Self {
        f32_of_key(key.wrapping_add(NEGATIVE_NAN))
    }
    fn reverse(key: u32) -> u32 {
        if key <= INFINITY { INFINITY - key } else { key }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_the_order_and_come_back() {
        let tiny = f32::from_bits(1);
        let nans = [f32::NAN, f32::from_bits(0xffff_ffff), f32::from_bits(0xff80_0001)];
        let ordered = [
            f32::NEG_INFINITY,
            f32::MIN,
            -1.0,
            -tiny,
            -0.0,
            0.0,
            tiny,
            1.0,
            f32::MAX,
            f32::INFINITY,
        ];
        let keys: Vec<u32> = ordered.iter().map(|v| v.to_key()).collect();
        assert!(keys.is_sorted_by(|a, b| a < b));
        let reversed: Vec<u32> = keys.iter().map(|&key| f32::reverse(key)).collect();
        assert!(reversed.is_sorted_by(|a, b| a > b));
        for number in ordered.into_iter().chain(nans) {
            assert_eq!(f32::from_key(number.to_key()).to_bits(), number.to_bits());
            assert_eq!(f32::reverse(f32::reverse(number.to_key())), number.to_key());
        }
        for nan in nans {
            assert!(nan.to_key() > INFINITY && f32::reverse(nan.to_key()) > INFINITY);
        }
        assert!((-1i32).to_key() < 0.to_key() && i32::from_key(i32::MIN.to_key()) == i32::MIN);
    }
}
