//! Reads a volume slab by slab.

use std::{ops::Range, sync::Arc};

use super::memory::SHARED;
use crate::{
    data::{samples::Samples, volume::Volume},
    io::{
        reader::Reader,
        volume::{VolumeFile, VolumeReader},
    },
    kernels::mesh::{MarchingCubes, Slab},
    util::error::Result,
};

/// The slabs of a file, in order. Slices that two neighbouring slabs need are read once.
#[derive(Debug)]
pub struct Slabs {
    kernel: MarchingCubes,
    file: VolumeFile,
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
        let (kernel, file, dims) = (kernel.clone(), file.clone(), file.dims);
        Ok(Self { kernel, file, reader, dims, height, left: own, tail: None })
    }

    /// Takes back a slab that is no longer needed; a later slab is read into its memory.
    pub fn reuse(&mut self, done: Slab) {
        if let Some(volume) = Arc::into_inner(done.volume) {
            self.reader.reuse(volume.samples);
        }
    }

    /// Skips layers of cells whose samples are not stored: these are all equal, so no surface passes between them.
    fn skip_missing(&mut self) -> Result<()> {
        let depth = self.dims[2];
        let slices = |layer: usize| self.kernel.slices(&(layer..layer + 1), depth);
        let Some(layer) = self.left.clone().next() else { return Ok(()) };
        let Some((end, fill)) = self.file.missing(slices(layer).start) else { return Ok(()) };
        // If the missing samples are inside the surface, `--close` makes faces at the sides of the volume.
        let has_sides =
            self.kernel.close && fill.first().is_some_and(|fill| fill >= self.kernel.iso);
        let is_missing = |&layer: &usize| slices(layer).end <= end;
        let count = self.left.clone().take_while(is_missing).count();
        if has_sides || count == 0 {
            return Ok(());
        }
        self.left.start += count;
        self.tail = None;
        self.reader = self.file.reader_at(self.kernel.slices(&self.left, depth).start)?;
        Ok(())
    }

    fn read(&mut self) -> Result<Slab> {
        let [width, rows, depth] = self.dims;
        let start = self.left.start;
        let most = (start + self.height).min(self.left.end);
        // The slab ends before slices that are not stored: the next call skips them.
        let is_missing = |layer: &usize| {
            let first = self.kernel.slices(&(*layer..layer + 1), self.dims[2]).start;
            self.file.missing(first).is_some()
        };
        let layers = start..(start + 1..most).find(is_missing).unwrap_or(most);
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
        if let Err(error) = self.skip_missing() {
            return Some(Err(error));
        }
        (!self.left.is_empty()).then(|| self.read())
    }
}
