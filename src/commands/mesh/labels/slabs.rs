//! Reads a volume of labels slab by slab.

use std::ops::Range;

use super::numbers::{self, Numbers};
use crate::{
    data::{samples::Samples, volume::Volume},
    engine::session::Session,
    io::{
        reader::Reader,
        volume::{VolumeFile, VolumeReader},
    },
    kernels::mesh::{Slab, labels::SurfaceNets},
    util::error::{Error, Result},
};

/// The height of the slabs, and the memory for their faces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Layers of cells in a slab.
    layers: usize,
    /// Bytes that the faces of a slab and the kernel's tables may take.
    pub(super) part: u64,
    /// Bytes that all faces may take together.
    pub(super) faces: u64,
    /// Bytes of faces that may wait in memory to be written; the rest goes to temporary files.
    pub(super) held: u64,
}

/// Memory, in bytes, that may be taken even where `--max-memory` is less.
const LEAST: u64 = 16 << 20;
/// Most bytes of samples in a slab, unless `WORTH` asks for more.
const SLAB: u64 = 256 << 20;
/// Where memory allows, a slab takes at least this many times the bytes of a slab of one layer: its halo is then a
/// small share of it.
const WORTH: u64 = 4;
/// Most bytes of faces that wait in memory to be written.
const HELD: u64 = 128 << 20;

impl Plan {
    /// Plans slabs that are as high as the memory allows. A number of a label takes `size` bytes.
    ///
    /// # Errors
    /// When even a single layer of cells, with the slices that it depends on, takes too much memory.
    pub(super) fn new(
        kernel: &SurfaceNets,
        file: &VolumeFile,
        size: usize,
        session: &Session,
    ) -> Result<Self> {
        let [width, height, depth] = file.dims;
        let slice = (width as u64).saturating_mul(height as u64);
        let all = SurfaceNets::layers(depth);
        // For each sample: its number, the copy of it for the next slab, the sample itself, and a byte of tables.
        let point = (2 * size + file.dtype.size() + 1) as u64;
        let slices = |layers: usize| {
            let middle = all / 2;
            let some = middle.saturating_sub(layers / 2)..(middle + layers).min(all);
            kernel.slices(&some, depth).len() as u64 + 1
        };
        let takes = |layers: usize| slice.saturating_mul(slices(layers)).saturating_mul(point);
        let memory = session.max_memory.saturating_sub(file.held_bytes()).max(LEAST);
        // Each slab computes its halo anew. Where the halo is large, slabs are made higher.
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

/// The slabs of a file, in order. Slices that two neighbouring slabs need are read once.
#[derive(Debug)]
pub(super) struct LabelSlabs<'a> {
    kernel: SurfaceNets,
    file: VolumeFile,
    reader: VolumeReader,
    dims: [usize; 3],
    /// Layers of cells in a slab.
    height: usize,
    /// Layers of cells that are not meshed yet.
    left: Range<usize>,
    /// The last slices that were read, and the number of the first of them.
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
        let file = file.clone();
        Ok(Self { kernel, file, reader, dims, height: plan.layers, left, tail: None, numbers })
    }

    /// Skips layers of cells whose samples are not stored, if their value is not a label to be meshed.
    fn skip_missing(&mut self) -> Result<()> {
        let depth = self.dims[2];
        let slices = |layer: usize| self.kernel.slices(&(layer..layer + 1), depth);
        let Some(layer) = self.left.clone().next() else { return Ok(()) };
        let Some((end, fill)) = self.file.missing(slices(layer).start) else { return Ok(()) };
        let count = self.left.clone().take_while(|&layer| slices(layer).end <= end).count();
        if count == 0 || self.numbers.of_samples(fill)?.first() != Some(0.0) {
            return Ok(());
        }
        self.left.start += count;
        self.tail = None;
        self.reader = self.file.reader_at(self.kernel.slices(&self.left, depth).start)?;
        Ok(())
    }

    /// The next slab, whose first vertex has the number `first_vertex`.
    pub(super) fn next(&mut self, first_vertex: u64) -> Result<Option<Slab>> {
        self.skip_missing()?;
        if self.left.is_empty() {
            return Ok(None);
        }
        let [width, rows, depth] = self.dims;
        let start = self.left.start;
        let most = (start + self.height).min(self.left.end);
        // The slab ends before slices that are not stored: the next call skips them.
        let is_missing = |layer: &usize| {
            let first = self.kernel.slices(&(*layer..layer + 1), depth).start;
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

/// `before` followed by `after`, which have the same type.
fn joined(before: &Samples, after: &Samples) -> Result<Samples> {
    let mut all = Samples::zeros(after.dtype(), before.len() + after.len())?;
    let (first, second) = all.as_bytes_mut().split_at_mut(before.as_bytes().len());
    first.copy_from_slice(before.as_bytes());
    second.copy_from_slice(after.as_bytes());
    Ok(all)
}
