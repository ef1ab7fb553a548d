//! The records of a sort.

use crate::util::error::{Error, Result};

/// Keys, with an optional payload.
#[derive(Clone, Debug, PartialEq)]
pub struct Records<T> {
    /// The numbers to be sorted.
    pub keys: Vec<T>,
    /// One value per key, which moves with it.
    pub payload: Option<Vec<u32>>,
}

/// Checks that there is a value for each key.
pub fn same_length(keys: usize, values: usize) -> Result<()> {
    match keys == values {
        true => Ok(()),
        false => Err(Error::bad_input(format_args!(
            "{keys} keys cannot be sorted with a payload of {values} values"
        ))),
    }
}
