//! Parts of a histogram: what a shard has counted, and all of them joined to what one process counts. Counts and moments
//! are integers, so that they add up to the same whatever the shards are.
//!
//! | job | a shard has | its part holds |
//! |---|---|---|
//! | one volume | slices | the counts of these |
//! | several inputs | every n-th | the counts of each, or with `--sum` of all |

use serde::{Deserialize, Serialize};

use super::{
    finish,
    flags::{Format, Job, Settings, table},
    input::is_volume,
    outcomes::Outcomes,
    tally::Tally,
    view::View,
};
use crate::{
    data::shard::Shard,
    error::{Error, Result},
    io::{
        Sink, Source,
        identity::Identity,
        partial::{self, PartReader, PartWriter},
    },
    session::Session,
};

/// The kind of block that holds a [`Record`].
const RECORD: u8 = 1;

/// What was counted of inputs.
#[derive(Serialize, Deserialize)]
struct Record {
    /// The numbers of the inputs in the job, those in the tally.
    numbers: Vec<usize>,
    tally: Tally,
}

/// What the outputs depend on, and how it went.
#[derive(Serialize, Deserialize)]
struct End {
    view: View,
    /// Whether tables have a row a component.
    by_component: bool,
    /// How records are joined.
    join: Join,
    /// Inputs of the job.
    inputs: usize,
    /// Inputs of this shard that could not be counted.
    failed: usize,
}

/// How records are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Join {
    /// They are of slices of one input.
    Slices,
    /// They are of inputs that are summed.
    Sum,
    /// They are of inputs by themselves.
    Nothing,
}

impl Job {
    fn join(&self) -> Join {
        match &self.inputs[..] {
            [input] if is_volume(input, &self.settings) && !self.is_list => Join::Slices,
            _ if self.sum => Join::Sum,
            _ => Join::Nothing,
        }
    }

    /// What the job counts, and how that is shown.
    pub fn identity(&self, shard: Shard, session: &Session) -> Result<Identity> {
        let Settings { selection, channels, luma, wanted_bins: bins, pages, layout, .. } =
            &self.settings;
        let range = self.settings.given_range();
        let parameters = (selection, channels, luma, bins, pages, layout, range);
        let shown = (&self.view, self.by_component, self.join());
        let parameters = format!("{parameters:?} {shown:?} strict: {}", session.strict);
        let inputs = self.inputs.iter().chain(&selection.mask);
        Identity::new("histogram", parameters, inputs, shard)
    }
}

/// Counts what `shard` has of `job`, and writes it to the one output.
pub fn write(job: &Job, shard: Shard, output: &Sink, session: &Session) -> Result<()> {
    let identity = job.identity(shard, session)?;
    if job.share.resumes && partial::is_done(output, &identity) {
        job.inputs.iter().for_each(|input| session.events.skipped(input, Some(output)));
        return Ok(());
    }
    let (join, total) = (job.join(), job.inputs.len());
    let mut part = PartWriter::create(output, session.no_clobber, &identity)?;
    let mut add = |numbers: Vec<usize>, tally: Tally| {
        let record = Record { numbers, tally };
        part.block(RECORD, &serde_json::to_vec(&record).expect("plain data"))
    };
    let numbered: Vec<(usize, Source)> = job.inputs.iter().cloned().enumerate().collect();
    let (files, slices) = match join {
        Join::Slices => (numbered, shard),
        Join::Sum | Join::Nothing => (job.share.files(numbered), Shard::WHOLE),
    };
    let mut sum: Option<Record> = None;
    let failed = super::count_all(job, &files, slices, session, |&(number, _), tally| {
        match (join, &mut sum) {
            // Of more shards than slices, some have nothing.
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

/// Joins `parts`, which are in order, and writes `outputs` as the process that counts all would.
///
/// # Errors
/// Those of reading and writing, and when an output's format is unknown; [`Kind::Partial`](crate::error::Kind::Partial)
/// when some inputs could not be counted.
pub fn merge(
    parts: &mut [PartReader],
    outputs: &[(Sink, Option<Format>)],
    session: &Session,
) -> Result<()> {
    let ends = parts.iter().map(PartReader::end).collect::<Result<Vec<End>>>()?;
    let End { view, by_component, join, inputs, .. } = &ends[0];
    let failed = ends.iter().map(|end| end.failed).fold(0, usize::saturating_add);
    // A mask is an input, too.
    if *inputs > parts[0].identity.inputs.len() {
        return Err(parts[0].broken());
    }
    let mut outcomes = Outcomes::new(super::MOST_COUNTS.min(session.max_memory / 4));
    let mut push = |tally: Tally| outcomes.push(tally.finish(Some(&view.percentages)));
    match join {
        Join::Nothing => each_in_order(parts, *inputs, push)?,
        Join::Slices | Join::Sum => {
            if let Some(tally) = sum(parts, *join)? {
                push(tally)?;
            }
        }
    }
    if outcomes.len() == 0 {
        return Err(Error::bad_input("no input could be counted"));
    }
    outcomes.iter().filter_map(Result::ok).for_each(|outcome| {
        session.timings.add_result(|| super::output::summary(&outcome));
    });
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

/// Hands the tallies of `inputs` inputs to `consume` in the order of the inputs. Those that failed are missing.
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

/// The sum of all records, with the names of inputs in their order, and of the type of the first.
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
