//! A volume of labels, read slab by slab.

use std::ops::Range;

use super::numbers::{self, Numbers};
use crate::{
    data::{samples::Samples, volume::Volume},
    error::{Error, Result},
    io::volume::{VolumeFile, VolumeReader},
    kernels::mesh::{Slab, labels::SurfaceNets},
    session::Session,
};

/// How many layers of cells are meshed at a time, and what their faces may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    layers: usize,
    /// Bytes that a slab's faces, and the tables that they come from, may take.
    pub(super) part: u64,
    /// Bytes that all faces may take together.
    pub(super) faces: u64,
    /// Bytes of them that may wait in memory to be written; more go to temporary files.
    pub(super) held: u64,
}

/// Memory that may be taken whatever the limit.
const LEAST: u64 = 16 << 20;
/// Bytes of samples a slab, where memory allows.
const SLAB: u64 = 256 << 20;
/// As many times the bytes that one layer takes with those that it depends on, where memory allows.
const WORTH: u64 = 4;
/// Bytes of faces that wait in memory, where memory allows.
const HELD: u64 = 128 << 20;

impl Plan {
    /// Slabs as high as the memory allows.
    pub(super) fn new(
        kernel: &SurfaceNets,
        file: &VolumeFile,
        size: usize,
        session: &Session,
    ) -> Result<Self> {
        let [width, height, depth] = file.dims;
        let slice = (width as u64).saturating_mul(height as u64);
        let all = SurfaceNets::layers(depth);
        // The numbers, those that the next slab shares, the samples that they come from, and a byte of tables a point.
        let point = (2 * size + file.dtype.size() + 1) as u64;
        let slices = |layers: usize| {
            let middle = all / 2;
            let some = middle.saturating_sub(layers / 2)..(middle + layers).min(all);
            kernel.slices(&some, depth).len() as u64 + 1
        };
        let takes = |layers: usize| slice.saturating_mul(slices(layers)).saturating_mul(point);
        let memory = session.max_memory.saturating_sub(file.held_bytes()).max(LEAST);
        // What a layer depends on is meshed anew in each slab: where that is much, slabs are higher than it.
        let most = SLAB.min(memory / 4).max(WORTH * takes(1)).min(memory / 2);
        let mut layers = all;
        while layers > 1 && takes(layers) > most {
            layers -= layers.div_ceil(8);
        }
        let samples = takes(layers);
        if samples > memory / 2 {
            return Err(Error::bad_input(format_args!(
                "a layer of cells and the {} slices that it depends on take {samples} bytes, and --max-memory leaves \
                 {} for them",
                slices(1),
                memory / 2
            )));
        }
        let left = memory - samples;
        Ok(Self { layers, part: left / 2, faces: left / 2, held: (left / 4).min(HELD) })
    }
}

/// The slabs of a file, in order. Slices that two slabs need are read once.
#[derive(Debug)]
pub(super) struct LabelSlabs<'a> {
    kernel: SurfaceNets,
    reader: VolumeReader,
    dims: [usize; 3],
    /// Layers of cells a slab.
    height: usize,
    /// Layers that are still to come.
    left: Range<usize>,
    /// The topmost slices read so far, and the number of the first of them.
    tail: Option<(usize, Samples)>,
    pub(super) numbers: &'a mut Numbers<'a>,
}

impl<'a> LabelSlabs<'a> {
    pub(super) fn new(
        kernel: &SurfaceNets,
        file: &VolumeFile,
        plan: &Plan,
        numbers: &'a mut Numbers<'a>,
    ) -> Result<Self> {
        let (kernel, reader, dims) = (kernel.clone(), file.reader()?, file.dims);
        let left = 0..SurfaceNets::layers(dims[2]);
        Ok(Self { kernel, reader, dims, height: plan.layers, left, tail: None, numbers })
    }

    /// The next slab, whose first vertex has the number `first_vertex`.
    pub(super) fn next(&mut self, first_vertex: u64) -> Result<Option<Slab>> {
        if self.left.is_empty() {
            return Ok(None);
        }
        let [width, rows, depth] = self.dims;
        let layers = self.left.start..(self.left.start + self.height).min(self.left.end);
        self.left.start = layers.end;
        let slices = self.kernel.slices(&layers, depth);
        let slice = width * rows;
        let shared = self.tail.take().map(|(first, tail)| {
            let skip = (slices.start - first) * slice;
            tail.part(skip..tail.len())
        });
        let held = shared.as_ref().map_or(0, |shared| numbers::len(shared) / slice);
        let count = slices.len() - held;
        let new = match self.numbers.integers {
            Some(_) => self.numbers.of_integers(&self.reader.read_integers(count)?)?,
            None => self.numbers.of_samples(self.reader.read(count)?)?,
        };
        let samples = match shared {
            Some(shared) => joined(&shared, &new)?,
            None => new,
        };
        if self.left.is_empty() {
            self.reader.expect_end()?;
        } else {
            let next = self.left.start..(self.left.start + 1);
            let from = self.kernel.slices(&next, depth).start;
            let tail = samples.part((from - slices.start) * slice..samples.len());
            self.tail = Some((from, tail));
        }
        Ok(Some(Slab {
            volume: Volume { dims: [width, rows, slices.len()], samples }.into(),
            first_slice: slices.start,
            depth,
            layers,
            first_vertex,
        }))
    }
}

/// Both, one behind the other. They are of one type.
fn joined(before: &Samples, after: &Samples) -> Result<Samples> {
    let mut all = Samples::zeros(after.dtype(), before.len() + after.len())?;
    let (first, second) = all.as_bytes_mut().split_at_mut(before.as_bytes().len());
    first.copy_from_slice(before.as_bytes());
    second.copy_from_slice(after.as_bytes());
    Ok(all)
}
