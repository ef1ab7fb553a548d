//! `gpuproc histogram`: counts values, describes them by statistics and draws them.

mod adjust;
mod count;
mod estimate;
mod figure;
mod flags;
mod input;
mod outcomes;
mod output;
mod page;
mod parts;
mod select;
mod tally;
mod terminal;
mod view;

pub use flags::{Args, FORMATS, OutputFormat, format_of};
use flags::{Job, Settings};
use input::Input;
use outcomes::Outcomes;
pub use parts::merge;
use tally::Tally;

use super::hints;
use crate::{
    batch::{Batch, Work},
    data::shard::Shard,
    error::{Error, Kind, Result},
    io::{Source, allow_broken_pipe, image::is_jpeg, marker::Marker, standard},
    session::Session,
};

/// Counts every input and writes the results.
///
/// # Errors
/// When reading, counting or writing fails; [`Kind::Partial`] when this concerns some of several inputs.
pub fn run(args: &Args, session: &Session) -> Result<()> {
    let job = args.job()?;
    if let (Some(shard), [(output, _)]) = (job.share.shard, &job.outputs[..]) {
        return parts::write(&job, shard, output, session);
    }
    let marker = job.marker(session)?;
    if marker.as_ref().is_some_and(Marker::is_done) {
        job.inputs.iter().for_each(|input| session.events.skipped(input, None));
        return Ok(());
    }
    session.device.expect(|| estimate::of_inputs(&job.inputs, &job.settings));
    let (outcomes, failed) = outcomes(&job, session)?;
    for (output, format) in &job.outputs {
        allow_broken_pipe(output::write(&outcomes, output, *format, &job.view, session))?;
    }
    for (outputs, format) in &job.outputs_of_each {
        output::write_each(&outcomes, &job.inputs, outputs, *format, &job.view, session)?;
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
        let adjusted = self.settings.adjustments.iter().map(|(sink, _)| sink);
        let each = self.outputs_of_each.iter().flat_map(|(sinks, _)| sinks);
        let outputs = self.outputs.iter().map(|(sink, _)| sink).chain(each).chain(adjusted);
        let names = (&self.outputs, &self.outputs_of_each);
        let parameters = (&self.settings, &self.view, self.sum, names);
        let inputs = self.inputs.iter().chain(&self.settings.selection.mask);
        match self.picture {
            true => Ok(None),
            false => self.share.marker(session, ("histogram", &parameters), inputs, outputs),
        }
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

/// Most bytes of finished counts in memory.
const MOST_COUNTS: u64 = 32 << 20;

/// Most bytes of the counts of one input: five components with 2^16 counts of 8 bytes each.
const LARGEST_TALLY: u64 = (5 * 8) << 16;

/// Counts all inputs. Returns the outcomes and the number of inputs that failed. An input is dropped as soon as it is
/// counted, and its counts of levels once the statistics are computed.
fn outcomes(job: &Job, session: &Session) -> Result<(Outcomes, usize)> {
    let percentages = job.settings.statistics.then_some(&job.view.percentages[..]);
    let mut outcomes = Outcomes::new(MOST_COUNTS.min(session.max_memory / 4));
    let mut sum: Option<Tally> = None;
    let files: Vec<(usize, Source)> = job.inputs.iter().cloned().enumerate().collect();
    let failed = count_all(job, &files, Shard::WHOLE, session, |_, tally| match &mut sum {
        Some(sum) => sum.add(tally),
        None if job.sum => {
            sum = Some(tally);
            Ok(())
        }
        None => outcomes.push(tally.finish(percentages)),
    })?;
    if let Some(sum) = sum {
        outcomes.push(sum.finish(percentages))?;
    }
    if outcomes.len() == 0 {
        finish(failed, job.inputs.len())?;
        return Err(Error::bad_input("no input is named"));
    }
    outcomes.iter().filter_map(Result::ok).for_each(|outcome| {
        session.timings.add_result(|| output::summary(&outcome));
    });
    Ok((outcomes, failed))
}

/// Counts `files`, of volumes only the slices of `shard`, and hands the counts to `consume` in order. Returns the
/// number of files that failed.
fn count_all(
    job: &Job,
    files: &[(usize, Source)],
    shard: Shard,
    session: &Session,
    mut consume: impl FnMut(&(usize, Source), Tally) -> Result<()>,
) -> Result<usize> {
    let mut failed = 0;
    let ahead = (session.max_memory / 4 / LARGEST_TALLY).clamp(1, 1024) as usize;
    let (memory, progress, events) = (session.max_memory, session.progress, &session.events);
    let batch = Batch { title: "histogram", memory, ahead, progress, events };
    let work = Inputs { settings: &job.settings, shard, session };
    batch.run(&work, files, |file, result| {
        match result {
            Ok(tally) => consume(file, tally)?,
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

struct Inputs<'a> {
    settings: &'a Settings,
    /// The shard of the slices of volumes that is counted.
    shard: Shard,
    session: &'a Session,
}

impl Work for Inputs<'_> {
    /// An input and its number among the inputs.
    type Job = (usize, Source);
    type Out = Tally;

    fn source<'j>(&self, (_, source): &'j (usize, Source)) -> &'j Source {
        source
    }

    fn memory(&self, (_, source): &(usize, Source)) -> Option<u64> {
        Input::memory(source, self.settings)
    }

    /// Reads and counts one input, and writes its adjusted images.
    fn run(&self, (_, source): &(usize, Source)) -> Result<Tally> {
        let session =
            &self.session.for_file(|| self.settings.takes_only_counts() && is_jpeg(source));
        let mut input = Input::read(source, self.settings, session)?;
        adjust::write(source, &mut input, self.settings, session)?;
        count::count(source, &input, self.settings, self.shard, session)
    }
}

fn print_pictures(outcomes: &Outcomes, job: &Job) -> Result<()> {
    outcomes.iter().try_for_each(|outcome| {
        let outcome = outcome.map_err(|error| Error::io("read", "the counts", error))?;
        standard::print(&terminal::picture(&outcome, &job.view))
    })
}
