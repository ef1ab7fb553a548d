//! Values of parameters: their types, and the form in which front ends read them.

use std::{array, ops::RangeInclusive};

use crate::util::error::{Error, Result};

/// The range of finite numbers.
pub const FINITE: RangeInclusive<f64> = f64::MIN..=f64::MAX;

/// One value for all axes, or one for each of x, y and z. For images, z is ignored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerAxis<T> {
    values: [T; 3],
    /// Number of axes that an input must have.
    axes: Option<usize>,
}

impl<T: Copy> From<T> for PerAxis<T> {
    fn from(value: T) -> Self {
        Self { values: [value; 3], axes: None }
    }
}

impl<T> From<[T; 3]> for PerAxis<T> {
    fn from(values: [T; 3]) -> Self {
        Self { values, axes: None }
    }
}

impl<T: Copy + Default> PerAxis<T> {
    /// One value for each axis of the input, that along x first.
    pub(crate) fn each(values: &[T]) -> Self {
        let value = |axis| values.get(axis).copied().unwrap_or_default();
        Self { values: array::from_fn(value), axes: Some(values.len()) }
    }

    /// The values for an input of `axes` axes, and 0 for the other axes.
    ///
    /// # Errors
    /// Names `parameter` when the input has another number of axes.
    pub(crate) fn along(&self, parameter: &'static str, axes: usize) -> Result<[T; 3]> {
        match self.axes {
            Some(count) if count != axes => {
                let text = format!(
                    " has {count} values, but the input has {axes} axes: give 1 value or {axes}"
                );
                Err(WrongParameter::error(parameter, text))
            }
            _ => Ok(Self::each(&self.values[..axes]).values),
        }
    }
}

impl<T: Copy> PerAxis<T> {
    /// The values along the first `axes` axes.
    pub(crate) fn values(&self, axes: usize) -> &[T] {
        &self.values[..axes.min(self.axes.unwrap_or(3)).min(3)]
    }

    pub(crate) fn map<U>(self, convert: impl Fn(T) -> U) -> PerAxis<U> {
        PerAxis { values: self.values.map(convert), axes: self.axes }
    }
}

/// An error about the parameter `name`. The command line shows the flag in place of the name, and Python the argument.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{name}{text}")]
pub struct WrongParameter {
    /// Name of the parameter.
    pub name: &'static str,
    /// Text of the message after the name.
    pub text: String,
}

impl WrongParameter {
    /// An error about the parameter `name`.
    pub fn error(name: &'static str, text: String) -> Error {
        let wrong = Self { name, text };
        Error::usage(&wrong).caused_by(wrong)
    }
}

/// A value as a front end reads it.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// An optional value that is omitted.
    Nothing,
    /// Whether a switch is on.
    Switch(bool),
    /// The first name of a choice.
    Choice(&'static str),
    /// A number, or one for each axis.
    Numbers(PerAxis<f64>),
    /// A list of numbers.
    List(Vec<f64>),
    /// The first names of several choices.
    Choices(Vec<&'static str>),
    /// A text.
    Text(String),
}

impl Given {
    /// The name, if this is a choice.
    pub fn choice(&self) -> Option<&'static str> {
        if let Self::Choice(name) = self { Some(name) } else { None }
    }
}

impl From<()> for Given {
    fn from((): ()) -> Self {
        Self::Nothing
    }
}

impl From<f64> for Given {
    fn from(number: f64) -> Self {
        Self::Numbers(number.into())
    }
}

impl From<i32> for Given {
    fn from(number: i32) -> Self {
        f64::from(number).into()
    }
}

impl From<bool> for Given {
    fn from(is_on: bool) -> Self {
        Self::Switch(is_on)
    }
}

impl From<&'static str> for Given {
    fn from(choice: &'static str) -> Self {
        Self::Choice(choice)
    }
}

/// A value of a parameter with a fixed set of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The name that is shown, and others behind bars: `ball|disk`.
    pub names: &'static str,
    /// The names in Python, if they differ.
    pub python: Option<&'static str>,
    /// Meaning in help.
    pub text: &'static str,
}

impl Choice {
    /// A choice without a text, whose names in Python differ.
    pub(crate) const fn named_in_python(names: &'static str, python: &'static str) -> Self {
        Self { names, python: Some(python), text: "" }
    }

    /// The name that is shown.
    pub fn name(&self) -> &'static str {
        self.names.split('|').next().unwrap_or_default()
    }

    /// The names in Python. The first is shown.
    pub fn python_names(&self) -> impl Iterator<Item = &'static str> {
        self.python.unwrap_or(self.name()).split('|')
    }

    /// Whether the user may write `name` for it.
    pub fn is_called(&self, name: &str) -> bool {
        self.names.split('|').any(|own| own == name)
    }
}

/// The kind of a parameter. Front ends read a value by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A flag without a value.
    Switch,
    /// One of these choices.
    Choice(&'static [Choice]),
    /// A number, or several.
    Number {
        /// Whether it is an integer.
        is_whole: bool,
        /// Whether there may be one for each axis.
        is_per_axis: bool,
    },
    /// A list of numbers.
    List,
    /// One of these axes. In Python, the number of the axis of the array that is removed.
    Axis(&'static [Choice]),
    /// Any number of these choices.
    Choices(&'static [Choice]),
    /// One of these choices, or a number. In Python, a choice for all axes or for each.
    ChoiceOrNumber(&'static [Choice]),
    /// One of these choices, or two numbers in ascending order.
    ChoiceOrRange(&'static [Choice]),
    /// Two numbers in ascending order.
    Pair,
    /// A text.
    Text,
}

impl Kind {
    /// The choices, if there are some.
    pub const fn choices(self) -> &'static [Choice] {
        match self {
            Self::Choice(choices)
            | Self::Axis(choices)
            | Self::Choices(choices)
            | Self::ChoiceOrNumber(choices)
            | Self::ChoiceOrRange(choices) => choices,
            _ => &[],
        }
    }

    /// The value of a parameter without a default, before it is set.
    pub fn initial(self) -> Given {
        match self {
            Self::Switch => Given::Switch(false),
            Self::Choice(choices)
            | Self::Axis(choices)
            | Self::ChoiceOrNumber(choices)
            | Self::ChoiceOrRange(choices) => Given::Choice(choices[0].name()),
            Self::Choices(_) => Given::Nothing,
            Self::Number { .. } => Given::from(0.0),
            Self::List => Given::List(Vec::new()),
            Self::Pair => Given::List(vec![0.0; 2]),
            Self::Text => Given::Text(String::new()),
        }
    }
}

/// The type of a parameter.
pub trait Value: Clone {
    /// How front ends read it.
    const KIND: Kind;
    /// Whether the value may be omitted.
    const IS_OPTIONAL: bool = false;

    /// The value that a front end has read; `None` if it is of another kind.
    fn from_given(given: Given) -> Option<Self>;

    /// The value in the form in which front ends read it.
    fn given(&self) -> Given;
}

/// The type of a parameter with a fixed set of values.
pub trait OneOf: Value {}

/// Makes an enum the type of a parameter. Each variant has its names and what it means.
macro_rules! choices {
    ($type:ty { $($variant:ident: $names:literal, $text:literal;)+ }) => {
        impl $crate::api::operation::OneOf for $type {}

        impl $crate::api::operation::Value for $type {
            const KIND: $crate::api::operation::Kind = $crate::api::operation::Kind::Choice(
                &[$($crate::api::operation::Choice { names: $names, python: None, text: $text }),+]
            );

            fn from_given(given: $crate::api::operation::Given) -> Option<Self> {
                let $crate::api::operation::Given::Choice(name) = given else { return None };
                $(
                    if $names.split('|').next() == Some(name) {
                        return Some(Self::$variant);
                    }
                )+
                None
            }

            fn given(&self) -> $crate::api::operation::Given {
                let names = match self { $(Self::$variant => $names),+ };
                $crate::api::operation::Given::Choice(names.split('|').next().unwrap_or_default())
            }
        }
    };
}

pub(in super::super) use choices;

/// The type of a number.
pub trait Number: Copy + Default {
    /// Whether it is an integer.
    const IS_WHOLE: bool;

    /// The number of this type that is nearest to `number`.
    fn from_f64(number: f64) -> Self;

    /// The number, rounded to 53 bits.
    fn to_f64(self) -> f64;
}

impl Number for f64 {
    const IS_WHOLE: bool = false;

    fn from_f64(number: f64) -> Self {
        number
    }

    fn to_f64(self) -> f64 {
        self
    }
}

impl Number for usize {
    const IS_WHOLE: bool = true;

    fn from_f64(number: f64) -> Self {
        number as Self
    }

    fn to_f64(self) -> f64 {
        self as f64
    }
}

impl<N: Number> Value for N {
    const KIND: Kind = Kind::Number { is_whole: N::IS_WHOLE, is_per_axis: false };

    fn from_given(given: Given) -> Option<Self> {
        PerAxis::<N>::from_given(given).map(|number| number.values[0])
    }

    fn given(&self) -> Given {
        PerAxis::from(*self).given()
    }
}

impl<N: Number> Value for PerAxis<N> {
    const KIND: Kind = Kind::Number { is_whole: N::IS_WHOLE, is_per_axis: true };

    fn from_given(given: Given) -> Option<Self> {
        let Given::Numbers(numbers) = given else { return None };
        Some(numbers.map(N::from_f64))
    }

    fn given(&self) -> Given {
        Given::Numbers((*self).map(N::to_f64))
    }
}

impl Value for bool {
    const KIND: Kind = Kind::Switch;

    fn from_given(given: Given) -> Option<Self> {
        let Given::Switch(is_on) = given else { return None };
        Some(is_on)
    }

    fn given(&self) -> Given {
        Given::Switch(*self)
    }
}

impl Value for String {
    const KIND: Kind = Kind::Text;

    fn from_given(given: Given) -> Option<Self> {
        if let Given::Text(text) = given { Some(text) } else { None }
    }

    fn given(&self) -> Given {
        Given::Text(self.clone())
    }
}

impl<V: Value> Value for Option<V> {
    const KIND: Kind = V::KIND;
    const IS_OPTIONAL: bool = true;

    fn from_given(given: Given) -> Option<Self> {
        if given == Given::Nothing { Some(None) } else { V::from_given(given).map(Some) }
    }

    fn given(&self) -> Given {
        self.as_ref().map_or(Given::Nothing, V::given)
    }
}

impl Value for Vec<f64> {
    const KIND: Kind = Kind::List;

    fn from_given(given: Given) -> Option<Self> {
        if let Given::List(numbers) = given { Some(numbers) } else { None }
    }

    fn given(&self) -> Given {
        Given::List(self.clone())
    }
}

impl<V: OneOf> Value for Vec<V> {
    const KIND: Kind = Kind::Choices(V::KIND.choices());
    const IS_OPTIONAL: bool = true;

    fn from_given(given: Given) -> Option<Self> {
        let names = match given {
            Given::Nothing => Vec::new(),
            Given::Choices(names) => names,
            _ => return None,
        };
        names.into_iter().map(|name| V::from_given(Given::Choice(name))).collect()
    }

    fn given(&self) -> Given {
        Given::Choices(self.iter().filter_map(|own| own.given().choice()).collect())
    }
}

impl Value for [f64; 2] {
    const KIND: Kind = Kind::Pair;

    fn from_given(given: Given) -> Option<Self> {
        Vec::<f64>::from_given(given)?.try_into().ok()
    }

    fn given(&self) -> Given {
        Given::List(self.to_vec())
    }
}
