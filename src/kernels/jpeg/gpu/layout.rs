//! Layout of the blocks and samples of a picture in buffers.

use crate::{
    data::{
        dtype::Dtype,
        grid::{GridType, Shape},
    },
    gpu::{Buffer, Context},
    jpeg::{Component, Entry, Frame, SparseBlock, ZIGZAG},
    kernels::gpu_step::GpuLayout,
    shader_struct,
};

shader_struct! {
    pub(super) struct BlockParams { blocks: u32, across: u32, first: u32, plane: u32, order: [[u32; 4]; 16] }
}

/// Why the shaders need no bounds checks.
pub(super) const IN_RANGE: &str = "blocks, entries, planes and rows are indexed below the numbers that the host sizes the buffers by; \
    columns and rows are limited to the last of a plane";

/// Coefficients on a device.
#[derive(Debug)]
pub struct Blocks {
    pub(super) blocks: Buffer,
    pub(super) entries: Buffer,
}

/// Offsets of the components of a picture in a buffer of blocks and in a buffer of samples.
#[derive(Clone, Debug)]
pub(super) struct Offsets {
    pub(super) frame: Frame,
    /// Number of blocks before each component, and of all blocks.
    pub(super) blocks: Vec<usize>,
}

/// Maximum number of bytes of the entries of a block: all 63 AC coefficients.
pub(super) const MAX_ENTRY_BYTES: u64 = 63 * size_of::<Entry>() as u64;

impl Offsets {
    pub(super) fn new(frame: &Frame) -> Self {
        let blocks = (0..=frame.components.len()).map(|c| frame.first_block(c)).collect();
        Self { frame: frame.clone(), blocks }
    }

    pub(super) fn block_count(&self) -> usize {
        self.blocks[self.frame.components.len()]
    }

    /// Bytes of all blocks.
    pub(super) fn block_bytes(&self) -> u64 {
        (self.block_count() * size_of::<SparseBlock>()) as u64
    }

    /// Bytes of all planes.
    pub(super) fn plane_bytes(&self) -> u64 {
        self.block_count() as u64 * 64
    }

    /// The layout of the pixels.
    pub(super) fn pixels(&self) -> GpuLayout {
        let ([width, height], channels) = (self.frame.size, self.frame.colour.channels());
        let shape = Shape { dims: [width, height, 1], channels };
        GpuLayout::padded(GridType { shape, dtype: Dtype::U8 })
    }

    /// Words from one row of pixels to the next.
    pub(super) fn pitch_words(&self) -> u32 {
        let pixels = self.pixels();
        (pixels.pitch * pixels.grid.shape.channels / 4) as u32
    }

    pub(super) fn block_params(&self, c: usize) -> BlockParams {
        BlockParams {
            blocks: (self.blocks[c + 1] - self.blocks[c]) as u32,
            across: self.frame.blocks(c)[0] as u32,
            first: self.blocks[c] as u32,
            plane: 16 * self.blocks[c] as u32,
            order: order(&self.frame.components[c]),
        }
    }

    /// Whether the picture fits the device in one piece.
    pub(super) fn fits(&self, context: &Context) -> bool {
        let pixels = self.pixels().bytes();
        let largest = (MAX_ENTRY_BYTES * self.block_count() as u64).max(pixels);
        let groups = self.block_count().div_ceil(8).max(pixels as usize / 4 / 64 + 1) as u64;
        largest <= context.max_binding() && context.fold(groups).is_ok()
    }
}

/// For each coefficient in zig-zag order: its index row by row, shifted left by 16, and its quantization step.
fn order(component: &Component) -> [[u32; 4]; 16] {
    let words = ZIGZAG.map(|at| u32::from(at) << 16 | u32::from(component.steps[usize::from(at)]));
    *words.as_chunks().0.first_chunk().expect("64 words")
}
