//! A list of the outcomes of all inputs that takes bounded memory.

use std::{
    borrow::Cow,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
};

use super::tally::Outcome;
use crate::{
    error::{Error, Result},
    io::{temporary_file, temporary_folder},
};

/// Outcomes in the order in which they were added. The counts of the first ones are kept in memory;
/// beyond a limit, counts are kept in a temporary file.
#[derive(Debug)]
pub struct Outcomes {
    all: Vec<Stored>,
    /// Bytes of counts that may still be kept in memory.
    room: u64,
    file: Option<File>,
}

#[derive(Debug)]
struct Stored {
    outcome: Outcome,
    /// Offset in the temporary file of the counts of its bins; `None` where they are in memory.
    at: Option<u64>,
}

impl Outcomes {
    /// An empty list, whose counts may take `room` bytes of memory.
    pub fn new(room: u64) -> Self {
        Self { all: Vec::new(), room, file: None }
    }

    /// The number of outcomes.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Adds an outcome.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::error::Kind::Io) when a temporary file is needed and cannot be written.
    pub fn push(&mut self, mut outcome: Outcome) -> Result<()> {
        let bytes = 8 * (outcome.components.len() * outcome.bins.count) as u64;
        let at = match bytes <= self.room {
            true => {
                self.room -= bytes;
                None
            }
            false => {
                // All later outcomes go to the file, too, even if they would fit.
                self.room = 0;
                let failed = |error| Error::io("write", "a temporary file of counts", error);
                Some(self.store(&mut outcome).map_err(failed)?)
            }
        };
        self.all.push(Stored { outcome, at });
        Ok(())
    }

    fn store(&mut self, outcome: &mut Outcome) -> io::Result<u64> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(temporary_file(&temporary_folder())?),
        };
        let at = file.seek(SeekFrom::End(0))?;
        for component in &mut outcome.components {
            let bins = std::mem::take(&mut component.counts.bins);
            file.write_all(bytemuck::cast_slice(&bins))?;
        }
        Ok(at)
    }

    /// The names of the components of all outcomes, without repetition, in the order of their first occurrence.
    pub fn names(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for component in self.all.iter().flat_map(|stored| &stored.outcome.components) {
            if !names.contains(&component.name) {
                names.push(component.name);
            }
        }
        names
    }

    /// All outcomes, in order.
    pub fn iter(&self) -> impl Iterator<Item = io::Result<Cow<'_, Outcome>>> {
        self.all.iter().map(|Stored { outcome, at }| match (at, &self.file) {
            (Some(at), Some(file)) => Ok(Cow::Owned(load(outcome, file, *at)?)),
            _ => Ok(Cow::Borrowed(outcome)),
        })
    }
}

fn load(outcome: &Outcome, mut file: &File, at: u64) -> io::Result<Outcome> {
    let mut outcome = outcome.clone();
    file.seek(SeekFrom::Start(at))?;
    for component in &mut outcome.components {
        component.counts.bins = vec![0; outcome.bins.count];
        file.read_exact(bytemuck::cast_slice_mut(&mut component.counts.bins))?;
    }
    Ok(outcome)
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
    fn stored_counts_come_back_in_order() {
        let outcome = |number: u64, count: usize| {
            let counted = |name| Counted {
                name,
                counts: Counts {
                    bins: (0..count as u64).map(|bin| number * 1000 + bin).collect(),
                    above: number,
                    ..Counts::default()
                },
                statistics: None,
            };
            Outcome {
                inputs: vec![number.to_string()],
                dtype: Dtype::U8,
                bins: Bins::new(count, 0.0, 255.0, Dtype::U8).unwrap(),
                unit: 1.0,
                components: vec![counted("r"), counted(if number == 3 { "a" } else { "g" })],
            }
        };
        let sizes = [4, 4, 7, 1, 5];
        let all: Vec<Outcome> = (0..5).map(|i| outcome(i as u64, sizes[i])).collect();
        // With some room, the first outcomes stay in memory and the rest goes to the file.
        for room in [0, 128, 200, 10_000] {
            let mut outcomes = Outcomes::new(room);
            all.iter().for_each(|outcome| outcomes.push(outcome.clone()).unwrap());
            assert_eq!(outcomes.file.is_some(), room < 10_000);
            assert_eq!((outcomes.len(), outcomes.names()), (5, vec!["r", "g", "a"]));
            for _ in 0..2 {
                let back: Vec<Outcome> =
                    outcomes.iter().map(|outcome| outcome.unwrap().into_owned()).collect();
                assert_eq!(back, all);
            }
        }
    }
}
