//! Operations that AVX2 has instructions for, with their scalar implementation.

use bytemuck::Pod;
use pulp::{Scalar, Simd};

pub(in super::super) trait SimdOps: Simd {
    /// A vector of eight u32, as an array of them in memory.
    type Eight: Pod;

    /// Packs flags of 0 or 1 into bits, the first flag into the lowest bit.
    fn movemask(self, flags: [u8; 64]) -> u64;

    /// Adds bit `bit` of each set to each number.
    fn add_bit(self, numbers: Self::Eight, sets: Self::Eight, bit: u32) -> Self::Eight;

    /// Gathers bit `bit` of each set, that of the first set into the lowest bit.
    fn gather_bit(self, sets: Self::Eight, bit: u32) -> u32;

    /// Joins the first four numbers of `first` and the last four of `last`.
    fn join(self, first: Self::Eight, last: Self::Eight) -> Self::Eight;

    /// Sets each `out[i]` to the number at index `order[i]` among the sixteen in `low` and `high`.
    fn permute(self, low: Self::Eight, high: Self::Eight, order: &[u8; 16], out: &mut [u32; 16]);
}

impl SimdOps for Scalar {
    type Eight = [u32; 8];

    #[inline(always)]
    fn movemask(self, flags: [u8; 64]) -> u64 {
        let eights = flags.as_chunks::<8>().0.iter().enumerate();
        eights.fold(0, |mask, (i, &flags)| {
            // Flag k is bit 8 k. Multiplied by 2^(56 - 7 k), it is bit 56 + k:
            //   flags     .......h .......g ... .......b .......a
            //   product   hgfedcba ........ ... ........ ........
            let bits = u64::from_le_bytes(flags).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            mask | bits << (8 * i)
        })
    }

    #[inline(always)]
    fn add_bit(self, mut numbers: [u32; 8], sets: [u32; 8], bit: u32) -> [u32; 8] {
        for (number, set) in numbers.iter_mut().zip(sets) {
            *number = number.wrapping_add(set >> bit & 1);
        }
        numbers
    }

    #[inline(always)]
    fn gather_bit(self, sets: [u32; 8], bit: u32) -> u32 {
        sets.iter().rev().fold(0, |bits, set| bits << 1 | (set >> bit & 1))
    }

    #[inline(always)]
    fn join(self, mut first: [u32; 8], last: [u32; 8]) -> [u32; 8] {
        first[4..].copy_from_slice(&last[4..]);
        first
    }

    #[inline(always)]
    fn permute(self, low: [u32; 8], high: [u32; 8], order: &[u8; 16], out: &mut [u32; 16]) {
        let both = [low, high];
        *out = order.map(|i| both.as_flattened()[usize::from(i & 15)]);
    }
}
