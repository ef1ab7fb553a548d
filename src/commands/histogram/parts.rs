//! Histograms by shards: each shard writes a part file of counts, and `merge` adds the parts up to the counts of a
//! single process. Counts and moments are integers, so their sums do not depend on the division into shards.
//!
//! | job | work of a shard | records of its part file |
//! |---|---|---|
//! | one volume | a range of slices | the counts of these slices |
//! | several inputs | every n-th input | the counts of each input, or with `--sum` their sum |

use serde::{Deserialize, Serialize};

use super::{
    batch::count_all,
    job::{Format, HistogramJob, resolve_format},
    outcomes::Outcomes,
    output::{record_results, write as write_output},
    tally::Tally,
    view::View,
};
use crate::{
    data::shard::Shard,
    engine::{reduce::write_part, session::Session},
    io::{Sink, Source, identity::Identity, part_file::PartReader, volume::is_volume},
    util::error::{Error, Result},
};

/// Kind of a [`Record`] in part files.
const RECORD: u8 = 1;

/// The counts of one input or of several summed inputs.
#[derive(Serialize, Deserialize)]
struct Record {
    /// Indices, within the job, of the inputs in the tally.
    numbers: Vec<usize>,
    tally: Tally,
}

/// Totals of a part file: settings for the outputs, and numbers of inputs.
#[derive(Serialize, Deserialize)]
struct Totals {
    view: View,
    /// Whether records are summed: those of slices, and with `--sum` those of inputs.
    is_sum: bool,
    /// Number of inputs of the job.
    inputs: usize,
    /// Number of inputs of this shard that failed.
    failed: usize,
}

impl HistogramJob {
    /// Whether shards divide the slices of a volume rather than the inputs.
    fn divides_slices(&self) -> bool {
        let is_one = self.inputs.len() == 1 && !self.is_list;
        is_one && is_volume(&self.inputs.get(0), &self.settings.layout)
    }

    /// All inputs, and the mask if there is one.
    pub fn all_inputs(&self) -> Vec<Source> {
        self.inputs.iter().chain(self.settings.selection.mask.clone()).collect()
    }
}

/// Counts the inputs or slices of `shard` and writes its part file to `output`.
pub fn write(job: &HistogramJob, shard: Shard, output: &Sink, session: &Session) -> Result<()> {
    let total = job.inputs.len();
    let is_sum = job.sum || job.divides_slices();
    let parameters = (&job.settings, &job.view, is_sum, session.strict);
    let identity = Identity::for_part("histogram", &parameters, &job.all_inputs(), shard)?;
    let (numbers, slices): (Vec<usize>, Shard) = match job.divides_slices() {
        true => (vec![0], shard),
        false => (job.sharding.files(0..total).collect(), Shard::WHOLE),
    };
    let files = numbers.iter().map(|&number| job.inputs.get(number)).collect();
    let mut failed = 0;
    let resumes = job.sharding.resume;
    write_part(&identity, (job.inputs.iter(), output), resumes, session, |part| {
        let mut sum: Option<Record> = None;
        failed = count_all(
            job,
            &files,
            slices,
            session,
            |tally| tally,
            |file, tally| {
                let number = numbers[file];
                // If there are more shards than slices, some shards have no slices.
                if tally.components.is_empty() {
                    return Ok(());
                }
                match &mut sum {
                    Some(sum) => {
                        sum.numbers.push(number);
                        sum.tally.add(tally)?;
                    }
                    none => *none = Some(Record { numbers: vec![number], tally }),
                }
                match sum.take_if(|_| !is_sum) {
                    Some(record) => part.record(RECORD, &record),
                    None => Ok(()),
                }
            },
        )?;
        sum.iter().try_for_each(|record| part.record(RECORD, record))?;
        Ok(Totals { view: job.view.clone(), is_sum, inputs: total, failed })
    })?;
    Error::if_any_failed(failed, total, "inputs")
}

/// Joins `parts`, which are in the order of the shards, and writes the same outputs as a process that counts all.
pub fn merge(
    parts: &[PartReader],
    outputs: &[Sink],
    format: Option<Format>,
    session: &Session,
) -> Result<()> {
    let format = |sink| Ok((sink, resolve_format(sink, format)?));
    let outputs = outputs.iter().map(format).collect::<Result<Vec<_>>>()?;
    let totals = parts.iter().map(PartReader::totals).collect::<Result<Vec<Totals>>>()?;
    let Totals { view, is_sum, inputs, .. } = &totals[0];
    let failed = totals.iter().map(|part| part.failed).fold(0, usize::saturating_add);
    // The identity also lists the mask as an input.
    if *inputs > parts[0].identity.inputs.len() {
        return Err(parts[0].damaged());
    }
    let mut outcomes = Outcomes::new(session);
    let mut push = |tally: Tally| outcomes.push(&tally.finish(Some(&view.percentages)));
    match is_sum {
        true => sum(parts)?.map_or(Ok(()), push)?,
        false => for_each_in_order(parts, *inputs, &mut push)?,
    }
    if outcomes.len() == 0 {
        Error::if_any_failed(failed, *inputs, "inputs")?;
        return Err(Error::bad_input("the list of inputs is empty"));
    }
    record_results(&outcomes, &session.timings);
    for (output, format) in outputs {
        write_output(&outcomes, output, format, view, session)?;
    }
    Error::if_any_failed(failed, *inputs, "inputs")
}

/// Valid records of a part.
fn records(part: &PartReader) -> impl Iterator<Item = Result<Record>> {
    part.records(RECORD).map(|record| {
        let record: Record = record?;
        let (numbers, names) = (record.numbers.len(), record.tally.inputs.len());
        match numbers > 0 && numbers == names && record.tally.is_valid() {
            true => Ok(record),
            false => Err(part.damaged()),
        }
    })
}

/// Passes the tallies of the inputs to `consume`, in the order of the inputs. Inputs that failed have no tally.
fn for_each_in_order(
    parts: &[PartReader],
    inputs: usize,
    consume: &mut dyn FnMut(Tally) -> Result<()>,
) -> Result<()> {
    let mut left: Vec<_> = parts.iter().map(|part| records(part).peekable()).collect();
    for number in 0..inputs {
        let is_next = |record: &Result<Record>| {
            record.as_ref().map_or(true, |record| record.numbers == [number])
        };
        if let Some(record) = left[number % parts.len()].next_if(is_next) {
            consume(record?.tally)?;
        }
    }
    match left.iter_mut().position(|records| records.peek().is_some()) {
        Some(part) => Err(parts[part].damaged()),
        None => Ok(()),
    }
}

/// Sums the records of all parts, which have one each. The names of the inputs are in order; the sample type is that of
/// the first record.
fn sum(parts: &[PartReader]) -> Result<Option<Tally>> {
    let first = parts.iter().filter_map(|part| records(part).next());
    let mut all = first.collect::<Result<Vec<Record>>>()?;
    all.sort_by_key(|record| record.numbers[0]);
    let mut all = all.into_iter();
    let Some(Record { mut numbers, mut tally }) = all.next() else { return Ok(None) };
    for record in all {
        numbers.extend(record.numbers);
        tally.add(record.tally)?;
    }
    let mut names: Vec<(usize, String)> = numbers.into_iter().zip(tally.inputs).collect();
    names.sort_unstable();
    // Shards of slices repeat the name of the input.
    names.dedup();
    tally.inputs = names.into_iter().map(|(_, name)| name).collect();
    Ok(Some(tally))
}
