//! Reads the samples of a volume in batches, for sums over all of them. Batches come in any order. Samples that the file
//! does not store are all equal, and come as one sample with their number.

use std::ops::Range;

use super::{file::VolumeFile, reader::VolumeReader, slices::stack::ReadChunks};
use crate::{
    data::{reader::Reader, samples::Samples},
    util::{error::Result, memory},
};

/// Some samples of a volume.
#[derive(Debug)]
pub struct SampleBatch {
    /// The samples.
    pub samples: Samples,
    /// Number of samples of the volume that each of them stands for.
    pub times: u64,
}

impl SampleBatch {
    /// Bytes of the samples of the volume.
    pub fn bytes(&self) -> u64 {
        self.samples.as_bytes().len() as u64 * self.times
    }
}

/// Reads the batches of a volume.
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct BatchReader {
    file: VolumeFile,
    reader: VolumeReader,
    /// Stored chunks, which are read in place of slices.
    chunks: Option<ReadChunks>,
    /// Slices that have not been read.
    left: Range<usize>,
    /// Number of slices in a batch.
    step: usize,
    /// Number of samples that are known to be missing in the file.
    missing: u64,
    is_at_end: bool,
}

impl VolumeFile {
    /// Reads the samples of `slices` in batches of about `wanted` bytes, and at most `max` bytes. A slice of more than
    /// `max` bytes is an error.
    pub fn batches(&self, slices: Range<usize>, wanted: u64, max: u64) -> Result<BatchReader> {
        let slice = self.bytes().unwrap_or(u64::MAX) / self.dims[2].max(1) as u64;
        let wanted = wanted.min(max);
        let chunks = self
            .slices()
            .and_then(|all| all.clone().stored_chunks(self.volume, slices.clone(), wanted));
        if chunks.is_none() && slice > max {
            let what = format_args!("{}: a slice of {slice} bytes", self.source);
            return Err(memory::exceeds_rest(what, max));
        }
        Ok(BatchReader {
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

impl BatchReader {
    /// Reads the next batch; `None` after the last one.
    pub fn next_batch(&mut self) -> Result<Option<SampleBatch>> {
        if let Some(chunks) = &mut self.chunks {
            if let Some(samples) = chunks()? {
                self.missing -= samples.len() as u64;
                return Ok(Some(SampleBatch { samples, times: 1 }));
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
            return Ok(Some(SampleBatch { samples: self.reader.read(count)?, times: 1 }));
        }
        if std::mem::replace(&mut self.is_at_end, true) {
            return Ok(None);
        }
        if self.left.end == self.file.dims[2] {
            self.reader.expect_end()?;
        }
        let fill = self.file.slices().filter(|_| self.missing > 0).and_then(|all| all.fill());
        Ok(fill.map(|samples| SampleBatch { samples, times: self.missing }))
    }

    /// Takes back a batch that is no longer needed, and reuses its memory.
    pub fn reuse(&mut self, done: SampleBatch) {
        self.reader.reuse(done.samples);
    }
}
