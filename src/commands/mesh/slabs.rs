//! Reads a volume slab by slab.

use std::{ops::Range, sync::Arc};

use super::memory::SHARED;
use crate::{
    data::{samples::Samples, volume::Volume},
    error::Result,
    io::{
        reader::Reader,
        volume::{VolumeFile, VolumeReader},
    },
    kernels::mesh::{MarchingCubes, Slab},
};

/// The slabs of a file, in order. Slices that two neighbouring slabs need are read once.
#[derive(Debug)]
pub struct Slabs {
    kernel: MarchingCubes,
    reader: VolumeReader,
    dims: [usize; 3],
    /// Layers of cells in a slab.
    height: usize,
    /// Layers of cells that are not meshed yet.
    left: Range<usize>,
    /// The last slices that were read, and the number of the first of them.
    tail: Option<(usize, Samples)>,
}

impl Slabs {
    /// Divides the layers of cells `own` into slabs of `height` layers.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn new(
        kernel: &MarchingCubes,
        file: &VolumeFile,
        own: Range<usize>,
        height: usize,
    ) -> Result<Self> {
        let first = kernel.slices(&own, file.dims[2]).start;
        let reader = file.reader_at(first)?;
        Ok(Self { kernel: kernel.clone(), reader, dims: file.dims, height, left: own, tail: None })
    }

    /// Takes back a slab that is no longer needed; a later slab is read into its memory.
    pub fn reuse(&mut self, done: Slab) {
        if let Some(volume) = Arc::into_inner(done.volume) {
            self.reader.reuse(volume.samples);
        }
    }

    fn read(&mut self) -> Result<Slab> {
        let [width, rows, depth] = self.dims;
        let start = self.left.start;
        let layers = start..(start + self.height).min(self.left.end);
        self.left.start = layers.end;
        let slices = self.kernel.slices(&layers, depth);
        let slice = width * rows;
        let shared = self.tail.take().map(|(first, tail)| {
            let skip = (slices.start - first) * slice;
            tail.part(skip..tail.len())
        });
        let held = shared.as_ref().map_or(0, |shared| shared.len() / slice);
        let samples = self.reader.read_after(shared.as_ref(), slices.len() - held)?;
        drop(shared);
        let keep = SHARED.min(slices.len());
        self.tail =
            Some((slices.end - keep, samples.part((slices.len() - keep) * slice..samples.len())));
        if layers.end == self.kernel.layers(depth) {
            self.reader.expect_end()?;
        }
        Ok(Slab {
            volume: Volume { dims: [width, rows, slices.len()], samples }.into(),
            first_slice: slices.start,
            depth,
            layers,
            first_vertex: 0,
        })
    }
}

impl Iterator for Slabs {
    type Item = Result<Slab>;

    fn next(&mut self) -> Option<Result<Slab>> {
        (!self.left.is_empty()).then(|| self.read())
    }
}
