//! What was counted, and what it says.

use std::path::Path;

use super::Args;
use crate::{
    data::samples::Dtype,
    error::{Error, Result},
    kernels::histogram::{Bins, Counts, Moments, Statistics},
};

/// One row of a result: its name, what it counts, and what was found.
#[derive(Clone, Debug)]
pub struct Counted {
    pub name: &'static str,
    pub counts: Counts,
    pub moments: Option<Moments>,
}

impl Counted {
    /// Adds what was found elsewhere.
    pub fn add(&mut self, more: &Self) {
        self.counts.add(&more.counts);
        self.moments = self.moments.zip(more.moments).map(|(sum, more)| sum.and(more));
    }
}

/// The histogram of one input, or the sum of several.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub inputs: Vec<String>,
    pub dtype: Dtype,
    pub bins: Bins,
    /// What one pixel counts: 1, or the steps of full alpha where alpha weighs.
    pub unit: f64,
    pub rows: Vec<Counted>,
}

impl Outcome {
    /// Adds another input's counts.
    pub fn add(&mut self, other: Self) -> Result<()> {
        let names = |outcome: &Self| outcome.rows.iter().map(|row| row.name).collect::<Vec<_>>();
        if self.bins != other.bins || self.unit != other.unit || names(self) != names(&other) {
            return Err(Error::bad_input(format_args!(
                "{} and {} cannot be summed: they have other channels or ranges; \
                 --channels and --range make them equal",
                self.inputs[0], other.inputs[0]
            )));
        }
        self.rows.iter_mut().zip(&other.rows).for_each(|(sum, more)| sum.add(more));
        self.inputs.extend(other.inputs);
        Ok(())
    }

    /// What the result is called in tables.
    pub fn name(&self) -> String {
        match &self.inputs[..] {
            [only] => only.clone(),
            several => format!("{} inputs", several.len()),
        }
    }

    /// What it is called in pictures.
    pub fn title(&self) -> String {
        let name = self.name();
        let file = Path::new(&name).file_name();
        file.map(|file| file.to_string_lossy().into_owned()).unwrap_or(name)
    }

    /// Counted steps as pixels.
    pub fn pixels(&self, count: u64) -> f64 {
        count as f64 / self.unit
    }

    pub fn statistics(&self, row: &Counted, args: &Args) -> Option<Statistics> {
        let moments = row.moments.as_ref();
        let told =
            Statistics::new(&row.counts, &self.bins, self.dtype, moments, &args.percentiles)?;
        Some(Statistics { count: self.pixels(told.count as u64), ..told })
    }

    /// What a count of `row` is divided by to be shown: as pixels, or with `--normalize` as the share
    /// of those in the range.
    pub fn unit(&self, row: &Counted, args: &Args) -> f64 {
        if args.normalize { row.counts.in_range().max(1) as f64 } else { self.unit }
    }

    /// What is shown for every bin of `row`: counts, perhaps summed up, perhaps as shares.
    pub fn shown(&self, row: &Counted, args: &Args) -> Vec<f64> {
        let unit = self.unit(row, args);
        let mut below = 0;
        let shown = row.counts.bins.iter().map(|&count| {
            below += count;
            (if args.cumulative { below } else { count }) as f64 / unit
        });
        shown.collect()
    }
}
