//! Blocks of 8 x 8 coefficients.

use crate::memory::{self, raise};

/// A row of blocks of one component.
#[derive(Debug, Default)]
pub struct BlockRow {
    /// 64 coefficients for each block, row by row; not dequantized.
    pub values: Vec<i16>,
    /// For each block, a mask whose bit `k` is set if AC coefficient `k` in zig-zag order is not 0.
    pub nonzero: Vec<u64>,
}

impl BlockRow {
    /// `blocks` blocks of zeros.
    pub fn new(blocks: usize) -> Self {
        let values = memory::zeros(64 * blocks).unwrap_or_else(raise);
        Self { values, nonzero: vec![0; blocks] }
    }

    /// Blocks of zeros, in the memory of this row if it has as many blocks.
    pub fn cleared(mut self, blocks: usize) -> Self {
        if self.nonzero.len() != blocks {
            return Self::new(blocks);
        }
        self.values.fill(0);
        self.nonzero.fill(0);
        self
    }
}

/// Value of [`BlockRow::nonzero`] for a block that is not read yet, whose coefficients are arbitrary. Masks of read
/// blocks never have bit 0, since no AC coefficient has the number 0.
const UNREAD: u64 = 1;

impl BlockRow {
    /// Blocks to be read, in the memory of this row if it has as many blocks. A block is cleared when it is read.
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
    /// Its coefficients, row by row.
    pub values: &'a mut [i16; 64],
    /// Its mask of AC coefficients that are not 0.
    pub nonzero: &'a mut u64,
}

impl BlockMut<'_> {
    #[inline(always)]
    pub fn clear(self) {
        *self.values = [0; 64];
        *self.nonzero = 0;
    }
}
