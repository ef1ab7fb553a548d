//! Operations that are declared once.
//!
//! `operation!` declares the parameters of an operation: it makes a struct with a builder for the library, and a table. The
//! command line and the Python module read the table. Flags, help, functions with their documentation, ranges and
//! messages come from it.

#![cfg_attr(not(feature = "cli"), allow(dead_code, reason = "the command line reads the tables"))]

mod value;

use std::ops::RangeInclusive;

pub(super) use value::choices;
pub use value::{Choice, FINITE, Given, Kind, Number, OneOf, PerAxis, Value, WrongParameter};

use crate::{
    kernels::filter::Filter,
    util::error::{Error, Result, check_range},
};

/// A parameter of the operation `T`.
#[derive(Debug)]
pub struct Parameter<T> {
    /// Its name.
    pub name: &'static str,
    /// Its name in Python. If it is empty, Python does not have the parameter.
    pub python: &'static str,
    /// Its flag as in help: `-r, --radius <R[,R..]>`. If it is empty, the command line does not have the parameter.
    pub flag: &'static str,
    /// Whether only `--help` shows the flag, not `-h`.
    pub is_rare: bool,
    /// How the command line reads it; `None` to read it by its kind.
    pub parse: Option<Parse>,
    /// Its documentation. A name between backticks is another parameter.
    pub text: &'static str,
    /// How front ends read it.
    pub kind: Kind,
    /// The range of its numbers.
    pub range: Option<RangeInclusive<f64>>,
    /// Whether it may be omitted.
    pub is_optional: bool,
    /// Its default, as a Rust literal. Without one, it is required, or optional, or a switch that is off.
    pub default: Option<&'static str>,
    /// Whether the library has no setter for it. Python functions have it only if they list it.
    pub is_flag_only: bool,
    /// The group that it belongs to. Exactly one parameter of a group is given.
    pub group: Option<&'static str>,
    /// The parameter of a group without which it has no meaning.
    pub needs: Option<&'static str>,
    /// Returns its value.
    pub get: fn(&T) -> Given,
    /// Sets its value, unless that is of another kind.
    pub set: fn(&mut T, Given),
}

/// How the command line reads the value of a parameter.
#[derive(Debug)]
pub struct Parse {
    /// Reads a value.
    pub read: fn(&str) -> Result<Given, String>,
    /// Description of the form, at the end of the first paragraph of the documentation.
    pub note: &'static str,
}

impl<T> Parameter<T> {
    /// Whether all numbers are within the range.
    pub fn is_in_range(&self, given: &Given) -> bool {
        self.check(given, 3).is_ok()
    }

    /// Checks the numbers of an input of `axes` axes.
    ///
    /// # Errors
    /// When one is out of range: a [`WrongParameter`].
    pub fn check(&self, given: &Given, axes: usize) -> Result<()> {
        let (Some(range), Given::Numbers(numbers)) = (&self.range, given) else { return Ok(()) };
        let check = |&number: &f64| check_range("", number, range.clone());
        let wrong = |error: Error| WrongParameter::error(self.name, error.to_string());
        numbers.values(axes).iter().try_for_each(check).map_err(wrong)
    }

    /// The documentation, in which each parameter between backticks is replaced by the `name` that a front end has for
    /// it, such as its flag. `note` is added at the end of the first paragraph, before the default.
    pub fn help(&self, note: &str, name: impl Fn(&Self) -> String) -> String
    where
        T: Declared,
    {
        let mut text = spelled(self.text.trim_end(), name);
        let end = text.find(" [default").or(text.find("\n\n")).unwrap_or(text.len());
        text.insert_str(end, note);
        text
    }
}

/// A function of an operation in Python.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// The first parameters, which may be given without their names.
    pub positional: &'static [&'static str],
    /// The keyword-only parameters; `None` for all others of the operation.
    pub keywords: Option<&'static [&'static str]>,
    /// Defaults that differ from those of the operation, as Rust literals.
    pub defaults: &'static [(&'static str, &'static str)],
    /// A parameter that the function fixes, and the choice that is its value.
    pub fixed: Option<(&'static str, &'static str)>,
    /// Summary of the function; `None` for the documentation of the operation.
    pub text: Option<&'static str>,
    /// A session in Python.
    pub example: &'static str,
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
    /// Type of the results in the stub file of Python.
    const RESULT: &'static str = "Array";
    /// Command lines.
    const EXAMPLES: &'static [&'static str];
}

/// `text`, in which each parameter between backticks is replaced by the `name` that a front end has for it.
pub fn spelled<T: Declared>(text: &str, name: impl Fn(&Parameter<T>) -> String) -> String {
    T::PARAMETERS
        .iter()
        .fold(text.to_owned(), |text, own| text.replace(&format!("`{}`", own.name), &name(own)))
}

/// Replaces the parameter that an error is about by the `name` that a front end has for it.
pub fn renamed<T: Declared>(error: Error, name: fn(&Parameter<T>) -> &'static str) -> Error {
    let wrong = error.chain().find_map(|cause| cause.downcast_ref::<WrongParameter>());
    let own = wrong.and_then(|wrong| T::PARAMETERS.iter().find(|own| own.name == wrong.name));
    match (wrong, own) {
        (Some(wrong), Some(own)) => Error::usage(format_args!("{}{}", name(own), wrong.text)),
        _ => error,
    }
}

/// An operation from samples to samples.
pub trait Operation: Declared {
    /// The filter that computes it.
    type Kernel: Into<Box<dyn Filter>>;
    /// Whether results have one channel of classes or labels. If so, Python reads booleans as 0 and 1, and returns
    /// masks as booleans.
    const MAKES_CLASSES: bool = false;

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
        Self::PARAMETERS.iter().try_for_each(|own| own.check(&(own.get)(self), axes))?;
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
/// `in "--help"` hides a flag from `-h`. `parse` names the function that reads its value. `python ""` hides a parameter
/// from Python. `library` gives the value of a parameter for which the library has no setter. `one of NAME` puts a
/// parameter into a group: exactly one of them is given, and the library has constructors in place of setters.
/// `for NAME` makes a parameter belong to one of the group.
///
/// A Python function lists its positional parameters and, after a semicolon, its keyword-only parameters. Without a
/// semicolon, these are all others of the operation. A function may fix a parameter (`with`), and may replace defaults
/// and the summary.
macro_rules! operation {
    (
        $(#[doc = $text:literal])+
        $type:ident $(: $copy:ident)? {
            $(
                $(#[doc = $help:literal])+
                $field:ident: $value:ty $(= $default:literal)? $(, within $range:expr)? $(, flag $flag:literal $(in $level:literal)? $(parse $parse:ident $note:literal)?)?
                    $(, python $python:tt)? $(, library $fixed:tt)? $(, one of $group:ident)? $(, for $needs:ident)?;
            )*
        }
        returns $returns:literal $(as $result:literal)?;
        $(
            python $function:ident(
                $($positional:ident $(= $initial:literal)?),* $(; $($keyword:ident $(= $other:literal)?),*)?
            )
                $(with $parameter:ident $choice:literal)? $(: $title:literal)?, $example:literal;
        )+
        examples $($line:literal)+;
    ) => {
        $(#[doc = $text])+
        #[derive(Clone, Debug, PartialEq $(, $copy)?)]
        pub struct $type { $($field: $value,)* }

        impl Default for $type {
            fn default() -> Self {
                Self {
                    $($field: $crate::api::operation::initial::<$value>(
                        operation!(@given $($default)? $($fixed)?)
                    ),)*
                }
            }
        }

        impl $type {
            $(operation! { @setter $field: $value, [$($help)+] $($default)? $(, $fixed)? $(, $group)? })*
        }

        impl $crate::api::operation::Declared for $type {
            const TEXT: &'static str = concat!($($text, "\n"),+);
            const PARAMETERS: &'static [$crate::api::operation::Parameter<Self>] = &[$(
                $crate::api::operation::Parameter {
                    name: stringify!($field),
                    python: operation!(@python $field $($python)?),
                    flag: concat!($($flag)?),
                    is_rare: operation!(@is_given $($($level)?)?),
                    parse: operation!(@option $($($crate::api::operation::Parse { read: $parse, note: $note })?)?),
                    text: concat!($($help, "\n"),+),
                    kind: <$value as $crate::api::operation::Value>::KIND,
                    range: operation!(@option $($range)?),
                    is_optional: <$value as $crate::api::operation::Value>::IS_OPTIONAL,
                    default: operation!(@option $(stringify!($default))?),
                    is_flag_only: operation!(@is_given $($fixed)?),
                    group: operation!(@option $(stringify!($group))?),
                    needs: operation!(@option $(stringify!($needs))?),
                    get: |own| $crate::api::operation::Value::given(&own.$field),
                    set: |own, given| {
                        if let Some(value) = $crate::api::operation::Value::from_given(given) {
                            own.$field = value;
                        }
                    },
                },
            )*];
            const FUNCTIONS: &'static [$crate::api::operation::Function] = &[$(
                $crate::api::operation::Function {
                    name: stringify!($function),
                    positional: &[$(stringify!($positional)),*],
                    keywords: operation!(@option $(&[$(stringify!($keyword)),*])?),
                    defaults: &[
                        $($((stringify!($positional), stringify!($initial)),)?)*
                        $($($((stringify!($keyword), stringify!($other)),)?)*)?
                    ],
                    fixed: operation!(@option $((stringify!($parameter), $choice))?),
                    text: operation!(@option $($title)?),
                    example: $example,
                },
            )+];
            const RETURNS: &'static str = $returns;
            $(const RESULT: &'static str = $result;)?
            const EXAMPLES: &'static [&'static str] = &[$($line),+];
        }
    };
    (@python $field:ident) => { stringify!($field) };
    (@python $field:ident $python:literal) => { $python };
    (@python $field:ident $python:ident) => { stringify!($python) };
    (@given) => { None };
    (@given $value:tt) => { Some($crate::api::operation::Given::from($value)) };
    (@given $value:tt $fixed:tt) => { operation!(@given $fixed) };
    (@is_given) => { false };
    (@is_given $value:tt) => { true };
    (@option) => { None };
    (@option $value:expr) => { Some($value) };
    (@setter $field:ident: $value:ty, [$($help:literal)+] $($default:literal)?, $($no:tt)+) => {};
    (@setter $field:ident: $value:ty, [$($help:literal)+] $($default:literal)?) => {
        $(#[doc = $help])+
        $(#[doc = concat!("\n\nThe default is ", stringify!($default), ".")])?
        #[must_use]
        pub fn $field(mut self, $field: impl Into<$value>) -> Self {
            self.$field = $field.into();
            self
        }
    };
}

pub(super) use operation;
