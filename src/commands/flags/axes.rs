//! Flags that take one value for all axes, or one for each axis.

use crate::api::operation::PerAxis;

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
