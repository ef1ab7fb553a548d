//! Reads the samples of a volume in parts, for sums over all of them. Parts come in any order. Samples that the file
//! does not store are all equal, and come as one sample with their number.

use std::ops::Range;

use super::{file::VolumeFile, reader::VolumeReader, slices::stack::StoredChunks};
use crate::{
    data::samples::Samples,
    io::reader::Reader,
    util::error::{Error, Hint, Result},
};

/// Samples of a volume.
#[derive(Debug)]
pub struct Part {
    /// The samples.
    pub samples: Samples,
    /// How many samples of the volume each of them stands for.
    pub times: u64,
}

impl Part {
    /// Bytes of the samples of the volume.
    pub fn bytes(&self) -> u64 {
        self.samples.as_bytes().len() as u64 * self.times
    }
}

/// The parts of a volume.
#[derive(Debug)]
pub struct Parts {
    file: VolumeFile,
    reader: VolumeReader,
    /// Stored chunks, read before slices or instead of them.
    chunks: Option<Box<dyn StoredChunks>>,
    /// Slices that are not read yet.
    left: Range<usize>,
    /// Slices in a part.
    step: usize,
    /// Number of samples that are known not to be stored.
    missing: u64,
    is_at_end: bool,
}

impl VolumeFile {
    /// Reads the samples of `slices` in parts of about `wanted` bytes, and `most` bytes at most.
    ///
    /// # Errors
    /// When a slice takes more than `most`, or the file cannot be opened.
    pub fn parts(&self, slices: Range<usize>, wanted: u64, most: u64) -> Result<Parts> {
        let slice = self.bytes().unwrap_or(u64::MAX) / self.dims[2].max(1) as u64;
        let wanted = wanted.min(most);
        let chunks =
            self.slices().and_then(|all| all.clone().stored(self.volume, slices.clone(), wanted));
        if chunks.is_none() && slice > most {
            return Err(Error::bad_input(format_args!(
                "{}: a slice of {slice} bytes is more than the {most} allowed here",
                self.source
            ))
            .with_hint(Hint::Memory));
        }
        Ok(Parts {
            reader: self.reader_at(slices.start)?,
            missing: if chunks.is_some() { self.samples_of(slices.len()) } else { 0 },
            chunks,
            step: (wanted / slice.max(1)).clamp(1, slices.len().max(1) as u64) as usize,
            left: slices,
            is_at_end: false,
            file: self.clone(),
        })
    }

    /// If no samples of slice `first` are stored: the number of the next slice that may be stored, and the value of all
    /// samples before it. `None` also if this is not known.
    pub fn missing(&self, first: usize) -> Option<(usize, Samples)> {
        self.slices()?.missing(self.volume, first)
    }

    /// Number of samples in `slices` slices.
    fn samples_of(&self, slices: usize) -> u64 {
        (self.dims[0] * self.dims[1]) as u64 * slices as u64
    }
}

impl Parts {
    /// The next part; `None` after the last one.
    ///
    /// # Errors
    /// When the data end early or are broken, and when reading fails.
    pub fn next_part(&mut self) -> Result<Option<Part>> {
        if let Some(chunks) = &mut self.chunks {
            if let Some(samples) = chunks.read()? {
                self.missing -= samples.len() as u64;
                return Ok(Some(Part { samples, times: 1 }));
            }
            self.left.start = self.left.end;
        }
        while !self.left.is_empty() {
            if let Some((end, _)) = self.file.missing(self.left.start) {
                let count = end.min(self.left.end) - self.left.start;
                self.missing += self.file.samples_of(count);
                self.reader.skip(count);
                self.left.start += count;
                continue;
            }
            let count = self.step.min(self.left.len());
            self.left.start += count;
            return Ok(Some(Part { samples: self.reader.read(count)?, times: 1 }));
        }
        if std::mem::replace(&mut self.is_at_end, true) {
            return Ok(None);
        }
        if self.left.end == self.file.dims[2] {
            self.reader.expect_end()?;
        }
        let fill = self.file.slices().filter(|_| self.missing > 0).and_then(|all| all.fill());
        Ok(fill.map(|samples| Part { samples, times: self.missing }))
    }

    /// Takes back a part that is no longer needed, and reuses its memory.
    pub fn reuse(&mut self, done: Part) {
        self.reader.reuse(done.samples);
    }
}
