//! Flags that take one value for all axes, or one for each axis.

use crate::{api::operation::PerAxis, kernels::blur::MAX_SIGMA};

/// Parses standard deviations of a Gaussian in pixels.
///
/// # Errors
/// When they are not numbers from 0 to [`MAX_SIGMA`].
pub fn parse_sigma(text: &str) -> Result<PerAxis<f64>, String> {
    let sigma = |part: &str| part.parse().ok().filter(|sigma| (0.0..=MAX_SIGMA).contains(sigma));
    parse_per_axis(text, sigma).ok_or_else(|| {
        format!("expected one to three numbers from 0 to {MAX_SIGMA}, such as 2 or 1,1,1.5")
    })
}

/// Parses one to three values separated by commas. `parse` returns `None` for an invalid one.
pub fn parse_per_axis<T: Copy + Default>(
    text: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Option<PerAxis<T>> {
    let values: Vec<T> = text.split(',').map(|part| parse(part.trim())).collect::<Option<_>>()?;
    match values.as_slice() {
        &[one] => Some(PerAxis::from(one)),
        each => (each.len() <= 3).then(|| PerAxis::each(each)),
    }
}
