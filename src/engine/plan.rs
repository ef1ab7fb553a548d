//! Chooses the size of the blocks of streams and meshes, within the memory limit. For filters, see
//! [`flow::cost`](crate::flow::cost).

use crate::{engine::session::Session, flow::cost::largest_block};

/// Number of elements of `bytes` bytes each in a block of a stream, at most `max`.
pub fn stream_block(max: usize, bytes: u64, session: &Session) -> usize {
    /// A shorter block would save no memory that matters.
    const MIN: usize = 1 << 10;
    largest_block(max, session.max_memory, |block| stream_bytes(block, bytes)).max(MIN)
}

/// Memory of a stream with blocks of `block` elements of `bytes` bytes each.
pub fn stream_bytes(block: usize, bytes: u64) -> u64 {
    /// Blocks in memory: two are read ahead, one is worked on, one holds its results, two are to be written. The rest
    /// is for buffers.
    const IN_FLIGHT: u64 = 8;
    IN_FLIGHT * bytes * block as u64
}

/// Memory, in bytes, that surfaces may take even if `--max-memory` is less.
pub const MIN_SURFACE_MEMORY: u64 = 16 << 20;
/// Bytes of the surface that wait in memory to be written, and at most a quarter of the memory. More goes to temporary
/// files first.
const MAX_PENDING: u64 = 1 << 30;

/// Memory that meshing a volume in blocks takes, in bytes.
#[expect(missing_debug_implementations, reason = "it holds functions")]
pub struct MeshCost<'a> {
    /// Samples of a block of this many layers of cells, with its halo.
    pub samples: &'a dyn Fn(usize) -> u64,
    /// Everything else that a block of this many layers takes while it is meshed, except for its surface.
    pub scratch: &'a dyn Fn(usize) -> u64,
    /// Maximum number of layers in a block.
    pub max_layers: usize,
    /// Memory of the file's reader.
    pub reader_bytes: u64,
}

/// The height of the blocks in which a volume is meshed, and the memory for its surface.
#[derive(Clone, Copy, Debug)]
pub struct MeshPlan {
    /// Layers of cells in a block.
    pub layers: usize,
    /// Whether the next block is read and the previous part of the surface is consumed while a block is meshed.
    pub overlaps: bool,
    /// Bytes that one part of the surface, and the kernel's tables for labels, may take. Several parts are in memory at
    /// a time: where steps overlap, one is meshed while others wait, are converted and are consumed.
    pub part_bytes: u64,
    /// Bytes that all parts of the surface in memory may take together.
    pub surface_bytes: u64,
    /// Bytes of the surface that may wait in memory to be written; the rest goes to temporary files.
    pub pending_bytes: u64,
}

impl MeshPlan {
    /// Plans blocks whose surface may take `ratio` bytes for each byte of samples, in the worst case. Reading and
    /// consuming overlap with meshing where memory allows.
    ///
    /// # Errors
    /// The bytes of memory that a single layer needs, where that is more than there is.
    pub fn overlapping(cost: &MeshCost<'_>, ratio: u64, session: &Session) -> Result<Self, u64> {
        /// Bytes of samples in a block.
        const BLOCK: u64 = 64 << 20;
        let takes = |layers: usize, blocks: u64| {
            let samples = (cost.samples)(layers).saturating_mul(blocks);
            samples.saturating_add((cost.scratch)(layers))
        };
        let memory = session.max_memory.saturating_sub(cost.reader_bytes);
        // At any time, the surfaces of three blocks may be in memory. Together, they may take half of it.
        let max_samples = BLOCK.min(memory / (2 * 3 * ratio));
        let without_halo = |layers: usize| (cost.samples)(layers) - (cost.samples)(0);
        let layers = largest_block(cost.max_layers, max_samples, without_halo);
        let layers = largest_block(layers, memory / 2, |layers| takes(layers, 3));
        let allowed = memory.max(MIN_SURFACE_MEMORY);
        let overlaps = takes(layers, 3) <= allowed / 2;
        let samples = takes(layers, if overlaps { 3 } else { 1 });
        if samples > allowed / 4 * 3 {
            let needed = samples.saturating_add(cost.reader_bytes);
            return Err(needed.saturating_add(needed / 3));
        }
        let surface_bytes = allowed - samples;
        let part_bytes = surface_bytes / if overlaps { 6 } else { 3 };
        let pending_bytes = (memory / 4).min(MAX_PENDING);
        Ok(Self { layers, overlaps, part_bytes, surface_bytes, pending_bytes })
    }

    /// The plan for a volume of `layers` layers in memory, where samples and scratch take `bytes`.
    pub fn whole(layers: usize, bytes: u64, session: &Session) -> Self {
        let memory = session.max_memory;
        let surface_bytes = memory.max(MIN_SURFACE_MEMORY).saturating_sub(bytes);
        let (part_bytes, pending_bytes) = (surface_bytes / 3, (memory / 4).min(MAX_PENDING));
        Self { layers, overlaps: false, part_bytes, surface_bytes, pending_bytes }
    }

    /// Plans blocks that are as high as the memory allows, one in memory at a time: each computes a large halo anew.
    ///
    /// # Errors
    /// As [`MeshPlan::overlapping`].
    pub fn sequential(cost: &MeshCost<'_>, session: &Session) -> Result<Self, u64> {
        /// Bytes of a block, unless `MIN_HEIGHT` asks for more.
        const BLOCK: u64 = 256 << 20;
        /// Minimum size of a block, in blocks of one layer, if memory allows: its halo is then a small share of it.
        const MIN_HEIGHT: u64 = 4;
        /// Bytes of faces that wait in memory to be written.
        const MAX_PENDING: u64 = 128 << 20;
        let takes = |layers: usize| (cost.samples)(layers).saturating_add((cost.scratch)(layers));
        let memory = session.max_memory.saturating_sub(cost.reader_bytes).max(MIN_SURFACE_MEMORY);
        let wanted = BLOCK.min(memory / 4).max(takes(1).saturating_mul(MIN_HEIGHT));
        let layers = largest_block(cost.max_layers, wanted.min(memory / 2), takes);
        let samples = takes(layers);
        if samples > memory / 2 {
            return Err(samples.saturating_mul(2).saturating_add(cost.reader_bytes));
        }
        let left = memory - samples;
        let [part_bytes, surface_bytes] = [left / 2; 2];
        let pending_bytes = (left / 4).min(MAX_PENDING);
        Ok(Self { layers, overlaps: false, part_bytes, surface_bytes, pending_bytes })
    }
}
