//! Keys of IEEE 754 floats: unsigned integers in the order of the floats' values.
//!
//! ```text
//! sign 0: 0eee...mmm   greater bits, greater value   key = bits | sign bit
//! sign 1: 1eee...mmm   greater bits, lesser value    key = !bits
//! ```
//! `a < b` exactly when `key(a) < key(b)`, except for the zeros, which are equal: `key(-0) + 1 = key(+0)`. NaN with a
//! sign lie below all numbers, other NaN above (M. Herf, "Radix Tricks", 2001).

macro_rules! float_keys {
    ($($key:ident $float:ident: $Float:ident $Key:ident;)+) => {
        $(
            /// The key of a float.
            #[inline(always)]
            pub const fn $key(value: $Float) -> $Key {
                let sign = 1 << ($Key::BITS - 1);
                let bits = value.to_bits();
                if bits & sign == 0 { bits | sign } else { !bits }
            }

            /// The float of a key.
            #[inline(always)]
            pub const fn $float(key: $Key) -> $Float {
                let sign = 1 << ($Key::BITS - 1);
                $Float::from_bits(if key & sign == 0 { !key } else { key & !sign })
            }
        )+
    };
}

float_keys! {
    f32_to_key key_to_f32: f32 u32;
    f64_to_key key_to_f64: f64 u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_and_keep_the_order() {
        let ordered = [-f32::NAN, f32::NEG_INFINITY, -1.5, -1e-40, -0.0, 0.0, 1e-40, f32::INFINITY];
        let ordered = [&ordered[..], &[f32::NAN]].concat();
        assert!(ordered.is_sorted_by(|&a, &b| f32_to_key(a) < f32_to_key(b)));
        for value in ordered {
            assert_eq!(key_to_f32(f32_to_key(value)).to_bits(), value.to_bits());
        }
        for value in [f64::MIN, -0.0, 5e-324, f64::MAX] {
            assert_eq!(key_to_f64(f64_to_key(value)).to_bits(), value.to_bits());
        }
        assert!(f64_to_key(-1.0) < f64_to_key(1.0));
    }
}
