//! The steps of [`SimdOps`] in AVX2.

use std::arch::x86_64::__m256i;

use pulp::{cast, x86::V3};

use super::simd_ops::SimdOps;

impl SimdOps for V3 {
    type Eight = __m256i;

    #[inline(always)]
    fn movemask(self, flags: [u8; 64]) -> u64 {
        let [low, high]: [__m256i; 2] = cast(flags);
        let (low, high) = (self.signs(low), self.signs(high));
        u64::from(low) | u64::from(high) << 32
    }

    #[inline(always)]
    fn eight(self, numbers: [u32; 8]) -> __m256i {
        cast(numbers)
    }

    #[inline(always)]
    fn array(self, numbers: __m256i) -> [u32; 8] {
        cast(numbers)
    }

    #[inline(always)]
    fn add_bit(self, numbers: __m256i, sets: __m256i, bit: u32) -> __m256i {
        let bits = self.avx2._mm256_srl_epi32(sets, self.sse2._mm_cvtsi32_si128(bit as i32));
        let bits = self.avx2._mm256_and_si256(bits, self.avx._mm256_set1_epi32(1));
        self.avx2._mm256_add_epi32(numbers, bits)
    }

    #[inline(always)]
    fn gather_bit(self, sets: __m256i, bit: u32) -> u32 {
        // As sign bits, which the instruction gathers.
        let up = self.sse2._mm_cvtsi32_si128(31 - bit as i32);
        self.avx._mm256_movemask_ps(cast(self.avx2._mm256_sll_epi32(sets, up))) as u32
    }

    #[inline(always)]
    fn join(self, first: __m256i, last: __m256i) -> __m256i {
        self.avx2._mm256_blend_epi32::<0b1111_0000>(first, last)
    }

    #[inline(always)]
    fn permute(self, low: __m256i, high: __m256i, order: &[u8; 16], out: &mut [u32; 16]) {
        let [first, second]: [u64; 2] = cast(*order);
        let [out_first, out_second] = bytemuck::cast_mut::<[u32; 16], [[u32; 8]; 2]>(out);
        *out_first = cast(self.pick(low, high, first));
        *out_second = cast(self.pick(low, high, second));
    }
}

/// Methods, not closures: a closure would be compiled without AVX2.
trait Avx2 {
    /// The flags' bits: 0 - 1 has the sign bit that the instruction gathers.
    fn signs(self, flags: __m256i) -> u32;

    /// The numbers at eight places: a permutation picks from eight numbers only, so both halves are permuted and the
    /// right one is taken.
    fn pick(self, low: __m256i, high: __m256i, places: u64) -> __m256i;
}

impl Avx2 for V3 {
    #[inline(always)]
    fn signs(self, flags: __m256i) -> u32 {
        let signs = self.avx2._mm256_sub_epi8(self.avx._mm256_setzero_si256(), flags);
        self.avx2._mm256_movemask_epi8(signs) as u32
    }

    #[inline(always)]
    fn pick(self, low: __m256i, high: __m256i, places: u64) -> __m256i {
        let places = self.avx2._mm256_cvtepu8_epi32(cast([places, 0]));
        let low = self.avx2._mm256_permutevar8x32_epi32(low, places);
        let high = self.avx2._mm256_permutevar8x32_epi32(high, places);
        // Places of 8 and more as sign bits, by which the instruction chooses.
        let is_high = self.avx2._mm256_slli_epi32::<28>(places);
        cast(self.avx._mm256_blendv_ps(cast(low), cast(high), cast(is_high)))
    }
}
