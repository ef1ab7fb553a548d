//! Work on many files of which each has an output of its own.

use super::hints;
use crate::{
    batch::{Batch, Work},
    error::{Error, Kind, Result},
    io::Sources,
    session::Session,
};

/// Does `work` for all `sources`, many side by side, below a progress bar with `title`. A file that fails is reported and
/// left out.
///
/// # Errors
/// [`Kind::Partial`] when some files fail, and those of [`Batch::run`].
pub fn each_file<W: Work>(
    title: &'static str,
    work: &W,
    sources: &Sources,
    session: &Session,
) -> Result<()> {
    let mut failed = 0;
    let (memory, progress, events) = (session.max_memory, session.progress, &session.events);
    let batch = Batch { title, memory, ahead: 1024, progress, events };
    batch.run(work, sources, |_, result| {
        if let Err(error) = result {
            log::error!("{}", hints::line(&error));
            failed += 1;
        }
        Ok(())
    })?;
    let total = sources.len();
    match failed {
        0 => Ok(()),
        _ => Err(Error::new(Kind::Partial, format_args!("{failed} of {total} files failed"))),
    }
}
