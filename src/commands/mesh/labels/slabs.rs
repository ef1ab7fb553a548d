//! Reads a volume of labels, in slabs that fit into the memory.

use std::sync::{Mutex, PoisonError};

use super::{super::budget::LEAST, numbers::Numbers};
use crate::{
    data::samples::Samples,
    engine::session::Session,
    io::{
        reader::Reader,
        volume::{VolumeFile, VolumeReader},
    },
    kernels::mesh::labels::SurfaceNets,
    util::error::{Error, Result},
};

/// The height of the slabs, and the memory for their faces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Layers of cells in a slab.
    pub(super) layers: usize,
    /// Bytes that the faces of a slab and the kernel's tables may take.
    pub(super) part: u64,
    /// Bytes that all faces may take together.
    pub(super) faces: u64,
    /// Bytes of faces that may wait in memory to be written; the rest goes to temporary files.
    pub(super) held: u64,
}

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
            Some(_) => numbers.of_integers(&self.reader.read_integers(count)?)?,
            None => numbers.of_samples(self.reader.read(count)?)?,
        };
        match before {
            Some(before) => joined(before, &new),
            None => Ok(new),
        }
    }

    fn expect_end(&mut self) -> Result<()> {
        self.reader.expect_end()
    }

    fn reuse(&mut self, done: Samples) {
        self.reader.reuse(done);
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
