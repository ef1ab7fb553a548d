//! Conversion of numbers to unsigned keys of the same order, and back without loss.

use std::{borrow::Cow, fmt::Debug};

use crate::{
    data::{
        float_key::{f32_to_key, f64_to_key, key_to_f32, key_to_f64},
        number::Number,
    },
    util::{error::Result, parallel},
};

/// A key of a number: u32 or u64.
pub trait Key: bytemuck::Pod + Debug + Default + From<u32> + Ord + Send + Sync {
    /// Number of bits.
    const BITS: u32;

    /// The key shifted right by `shift`, truncated to `usize`.
    fn bits(self, shift: u32) -> usize;

    /// These bits, and those in which `a` and `b` differ.
    fn or_differing(self, a: Self, b: Self) -> Self;

    /// Index of the highest bit that is set.
    fn highest_bit(self) -> Option<u32>;

    /// The lowest 32-bit words of all keys, then the next words of wider keys.
    fn words(keys: &[Self]) -> Result<Vec<Cow<'_, [u32]>>>;

    /// The keys whose [`words`](Self::words) these are.
    fn from_words(words: Vec<Vec<u32>>) -> Result<Vec<Self>>;
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
    fn from_words(words: Vec<Vec<u32>>) -> Result<Vec<Self>> {
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
    fn from_words(words: Vec<Vec<u32>>) -> Result<Vec<Self>> {
        let word = |at: usize, i: usize| u64::from(words[at][i]);
        parallel::generated(words[0].len(), |i| word(0, i) | word(1, i) << 32)
    }
}

/// A number that is sorted by a key.
pub trait Sortable: Number {
    /// The unsigned integer with as many bits.
    type Key: Key;
    /// The key.
    fn to_key(self) -> Self::Key;
    /// The number of a key.
    fn from_key(key: Self::Key) -> Self;
    /// The key of the opposite order. Reversing it again gives `key`.
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

            const _: () = {
                /// Number of negative NaN: one for each mantissa except 0, which means infinity. They come first in
                /// total order; keys are rotated by this number to put them last.
                const NEGATIVE_NAN: $Key = (1 << ($Float::MANTISSA_DIGITS - 1)) - 1;
                /// The key of infinity. Larger keys are NaN.
                const INFINITY: $Key = $key_of($Float::INFINITY) - NEGATIVE_NAN;

                impl Sortable for $Float {
                    type Key = $Key;
                    fn to_key(self) -> $Key {
                        $key_of(self).wrapping_sub(NEGATIVE_NAN)
                    }
                    fn from_key(key: $Key) -> Self {
                        $float_of(key.wrapping_add(NEGATIVE_NAN))
                    }
                    fn reverse(key: $Key) -> $Key {
                        if key <= INFINITY { INFINITY - key } else { key }
                    }
                }
            };
        )+
    };
}

sortable! {
    u32 i32 f32 f32_to_key key_to_f32;
    u64 i64 f64 f64_to_key key_to_f64;
}
