//! Counts of one input or of several (`Tally`), and the finished histogram (`Outcome`).

use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    data::dtype::Dtype,
    engine::progress::printable,
    kernels::histogram::{Bins, Counts, Moments, Statistics, ValueCounts},
    util::error::{Error, Result},
};

/// Counts that are still being summed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Tally {
    pub inputs: Vec<String>,
    pub dtype: Dtype,
    pub bins: Bins,
    /// Count of one opaque pixel: 1, or the maximum of alpha if pixels are weighted by alpha.
    pub unit: f64,
    pub components: Vec<ComponentTally>,
}

/// Counts of a component, and the data that statistics need.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComponentTally {
    #[serde(deserialize_with = "known_name")]
    pub name: Name,
    pub counts: Counts,
    /// Moments and values for statistics, if the counts have no levels.
    pub measured: Option<(Moments, ValueCounts)>,
}

/// Name of a component, one of [`NAMES`].
pub type Name = &'static str;

/// Names of components.
const NAMES: [&str; 6] = ["r", "g", "b", "a", "luma", "grey"];

fn known_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
    let name = String::deserialize(deserializer)?;
    let known = NAMES.into_iter().find(|known| *known == name);
    known.ok_or_else(|| serde::de::Error::custom("unknown component"))
}

impl ComponentTally {
    fn add(&mut self, more: Self) {
        self.counts.add(&more.counts);
        let both = self.measured.take().zip(more.measured);
        self.measured = both.map(|((moments, mut values), (more_moments, more_values))| {
            values.add(more_values);
            (moments.merged(more_moments), values)
        });
    }
}

/// Multiplies `part` by `times`.
pub fn repeated(part: Vec<ComponentTally>, mut times: u64) -> Vec<ComponentTally> {
    if times == 1 {
        return part;
    }
    // By repeated doubling. Sums are exact, so their order does not matter.
    let (mut sum, mut power) = (Vec::new(), part);
    loop {
        if times % 2 == 1 {
            add(&mut sum, power.clone());
        }
        times /= 2;
        if times == 0 {
            return sum;
        }
        let same = power.clone();
        add(&mut power, same);
    }
}

/// Adds a part of the same input to `sum`, which is empty before the first part.
pub fn add(sum: &mut Vec<ComponentTally>, part: Vec<ComponentTally>) {
    match sum.is_empty() {
        true => *sum = part,
        false => sum.iter_mut().zip(part).for_each(|(sum, more)| sum.add(more)),
    }
}

impl Tally {
    /// Adds a further part of the same input.
    pub fn add_part(&mut self, part: Vec<ComponentTally>) {
        add(&mut self.components, part);
    }

    /// Whether each component has one count per bin, and counts are small enough to add those of thousands of parts.
    pub fn is_valid(&self) -> bool {
        let is_small = |counts: &[u64]| {
            let sum = counts.iter().try_fold(0, |sum: u64, &count| sum.checked_add(count));
            sum.is_some_and(|sum| sum < 1 << 52)
        };
        let is_valid = |ComponentTally { counts, .. }: &ComponentTally| {
            let Counts { bins, below, above, nan, levels } = counts;
            let others = [*below, *above, *nan];
            let lists = [bins, &others[..], levels.as_deref().unwrap_or_default()];
            bins.len() == self.bins.count && lists.into_iter().all(is_small)
        };
        self.components.iter().all(is_valid)
    }

    /// Adds the counts of another input.
    pub fn add(&mut self, other: Self) -> Result<()> {
        let names = |tally: &Self| tally.components.iter().map(|c| c.name).collect::<Vec<_>>();
        if self.bins != other.bins || self.unit != other.unit || names(self) != names(&other) {
            return Err(Error::bad_input(format_args!(
                "{} and {} cannot be summed: channels or ranges differ; select them with --channels and --range",
                self.inputs[0], other.inputs[0]
            )));
        }
        self.add_part(other.components);
        self.inputs.extend(other.inputs);
        Ok(())
    }

    /// Finishes the histogram. Computes statistics if `percentages`, those of the percentiles, are given.
    pub fn finish(self, percentages: Option<&[f64]>) -> Outcome {
        let Self { inputs, dtype, bins, unit, components } = self;
        let finish = |ComponentTally { name, mut counts, measured }| {
            let rounds = name == "luma" && dtype.size() <= 2;
            let statistics = percentages.and_then(|percentages| {
                let found = Statistics::new(&counts, &bins, dtype, measured, rounds, percentages)?;
                Some(Statistics { count: found.count as u64 as f64 / unit, ..found })
            });
            counts.levels = None;
            ComponentOutcome { name, counts, statistics }
        };
        // A plain `collect` would reuse the memory of the larger counters and keep it.
        let mut finished = Vec::with_capacity(components.len());
        finished.extend(components.into_iter().map(finish));
        let components = finished;
        Outcome { inputs, dtype, bins, unit, components }
    }
}

/// Histogram of one input, or of the sum of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub inputs: Vec<String>,
    pub dtype: Dtype,
    pub bins: Bins,
    /// Count of one opaque pixel, as in [`Tally`].
    pub unit: f64,
    pub components: Vec<ComponentOutcome>,
}

/// Counts of a component, without levels. There are no statistics if they were not requested or no sample is
/// finite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComponentOutcome {
    #[serde(deserialize_with = "known_name")]
    pub name: Name,
    pub counts: Counts,
    pub statistics: Option<Statistics>,
}

impl Outcome {
    /// Name of the outcome in tables.
    pub fn name(&self) -> String {
        match &self.inputs[..] {
            [only] => only.clone(),
            several => format!("{} inputs", several.len()),
        }
    }

    /// Name of the outcome in plots: the file name without its folder.
    pub fn title(&self) -> String {
        let name = self.name();
        let file = Path::new(&name).file_name();
        let title = file.map(|file| file.to_string_lossy().into_owned()).unwrap_or(name);
        printable(&title).into_owned()
    }

    /// Converts a count to a number of pixels.
    pub fn pixels(&self, count: u64) -> f64 {
        count as f64 / self.unit
    }
}
