//! Blocks of 8 x 8 coefficients.

use crate::memory::{self, raise};

/// A row of blocks of one component.
#[derive(Debug, Default)]
pub struct BlockRow {
    /// 64 coefficients a block, row by row; not dequantized.
    pub values: Vec<i16>,
    /// For each block, bit `k` is set where AC coefficient `k` in zig-zag order is not 0.
    pub nonzero: Vec<u64>,
}

impl BlockRow {
    /// Blocks of zeros.
    pub fn new(blocks: usize) -> Self {
        let values = memory::zeros(64 * blocks).unwrap_or_else(raise);
        Self { values, nonzero: vec![0; blocks] }
    }

    /// Blocks of zeros in the memory of another row, as far as it goes.
    pub fn cleared(mut self, blocks: usize) -> Self {
        if self.nonzero.len() != blocks {
            return Self::new(blocks);
        }
        self.values.fill(0);
        self.nonzero.fill(0);
        self
    }
}

/// Stands for [`BlockRow::nonzero`] of a block that is not read yet, and holds what it held before: no AC coefficient has
/// bit 0.
const UNREAD: u64 = 1;

impl BlockRow {
    /// Blocks to be read, each of which is cleared then, in the memory of another row, as far as it goes.
    pub fn unread(mut self, blocks: usize) -> Self {
        if self.nonzero.len() != blocks {
            return Self::new(blocks);
        }
        self.nonzero.fill(UNREAD);
        self
    }

    /// Clears the blocks that were not read.
    pub fn clear_unread(&mut self) {
        let blocks = self.values.as_chunks_mut::<64>().0.iter_mut().zip(&mut self.nonzero);
        for (values, nonzero) in blocks.filter(|(_, nonzero)| **nonzero == UNREAD) {
            BlockMut { values, nonzero }.clear();
        }
    }
}

/// One block of a [`BlockRow`].
pub struct BlockMut<'a> {
    /// Its coefficients.
    pub values: &'a mut [i16; 64],
    /// Which AC coefficients are not 0.
    pub nonzero: &'a mut u64,
}

impl BlockMut<'_> {
    #[inline(always)]
    pub fn clear(self) {
        *self.values = [0; 64];
        *self.nonzero = 0;
    }
}
