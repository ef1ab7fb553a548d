//! Counts many inputs in parallel.

use super::{
    adjust, count,
    input::{CountJob, Input},
    job::HistogramJob,
    tally::Tally,
};
use crate::{
    data::shard::Shard,
    engine::{
        DescribeOnce,
        batch::{Work, run_batch},
        hints,
        session::Session,
    },
    io::{Source, Sources, image::is_jpeg},
    kernels::histogram::VALUE_COUNTS_BYTES,
    util::error::{Kind, Result},
};

/// Counts `files`, of volumes only the slices of `shard`. Several threads call `finish` with the counts of a file;
/// `consume` gets the index of each file and the result of `finish`, in order. Returns the number of files that failed.
pub fn count_all<O: Send>(
    job: &HistogramJob,
    files: &Sources,
    shard: Shard,
    session: &Session,
    finish: impl Fn(Tally) -> O + Sync,
    mut consume: impl FnMut(usize, O) -> Result<()>,
) -> Result<usize> {
    let mut failed = 0;
    let work = Inputs { job, shard, session, finish };
    run_batch(&work, "histogram", files, session, |number, result| {
        match result {
            Ok(finished) => consume(number, finished)?,
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
    job: &'a HistogramJob,
    /// Of volumes, only the slices of this shard are counted.
    shard: Shard,
    session: &'a Session,
    finish: F,
}

impl<O: Send, F: Fn(Tally) -> O + Sync> Work for Inputs<'_, F> {
    type Job = CountJob;
    type Out = O;

    fn job(&self, source: Source) -> Result<CountJob> {
        Ok(CountJob { source, described: DescribeOnce::default() })
    }

    fn result_bytes(&self) -> u64 {
        /// Five components with 2^16 counts of 8 bytes each.
        const TALLY: u64 = (5 * 8) << 16;
        // The values of finished inputs are needed only for `--sum`.
        let has_values = self.job.sum && self.job.settings.statistics;
        TALLY + if has_values { VALUE_COUNTS_BYTES } else { 0 }
    }

    fn memory(&self, job: &CountJob) -> Option<u64> {
        Input::memory(job, &self.job.settings)
    }

    /// Reads and counts one input, and writes its adjusted images.
    fn run(&self, job: &CountJob) -> Result<O> {
        let (source, settings) = (&job.source, &self.job.settings);
        let session = &self.session.for_file(|| settings.needs_only_counts() && is_jpeg(source));
        let mut input = Input::read(job, settings, session)?;
        adjust::write(source, &mut input, settings, session)?;
        let tally = count::count(source, &input, settings, self.shard, session)?;
        drop(input);
        Ok((self.finish)(tally))
    }
}
