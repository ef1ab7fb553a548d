//! List of the outcomes of all inputs, with bounded memory.

use std::io;

use super::tally::{Name, Outcome};
use crate::{
    engine::session::Session,
    flow::Host,
    util::{error::Result, spill::Spill},
};

/// Outcomes in order, in memory or in a temporary file: a table begins with the names of all components, so that no
/// outcome is written before the last input is counted.
#[derive(Debug)]
pub struct Outcomes {
    records: Spill<u8>,
    /// Offset and length of the record of each outcome.
    offsets: Vec<(usize, usize)>,
    names: Vec<Name>,
}

impl Outcomes {
    /// An empty list.
    pub fn new(session: &Session) -> Self {
        /// Maximum number of bytes in memory. More go to a temporary file.
        const MAX_BYTES: u64 = 256 << 10;
        let records = Spill::new(session.workspace(MAX_BYTES.min(session.max_memory / 8)));
        Self { records, offsets: Vec::new(), names: Vec::new() }
    }

    /// Number of outcomes.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Adds an outcome.
    pub fn push(&mut self, outcome: &Outcome) -> Result<()> {
        let record = postcard::to_allocvec(outcome).expect("plain data");
        self.offsets.push((self.records.len(), record.len()));
        self.records.append(&record)?;
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
            let record = self.records.read(at..at + len).map_err(io::Error::other)?;
            postcard::from_bytes(&record).map_err(io::Error::other)
        })
    }
}
