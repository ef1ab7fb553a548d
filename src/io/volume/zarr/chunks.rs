//! Reads the chunks of a Zarr array that exist.

use std::{ops::Range, sync::Arc};

use super::{existing::ExistingFiles, reader::ZarrSlices};
use crate::{
    data::samples::Samples,
    util::{error::Result, parallel::Parallel},
};

/// The stored chunks of some slices of a volume.
pub struct Chunks {
    reader: Arc<ZarrSlices>,
    position: Vec<usize>,
    slices: Range<usize>,
    existing: Arc<ExistingFiles>,
    /// The range, in the list, of the files that have not been read.
    files: Range<usize>,
    /// Number of the next chunk in the first of them.
    next: usize,
    /// Number of chunks that are read at a time.
    batch: usize,
}

impl Chunks {
    /// Reads the chunks of `slices`, `batch` chunks at a time.
    pub fn new(
        reader: Arc<ZarrSlices>,
        volume: usize,
        slices: Range<usize>,
        existing: Arc<ExistingFiles>,
        batch: usize,
    ) -> Self {
        let depth = reader.slicing.file_size()[2];
        let layers = slices.start / depth..slices.end.div_ceil(depth);
        let position = reader.slicing.position(volume);
        let files = existing.layers(&reader.slicing, &position, layers);
        Self { reader, position, slices, existing, files, next: 0, batch }
    }

    /// The positions of the next chunks along x, y and z in the grid of chunks.
    fn next_batch(&mut self) -> Vec<[usize; 3]> {
        let (slicing, mut group) = (&self.reader.slicing, Vec::new());
        let (dims, chunk, file) = (slicing.dims(), slicing.chunk(), slicing.file_size());
        let counts = [0, 1, 2].map(|axis| file[axis] / chunk[axis]);
        let all: usize = counts.iter().product();
        while group.len() < self.batch && !self.files.is_empty() {
            let (_, [z, y, x]) = self.existing.0[self.files.start];
            let n = self.next;
            let inner = [n % counts[0], n / counts[0] % counts[1], n / (counts[0] * counts[1])];
            let at = [0, 1, 2].map(|axis| [x, y, z][axis] * counts[axis] + inner[axis]);
            let first = [0, 1, 2].map(|axis| at[axis] * chunk[axis]);
            let is_inside = (0..3).all(|axis| first[axis] < dims[axis])
                && first[2] < self.slices.end
                && first[2] + chunk[2] > self.slices.start;
            if is_inside {
                group.push(at);
            }
            self.next += 1;
            if self.next == all {
                (self.next, self.files.start) = (0, self.files.start + 1);
            }
        }
        group
    }

    /// Reads the samples of the next chunks; `None` after the last one.
    pub fn read(&mut self) -> Result<Option<Samples>> {
        loop {
            let group = self.next_batch();
            if group.is_empty() {
                return Ok(None);
            }
            let Self { reader, position, slices, .. } = self;
            let read = |at: [usize; 3]| {
                Ok((at, reader.decode_chunk(at, position, reader.read_chunk(at, position, None)?)?))
            };
            let read = group.into_iter().par_map(read).into_iter().collect::<Result<Vec<_>>>()?;
            // A shard may lack chunks.
            let stored: Vec<([usize; 3], Vec<u8>)> =
                read.into_iter().filter_map(|(at, samples)| Some((at, samples?))).collect();
            if stored.is_empty() {
                continue;
            }
            let (dims, chunk) = (reader.slicing.dims(), reader.slicing.chunk());
            let within = |at: [usize; 3]| {
                let end = |axis: usize, end: usize| ((at[axis] + 1) * chunk[axis]).min(end);
                let first = at[2] * chunk[2];
                let depth = first.max(slices.start) - first..end(2, slices.end) - first;
                let [width, height] =
                    [0, 1].map(|axis| end(axis, dims[axis]) - at[axis] * chunk[axis]);
                (width, height, depth)
            };
            let count = |at| {
                let (width, height, depth) = within(at);
                width * height * depth.len()
            };
            let count = stored.iter().map(|&(at, _)| count(at)).sum();
            let mut samples = Samples::zeros(reader.dtype, count)?;
            let mut left = samples.as_bytes_mut();
            for (at, chunk) in &stored {
                let (width, height, depth) = within(*at);
                for z in depth {
                    for y in 0..height {
                        let (row, rest) = left.split_at_mut(width * reader.dtype.size());
                        reader.copy_row(chunk, [y, z], row);
                        left = rest;
                    }
                }
            }
            reader.keep_spare(stored.into_iter().map(|(_, chunk)| chunk));
            return Ok(Some(samples));
        }
    }
}
