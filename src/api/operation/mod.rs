//! Operations that are declared once.
//!
//! `operation!` declares the parameters of an operation: it makes a struct with a builder for the library, and a table. The
//! command line and the Python module read the table: flags, help, functions with their documentation, ranges and messages
//! follow from it.

#![cfg_attr(not(feature = "cli"), allow(dead_code, reason = "the command line reads the tables"))]

mod value;

use std::ops::RangeInclusive;

pub(super) use value::choices;
pub use value::{Choice, Given, Kind, PerAxis, Value, WrongParameter};

use crate::{
    kernels::filter::Filter,
    util::error::{Result, check_range},
};

/// A parameter of the operation `T`.
#[derive(Debug)]
pub struct Parameter<T> {
    /// Its name.
    pub name: &'static str,
    /// Its name in Python.
    pub python: &'static str,
    /// Its flag as in help: `-r, --radius <R[,R..]>`.
    pub flag: &'static str,
    /// Its documentation. A name between backticks is another parameter.
    pub text: &'static str,
    /// How front ends read it.
    pub kind: Kind,
    /// The range of its numbers.
    pub range: Option<RangeInclusive<f64>>,
    /// Whether it may be omitted.
    pub is_optional: bool,
    /// Its default, as a literal of Rust. Without one, it is required, or optional, or a switch that is off.
    pub default: Option<&'static str>,
    /// Whether only the command line has it.
    pub is_flag_only: bool,
    /// Returns its value.
    pub get: fn(&T) -> Given,
    /// Sets its value, unless that is of another kind.
    pub set: fn(&mut T, Given),
}

impl<T> Parameter<T> {
    /// Whether all numbers are within the range.
    pub fn is_in_range(&self, given: Given) -> bool {
        self.check(given, 3).is_ok()
    }

    /// Checks the numbers of an input of `axes` axes.
    ///
    /// # Errors
    /// When one is out of range.
    pub fn check(&self, given: Given, axes: usize) -> Result<()> {
        let (Some(range), Given::Numbers(numbers)) = (&self.range, given) else { return Ok(()) };
        numbers
            .values(axes)
            .iter()
            .try_for_each(|&number| check_range(self.name, number, range.clone()))
    }
}

/// A function of an operation in Python.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// The first parameters, which may be given without their names.
    pub positional: &'static [&'static str],
    /// The choice that the function stands for, if it does not stand for the whole operation.
    pub fixed: Option<Fixed>,
    /// A session in Python.
    pub example: &'static str,
}

/// A parameter with one value, and what the operation does then.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    /// Name of the parameter.
    pub parameter: &'static str,
    /// Name of the choice.
    pub choice: &'static str,
    /// Summary of the operation with this value.
    pub text: &'static str,
}

/// The table of an operation. `operation!` makes it.
pub trait Declared: Clone + Default + Send + Sync + 'static {
    /// Documentation of the operation.
    const TEXT: &'static str;
    /// The parameters in the order of help.
    const PARAMETERS: &'static [Parameter<Self>];
    /// The functions in Python.
    const FUNCTIONS: &'static [Function];
    /// Description of the results in Python.
    const RETURNS: &'static str;
    /// Command lines.
    const EXAMPLES: &'static [&'static str];
}

/// An operation from samples to samples.
pub trait Operation: Declared {
    /// The filter that computes it.
    type Kernel: Filter + 'static;

    /// The filter for an input of `axes` axes. All numbers are in their ranges.
    ///
    /// # Errors
    /// When parameters contradict each other or the number of axes.
    fn filter(&self, axes: usize) -> Result<Self::Kernel>;

    /// The filter for an input of `axes` axes.
    ///
    /// # Errors
    /// When a parameter is wrong. The error says which.
    fn kernel(&self, axes: usize) -> Result<Self::Kernel> {
        Self::PARAMETERS.iter().try_for_each(|own| own.check((own.get)(self), axes))?;
        self.filter(axes)
    }
}

/// The value of a parameter before it is set.
pub(super) fn initial<V: Value>(default: Option<Given>) -> V {
    let without = if V::IS_OPTIONAL { Given::Nothing } else { V::KIND.initial() };
    V::from_given(default.unwrap_or(without)).expect("a default of the kind of its parameter")
}

/// Declares an operation: its documentation, the parameters, the functions in Python, and examples of command lines.
///
/// `library` fixes the value of a parameter that only the command line has. A function of Python is followed by its positional
/// parameters, and by the value of a parameter if it stands for a part of the operation. Its other parameters have defaults.
macro_rules! operation {
    (
        $(#[doc = $text:literal])+
        $type:ident {
            $(
                $(#[doc = $help:literal])+
                $field:ident: $value:ty $(= $default:literal)? $(, within $range:expr)?,
                    flag $flag:literal $(, python $python:ident)? $(, library $fixed:literal)?;
            )+
        }
        returns $returns:literal;
        $(
            python $function:ident($($positional:ident),*)
                $(with $parameter:ident $choice:literal: $title:literal)?, $example:literal;
        )+
        examples $($line:literal)+;
    ) => {
        $(#[doc = $text])+
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $type { $($field: $value,)+ }

        impl Default for $type {
            fn default() -> Self {
                Self {
                    $($field: $crate::api::operation::initial::<$value>(
                        operation!(@given $($default)? $($fixed)?)
                    ),)+
                }
            }
        }

        impl $type {
            $(operation! { @setter $field: $value, [$($help)+] $($default)? $(, $fixed)? })+
        }

        impl $crate::api::operation::Declared for $type {
            const TEXT: &'static str = concat!($($text, "\n"),+);
            const PARAMETERS: &'static [$crate::api::operation::Parameter<Self>] = &[$(
                $crate::api::operation::Parameter {
                    name: stringify!($field),
                    python: operation!(@python $field $($python)?),
                    flag: $flag,
                    text: concat!($($help, "\n"),+),
                    kind: <$value as $crate::api::operation::Value>::KIND,
                    range: operation!(@option $($range)?),
                    is_optional: <$value as $crate::api::operation::Value>::IS_OPTIONAL,
                    default: operation!(@option $(stringify!($default))?),
                    is_flag_only: operation!(@is_given $($fixed)?),
                    get: |own| $crate::api::operation::Value::given(own.$field),
                    set: |own, given| {
                        if let Some(value) = $crate::api::operation::Value::from_given(given) {
                            own.$field = value;
                        }
                    },
                },
            )+];
            const FUNCTIONS: &'static [$crate::api::operation::Function] = &[$(
                $crate::api::operation::Function {
                    name: stringify!($function),
                    positional: &[$(stringify!($positional)),*],
                    fixed: operation!(@option $($crate::api::operation::Fixed {
                        parameter: stringify!($parameter),
                        choice: $choice,
                        text: $title,
                    })?),
                    example: $example,
                },
            )+];
            const RETURNS: &'static str = $returns;
            const EXAMPLES: &'static [&'static str] = &[$($line),+];
        }
    };
    (@python $field:ident) => { stringify!($field) };
    (@python $field:ident $python:ident) => { stringify!($python) };
    (@given) => { None };
    (@given $value:literal) => { Some($crate::api::operation::Given::from($value)) };
    (@is_given) => { false };
    (@is_given $value:literal) => { true };
    (@option) => { None };
    (@option $value:expr) => { Some($value) };
    (@setter $field:ident: $value:ty, [$($help:literal)+], $fixed:literal) => {};
    (@setter $field:ident: $value:ty, [$($help:literal)+] $($default:literal)?) => {
        $(#[doc = $help])+
        $(#[doc = concat!("\n\nThe default is ", stringify!($default), ".")])?
        #[must_use]
        pub fn $field(self, $field: impl Into<$value>) -> Self {
            Self { $field: $field.into(), ..self }
        }
    };
}

pub(super) use operation;
