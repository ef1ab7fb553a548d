//! `gpuproc histogram`: counts values, describes them by statistics and draws them.

mod adjust;
mod count;
mod estimate;
mod figure;
mod flags;
mod input;
mod job;
mod outcomes;
mod output;
mod page;
mod parts;
mod select;
mod style;
mod tally;
mod terminal;
mod view;

pub use flags::{Args, FORMATS};
use input::Input;
pub use job::OutputFormat;
use job::{Job, Settings};
use outcomes::Outcomes;
pub use parts::merge;
use tally::Tally;

use crate::{
    data::shard::Shard,
    engine::{
        batch::{Batch, Work},
        hints,
        session::Session,
    },
    io::{Sink, Source, Sources, allow_broken_pipe, image::is_jpeg, marker::Marker, standard},
    kernels::histogram::VALUES_BYTES,
    util::error::{Error, Kind, Result},
};

/// Counts every input and writes the results.
///
/// # Errors
/// When reading, counting or writing fails; [`Kind::Partial`] when this concerns some of several inputs.
pub fn run(args: Args, session: &Session) -> Result<()> {
    let job = args.job(session)?;
    if let (Some(shard), [(output, _)]) = (job.share.shard, &job.outputs[..]) {
        return parts::write(&job, shard, output, session);
    }
    let marker = job.marker(session)?;
    if marker.as_ref().is_some_and(Marker::is_done) {
        job.inputs.iter().for_each(|input| session.events.skipped(&input, None));
        return Ok(());
    }
    session.device.expect(|| estimate::of_inputs(&job.inputs, &job.settings));
    let (outcomes, failed) = outcomes(&job, session)?;
    for (output, format) in &job.outputs {
        allow_broken_pipe(output::write(&outcomes, output, *format, &job.view, session))?;
    }
    for outputs in &job.outputs_of_each {
        output::write_each(&outcomes, &job.inputs, outputs, &job.view, session)?;
    }
    if job.picture {
        session.timings.time("write", || print_pictures(&outcomes, &job))?;
    }
    finish(failed, job.inputs.len())?;
    marker.map_or(Ok(()), |marker| marker.write())
}

impl Job {
    /// The marker file that records a finished job, for `--resume`.
    fn marker(&self, session: &Session) -> Result<Option<Marker>> {
        if self.picture || !self.share.resumes {
            return Ok(None);
        }
        let (sinks, formats): (Vec<_>, Vec<_>) = self.outputs.iter().cloned().unzip();
        let (adjusted, adjustments): (Vec<_>, Vec<_>) =
            self.settings.adjustments.iter().cloned().unzip();
        let each = self.outputs_of_each.iter().flat_map(|each| each.sinks(&self.inputs));
        let outputs: Vec<Sink> = sinks.into_iter().chain(each).chain(adjusted).collect();
        let of_each: Vec<_> = self.outputs_of_each.iter().map(|each| each.format).collect();
        let written = (formats, of_each, adjustments);
        let parameters = (&self.settings, &self.view, self.sum, written);
        self.share.marker(session, ("histogram", &parameters), &self.all_inputs(), &outputs)
    }
}

/// The result of a run in which `failed` of `total` inputs failed.
fn finish(failed: usize, total: usize) -> Result<()> {
    match failed {
        0 => Ok(()),
        n => {
            let others = if n < total { "; the others are done" } else { "" };
            Err(Error::new(Kind::Partial, format_args!("{n} of {total} inputs failed{others}")))
        }
    }
}

/// Most bytes of finished counts in memory, where no temporary file can be made.
const MOST_COUNTS: u64 = 32 << 20;

/// Most bytes of the counts of one input: five components with 2^16 counts of 8 bytes each.
const LARGEST_TALLY: u64 = (5 * 8) << 16;

/// Counts all inputs. Returns the outcomes and the number of inputs that failed. An input is dropped as soon as it is
/// counted, and its counts of levels once the statistics are computed.
fn outcomes(job: &Job, session: &Session) -> Result<(Outcomes, usize)> {
    let percentages = job.settings.statistics.then_some(&job.view.percentages[..]);
    let mut outcomes = Outcomes::new(MOST_COUNTS.min(session.max_memory / 4));
    let failed = if job.sum {
        let mut sum: Option<Tally> = None;
        let failed = count_all(
            job,
            &job.inputs,
            Shard::WHOLE,
            session,
            |tally| tally,
            |_, tally| {
                match &mut sum {
                    Some(sum) => sum.add(tally)?,
                    None => sum = Some(tally),
                }
                Ok(())
            },
        )?;
        if let Some(sum) = sum {
            outcomes.push(&sum.finish(percentages))?;
        }
        failed
    } else {
        let keep = |tally: Tally| tally.finish(percentages);
        let push = |_, outcome| outcomes.push(&outcome);
        count_all(job, &job.inputs, Shard::WHOLE, session, keep, push)?
    };
    if outcomes.len() == 0 {
        finish(failed, job.inputs.len())?;
        return Err(Error::bad_input("no input is named"));
    }
    output::note(&outcomes, &session.timings);
    Ok((outcomes, failed))
}

/// Counts `files`, of volumes only the slices of `shard`. Several threads call `keep` with the counts of a file; `consume`
/// takes the number of each file, and what `keep` has returned, in order. Returns the number of files that failed.
fn count_all<O: Send>(
    job: &Job,
    files: &Sources,
    shard: Shard,
    session: &Session,
    keep: impl Fn(Tally) -> O + Sync,
    mut consume: impl FnMut(usize, O) -> Result<()>,
) -> Result<usize> {
    let mut failed = 0;
    // The values of finished inputs are needed only for `--sum`.
    let values = if job.sum && job.settings.statistics { VALUES_BYTES } else { 0 };
    let ahead = (session.max_memory / 4 / (LARGEST_TALLY + values)).clamp(1, 1024) as usize;
    let (memory, progress, events) = (session.max_memory, session.progress, &session.events);
    let batch = Batch { title: "histogram", memory, ahead, progress, events };
    let work = Inputs { settings: &job.settings, shard, session, keep };
    batch.run(&work, files, |number, result| {
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
    settings: &'a Settings,
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

    fn memory(&self, source: &Source) -> Option<u64> {
        Input::memory(source, self.settings)
    }

    /// Reads and counts one input, and writes its adjusted images.
    fn run(&self, source: &Source) -> Result<O> {
        let session =
            &self.session.for_file(|| self.settings.takes_only_counts() && is_jpeg(source));
        let mut input = Input::read(source, self.settings, session)?;
        adjust::write(source, &mut input, self.settings, session)?;
        let tally = count::count(source, &input, self.settings, self.shard, session)?;
        drop(input);
        Ok((self.keep)(tally))
    }
}

fn print_pictures(outcomes: &Outcomes, job: &Job) -> Result<()> {
    outcomes.iter().try_for_each(|outcome| {
        let outcome = outcome.map_err(|error| Error::io("read", "the counts", error))?;
        standard::print(&terminal::picture(&outcome, &job.view))
    })
}
