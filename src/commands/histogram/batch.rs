//! Counts many inputs side by side.

use super::{adjust, count, input::Input, job::Job, tally::Tally};
use crate::{
    data::shard::Shard,
    engine::{
        batch::{Work, run_batch},
        hints,
        session::Session,
    },
    io::{Source, Sources, image::is_jpeg},
    kernels::histogram::VALUE_COUNTS_BYTES,
    util::error::{Error, Kind, Result},
};

/// The result of a run in which `failed` of `total` inputs failed.
pub fn finish(failed: usize, total: usize) -> Result<()> {
    match failed {
        0 => Ok(()),
        n => {
            let others = if n < total { "; the others are done" } else { "" };
            Err(Error::new(Kind::Partial, format_args!("{n} of {total} inputs failed{others}")))
        }
    }
}

/// Counts `files`, of volumes only the slices of `shard`. Several threads call `keep` with the counts of a file; `consume`
/// takes the number of each file, and what `keep` has returned, in order. Returns the number of files that failed.
pub fn count_all<O: Send>(
    job: &Job,
    files: &Sources,
    shard: Shard,
    session: &Session,
    keep: impl Fn(Tally) -> O + Sync,
    mut consume: impl FnMut(usize, O) -> Result<()>,
) -> Result<usize> {
    let mut failed = 0;
    let work = Inputs { job, shard, session, keep };
    run_batch(&work, "histogram", files, session, |number, result| {
        match result {
            Ok(kept) => consume(number, kept)?,
            Err(error) if job.inputs.len() == 1 || error.kind() == Kind::Usage => {
                return Err(error);
            }
            Err(error) => {
                failed += 1;
                log::error!("{}", hints::line(&error));
            }
        }
        Ok(())
    })?;
    Ok(failed)
}

struct Inputs<'a, F> {
    job: &'a Job,
    /// The shard of the slices of volumes that is counted.
    shard: Shard,
    session: &'a Session,
    keep: F,
}

impl<O: Send, F: Fn(Tally) -> O + Sync> Work for Inputs<'_, F> {
    type Job = Source;
    type Out = O;

    fn job(&self, source: Source) -> Result<Source> {
        Ok(source)
    }

    fn result_bytes(&self) -> u64 {
        /// Five components with 2^16 counts of 8 bytes each.
        const TALLY: u64 = (5 * 8) << 16;
        // The values of finished inputs are needed only for `--sum`.
        let has_values = self.job.sum && self.job.settings.statistics;
        TALLY + if has_values { VALUE_COUNTS_BYTES } else { 0 }
    }

    fn memory(&self, source: &Source) -> Option<u64> {
        Input::memory(source, &self.job.settings)
    }

    /// Reads and counts one input, and writes its adjusted images.
    fn run(&self, source: &Source) -> Result<O> {
        let settings = &self.job.settings;
        let session = &self.session.for_file(|| settings.takes_only_counts() && is_jpeg(source));
        let mut input = Input::read(source, settings, session)?;
        adjust::write(source, &mut input, settings, session)?;
        let tally = count::count(source, &input, settings, self.shard, session)?;
        drop(input);
        Ok((self.keep)(tally))
    }
}
