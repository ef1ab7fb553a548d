//! Reports of losses between an input and its result, for all readers and writers of formats.

use std::{
    fmt::Display,
    sync::{Mutex, PoisonError},
};

use crate::util::error::{Error, Result};

/// Reports the `loss` of `subject`, the name of a file: as an error if `strict`, else as a warning.
pub fn report(subject: impl Display, loss: impl Display, strict: bool) -> Result<()> {
    let line = format!("{subject}: {loss}");
    if strict {
        return Err(Error::bad_input(line));
    }
    log::warn!("{line}");
    Ok(())
}

/// The losses of a file that have been reported.
#[derive(Debug, Default)]
pub struct LossLog(Mutex<Vec<String>>);

impl LossLog {
    /// [Reports](report) a loss once, however many pages have it.
    pub fn report_once(&self, subject: impl Display, loss: &str, strict: bool) -> Result<()> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.iter().any(|known| known == loss) {
            report(subject, loss, strict)?;
            known.push(loss.to_owned());
        }
        Ok(())
    }
}
