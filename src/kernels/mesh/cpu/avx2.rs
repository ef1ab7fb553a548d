//! AVX2 implementation of [`SimdOps`].

use std::arch::x86_64::__m256i;

use pulp::{cast, x86::V3};

use super::simd_ops::SimdOps;

impl SimdOps for V3 {
    type Eight = __m256i;

    #[inline(always)]
    fn movemask(self, flags: [u8; 64]) -> u64 {
        let [low, high]: [__m256i; 2] = cast(flags);
        u64::from(flag_bits(self, low)) | u64::from(flag_bits(self, high)) << 32
    }

    #[inline(always)]
    fn add_bit(self, numbers: __m256i, sets: __m256i, bit: u32) -> __m256i {
        let bits = self.avx2._mm256_srl_epi32(sets, self.sse2._mm_cvtsi32_si128(bit as i32));
        let bits = self.avx2._mm256_and_si256(bits, self.avx._mm256_set1_epi32(1));
        self.avx2._mm256_add_epi32(numbers, bits)
    }

    #[inline(always)]
    fn gather_bit(self, sets: __m256i, bit: u32) -> u32 {
        // The instruction gathers sign bits.
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
        *out_first = cast(pick(self, low, high, first));
        *out_second = cast(pick(self, low, high, second));
    }
}

// Functions, not closures: closures would be compiled without AVX2.

#[inline(always)]
fn flag_bits(simd: V3, flags: __m256i) -> u32 {
    // The instruction gathers sign bits, and 0 - 1 has one.
    let signs = simd.avx2._mm256_sub_epi8(simd.avx._mm256_setzero_si256(), flags);
    simd.avx2._mm256_movemask_epi8(signs) as u32
}

/// The eight numbers at `indices`. An AVX2 permutation picks from eight numbers only, so both halves are permuted and
/// then blended.
#[inline(always)]
fn pick(simd: V3, low: __m256i, high: __m256i, indices: u64) -> __m256i {
    let indices = simd.avx2._mm256_cvtepu8_epi32(cast([indices, 0]));
    let low = simd.avx2._mm256_permutevar8x32_epi32(low, indices);
    let high = simd.avx2._mm256_permutevar8x32_epi32(high, indices);
    // Indices from 8 on get the sign bit, by which the instruction selects.
    let is_high = simd.avx2._mm256_slli_epi32::<28>(indices);
    cast(simd.avx._mm256_blendv_ps(cast(low), cast(high), cast(is_high)))
}
