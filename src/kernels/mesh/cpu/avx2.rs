//! The steps of [`SimdOps`] in AVX2.

use std::arch::x86_64::__m256i;

use pulp::{cast, x86::V3};

use super::simd_ops::SimdOps;

impl SimdOps for V3 {
    #[inline(always)]
    fn movemask(self, flags: [u8; 64]) -> u64 {
        let [low, high]: [__m256i; 2] = cast(flags);
        let (low, high) = (self.signs(low), self.signs(high));
        u64::from(low) | u64::from(high) << 32
    }

    #[inline(always)]
    fn permute(self, numbers: [u32; 16], order: &[u8; 16]) -> [u32; 16] {
        let [first, second]: [u64; 2] = cast(*order);
        cast([self.eight(numbers, first), self.eight(numbers, second)])
    }
}

/// Methods, not closures: a closure would be compiled without AVX2.
trait Avx2 {
    /// The flags' bits: 0 - 1 has the sign bit that the instruction gathers.
    fn signs(self, flags: __m256i) -> u32;

    /// `numbers[order[i]]` for eight `i`: a permutation picks from eight numbers only, so both halves
    /// are permuted and the right one is taken.
    fn eight(self, numbers: [u32; 16], order: u64) -> __m256i;
}

impl Avx2 for V3 {
    #[inline(always)]
    fn signs(self, flags: __m256i) -> u32 {
        let signs = self.avx2._mm256_sub_epi8(self.avx._mm256_setzero_si256(), flags);
        self.avx2._mm256_movemask_epi8(signs) as u32
    }

    #[inline(always)]
    fn eight(self, numbers: [u32; 16], order: u64) -> __m256i {
        let [low, high]: [__m256i; 2] = cast(numbers);
        let order = self.avx2._mm256_cvtepu8_epi32(cast([order, 0]));
        let low = self.avx2._mm256_permutevar8x32_epi32(low, order);
        let high = self.avx2._mm256_permutevar8x32_epi32(high, order);
        let is_high = self.avx2._mm256_cmpgt_epi32(order, self.avx._mm256_set1_epi32(7));
        self.avx2._mm256_blendv_epi8(low, high, is_high)
    }
}
