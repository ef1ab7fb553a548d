//! The operations of a scan: associative, with an identity (monoids).
//!
//! Minimum and maximum of floats are computed on integer keys in the order of the numbers (-0 before +0), so they are
//! exact on every device. NaN has the lowest key (minimum) or the highest key (maximum), so that it propagates, as in
//! NumPy.

use std::marker::PhantomData;

use serde::Serialize;

use crate::data::{
    float_key::{f32_to_key, f64_to_key, key_to_f32, key_to_f64},
    number::Number,
};

/// Calls a function that is generic over a [`Monoid`] with the monoid of an [`Op`] on numbers of type `$T`.
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

/// The operation of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub enum Op {
    /// Sums; integers wrap around.
    #[default]
    Sum,
    /// Minima; NaN propagates.
    Min,
    /// Maxima; NaN propagates.
    Max,
    /// Products; integers wrap around.
    Product,
}

impl Op {
    /// All operations.
    pub const ALL: [Self; 4] = [Self::Sum, Self::Min, Self::Max, Self::Product];

    /// Applies the operation to two numbers.
    pub fn join<T: Scannable>(self, a: T, b: T) -> T {
        fn joined<M: Monoid>(a: M::Stored, b: M::Stored) -> M::Stored {
            M::from_value(M::join(M::to_value(a), M::to_value(b)))
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

/// An associative operation on numbers of type `Stored`, which is computed on values that represent them.
pub trait Monoid: Send + Sync + 'static {
    /// A number of an array.
    type Stored: Copy + Send + Sync;
    /// The type of computation: the number itself, or its key.
    type Value: Copy + Send + Sync + PartialEq + std::fmt::Debug;
    /// `join(IDENTITY, a) == join(a, IDENTITY) == a`.
    const IDENTITY: Self::Value;
    /// Whether every order of evaluation gives the same bits.
    const EXACT: bool;
    /// Converts a number to a value.
    fn to_value(number: Self::Stored) -> Self::Value;
    /// Converts a value to a number.
    fn from_value(value: Self::Value) -> Self::Stored;
    /// The operation.
    fn join(a: Self::Value, b: Self::Value) -> Self::Value;
}

/// `M` within segments (Schwartz 1980): `(a, s) + (b, t)` is `(b, true)` if `t`, else `(a + b, s)`.
#[derive(Debug)]
pub struct Segmented<M>(PhantomData<M>);

impl<M: Monoid> Monoid for Segmented<M> {
    type Stored = (M::Stored, bool);
    type Value = (M::Value, bool);
    const IDENTITY: Self::Value = (M::IDENTITY, false);
    const EXACT: bool = false;
    #[inline(always)]
    fn to_value((number, starts): Self::Stored) -> Self::Value {
        (M::to_value(number), starts)
    }
    #[inline(always)]
    fn from_value((value, starts): Self::Value) -> Self::Stored {
        (M::from_value(value), starts)
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

    /// The identity of `op`, the default start of an exclusive scan.
    fn identity(op: Op) -> Self {
        fn stored_identity<M: Monoid>() -> M::Stored {
            M::from_value(M::IDENTITY)
        }
        for_op!(op, Self, stored_identity())
    }

    /// Applies `op`; `None` if an integer overflows.
    fn checked(op: Op, a: Self, b: Self) -> Option<Self>;
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

/// Implements a monoid on values of type `$value`. `$to_value` converts numbers to values, `$from_value` converts them
/// back.
macro_rules! monoid {
    (
        $op:ident $type:ident $value:ident $exact:literal $identity:expr, $join:expr,
        $to_value:expr, $from_value:expr
    ) => {
        impl Monoid for $op<$type> {
            type Stored = $type;
            type Value = $value;
            const IDENTITY: $value = $identity;
            const EXACT: bool = $exact;
            #[inline(always)]
            fn to_value(number: $type) -> $value {
                let to_value: fn($type) -> $value = $to_value;
                to_value(number)
            }
            #[inline(always)]
            fn from_value(value: $value) -> $type {
                let from_value: fn($value) -> $type = $from_value;
                from_value(value)
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
    ($type:ident, $checked:expr) => {
        impl Scannable for $type {
            type Sum = Sum<$type>;
            type Min = Min<$type>;
            type Max = Max<$type>;
            type Product = Product<$type>;
            fn checked(op: Op, a: Self, b: Self) -> Option<Self> {
                let checked: fn(Op, $type, $type) -> Option<$type> = $checked;
                checked(op, a, b)
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
            scannable!($type, |op, a, b| match op {
                Op::Sum => a.checked_add(b),
                Op::Product => a.checked_mul(b),
                Op::Min | Op::Max => Some(op.join(a, b)),
            });
        )+
    };
}

integers! { u32 i32 u64 i64 }

/// Implements the operations on floats. Minima and maxima are computed on keys.
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
            scannable!($type, |op, a, b| Some(op.join(a, b)));
        )+
    };
}

floats! { f32 u32 f32_to_key key_to_f32 f64 u64 f64_to_key key_to_f64 }
