//! Flags that take one value for all axes, or one for each axis.

use std::str::FromStr;

use crate::{
    kernels::blur::MAX_SIGMA,
    util::error::{Error, Result},
};

/// Parses standard deviations of a Gaussian in pixels.
///
/// # Errors
/// When they are not numbers from 0 to [`MAX_SIGMA`].
pub fn parse_sigma(text: &str) -> Result<PerAxis<f64>, String> {
    PerAxis::parse(text, |sigma| (0.0..=MAX_SIGMA).contains(sigma)).ok_or_else(|| {
        format!("expected one to three numbers from 0 to {MAX_SIGMA}, such as 2 or 1,1,1.5")
    })
}

/// One value for all axes, or one for each axis.
#[derive(Clone, Debug, PartialEq)]
pub struct PerAxis<T>(Vec<T>);

impl<T: Copy> PerAxis<T> {
    /// Parses one to three values separated by commas, which have to be `valid`.
    pub fn parse(text: &str, valid: impl Fn(&T) -> bool) -> Option<Self>
    where
        T: FromStr,
    {
        let values: Option<Vec<T>> =
            text.split(',').map(|part| part.trim().parse().ok().filter(&valid)).collect();
        values.filter(|values| values.len() <= 3).map(Self)
    }

    /// The values of x, y and z: those of `axes` axes, then `rest`.
    ///
    /// # Errors
    /// As [`PerAxis::expand`].
    pub fn expand_to_three(&self, axes: usize, flag: &str, rest: T) -> Result<[T; 3]> {
        let values = self.expand(axes, flag)?;
        Ok(std::array::from_fn(|axis| values.get(axis).copied().unwrap_or(rest)))
    }

    /// The values of `axes` axes.
    ///
    /// # Errors
    /// Names `flag` when there are neither one nor `axes` values.
    pub fn expand(&self, axes: usize, flag: &str) -> Result<Vec<T>> {
        match self.0[..] {
            [one] => Ok(vec![one; axes]),
            _ if self.0.len() == axes => Ok(self.0.clone()),
            _ => Err(Error::usage(format_args!(
                "{flag} has {} values, but the input has {axes} axes: give 1 value or {axes}",
                self.0.len()
            ))),
        }
    }
}
