//! `gpuproc histogram`: count values, describe them by statistics, draw them.

mod adjust;
mod count;
mod figure;
mod flags;
mod input;
mod outcomes;
mod output;
mod select;
mod tally;
mod terminal;
mod view;

pub use flags::Args;
use flags::{Job, Settings};
use input::Input;
use outcomes::Outcomes;
use tally::Tally;

use super::hints;
use crate::{
    batch::{Batch, Work},
    error::{Error, Kind, Result},
    io::{Source, allow_broken_pipe, standard},
    session::Session,
};

/// Counts every input and writes the results.
///
/// # Errors
/// Those of reading, counting and writing. [`Kind::Partial`] when some inputs of several failed.
pub fn run(args: &Args, session: &Session) -> Result<()> {
    let job = args.job()?;
    let (outcomes, failed) = count_all(&job, session)?;
    for (output, format) in &job.outputs {
        allow_broken_pipe(output::write(&outcomes, output, *format, &job.view, session))?;
    }
    if job.picture {
        session.timings.time("write", || print_pictures(&outcomes, &job))?;
    }
    match failed {
        0 => Ok(()),
        n => Err(Error::new(
            Kind::Partial,
            format_args!("{n} of {} inputs failed; the others are done", job.inputs.len()),
        )),
    }
}

/// Most bytes of counts in memory, beside those of the input that is being counted.
const MOST_COUNTS: u64 = 32 << 20;

/// Bytes of the counts of one input, at most: five components of 16 bits.
const LARGEST_TALLY: u64 = (5 * 8) << 16;

/// Counts all inputs, and how many of them failed. Each is forgotten once its counts are there, and levels
/// once there are statistics.
fn count_all(job: &Job, session: &Session) -> Result<(Outcomes, usize)> {
    let percentages = job.settings.statistics.then_some(&job.view.percentages[..]);
    let mut outcomes = Outcomes::new(MOST_COUNTS.min(session.max_memory / 4));
    let (mut sum, mut failed): (Option<Tally>, _) = (None, 0);
    let ahead = (session.max_memory / 4 / LARGEST_TALLY).clamp(1, 1024) as usize;
    let (memory, progress) = (session.max_memory, session.progress);
    let batch = Batch { title: "histogram", memory, ahead, progress };
    batch.run(&Inputs { settings: &job.settings, session }, &job.inputs, |_, result| {
        match (result, &mut sum) {
            (Ok(tally), Some(sum)) => sum.add(tally)?,
            (Ok(tally), None) if job.sum => sum = Some(tally),
            (Ok(tally), None) => outcomes.push(tally.finish(percentages))?,
            (Err(error), _) if job.inputs.len() == 1 || error.kind() == Kind::Usage => {
                return Err(error);
            }
            (Err(error), _) => {
                failed += 1;
                log::error!("{}", hints::line(&error));
            }
        }
        Ok(())
    })?;
    if let Some(sum) = sum {
        outcomes.push(sum.finish(percentages))?;
    }
    match outcomes.len() {
        0 => Err(Error::bad_input("no input could be counted")),
        _ => Ok((outcomes, failed)),
    }
}

struct Inputs<'a> {
    settings: &'a Settings,
    session: &'a Session,
}

impl Work for Inputs<'_> {
    type Job = Source;
    type Out = Tally;

    fn source<'j>(&self, source: &'j Source) -> &'j Source {
        source
    }

    fn memory(&self, source: &Source) -> Option<u64> {
        Input::memory(source, self.settings)
    }

    /// Reads and counts one input, and writes its adjusted images.
    fn run(&self, source: &Source) -> Result<Tally> {
        let mut input = Input::read(source, self.settings, self.session)?;
        adjust::write(source, &mut input, self.settings, self.session)?;
        count::count(source, &input, self.settings, self.session)
    }
}

fn print_pictures(outcomes: &Outcomes, job: &Job) -> Result<()> {
    outcomes.iter().try_for_each(|outcome| {
        let outcome = outcome.map_err(|error| Error::io("read", "the counts", error))?;
        standard::print(&terminal::picture(&outcome, &job.view))
    })
}
