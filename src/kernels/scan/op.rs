//! The operations of a scan: associative, with an identity (monoids).
//!
//! Minimum and maximum of floats are those of integer keys in the order of the numbers (-0 before +0),
//! so they are exact on every device. A NaN has the lowest key (minimum) or the highest (maximum), so it
//! is kept, as in NumPy.

use std::marker::PhantomData;

use serde::Serialize;

use crate::data::{
    float_key::{f32_of_key, f64_of_key, key_of_f32, key_of_f64},
    number::Number,
};

/// An operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub enum Op {
    /// Sums; integers wrap around.
    #[default]
    Sum,
    /// Minima; NaN where there is one.
    Min,
    /// Maxima; NaN where there is one.
    Max,
    /// Products; integers wrap around.
    Product,
}

impl Op {
    /// Every operation.
    pub const ALL: [Self; 4] = [Self::Sum, Self::Min, Self::Max, Self::Product];

    /// Two numbers joined.
    pub fn join<T: Scannable>(self, a: T, b: T) -> T {
        fn of<M: Monoid>(a: M::Stored, b: M::Stored) -> M::Stored {
            M::leave(M::join(M::enter(a), M::enter(b)))
        }
        match self {
            Self::Sum => of::<T::Sum>(a, b),
            Self::Min => of::<T::Min>(a, b),
            Self::Max => of::<T::Max>(a, b),
            Self::Product => of::<T::Product>(a, b),
        }
    }
}

impl std::fmt::Display for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Sum => "sums",
            Self::Min => "minima",
            Self::Max => "maxima",
            Self::Product => "products",
        })
    }
}

/// An associative operation on numbers of type `Stored`, computed on values that represent them.
pub trait Monoid: Send + Sync + 'static {
    /// A number of an array.
    type Stored: Copy + Send + Sync;
    /// The type of computation: the number, or a key in the order of numbers.
    type Value: Copy + Send + Sync + PartialEq + std::fmt::Debug;
    /// `join(IDENTITY, a) == join(a, IDENTITY) == a`.
    const IDENTITY: Self::Value;
    /// Whether every order of joining gives the same bits.
    const EXACT: bool;
    /// The value of a number.
    fn enter(number: Self::Stored) -> Self::Value;
    /// The number of a value.
    fn leave(value: Self::Value) -> Self::Stored;
    /// The operation.
    fn join(a: Self::Value, b: Self::Value) -> Self::Value;
}

/// `M`, anew from each number that begins a segment. After Schwartz (1980): `(a, s) + (b, t)` is
/// `(b, true)` where `t`, else `(a + b, s)`.
#[derive(Debug)]
pub struct Segmented<M>(PhantomData<M>);

impl<M: Monoid> Monoid for Segmented<M> {
    type Stored = (M::Stored, bool);
    type Value = (M::Value, bool);
    const IDENTITY: Self::Value = (M::IDENTITY, false);
    const EXACT: bool = false;
    #[inline(always)]
    fn enter((number, begins): Self::Stored) -> Self::Value {
        (M::enter(number), begins)
    }
    #[inline(always)]
    fn leave((value, begins): Self::Value) -> Self::Stored {
        (M::leave(value), begins)
    }
    #[inline(always)]
    fn join(a: Self::Value, b: Self::Value) -> Self::Value {
        (if b.1 { b.0 } else { M::join(a.0, b.0) }, a.1 | b.1)
    }
}

/// A number type with all four operations.
pub trait Scannable: Number {
    /// [`Op::Sum`].
    type Sum: Monoid<Stored = Self>;
    /// [`Op::Min`].
    type Min: Monoid<Stored = Self>;
    /// [`Op::Max`].
    type Max: Monoid<Stored = Self>;
    /// [`Op::Product`].
    type Product: Monoid<Stored = Self>;

    /// The identity of `op`, with which an exclusive scan starts by default.
    fn identity(op: Op) -> Self {
        fn of<M: Monoid>() -> M::Stored {
            M::leave(M::IDENTITY)
        }
        match op {
            Op::Sum => of::<Self::Sum>(),
            Op::Min => of::<Self::Min>(),
            Op::Max => of::<Self::Max>(),
            Op::Product => of::<Self::Product>(),
        }
    }

    /// The sum; `None` where an integer overflows.
    fn checked_sum(self, other: Self) -> Option<Self>;

    /// The product; `None` where an integer overflows.
    fn checked_product(self, other: Self) -> Option<Self>;
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident)+) => {
        $($(#[$doc])* #[derive(Debug)] pub struct $name<T>(PhantomData<T>);)+
    };
}

operations! {
    /// Sums of `T`.
    Sum
    /// Minima of `T`.
    Min
    /// Maxima of `T`.
    Max
    /// Products of `T`.
    Product
}

macro_rules! plain {
    ($op:ident $type:ident $exact:literal $identity:expr, $join:expr) => {
        impl Monoid for $op<$type> {
            type Stored = $type;
            type Value = $type;
            const IDENTITY: $type = $identity;
            const EXACT: bool = $exact;
            #[inline(always)]
            fn enter(number: $type) -> $type {
                number
            }
            #[inline(always)]
            fn leave(value: $type) -> $type {
                value
            }
            #[inline(always)]
            fn join(a: $type, b: $type) -> $type {
                let join: fn($type, $type) -> $type = $join;
                join(a, b)
            }
        }
    };
}

macro_rules! scannable {
    ($type:ident, $checked_sum:expr, $checked_product:expr) => {
        impl Scannable for $type {
            type Sum = Sum<$type>;
            type Min = Min<$type>;
            type Max = Max<$type>;
            type Product = Product<$type>;
            fn checked_sum(self, other: Self) -> Option<Self> {
                let sum: fn($type, $type) -> Option<$type> = $checked_sum;
                sum(self, other)
            }
            fn checked_product(self, other: Self) -> Option<Self> {
                let product: fn($type, $type) -> Option<$type> = $checked_product;
                product(self, other)
            }
        }
    };
}

macro_rules! integers {
    ($($type:ident)+) => {
        $(
            plain!(Sum $type true 0, $type::wrapping_add);
            plain!(Product $type true 1, $type::wrapping_mul);
            plain!(Min $type true $type::MAX, Ord::min);
            plain!(Max $type true $type::MIN, Ord::max);
            scannable!($type, $type::checked_add, $type::checked_mul);
        )+
    };
}

integers! { u32 i32 u64 i64 }

macro_rules! floats {
    ($($type:ident $key:ident $to_key:ident $from_key:ident)+) => {
        $(
            plain!(Sum $type false 0.0, |a, b| a + b);
            plain!(Product $type false 1.0, |a, b| a * b);
            extreme!(Min $type $key $to_key $from_key $key::MIN, $type::INFINITY, Ord::min);
            extreme!(Max $type $key $to_key $from_key $key::MAX, $type::NEG_INFINITY, Ord::max);
            scannable!($type, |a, b| Some(a + b), |a, b| Some(a * b));
        )+
    };
}

/// A minimum or maximum on keys; `$nan` is the key of every NaN, which no other number has.
macro_rules! extreme {
    (
        $op:ident $type:ident $key:ident $to_key:ident $from_key:ident $nan:expr,
        $identity:expr, $join:expr
    ) => {
        impl Monoid for $op<$type> {
            type Stored = $type;
            type Value = $key;
            const IDENTITY: $key = $to_key($identity);
            const EXACT: bool = true;
            #[inline(always)]
            fn enter(number: $type) -> $key {
                if number.is_nan() { $nan } else { $to_key(number) }
            }
            #[inline(always)]
            fn leave(key: $key) -> $type {
                if key == $nan { $type::NAN } else { $from_key(key) }
            }
            #[inline(always)]
            fn join(a: $key, b: $key) -> $key {
                let join: fn($key, $key) -> $key = $join;
                join(a, b)
            }
        }
    };
}

floats! { f32 u32 key_of_f32 f32_of_key f64 u64 key_of_f64 f64_of_key }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_changes_nothing_and_nan_stays() {
        for number in [f32::NEG_INFINITY, -1.5, -1e-40, -0.0, 0.0, 1e-40, 2.0, f32::INFINITY] {
            let key = Min::<f32>::enter(number);
            assert_eq!(Min::<f32>::leave(key).to_bits(), number.to_bits());
            assert!(Min::<f32>::join(Min::<f32>::IDENTITY, key) == key);
            assert!(Max::<f32>::join(Max::<f32>::IDENTITY, key) == key);
            for nan in [f32::NAN, -f32::NAN] {
                assert!(Min::<f32>::leave(Min::<f32>::join(Min::<f32>::enter(nan), key)).is_nan());
                assert!(Max::<f32>::leave(Max::<f32>::join(Max::<f32>::enter(nan), key)).is_nan());
            }
        }
    }
}
