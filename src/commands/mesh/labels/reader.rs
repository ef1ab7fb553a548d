//! Reads a volume of labels.

use std::sync::{Mutex, PoisonError};

use super::numbers::Numbers;
use crate::{
    data::{reader::Reader, samples::Samples},
    io::volume::{VolumeFile, VolumeReader},
    util::error::Result,
};

/// Reads the slices of a volume as numbers of labels.
pub(super) struct LabelReader<'r, 'a> {
    reader: VolumeReader,
    numbers: &'r Mutex<Numbers<'a>>,
}

impl<'r, 'a> LabelReader<'r, 'a> {
    /// Reads `file` from slice `first` on. Labels without a number get one in `numbers`.
    pub(super) fn new(
        file: &VolumeFile,
        first: usize,
        numbers: &'r Mutex<Numbers<'a>>,
    ) -> Result<Self> {
        Ok(Self { reader: file.reader_at(first)?, numbers })
    }
}

impl Reader for LabelReader<'_, '_> {
    fn read_after(&mut self, before: Option<&Samples>, count: usize) -> Result<Samples> {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let new = match numbers.integers {
            Some(_) => numbers.map_integers(&self.reader.read_integers(count)?)?,
            None => numbers.map_samples(self.reader.read(count)?)?,
        };
        let Some(before) = before else { return Ok(new) };
        let mut all = Samples::extended(Some(before), new.len(), new.dtype(), None)?;
        all.as_bytes_mut()[before.as_bytes().len()..].copy_from_slice(new.as_bytes());
        Ok(all)
    }

    fn expect_end(&mut self) -> Result<()> {
        self.reader.expect_end()
    }

    fn reuse(&mut self, done: Samples) {
        self.reader.reuse(done);
    }
}
