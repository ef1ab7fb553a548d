//! A list of the outcomes of all inputs that takes bounded memory.

use std::{
    io::{self, Read},
    sync::{Mutex, PoisonError},
};

use super::{
    output,
    tally::{Counted, NAMES, Outcome},
};
use crate::{
    data::dtype::Dtype,
    io::Spool,
    kernels::histogram::{Bins, Counts, Statistics},
    util::{
        error::{Error, Result},
        timings::Timings,
    },
};

/// Outcomes in order. Their records are kept in the order in which they were made: the first ones in memory, the others
/// in a temporary file.
#[derive(Debug)]
pub struct Outcomes {
    pub records: Records,
    pub list: List,
}

/// The outcomes of a list.
#[derive(Debug, Default)]
pub struct List {
    /// Where the record of each outcome is.
    places: Vec<(u64, usize)>,
    names: Vec<&'static str>,
}

/// Records of outcomes, which several threads may add.
#[derive(Debug)]
pub struct Records(Mutex<Spool>);

/// An outcome whose record is kept.
#[derive(Debug)]
pub struct Kept {
    place: (u64, usize),
    names: Vec<&'static str>,
}

impl List {
    /// Adds an outcome.
    pub fn add(&mut self, Kept { place, names }: Kept) {
        self.places.push(place);
        for name in names {
            if !self.names.contains(&name) {
                self.names.push(name);
            }
        }
    }
}

impl Records {
    /// Adds the record of an outcome.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io) when a temporary file is needed and cannot be written.
    pub fn keep(&self, outcome: &Outcome) -> Result<Kept> {
        let record = packed(outcome);
        let at = self.0.lock().unwrap_or_else(PoisonError::into_inner).push(&record);
        let at = at.map_err(|error| Error::io("write", "a temporary file of counts", error))?;
        let names = outcome.components.iter().map(|component| component.name).collect();
        Ok(Kept { place: (at, record.len()), names })
    }
}

impl Outcomes {
    /// An empty list. Where no temporary file can be made, outcomes take `most` bytes of memory.
    pub fn new(most: u64) -> Self {
        Self { records: Records(Spool::new(most).into()), list: List::default() }
    }

    /// The number of outcomes.
    pub fn len(&self) -> usize {
        self.list.places.len()
    }

    /// Adds an outcome.
    ///
    /// # Errors
    /// As [`Records::keep`].
    pub fn push(&mut self, outcome: &Outcome) -> Result<()> {
        let kept = self.records.keep(outcome)?;
        self.list.add(kept);
        Ok(())
    }

    /// The names of the components of all outcomes, without repetition, in the order of their first occurrence.
    pub fn names(&self) -> &[&'static str] {
        &self.list.names
    }

    /// All outcomes, in order.
    pub fn iter(&self) -> impl Iterator<Item = io::Result<Outcome>> {
        self.list.places.iter().map(|&(at, len)| {
            let mut records = self.records.0.lock().unwrap_or_else(PoisonError::into_inner);
            unpacked(&records.get(at, len)?)
        })
    }

    /// If timings are wanted, adds a summary of each outcome to them.
    pub fn note(&self, timings: &Timings) {
        if timings.wants_passes() {
            let summaries = self.iter().filter_map(Result::ok);
            summaries.for_each(|outcome| timings.add_result(|| output::summary(&outcome)));
        }
    }
}

/// The record of an outcome: the number of the words that follow, these words, and the names of the inputs. A word has
/// 64 bits.
fn packed(outcome: &Outcome) -> Vec<u8> {
    let Outcome { inputs, dtype, bins, unit, components } = outcome;
    let [low, high, unit] = [bins.low, bins.high, *unit].map(f64::to_bits);
    let (names, count) = (inputs.len() as u64, components.len() as u64);
    let mut words = vec![0, *dtype as u64, bins.count as u64, low, high, unit, names, count];
    words.extend(inputs.iter().map(|name| name.len() as u64));
    for Counted { name, counts, statistics } in components {
        let name = NAMES.iter().position(|known| known == name).expect("one of the names");
        let numbers = statistics.as_ref().map(numbers_of).unwrap_or_default();
        words.extend([name as u64, counts.below, counts.above, counts.nan, numbers.len() as u64]);
        words.extend(numbers.into_iter().map(f64::to_bits));
        words.extend_from_slice(&counts.bins);
    }
    words[0] = words.len() as u64 - 1;
    let mut record = bytemuck::cast_slice(&words).to_vec();
    inputs.iter().for_each(|name| record.extend_from_slice(name.as_bytes()));
    record
}

/// The outcome of a record.
fn unpacked(mut record: &[u8]) -> io::Result<Outcome> {
    let mut len = [0u64];
    record.read_exact(bytemuck::cast_slice_mut(&mut len))?;
    let mut words = vec![0u64; len[0] as usize];
    record.read_exact(bytemuck::cast_slice_mut(&mut words))?;
    let mut rest = &words[..];
    let mut take =
        |count: u64| rest.split_off(..count as usize).ok_or(io::ErrorKind::UnexpectedEof);
    let head = take(7)?;
    let [low, high, unit] = [head[2], head[3], head[4]].map(f64::from_bits);
    let (dtype, bins) = (Dtype::ALL[head[0] as usize], Bins { count: head[1] as usize, low, high });
    let name = |&len: &u64| {
        let mut name = vec![0; len as usize];
        record.read_exact(&mut name)?;
        String::from_utf8(name).map_err(io::Error::other)
    };
    let inputs = take(head[5])?.iter().map(name).collect::<io::Result<_>>()?;
    let component = |_| {
        let head = take(5)?;
        let numbers: Vec<f64> = take(head[4])?.iter().map(|&bits| f64::from_bits(bits)).collect();
        let counts = Counts {
            below: head[1],
            above: head[2],
            nan: head[3],
            bins: take(bins.count as u64)?.to_vec(),
            levels: None,
        };
        Ok(Counted { name: NAMES[head[0] as usize], counts, statistics: statistics_of(&numbers) })
    };
    let components = (0..head[6]).map(component).collect::<io::Result<_>>()?;
    Ok(Outcome { inputs, dtype, bins, unit, components })
}

/// The numbers of statistics, from which [`statistics_of`] makes them again.
fn numbers_of(statistics: &Statistics) -> Vec<f64> {
    let s = statistics;
    let mut numbers = vec![s.count, s.min, s.max, s.mean, s.median, s.deviation, s.mode, s.entropy];
    numbers.extend([s.clipped_low, s.clipped_high]);
    numbers.extend(s.percentiles.iter().flat_map(|&(percentage, value)| [percentage, value]));
    numbers
}

/// The statistics of `numbers`; `None` where there are none.
fn statistics_of(numbers: &[f64]) -> Option<Statistics> {
    let (
        &[count, min, max, mean, median, deviation, mode, entropy, clipped_low, clipped_high],
        rest,
    ) = numbers.split_first_chunk()?;
    let percentiles = rest.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    Some(Statistics {
        count,
        min,
        max,
        mean,
        median,
        deviation,
        mode,
        entropy,
        clipped_low,
        clipped_high,
        percentiles,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commands::histogram::tally::Counted,
        data::dtype::Dtype,
        kernels::histogram::{Bins, Counts},
    };

    #[test]
    fn outcomes_come_back_in_order() {
        let statistics = |number: f64| Statistics {
            count: number,
            min: f64::NEG_INFINITY,
            max: 0.1 + number,
            mean: 2.5,
            median: -0.0,
            deviation: f64::MAX,
            mode: 7.0,
            entropy: 0.3,
            clipped_low: 0.25,
            clipped_high: 1.0 / 3.0,
            percentiles: vec![(1.0, 3.5), (99.0, number)],
        };
        let outcome = |number: u64, count: usize| {
            let counted = |name| Counted {
                name,
                counts: Counts {
                    bins: (0..count as u64).map(|bin| number * 1000 + bin).collect(),
                    below: 5,
                    above: number,
                    nan: u64::MAX,
                    levels: None,
                },
                statistics: (name == "r").then(|| statistics(number as f64)),
            };
            Outcome {
                inputs: vec![format!("größe {number}"), String::new()],
                dtype: Dtype::ALL[number as usize],
                bins: Bins { count, low: -1.5, high: 255.0 },
                unit: 1.0 / 3.0,
                components: vec![counted("r"), counted(if number == 3 { "a" } else { "g" })],
            }
        };
        // A short list is in memory; of the long ones a part is in a file.
        for sizes in [[4, 4, 7, 1, 5], [30_000, 60_000, 1, 2, 9000], [65_536; 5]] {
            let all: Vec<Outcome> = (0..5).map(|i| outcome(i as u64, sizes[i])).collect();
            let mut outcomes = Outcomes::new(0);
            // Records may be kept in another order than that of the list.
            let kept = all.iter().rev().map(|outcome| outcomes.records.keep(outcome).unwrap());
            let kept: Vec<Kept> = kept.collect();
            kept.into_iter().rev().for_each(|kept| outcomes.list.add(kept));
            assert_eq!((outcomes.len(), outcomes.names()), (5, &["r", "g", "a"][..]));
            for _ in 0..2 {
                let back: Vec<Outcome> = outcomes.iter().map(Result::unwrap).collect();
                assert!(back == all, "{sizes:?}");
            }
        }
    }
}
