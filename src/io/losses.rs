//! Reports of what is lost between an input and its result. All readers and writers of formats report losses here.

use std::fmt::Display;

use crate::util::error::{Error, Result};

/// Reports that `loss` happens to `subject`, the name of a file: as an error if `strict`, else as a warning.
///
/// # Errors
/// [`Kind::BadInput`](crate::util::error::Kind::BadInput) if `strict`.
pub fn tell(subject: impl Display, loss: impl Display, strict: bool) -> Result<()> {
    let line = format!("{subject}: {loss}");
    if strict {
        return Err(Error::bad_input(line));
    }
    log::warn!("{line}");
    Ok(())
}
