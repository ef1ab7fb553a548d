//! Blocks of 8 x 8 coefficients.

use crate::memory::{self, raise};

/// The place in a block, row by row, of each coefficient in zig-zag order (ITU-T T.81, figure A.6).
pub const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

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
}

/// One block of a [`BlockRow`].
pub struct BlockMut<'a> {
    /// Its coefficients.
    pub values: &'a mut [i16; 64],
    /// Which AC coefficients are not 0.
    pub nonzero: &'a mut u64,
}
