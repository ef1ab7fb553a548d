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
