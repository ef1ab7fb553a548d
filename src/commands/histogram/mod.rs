//! `gpuproc histogram`: counts values, computes statistics and draws plots.

mod adjust;
mod batch;
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

use batch::count_all;
pub use flags::Args;
use job::HistogramJob;
pub use job::{FORMATS, Format};
use outcomes::Outcomes;
pub use parts::merge;
use tally::Tally;

use crate::{
    data::shard::Shard,
    engine::session::Session,
    io::{Sink, allow_broken_pipe, marker::Marker, standard},
    util::error::{Error, Result},
};

/// Counts every input and writes the results.
pub fn run(args: Args, session: &Session) -> Result<()> {
    let job = args.job(session)?;
    if let (Some(shard), [(output, _)]) = (job.sharding.shard, &job.outputs.combined[..]) {
        return parts::write(&job, shard, output, session);
    }
    let marker = job.marker(session)?;
    if marker.as_ref().is_some_and(Marker::is_done) {
        job.inputs.iter().for_each(|input| session.events.skipped(&input, None));
        return Ok(());
    }
    session.device.set_estimate(|| estimate::for_inputs(&job.inputs, &job.settings));
    let (outcomes, failed) = outcomes(&job, session)?;
    for (output, format) in &job.outputs.combined {
        allow_broken_pipe(output::write(&outcomes, output, *format, &job.view, session))?;
    }
    for outputs in &job.outputs.per_input {
        output::write_each(&outcomes, &job.inputs, outputs, &job.view, session)?;
    }
    if job.picture {
        session.timings.time("write", || print_pictures(&outcomes, &job))?;
    }
    Error::if_any_failed(failed, job.inputs.len(), "inputs")?;
    marker.map_or(Ok(()), |marker| marker.write())
}

impl HistogramJob {
    /// Marker file of a finished job, for `--resume`.
    fn marker(&self, session: &Session) -> Result<Option<Marker>> {
        if self.picture || !self.sharding.resume {
            return Ok(None);
        }
        let (adjusted, adjustments): (Vec<_>, Vec<_>) =
            self.settings.adjustments.iter().cloned().unzip();
        let mut outputs: Vec<Sink> = self.outputs.sinks(&self.inputs).chain(adjusted).collect();
        let mut inputs = self.all_inputs();
        for input in self.inputs.iter() {
            let side = self.settings.steps.side_files_of(&input, &self.settings.layout)?;
            inputs.extend(side.reads.into_iter().map(|(_, source)| source));
            outputs.extend(side.writes.into_iter().map(|(_, sink)| sink));
        }
        let written = (self.outputs.formats().collect::<Vec<_>>(), adjustments);
        let parameters = (&self.settings, &self.view, self.sum, written);
        self.sharding.marker(session, ("histogram", &parameters), &inputs, &outputs)
    }
}

/// Counts all inputs. Returns the outcomes and the number of inputs that failed. An input is dropped once it is
/// counted, and its counts of levels once the statistics are computed.
fn outcomes(job: &HistogramJob, session: &Session) -> Result<(Outcomes, usize)> {
    let percentages = job.settings.statistics.then_some(&job.view.percentages[..]);
    let mut outcomes = Outcomes::new(session);
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
        let finish = |tally: Tally| tally.finish(percentages);
        let push = |_, outcome| outcomes.push(&outcome);
        count_all(job, &job.inputs, Shard::WHOLE, session, finish, push)?
    };
    if outcomes.len() == 0 {
        Error::if_any_failed(failed, job.inputs.len(), "inputs")?;
        return Err(Error::bad_input("the list of inputs is empty"));
    }
    output::record_results(&outcomes, &session.timings);
    Ok((outcomes, failed))
}

fn print_pictures(outcomes: &Outcomes, job: &HistogramJob) -> Result<()> {
    outcomes.iter().try_for_each(|outcome| {
        let outcome = outcome.map_err(|error| Error::io("read", "the counts", error))?;
        standard::print(&terminal::picture(&outcome, &job.view))
    })
}
