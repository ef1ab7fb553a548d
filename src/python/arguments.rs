//! Arguments: numbers of any size, and one value for all axes or one for each.

use pyo3::{
    Borrowed, Bound, FromPyObject, PyAny, PyErr, PyResult,
    exceptions::{PyOverflowError, PyTypeError},
    types::{PyAnyMethods, PyTypeMethods},
};

use crate::util::error::{Error, Result};

/// A value of an argument.
pub(super) trait Argument: Sized {
    /// Name of the type with an article, for messages.
    const NOUN: &'static str;

    /// Reads a value from Python.
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self>;
}

/// An integer. One that `i64` cannot hold becomes its nearest number, so that checks of ranges refuse it by its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Int(pub i64);

/// A float. One that `f64` cannot hold becomes infinite, so that checks of ranges refuse it by its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Real(pub f64);

impl Int {
    /// The value of the argument `name`, which must not be negative.
    pub fn count(self, name: &str) -> Result<usize> {
        usize::try_from(self.0)
            .map_err(|_| Error::usage(format_args!("{name} is {}, expected 0 or more", self.0)))
    }
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

impl Argument for Int {
    const NOUN: &'static str = "an int";

    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        saturated(value, || value.extract::<i64>(), [i64::MIN, i64::MAX]).map(Self)
    }
}

impl Argument for Real {
    const NOUN: &'static str = "a number";

    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        saturated(value, || value.extract::<f64>(), [f64::NEG_INFINITY, f64::INFINITY]).map(Self)
    }
}

impl Argument for String {
    const NOUN: &'static str = "a string";

    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        value.extract()
    }
}

/// The error for an argument of another type. Python's message begins with the name of the argument.
pub(super) fn wrong_type(expected: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let found = value.get_type().name().map_or_else(|_| "another type".into(), |n| n.to_string());
    PyTypeError::new_err(format!("expected {expected}, found {found}"))
}

macro_rules! from_python {
    ($($type:ident)+) => {
        $(impl<'py> FromPyObject<'_, 'py> for $type {
            type Error = PyErr;

            fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
                Self::read(&value).map_err(|error| match error.is_instance_of::<PyTypeError>(value.py()) {
                    true => wrong_type(Self::NOUN, &value),
                    false => error,
                })
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
}

impl<'py, T: Argument> FromPyObject<'_, 'py> for PerAxis<T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(one) = T::read(&value) {
            return Ok(Self::One(one));
        }
        sequence(&value)
            .map(Self::Each)
            .ok_or_else(|| wrong_type(&format!("{} or a sequence of them", T::NOUN), &value))
    }
}

impl<T: Clone> PerAxis<T> {
    /// The values along x, y and z for an array with `axes` axes, each converted by `convert`; `rest` for axes that it
    /// lacks.
    fn along<U: Copy>(
        &self,
        name: &str,
        axes: usize,
        rest: U,
        convert: impl Fn(T) -> Result<U>,
    ) -> Result<[U; 3]> {
        let mut values = [rest; 3];
        match self {
            Self::One(value) => values[..axes].fill(convert(value.clone())?),
            Self::Each(each) if each.len() == axes => {
                for (to, value) in values.iter_mut().zip(each.iter().rev()) {
                    *to = convert(value.clone())?;
                }
            }
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

impl<T: Copy> PerAxis<T> {
    /// The values along x, y and z for an array with `axes` axes; `rest` for axes that it lacks.
    pub fn expand(&self, name: &str, axes: usize, rest: T) -> Result<[T; 3]> {
        self.along(name, axes, rest, Ok)
    }
}

impl PerAxis<Int> {
    /// The values along x, y and z, which must not be negative, for an array with `axes` axes; `rest` for axes that it
    /// lacks.
    pub fn counts(&self, name: &str, axes: usize, rest: usize) -> Result<[usize; 3]> {
        self.along(name, axes, rest, |value| value.count(name))
    }
}

impl PerAxis<Real> {
    /// The values along x, y and z for an array with `axes` axes; `rest` for axes that it lacks.
    pub fn numbers(&self, name: &str, axes: usize, rest: f64) -> Result<[f64; 3]> {
        self.along(name, axes, rest, |value| Ok(value.0))
    }
}
