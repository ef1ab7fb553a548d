//! What is lost between a file and its result. All that reads or writes files tells it here.

use std::fmt::Display;

use crate::error::{Error, Result};

/// Tells that `loss` happens to `subject`, a file's name: an error where `strict`, else a warning.
///
/// # Errors
/// [`Kind::BadInput`](crate::error::Kind::BadInput) where losses are not allowed.
pub fn tell(subject: impl Display, loss: impl Display, strict: bool) -> Result<()> {
    let line = format!("{subject}: {loss}");
    if strict {
        return Err(Error::bad_input(line));
    }
    log::warn!("{line}");
    Ok(())
}
