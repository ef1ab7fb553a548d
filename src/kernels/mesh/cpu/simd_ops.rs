//! The two steps that AVX2 has instructions for, and their scalar implementation.

use pulp::{Scalar, Simd};

pub(in super::super) trait SimdOps: Simd {
    /// One bit for each flag of 0 or 1, the first in the lowest bit.
    fn movemask(self, flags: [u8; 64]) -> u64;

    /// `numbers[order[i]]` for each `i`.
    fn permute(self, numbers: [u32; 16], order: &[u8; 16]) -> [u32; 16];
}

impl SimdOps for Scalar {
    #[inline(always)]
    fn movemask(self, flags: [u8; 64]) -> u64 {
        let eights = flags.as_chunks::<8>().0.iter().enumerate();
        eights.fold(0, |mask, (i, &flags)| {
            // Flag k is bit 8 k. Times 2^(56 - 7 k), it lands in bit 56 + k:
            //   flags     .......h .......g ... .......b .......a
            //   product   hgfedcba ........ ... ........ ........
            let bits = u64::from_le_bytes(flags).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            mask | bits << (8 * i)
        })
    }

    #[inline(always)]
    fn permute(self, numbers: [u32; 16], order: &[u8; 16]) -> [u32; 16] {
        order.map(|i| numbers[usize::from(i & 15)])
    }
}
