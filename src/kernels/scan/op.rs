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

/// Calls a function that is generic over a [`Monoid`]. The monoid is that of an [`Op`] on numbers of type `$T`.
macro_rules! for_op {
    ($op:expr, $T:ty, $($function:ident)::+($($argument:expr),*)) => {
        match $op {
            $crate::kernels::scan::Op::Sum =>
                $($function)::+::<<$T as $crate::kernels::scan::Scannable>::Sum>($($argument),*),
            $crate::kernels::scan::Op::Min =>
                $($function)::+::<<$T as $crate::kernels::scan::Scannable>::Min>($($argument),*),
            $crate::kernels::scan::Op::Max =>
                $($function)::+::<<$T as $crate::kernels::scan::Scannable>::Max>($($argument),*),
            $crate::kernels::scan::Op::Product =>
                $($function)::+::<<$T as $crate::kernels::scan::Scannable>::Product>($($argument),*),
        }
    };
}
pub(super) use for_op;

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
        fn joined<M: Monoid>(a: M::Stored, b: M::Stored) -> M::Stored {
            M::leave(M::join(M::enter(a), M::enter(b)))
        }
        for_op!(self, T, joined(a, b))
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
        for_op!(op, Self, of())
    }

    /// The sum; `None` where an integer overflows.
    fn checked_sum(self, other: Self) -> Option<Self>;

    /// The product; `None` where an integer overflows.
    fn checked_product(self, other: Self) -> Option<Self>;
}

/// Sums of `T`.
#[derive(Debug)]
pub struct Sum<T>(PhantomData<T>);

/// Minima of `T`.
#[derive(Debug)]
pub struct Min<T>(PhantomData<T>);

/// Maxima of `T`.
#[derive(Debug)]
pub struct Max<T>(PhantomData<T>);

/// Products of `T`.
#[derive(Debug)]
pub struct Product<T>(PhantomData<T>);

/// Implements a monoid on values of type `$value`. `$enter` converts numbers to values, `$leave` converts them back.
macro_rules! monoid {
    (
        $op:ident $type:ident $value:ident $exact:literal $identity:expr, $join:expr,
        $enter:expr, $leave:expr
    ) => {
        impl Monoid for $op<$type> {
            type Stored = $type;
            type Value = $value;
            const IDENTITY: $value = $identity;
            const EXACT: bool = $exact;
            #[inline(always)]
            fn enter(number: $type) -> $value {
                let enter: fn($type) -> $value = $enter;
                enter(number)
            }
            #[inline(always)]
            fn leave(value: $value) -> $type {
                let leave: fn($value) -> $type = $leave;
                leave(value)
            }
            #[inline(always)]
            fn join(a: $value, b: $value) -> $value {
                let join: fn($value, $value) -> $value = $join;
                join(a, b)
            }
        }
    };
    // Values are the numbers themselves.
    ($op:ident $type:ident $exact:literal $identity:expr, $join:expr) => {
        monoid!($op $type $type $exact $identity, $join, |number| number, |value| value);
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
            monoid!(Sum $type true 0, $type::wrapping_add);
            monoid!(Product $type true 1, $type::wrapping_mul);
            monoid!(Min $type true $type::MAX, Ord::min);
            monoid!(Max $type true $type::MIN, Ord::max);
            scannable!($type, $type::checked_add, $type::checked_mul);
        )+
    };
}

integers! { u32 i32 u64 i64 }

/// Minima and maxima are computed on keys. NaN has a key that no other number has.
macro_rules! floats {
    ($($type:ident $key:ident $to_key:ident $from_key:ident)+) => {
        $(
            monoid!(Sum $type false 0.0, |a, b| a + b);
            monoid!(Product $type false 1.0, |a, b| a * b);
            monoid!(
                Min $type $key true $to_key($type::INFINITY), Ord::min,
                |number| if number.is_nan() { $key::MIN } else { $to_key(number) },
                |key| if key == $key::MIN { $type::NAN } else { $from_key(key) }
            );
            monoid!(
                Max $type $key true $to_key($type::NEG_INFINITY), Ord::max,
                |number| if number.is_nan() { $key::MAX } else { $to_key(number) },
                |key| if key == $key::MAX { $type::NAN } else { $from_key(key) }
            );
            scannable!($type, |a, b| Some(a + b), |a, b| Some(a * b));
        )+
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
