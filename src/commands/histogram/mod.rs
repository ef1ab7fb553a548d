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

use std::io::{self, Write};

pub use flags::Args;
use flags::{Job, Settings};
use input::Input;
use outcomes::Outcomes;
use tally::Tally;

use super::hints;
use crate::{
    error::{Error, Kind, Result},
    io::Source,
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
        output::write(&outcomes, output, *format, &job.view, session)?;
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

/// Counts all inputs, and how many of them failed. Each is forgotten once its counts are there, and levels
/// once there are statistics.
fn count_all(job: &Job, session: &Session) -> Result<(Outcomes, usize)> {
    let percentages = job.settings.statistics.then_some(&job.view.percentages[..]);
    let mut outcomes = Outcomes::new(MOST_COUNTS.min(session.max_memory / 4));
    let (mut sum, mut failed): (Option<Tally>, _) = (None, 0);
    let mut bar = session.progress.bar("histogram", job.inputs.len() as u64);
    for source in &job.inputs {
        match (count_input(source, &job.settings, session), &mut sum) {
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
        bar.advance(1);
    }
    drop(bar);
    if let Some(sum) = sum {
        outcomes.push(sum.finish(percentages))?;
    }
    match outcomes.len() {
        0 => Err(Error::bad_input("no input could be counted")),
        _ => Ok((outcomes, failed)),
    }
}

/// Reads and counts one input, and writes its adjusted images.
fn count_input(source: &Source, settings: &Settings, session: &Session) -> Result<Tally> {
    let mut input = Input::read(source, settings, session)?;
    adjust::write(source, &mut input, settings, session)?;
    count::count(source, &input, settings, session)
}

fn print_pictures(outcomes: &Outcomes, job: &Job) -> Result<()> {
    let mut stdout = io::stdout().lock();
    let mut print = || {
        for outcome in outcomes.iter() {
            stdout.write_all(terminal::picture(&*outcome?, &job.view).as_bytes())?;
        }
        stdout.flush()
    };
    print().map_err(|error| Error::io("write", "standard output", error))
}
