//! Samples as integers of the same order, so that filters that only compare samples work on integers.
//!
//! -0 is less than +0, and NaN is greater than all numbers. All kinds of NaN become the same NaN.

/// An integer type that filters compare.
pub trait Key: Value<Key = Self> + Ord {
    /// The smallest value.
    const MIN: Self;
    /// The largest value.
    const MAX: Self;

    /// The sum, modulo the size of the type.
    #[must_use]
    fn plus(self, value: i64) -> Self;
}

/// A type of samples.
pub trait Value: bytemuck::Pod + Send + Sync {
    /// The type of its keys.
    type Key: Key;

    /// The key of a sample.
    fn key(self) -> Self::Key;

    /// The sample with this key.
    fn from_key(key: Self::Key) -> Self;
}

macro_rules! integers {
    ($($type:ident)+) => {
        $(impl Key for $type {
            const MIN: Self = Self::MIN;
            const MAX: Self = Self::MAX;

            #[inline(always)]
            fn plus(self, value: i64) -> Self {
                self.wrapping_add(value as Self)
            }
        }

        impl Value for $type {
            type Key = Self;

            #[inline(always)]
            fn key(self) -> Self {
                self
            }

            #[inline(always)]
            fn from_key(key: Self) -> Self {
                key
            }
        })+
    };
}

macro_rules! floats {
    ($($type:ident $Bits:ident $Key:ident $magnitude:ident $NANS:ident;)+) => {
        $(
            /// Number of NaN with a sign.
            const $NANS: $Key = $Key::MAX - $type::INFINITY.to_bits() as $Key;

            /// Complements the magnitudes of negative numbers, or back.
            #[inline(always)]
            fn $magnitude(bits: $Key) -> $Key {
                bits ^ ((bits >> ($Key::BITS - 1)) & $Key::MAX)
            }

            impl Value for $type {
                type Key = $Key;

                #[inline(always)]
                fn key(self) -> $Key {
                    // -inf becomes the smallest key: NaN with a sign, which are less, wrap around to the largest ones.
                    $magnitude(self.to_bits() as $Key).wrapping_sub($NANS)
                }

                #[inline(always)]
                fn from_key(key: $Key) -> Self {
                    let is_nan = key > Self::INFINITY.key();
                    let bits = $magnitude(key.wrapping_add($NANS)) as $Bits;
                    if is_nan { Self::NAN } else { Self::from_bits(bits) }
                }
            }
        )+
    };
}

integers! { u8 i8 u16 i16 u32 i32 i64 }

floats! {
    f32 u32 i32 ordered_f32 NANS_F32;
    f64 u64 i64 ordered_f64 NANS_F64;
}
