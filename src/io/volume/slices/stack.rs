//! Slices that are read one at a time, in any order and by several threads at once.

use std::{ops::Range, sync::Arc};

use crate::{
    data::samples::Samples,
    io::Limits,
    util::{error::Result, parallel::Parallel},
};

/// Reads those samples of the next stored chunks that belong to a volume; `None` after the last chunk.
pub type ReadChunks = Box<dyn FnMut() -> Result<Option<Samples>> + Send>;

/// Slices of one size and type.
pub trait Slices: Send + Sync {
    /// Reads slice `z`, counted from 0 over all volumes, into `samples`: rows from the first on, rescaled values
    /// of the type `Description::dtype` in the machine's byte order.
    fn read(&self, z: usize, samples: &mut [u8]) -> Result<()>;

    /// Bytes of memory that reading a slice takes in addition to its samples.
    fn scratch(&self) -> u64;

    /// Whether reading is fastest one slice after the other, in order.
    fn is_sequential(&self) -> bool {
        false
    }

    /// Reads the slices from number `first` on, each of `bytes` bytes, on all threads.
    fn read_range(&self, first: usize, bytes: usize, samples: &mut [u8]) -> Result<()> {
        let group_len = concurrency(self);
        for (group, samples) in samples.chunks_mut(bytes * group_len).enumerate() {
            let first = first + group * group_len;
            let each = samples.chunks_mut(bytes).enumerate();
            each.par_try_each(|(i, samples)| self.read(first + i, samples))?;
        }
        Ok(())
    }

    /// Sets the limit of memory for reading. If `limits` are strict, the loss of values is an error from now on, not a
    /// warning.
    fn allow(&self, _limits: Limits) -> Result<()> {
        Ok(())
    }

    /// Number of slices that are stored together, as in chunks.
    fn layer(&self) -> usize {
        1
    }

    /// The value of samples that are not stored; `None` if all are stored.
    fn fill(&self) -> Option<Samples> {
        None
    }

    /// If no samples of slice `slice` of a volume are stored: the number of the next slice that may be stored, and the
    /// value of all samples before it.
    fn missing(&self, _volume: usize, _slice: usize) -> Option<(usize, Samples)> {
        None
    }

    /// The stored chunks of `slices` of a volume, as many at a time as fit into `bytes` of memory. `None` if it is
    /// unknown which are stored, or if one of them takes more.
    fn stored_chunks(
        self: Arc<Self>,
        _volume: usize,
        _slices: Range<usize>,
        _bytes: u64,
    ) -> Option<ReadChunks> {
        None
    }
}

/// Maximum number of bytes of memory that concurrent reads of slices take in addition to the samples.
const SCRATCH: u64 = 64 << 20;

/// Number of slices that are read at the same time.
fn concurrency(slices: &(impl Slices + ?Sized)) -> usize {
    if slices.is_sequential() {
        return 1;
    }
    (SCRATCH / slices.scratch().max(1)).clamp(1, rayon::current_num_threads() as u64) as usize
}

/// Bytes of memory that reading takes in addition to the samples.
pub fn scratch_bytes(slices: &dyn Slices) -> u64 {
    slices.scratch().saturating_mul(concurrency(slices) as u64)
}
