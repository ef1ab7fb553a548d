//! List of the outcomes of all inputs, with bounded memory.

use std::{cell::RefCell, io};

use super::tally::{Name, Outcome};
use crate::{
    io::Spool,
    util::error::{Error, Result},
};

/// Maximum number of bytes of finished counts in memory. More go to a temporary file.
const MAX_BYTES: u64 = 32 << 20;

/// Outcomes in order. The first are kept in memory, the others in a temporary file.
#[derive(Debug)]
pub struct Outcomes {
    records: RefCell<Spool>,
    /// Offset and length of the record of each outcome.
    offsets: Vec<(u64, usize)>,
    names: Vec<Name>,
}

impl Outcomes {
    /// An empty list, within `max_memory` bytes.
    pub fn new(max_memory: u64) -> Self {
        let max_bytes = MAX_BYTES.min(max_memory / 4);
        Self { records: Spool::new(max_bytes).into(), offsets: Vec::new(), names: Vec::new() }
    }

    /// Number of outcomes.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Adds an outcome.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io) when a temporary file is needed and cannot be written.
    pub fn push(&mut self, outcome: &Outcome) -> Result<()> {
        let record = postcard::to_allocvec(outcome).expect("plain data");
        let at = self.records.get_mut().push(&record);
        let at = at.map_err(|error| Error::io("write", "a temporary file of counts", error))?;
        self.offsets.push((at, record.len()));
        for component in &outcome.components {
            if !self.names.contains(&component.name) {
                self.names.push(component.name);
            }
        }
        Ok(())
    }

    /// Distinct names of the components of all outcomes, in the order of their first occurrence.
    pub fn names(&self) -> &[Name] {
        &self.names
    }

    /// All outcomes, in order.
    pub fn iter(&self) -> impl Iterator<Item = io::Result<Outcome>> {
        self.offsets.iter().map(|&(at, len)| {
            let record = self.records.borrow_mut().get(at, len)?;
            postcard::from_bytes(&record).map_err(io::Error::other)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commands::histogram::tally::ComponentOutcome,
        data::dtype::Dtype,
        kernels::histogram::{Bins, Counts, Statistics},
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
            let counted = |name| ComponentOutcome {
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
            all.iter().for_each(|outcome| outcomes.push(outcome).unwrap());
            assert_eq!((outcomes.len(), outcomes.names()), (5, &["r", "g", "a"][..]));
            for _ in 0..2 {
                let back: Vec<Outcome> = outcomes.iter().map(Result::unwrap).collect();
                assert!(back == all, "{sizes:?}");
            }
        }
    }
}
