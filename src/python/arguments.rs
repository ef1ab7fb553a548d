//! Arguments: numbers of any size, and one value for all axes or one for each. Errors name the argument.

use pyo3::{
    Borrowed, Bound, FromPyObject, PyAny, PyErr, PyResult,
    exceptions::{PyOverflowError, PyTypeError},
    types::PyAnyMethods,
};

use crate::util::error::{Error, Result};

/// A value of an argument.
pub(super) trait Argument: Sized {
    /// Name of the type with an article, for messages.
    const NOUN: &'static str;

    /// Reads a value from Python.
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self>;
}

/// An argument has another type than `expected`.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("expected {expected}{}", if *is_sequence { " or a sequence of them" } else { "" })]
pub(super) struct WrongType {
    expected: &'static str,
    is_sequence: bool,
}

impl WrongType {
    /// The error for the argument `name`, which becomes a TypeError.
    pub fn of(self, name: &str) -> Error {
        Error::usage(name).caused_by(self)
    }
}

/// An integer. Its type and range are checked on use, where the argument's name is known. One that `i64` cannot hold
/// becomes the nearest number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Int(pub Result<i64, WrongType>);

/// A float. Its type and range are checked on use, where the argument's name is known. One that `f64` cannot hold
/// becomes infinite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Real(pub Result<f64, WrongType>);

impl Int {
    /// The value of the argument `name`.
    pub fn number(self, name: &str) -> Result<i64> {
        self.0.map_err(|wrong| wrong.of(name))
    }

    /// The value of the argument `name`, which must not be negative.
    pub fn count(self, name: &str) -> Result<usize> {
        count(name, self.number(name)?)
    }
}

impl Real {
    /// The value of the argument `name`.
    pub fn number(self, name: &str) -> Result<f64> {
        self.0.map_err(|wrong| wrong.of(name))
    }
}

fn count(name: &str, number: i64) -> Result<usize> {
    usize::try_from(number)
        .map_err(|_| Error::usage(format_args!("{name} is {number}, expected 0 or more")))
}

/// The number that `read` reads. One that overflows becomes the first of `ends` if it is negative, else the second.
fn saturated<T>(
    value: &Bound<'_, PyAny>,
    read: impl FnOnce() -> PyResult<T>,
    [lowest, highest]: [T; 2],
) -> PyResult<T> {
    match read() {
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
            Ok(if value.lt(0)? { lowest } else { highest })
        }
        found => found,
    }
}

impl Argument for i64 {
    const NOUN: &'static str = "an int";

    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        saturated(value, || value.extract(), [Self::MIN, Self::MAX])
    }
}

impl Argument for f64 {
    const NOUN: &'static str = "a number";

    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        saturated(value, || value.extract(), [Self::NEG_INFINITY, Self::INFINITY])
    }
}

impl Argument for String {
    const NOUN: &'static str = "a string";

    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        value.extract()
    }
}

/// Reads a value of the type `T`, if it is one.
pub(super) fn given<T: Argument>(value: &Bound<'_, PyAny>) -> PyResult<Result<T, WrongType>> {
    match T::read(value) {
        Err(error) if error.is_instance_of::<PyTypeError>(value.py()) => {
            Ok(Err(WrongType { expected: T::NOUN, is_sequence: false }))
        }
        found => found.map(Ok),
    }
}

macro_rules! from_python {
    ($($type:ident)+) => {
        $(impl<'py> FromPyObject<'_, 'py> for $type {
            type Error = PyErr;

            fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
                given(&value).map(Self)
            }
        })+
    };
}

from_python! { Int Real }

/// Several values; `None` if `value` is not a sequence of them.
pub(super) fn sequence<T: Argument>(value: &Bound<'_, PyAny>) -> Option<Vec<T>> {
    let all: Vec<Bound<'_, PyAny>> = value.extract().ok()?;
    all.iter().map(|value| T::read(value).ok()).collect()
}

/// One value for all axes, or one for each axis in the order of the array.
pub(super) enum PerAxis<T> {
    One(T),
    Each(Vec<T>),
    Wrong(WrongType),
}

impl<'py, T: Argument> FromPyObject<'_, 'py> for PerAxis<T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(one) = T::read(&value) {
            return Ok(Self::One(one));
        }
        let wrong = Self::Wrong(WrongType { expected: T::NOUN, is_sequence: true });
        Ok(sequence(&value).map_or(wrong, Self::Each))
    }
}

impl<T: Copy> PerAxis<T> {
    /// The values along x, y and z for an array with `axes` axes; `rest` for axes that it lacks.
    pub fn expand(&self, name: &str, axes: usize, rest: T) -> Result<[T; 3]> {
        let mut values = [rest; 3];
        match self {
            Self::One(value) => values[..axes].fill(*value),
            Self::Each(each) if each.len() == axes => {
                for (to, value) in values.iter_mut().zip(each.iter().rev()) {
                    *to = *value;
                }
            }
            Self::Wrong(wrong) => return Err(wrong.of(name)),
            Self::Each(each) => {
                return Err(Error::usage(format_args!(
                    "{name} has {} values, but the array has {axes} axes: expected 1 value or {axes}",
                    each.len()
                )));
            }
        }
        Ok(values)
    }
}

impl<T> PerAxis<T> {
    /// All values of the argument `name`, which are not for axes.
    pub fn list(self, name: &str) -> Result<Vec<T>> {
        match self {
            Self::One(value) => Ok(vec![value]),
            Self::Each(values) => Ok(values),
            Self::Wrong(wrong) => Err(wrong.of(name)),
        }
    }
}
