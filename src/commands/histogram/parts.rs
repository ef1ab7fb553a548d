//! Histograms by shards: each shard writes a part file of counts, and `merge` joins the parts to the counts of a single
//! process. Counts and moments are integers, so their sums do not depend on the division into shards.
//!
//! | job | work of a shard | content of its part file |
//! |---|---|---|
//! | one volume | a range of slices | the counts of these slices |
//! | several inputs | every n-th input | the counts of each input, or with `--sum` their sum |

use serde::{Deserialize, Serialize};

use super::{
    finish,
    flags::{Format, Job, table},
    outcomes::Outcomes,
    tally::Tally,
    view::View,
};
use crate::{
    data::shard::Shard,
    engine::session::Session,
    io::{
        Sink, Source,
        identity::Identity,
        partial::{self, PartReader, PartWriter},
        volume::is_volume,
    },
    util::error::{Error, Result},
};

/// Block kind of a [`Record`].
const RECORD: u8 = 1;

/// The counts of one input or of several summed inputs.
#[derive(Serialize, Deserialize)]
struct Record {
    /// The numbers, within the job, of the inputs in the tally.
    numbers: Vec<usize>,
    tally: Tally,
}

/// The end of a part file: settings for the outputs, and counts of inputs.
#[derive(Serialize, Deserialize)]
struct End {
    view: View,
    /// Whether tables have a row for each component.
    by_component: bool,
    /// How records are joined.
    join: Join,
    /// Number of inputs of the job.
    inputs: usize,
    /// Number of inputs of this shard that could not be counted.
    failed: usize,
}

/// How records are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Join {
    /// Records hold slices of one input, and are added up.
    Slices,
    /// Records hold different inputs, and are added up (`--sum`).
    Sum,
    /// Each record is the result of one input.
    Nothing,
}

impl Job {
    fn join(&self) -> Join {
        let is_one = self.inputs.len() == 1 && !self.is_list;
        match is_one && is_volume(&self.inputs.get(0), &self.settings.layout) {
            true => Join::Slices,
            false if self.sum => Join::Sum,
            false => Join::Nothing,
        }
    }

    /// The identity of the job, by which parts of different jobs are told apart.
    pub fn identity(&self, shard: Shard, session: &Session) -> Result<Identity> {
        let shown = (&self.view, self.by_component, self.join());
        let parameters = (&self.settings, shown, session.strict);
        Identity::of_part("histogram", &parameters, &self.all_inputs(), shard)
    }

    /// The inputs, and the mask where there is one.
    pub fn all_inputs(&self) -> Vec<Source> {
        self.inputs.iter().chain(self.settings.selection.mask.clone()).collect()
    }
}

/// Does the work of `shard` and writes its part file to `output`.
pub fn write(job: &Job, shard: Shard, output: &Sink, session: &Session) -> Result<()> {
    let identity = job.identity(shard, session)?;
    if job.share.resumes && partial::is_done(output, &identity, session.max_memory) {
        job.inputs.iter().for_each(|input| session.events.skipped(&input, Some(output)));
        return Ok(());
    }
    let (join, total) = (job.join(), job.inputs.len());
    let mut part = PartWriter::create(output, session.no_clobber, &identity)?;
    let mut add = |numbers: Vec<usize>, tally: Tally| {
        let record = Record { numbers, tally };
        part.block(RECORD, &serde_json::to_vec(&record).expect("plain data"))
    };
    let (numbers, slices): (Vec<usize>, Shard) = match join {
        Join::Slices => (vec![0], shard),
        Join::Sum | Join::Nothing => (job.share.files(0..total).collect(), Shard::WHOLE),
    };
    let files = numbers.iter().map(|&number| job.inputs.get(number)).collect();
    let mut sum: Option<Record> = None;
    let own = |tally| tally;
    let failed = super::count_all(job, &files, slices, session, own, |file, tally| {
        let number = numbers[file];
        match (join, &mut sum) {
            // Where there are more shards than slices, some shards have no slices.
            (Join::Slices, _) if tally.components.is_empty() => Ok(()),
            (Join::Slices | Join::Nothing, _) => add(vec![number], tally),
            (Join::Sum, Some(sum)) => {
                sum.numbers.push(number);
                sum.tally.add(tally)
            }
            (Join::Sum, none) => {
                *none = Some(Record { numbers: vec![number], tally });
                Ok(())
            }
        }
    })?;
    if let Some(Record { numbers, tally }) = sum {
        add(numbers, tally)?;
    }
    let (view, by_component) = (job.view.clone(), job.by_component);
    part.finish(&End { view, by_component, join, inputs: total, failed })?;
    finish(failed, total)
}

/// Joins `parts`, which are in the order of the shards, and writes the same `outputs` as a process that counts all.
///
/// # Errors
/// When a part is broken or an output cannot be written; [`Kind::Partial`](crate::util::error::Kind::Partial) when some
/// inputs could not be counted.
pub fn merge(
    parts: &mut [PartReader],
    outputs: &[(Sink, Option<Format>)],
    session: &Session,
) -> Result<()> {
    let ends = parts.iter().map(PartReader::end).collect::<Result<Vec<End>>>()?;
    let End { view, by_component, join, inputs, .. } = &ends[0];
    let failed = ends.iter().map(|end| end.failed).fold(0, usize::saturating_add);
    // The identity also lists the mask as an input, so it may name one more.
    if *inputs > parts[0].identity.inputs.len() {
        return Err(parts[0].broken());
    }
    let mut outcomes = Outcomes::new(super::MOST_COUNTS.min(session.max_memory / 4));
    let mut push = |tally: Tally| outcomes.push(&tally.finish(Some(&view.percentages)));
    match join {
        Join::Nothing => each_in_order(parts, *inputs, push)?,
        Join::Slices | Join::Sum => {
            if let Some(tally) = sum(parts, *join)? {
                push(tally)?;
            }
        }
    }
    if outcomes.len() == 0 {
        finish(failed, *inputs)?;
        return Err(Error::bad_input("no input is named"));
    }
    outcomes.note(&session.timings);
    for (output, format) in outputs {
        let format = match format {
            Some(format) => *format,
            None => table(*by_component),
        };
        super::output::write(&outcomes, output, format, view, session)?;
    }
    finish(failed, *inputs)
}

fn record(part: &PartReader, bytes: &[u8]) -> Result<Record> {
    let record: Record =
        serde_json::from_slice(bytes).map_err(|error| part.broken().caused_by(error))?;
    let (numbers, names) = (record.numbers.len(), record.tally.inputs.len());
    match numbers > 0 && numbers == names && record.tally.is_sound() {
        true => Ok(record),
        false => Err(part.broken()),
    }
}

/// Hands the tallies of the inputs to `consume`, in the order of the inputs. Inputs that failed have no tally.
fn each_in_order(
    parts: &mut [PartReader],
    inputs: usize,
    mut consume: impl FnMut(Tally) -> Result<()>,
) -> Result<()> {
    let mut next = Vec::new();
    for part in &mut *parts {
        part.rewind()?;
        next.push(read(part)?);
    }
    for number in 0..inputs {
        let owner = number % parts.len();
        if let Some(record) = next[owner].take_if(|record| record.numbers == [number]) {
            next[owner] = read(&mut parts[owner])?;
            consume(record.tally)?;
        }
    }
    match next.iter().position(Option::is_some) {
        Some(left) => Err(parts[left].broken()),
        None => Ok(()),
    }
}

fn read(part: &mut PartReader) -> Result<Option<Record>> {
    let block = part.next_of(RECORD)?;
    block.map(|bytes| record(part, &bytes)).transpose()
}

/// The sum of all records. The names of the inputs are in their order; the sample type is that of the first record.
fn sum(parts: &mut [PartReader], join: Join) -> Result<Option<Tally>> {
    let mut records = Vec::new();
    for part in parts {
        part.rewind()?;
        records.extend(read(part)?);
        part.close();
    }
    records.sort_by_key(|record| record.numbers[0]);
    let mut records = records.into_iter();
    let Some(Record { mut numbers, mut tally }) = records.next() else { return Ok(None) };
    for record in records {
        numbers.extend(record.numbers);
        tally.add(record.tally)?;
    }
    let mut names: Vec<(usize, String)> = numbers.into_iter().zip(tally.inputs).collect();
    names.sort_unstable();
    if join == Join::Slices {
        names.truncate(1);
    }
    tally.inputs = names.into_iter().map(|(_, name)| name).collect();
    Ok(Some(tally))
}
