//! Chooses the size of the blocks of an input, within the memory limit.
//!
//! A filter states how many bytes its blocks take; this module divides the memory.

use crate::{data::grid::GridType, kernels::filter::Filter};

/// Bytes of samples in a block whose halo is small. The memory of such blocks is reused and stays in the cache.
const BLOCK: u64 = 16 << 20;
/// If memory allows, a block has this many times the height of its halo, since the halo is filtered several times.
const HALOS: u64 = 8;
/// Blocks of input in memory in addition to the block being filtered: the next block.
const READ_AHEAD: u64 = 1;
/// Halos in memory in addition to that of the block being filtered: that of the next block, and a copy of the part that
/// it shares.
const HALO_COPIES: u64 = 2;
/// Blocks of results in memory: one being written, and one that waits to be written.
const TO_WRITE: u64 = 2;
/// Bytes that a row of any length takes in addition to its samples, in lists of rows and in files.
const ROW: u64 = 64;
/// Inputs of this many bytes or more are filtered in blocks even if they fit into memory. On two cores, blocks made no
/// difference for RGB images of 48 MB; images of 120 MB took 0.6 (TIFF) and 0.8 (PNG) times as long in blocks, and
/// images of 284 MB half as long.
const LARGE: u64 = 96 << 20;

/// Memory that a filter takes for the blocks of an input, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct FilterCost {
    /// Rows or slices of the input that the result depends on.
    len: u64,
    /// Rows or slices of the result.
    output_len: u64,
    /// Bytes of a row or slice of the input.
    row: u64,
    /// Bytes in memory for a row or slice while it is filtered.
    working_row: u64,
    /// Bytes of a row or slice of the result.
    result_row: u64,
    /// Bytes of the whole input while it is filtered.
    whole: u64,
    /// Number of rows in a slice; 1 if blocks consist of rows.
    rows: u64,
    /// Rows or slices of the halo of a block, before and after it together.
    halo: u64,
    /// Rows or slices of the input per row or slice of the result.
    step: u64,
    /// Bytes of the largest grid between the input and the result.
    largest: u64,
    /// Bytes that the reader, the writer and the filter hold throughout.
    held: u64,
    /// Rows or slices that are stored together, as in chunks.
    layer: u64,
    /// Bytes of samples that are needed again after a pass over all of them.
    needed_again: u64,
    /// Whether blocks are read from the last one to the first one.
    reads_backwards: bool,
}

impl FilterCost {
    /// The cost of an input that is divided along `axis`. Its reader and writer take `held` bytes and store `layer`
    /// rows or slices together.
    pub fn new(
        filter: &dyn Filter,
        [input, output]: [GridType; 2],
        axis: usize,
        (held, layer): (u64, usize),
    ) -> Self {
        let (len, output_len) = (input.shape.dims[axis], output.shape.dims[axis]);
        let middle = output_len / 2;
        let reach = filter.reach(axis, &(middle..middle + 1), input.shape);
        let all = filter.reach(axis, &(0..output_len), input.shape).input();
        // The result may depend on some positions only, such as those of a region.
        let used = all.filter(|_| !has_reduction(filter, input, axis)).map_or(len, |all| all.len());
        let bytes = |own: GridType, len: usize| {
            let dims = own.shape.dims.iter().map(|&dim| dim as u64);
            let samples = dims.fold(own.shape.channels as u64, u64::saturating_mul);
            (samples / len.max(1) as u64).saturating_mul(own.dtype.size() as u64)
        };
        let halo = 2 * reach.halo();
        let (halo, step) = match reach.input() {
            Some(positions) => {
                let step = used / output_len.max(1);
                (positions.len().saturating_sub(step), step.max(1))
            }
            None => (halo, 1),
        };
        let rows = if axis == 2 { input.shape.dims[1] as u64 } else { 1 };
        let (cost, makes_labels) = (filter.cost(input), filter.properties().makes_labels);
        let labels = if makes_labels { cost.copies } else { 0 };
        let labels = input.bytes().saturating_mul(labels);
        // The memory of labelling alone is estimated by its number of copies.
        let is_alone = labels > 0 && filter.steps().is_empty();
        let whole = if is_alone { labels } else { labels.max(cost.whole(input)) };
        let whole = whole.saturating_add(held);
        let held = held.saturating_add(cost.held);
        let (mut between, mut largest) = (input, 0);
        for step in filter.steps() {
            between = step.output(between).unwrap_or(between);
            largest = largest.max(between.bytes());
        }
        let (row, size) = (bytes(input, len), input.dtype.size() as u64);
        Self {
            len: used as u64,
            output_len: output_len as u64,
            row,
            working_row: (row / size).saturating_mul(cost.working).saturating_add(ROW * rows),
            result_row: bytes(output, used),
            whole,
            rows,
            halo: (halo as u64).min(len as u64),
            step: step as u64,
            largest,
            held,
            layer: layer.max(1) as u64,
            needed_again: if makes_labels { row.saturating_mul(len as u64) } else { 0 },
            reads_backwards: filter.reads_backwards(axis, input),
        }
    }

    /// Describes the smallest possible block for messages: a `unit` (row or slice) and the others that its result
    /// depends on.
    pub fn least(&self, unit: &str) -> String {
        match self.halo {
            0 => format!("a {unit}"),
            1 => format!("a {unit} with the one next to it"),
            halo => format!("a {unit} with the {halo} around it"),
        }
    }

    /// Bytes of all samples of the input, of the result, or of a grid between them, whichever is largest.
    pub fn bytes(&self) -> u64 {
        self.row.max(self.result_row).saturating_mul(self.len).max(self.largest)
    }

    /// Bytes in memory while the input is filtered as a whole.
    pub fn whole(&self) -> u64 {
        self.whole
    }

    /// Whether blocks take less time than the whole input. They take more on one thread.
    pub fn is_faster_in_blocks(&self) -> bool {
        let are_several = 2 * self.max_block() <= self.len;
        // A decoder would begin anew for each block.
        let is_possible = are_several && !self.reads_backwards;
        self.bytes() >= LARGE && is_possible && rayon::current_num_threads() > 1
    }

    /// Maximum number of rows or slices of a block.
    pub fn max_block(&self) -> u64 {
        let max = (BLOCK / self.row.max(ROW * self.rows)).max(HALOS * self.halo).max(1);
        // If blocks were lower than a layer of chunks, the reader and the writer would keep each layer for several
        // blocks.
        max.max(self.layer)
    }

    /// Bytes in memory while blocks of `block` rows or slices of the input are filtered.
    pub fn bytes_in_blocks(&self, block: u64) -> u64 {
        let per_row = self.working_row + READ_AHEAD * self.row + TO_WRITE * self.result_row;
        let halo = self.halo.saturating_mul(self.working_row + HALO_COPIES * self.row);
        halo.saturating_add(self.held).saturating_add(per_row.saturating_mul(block.max(self.step)))
    }

    /// Number of rows or slices of the input in a block, so that the work fits into `memory`, and the bytes that are
    /// left. There are `own` rows or slices of the result to compute.
    ///
    /// # Errors
    /// Returns the memory limit that a block of one row or slice needs, if it is above `memory`.
    pub fn block(&self, own: usize, memory: u64) -> Result<(usize, u64), u64> {
        let cost = |block: usize| self.bytes_in_blocks(block as u64);
        // A quarter is left for the allocator and for buffers of fixed size.
        let memory = memory / 4 * 3;
        if cost(1) > memory && own > 0 {
            return Err(cost(1).saturating_mul(4) / 3);
        }
        let own = (own as u64 * self.len).div_ceil(self.output_len.max(1));
        let max = self.max_block().min(own) as usize;
        // Samples that are needed again stay in memory if that leaves enough for a block.
        let rest = memory.saturating_sub(self.needed_again);
        let limit = if cost(max.div_ceil(4)) <= rest { rest } else { memory };
        let block = largest_block(max, limit, cost) as u64;
        // Round down to whole layers of chunks, unless that takes away more than half.
        let rest = block % self.layer;
        let is_rounded = rest <= block / 2 && block < own;
        let block = if is_rounded { block - rest } else { block } as usize;
        Ok((block, memory.saturating_sub(cost(block))))
    }
}

/// Whether a step of `filter` combines all positions along `axis`.
fn has_reduction(filter: &dyn Filter, input: GridType, axis: usize) -> bool {
    let mut own = input;
    filter.steps().iter().any(|step| {
        let before = own.shape;
        own = step.output(own).unwrap_or(own);
        let len = own.shape.dims[axis];
        len != before.dims[axis] && step.reach(axis, &(0..len), before).input().is_none()
    })
}

/// The largest block, of 1 to `max` positions, whose `cost` is at most `memory`, or 1 if even that costs more. The cost
/// must grow with the block.
pub fn largest_block(max: usize, memory: u64, cost: impl Fn(usize) -> u64) -> usize {
    let (mut fits, mut exceeds) = (1, max.max(1).saturating_add(1));
    while exceeds - fits > 1 {
        let middle = fits.midpoint(exceeds);
        match cost(middle) <= memory {
            true => fits = middle,
            false => exceeds = middle,
        }
    }
    fits
}
