//! Numbers as unsigned keys in their order, and back without loss.

use std::{borrow::Cow, fmt::Debug};

use crate::{
    data::{
        float_key::{f32_of_key, f64_of_key, key_of_f32, key_of_f64},
        number::Number,
    },
    util::{error::Result, parallel},
};

/// A key of a number: u32 or u64.
pub trait Key: bytemuck::Pod + Debug + Default + From<u32> + Ord + Send + Sync {
    /// How many bits it has.
    const BITS: u32;

    /// The key shifted right by `shift`; where `usize` is narrower than the key, its lowest 32 bits.
    fn bits(self, shift: u32) -> usize;

    /// The union of these bits and of those in which `a` and `b` differ.
    fn or_differing(self, a: Self, b: Self) -> Self;

    /// The place of the highest bit that is set.
    fn highest_bit(self) -> Option<u32>;

    /// The lowest 32-bit words of all keys, then, of wider keys, the next words.
    ///
    /// # Errors
    /// When the memory is not there.
    fn words(keys: &[Self]) -> Result<Vec<Cow<'_, [u32]>>>;

    /// The keys of such [`words`](Self::words).
    ///
    /// # Errors
    /// When the memory is not there.
    fn of_words(words: Vec<Vec<u32>>) -> Result<Vec<Self>>;
}

impl Key for u32 {
    const BITS: u32 = Self::BITS;
    fn bits(self, shift: u32) -> usize {
        (self >> shift) as usize
    }
    fn or_differing(self, a: Self, b: Self) -> Self {
        self | (a ^ b)
    }
    fn highest_bit(self) -> Option<u32> {
        self.checked_ilog2()
    }
    fn words(keys: &[Self]) -> Result<Vec<Cow<'_, [u32]>>> {
        Ok(vec![keys.into()])
    }
    fn of_words(words: Vec<Vec<u32>>) -> Result<Vec<Self>> {
        Ok(words.into_iter().next().unwrap_or_default())
    }
}

impl Key for u64 {
    const BITS: u32 = Self::BITS;
    fn bits(self, shift: u32) -> usize {
        (self >> shift) as usize
    }
    fn or_differing(self, a: Self, b: Self) -> Self {
        self | (a ^ b)
    }
    fn highest_bit(self) -> Option<u32> {
        self.checked_ilog2()
    }
    fn words(keys: &[Self]) -> Result<Vec<Cow<'_, [u32]>>> {
        let low = parallel::mapped(keys, |&key| key as u32)?;
        let high = parallel::mapped(keys, |&key| (key >> 32) as u32)?;
        Ok(vec![low.into(), high.into()])
    }
    fn of_words(words: Vec<Vec<u32>>) -> Result<Vec<Self>> {
        let word = |at: usize, i: usize| u64::from(words[at][i]);
        parallel::generated(words[0].len(), |i| word(0, i) | word(1, i) << 32)
    }
}

/// A number that is sorted by a key.
pub trait Sortable: Number {
    /// As many bits as the number has.
    type Key: Key;
    /// The key.
    fn to_key(self) -> Self::Key;
    /// The number of a key.
    fn from_key(key: Self::Key) -> Self;
    /// The key for the opposite order; its own inverse.
    fn reverse(key: Self::Key) -> Self::Key;
}

macro_rules! sortable {
    ($($Key:ident $Signed:ident $Float:ident $key_of:ident $float_of:ident;)+) => {
        $(
            impl Sortable for $Key {
                type Key = $Key;
                fn to_key(self) -> $Key {
                    self
                }
                fn from_key(key: $Key) -> Self {
                    key
                }
                fn reverse(key: $Key) -> $Key {
                    !key
                }
            }

            impl Sortable for $Signed {
                type Key = $Key;
                fn to_key(self) -> $Key {
                    self as $Key ^ 1 << ($Key::BITS - 1)
                }
                fn from_key(key: $Key) -> Self {
                    (key ^ 1 << ($Key::BITS - 1)) as $Signed
                }
                fn reverse(key: $Key) -> $Key {
                    !key
                }
            }

            impl Floats for $Float {
                type Bits = $Key;
                // One for each mantissa except 0, which is infinity's.
                const NEGATIVE_NAN: $Key = (1 << ($Float::MANTISSA_DIGITS - 1)) - 1;
                const INFINITY: $Key = $key_of($Float::INFINITY) - Self::NEGATIVE_NAN;
            }

            impl Sortable for $Float {
                type Key = $Key;
                fn to_key(self) -> $Key {
                    $key_of(self).wrapping_sub(<$Float as Floats>::NEGATIVE_NAN)
                }
                fn from_key(key: $Key) -> Self {
                    $float_of(key.wrapping_add(<$Float as Floats>::NEGATIVE_NAN))
                }
                fn reverse(key: $Key) -> $Key {
                    let infinity = <$Float as Floats>::INFINITY;
                    if key <= infinity { infinity - key } else { key }
                }
            }
        )+
    };
}

/// Constants for the keys of a float type.
trait Floats {
    type Bits;
    /// How many NaN have a sign. In total order they come first; keys are rotated by this number, to put them last.
    const NEGATIVE_NAN: Self::Bits;
    /// The key of infinity: those above it are of NaN.
    const INFINITY: Self::Bits;
}

sortable! {
    u32 i32 f32 key_of_f32 f32_of_key;
    u64 i64 f64 key_of_f64 f64_of_key;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ordered` and `nans` have keys in their order, `nans` last also in the opposite order, and all come back.
    fn check<T: Sortable>(ordered: &[T], nans: &[T]) {
        let keys: Vec<_> = ordered.iter().map(|v| v.to_key()).collect();
        assert!(keys.is_sorted_by(|a, b| a < b));
        let reversed: Vec<_> = keys.iter().map(|&key| T::reverse(key)).collect();
        assert!(reversed.is_sorted_by(|a, b| a > b));
        for &number in ordered.iter().chain(nans) {
            let key = number.to_key();
            assert_eq!(bytemuck::bytes_of(&T::from_key(key)), bytemuck::bytes_of(&number));
            assert_eq!(T::reverse(T::reverse(key)), key);
        }
        for &nan in nans {
            assert!(nan.to_key() > keys[keys.len() - 1] && T::reverse(nan.to_key()) > reversed[0]);
        }
    }

    #[test]
    fn keys_keep_the_order_and_come_back() {
        let (tiny, infinity) = (f32::from_bits(1), f32::INFINITY);
        let ordered = [-infinity, f32::MIN, -1.0, -tiny, -0.0, 0.0, tiny, 1.0, f32::MAX, infinity];
        check(&ordered, &[f32::NAN, f32::from_bits(0xffff_ffff), f32::from_bits(0xff80_0001)]);
        let (tiny, infinity) = (f64::from_bits(1), f64::INFINITY);
        let ordered = [-infinity, f64::MIN, -1.0, -tiny, -0.0, 0.0, tiny, 1.0, f64::MAX, infinity];
        check(&ordered, &[f64::NAN, f64::from_bits(u64::MAX), f64::from_bits(0xfff << 52 | 1)]);
        check(&[i32::MIN, -1, 0, i32::MAX], &[]);
        check(&[i64::MIN, -1, 0, i64::MAX], &[]);
        check(&[0, u64::MAX], &[]);
    }

    #[test]
    fn words_make_their_keys() {
        let keys = [0, 1, u64::MAX - 1, 0x0123_4567_89ab_cdef];
        let words = u64::words(&keys).unwrap().into_iter().map(Cow::into_owned).collect();
        assert_eq!(u64::of_words(words).unwrap(), keys);
    }
}
