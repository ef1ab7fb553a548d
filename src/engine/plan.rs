//! How large the blocks of an input are, within the memory limit.

use crate::kernels::filter::{Description, Filter};

/// Bytes of samples in a block whose halo is small. The memory of such blocks is used again and stays in cache.
const BLOCK: u64 = 16 << 20;
/// A block is this many times as high as its halo where memory allows: the halo is filtered in vain.
const HALOS: u64 = 8;
/// Blocks of input in memory besides the one that is filtered: one that is read, and what the next two share.
const READ_AHEAD: u64 = 2;
/// Blocks of results in memory: one that waits to be written, one that is written.
const TO_WRITE: u64 = 2;
/// Inputs of more bytes are filtered in blocks even where they fit into memory. On two cores, RGB images of 48 MB took
/// as long either way; in blocks, images of 120 MB took 0.6 (TIFF) and 0.8 (PNG) times as long, images of 284 MB half.
const LARGE: u64 = 96 << 20;

/// The sizes on which the choice of blocks depends.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Rows or slices of the input.
    pub len: u64,
    /// Bytes of a row or slice, as samples.
    row: u64,
    /// Bytes of a row or slice while it is filtered.
    working_row: u64,
    /// Bytes of a row or slice of the result.
    result_row: u64,
    /// Rows or slices on which a block depends, before and after it together.
    halo: u64,
    /// Bytes that the reader and the writer take besides.
    held: u64,
    /// Rows or slices that are stored together, as in chunks.
    layer: u64,
}

impl Extent {
    /// The extent of an input that is divided along `axis`, whose reader and writer take `held` bytes and store `layer`
    /// rows or slices together.
    pub fn new(
        filter: &dyn Filter,
        [input, output]: [Description; 2],
        axis: usize,
        (held, layer): (u64, usize),
    ) -> Self {
        let len = input.shape.dims[axis] as u64;
        let stride = |description: Description| {
            let all = description.shape.dims.iter().map(|&dim| dim as u64);
            let all = all.fold(description.shape.channels as u64, u64::saturating_mul);
            all / len.max(1)
        };
        let bytes = |description: Description| {
            stride(description).saturating_mul(description.dtype.size() as u64)
        };
        Self {
            len,
            row: bytes(input),
            working_row: stride(input).saturating_mul(filter.working_bytes(input)),
            result_row: bytes(output),
            halo: (2 * filter.halo(axis) as u64).min(len),
            held,
            layer: layer.max(1) as u64,
        }
    }

    /// Rows or slices on which a block depends, before and after it together.
    pub fn halo(&self) -> u64 {
        self.halo
    }

    /// Bytes of all samples.
    pub fn bytes(&self) -> u64 {
        self.row.saturating_mul(self.len)
    }

    /// Whether blocks take less time than the whole input. They do not on one thread, nor where the halo is most of a
    /// block.
    pub fn gains_by_blocks(&self) -> bool {
        let is_mostly_halo = self.max_block() < HALOS * self.halo;
        let are_several = 2 * self.max_block() <= self.len;
        self.bytes() >= LARGE && !is_mostly_halo && are_several && rayon::current_num_threads() > 1
    }

    /// Maximum number of rows or slices of a block.
    fn max_block(&self) -> u64 {
        let max = (BLOCK / self.row.max(1)).max(HALOS * self.halo).max(1);
        // With blocks lower than a layer of chunks, the reader and the writer would each hold the layer for several
        // blocks.
        max.max(self.layer)
    }

    /// Number of rows or slices of the blocks of `own` rows or slices that fit into `memory`.
    ///
    /// # Errors
    /// The bytes that a block of one row or slice takes, where that is more.
    pub fn block(&self, own: usize, memory: u64) -> Result<usize, u64> {
        let per_row = self.working_row + READ_AHEAD * self.row + TO_WRITE * self.result_row;
        let fixed = self.halo.saturating_mul(self.working_row + self.row).saturating_add(self.held);
        // A quarter is left for the allocator and for buffers of fixed size.
        let fitting = (memory / 4 * 3).saturating_sub(fixed) / per_row.max(1);
        if fitting == 0 && own > 0 {
            return Err(fixed.saturating_add(per_row).saturating_mul(4) / 3);
        }
        let block = fitting.min(self.max_block()).min(own as u64);
        // Round down to whole layers of chunks where that is not much less.
        let rest = block % self.layer;
        let is_cut = rest <= block / 2 && block < own as u64;
        Ok(if is_cut { block - rest } else { block } as usize)
    }
}
