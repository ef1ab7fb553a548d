//! The records of a sort.

use crate::util::error::{Error, Result};

/// Keys, perhaps with a value each.
#[derive(Clone, Debug, PartialEq)]
pub struct Records<T> {
    /// The numbers to be sorted.
    pub keys: Vec<T>,
    /// As many values, moved along with the keys.
    pub payload: Option<Vec<u32>>,
}

/// Whether there is a value for each key.
///
/// # Errors
/// [`Kind::BadInput`](crate::util::error::Kind::BadInput) when there is not.
pub fn same_length(keys: usize, values: usize) -> Result<()> {
    match keys == values {
        true => Ok(()),
        false => Err(Error::bad_input(format_args!(
            "{keys} keys cannot be sorted with a payload of {values} values"
        ))),
    }
}
