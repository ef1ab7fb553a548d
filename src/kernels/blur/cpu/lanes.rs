//! Vectors of 16-bit integers with the instructions for a Gaussian of u8, in AVX2 and AVX-512.
//!
//! Samples `a` and `b` of neighbouring taps are interleaved, so that one multiplication processes two taps (`pmaddwd`;
//! shown for a 128-bit lane):
//!
//! ```text
//! a                         a7 a6 a5 a4 a3 a2 a1 a0     i16
//! b                         b7 b6 b5 b4 b3 b2 b1 b0
//! interleave(a, b)[0]       b3 a3 b2 a2 b1 a1 b0 a0
//! multiply_pairs(.., w)     b3 w1 + a3 w0, .., b0 w1 + a0 w0     i32
//! ```
//! `[1]` is the other half. Packing both halves restores the order of the samples.

/// A SIMD level with 16-bit lanes.
pub trait Lanes: Copy + Send + Sync {
    /// [`Lanes::COUNT`] lanes of i16, or half as many of i32.
    type Vector: Copy;
    /// Number of lanes of i16.
    const COUNT: usize;

    /// The SIMD level. The processor must support it.
    fn get() -> Self;
    fn load(self, from: &[i16]) -> Self::Vector;
    fn splat_i32(self, value: i32) -> Self::Vector;
    fn add_i16(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn add_i32(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn interleave(self, a: Self::Vector, b: Self::Vector) -> [Self::Vector; 2];
    /// Products of i16 lanes, and the i32 sum of each pair of neighbouring products.
    fn multiply_pairs(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Stores interleaved i32 sums, shifted right by 9, as i16.
    fn store_i16(self, sums: [Self::Vector; 2], to: &mut [i16]);
    /// Stores interleaved i32 sums, shifted right by 23, as u8.
    fn store_u8(self, sums: [Self::Vector; 2], to: &mut [u8]);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__m256i, __m512i};

    use pulp::{
        cast,
        x86::{V3, V4},
    };

    use super::Lanes;

    impl Lanes for V4 {
        type Vector = __m512i;
        const COUNT: usize = 32;

        fn get() -> Self {
            Self::try_new().expect("chosen on processors that have it")
        }
        #[inline(always)]
        fn load(self, from: &[i16]) -> __m512i {
            cast(*from.first_chunk::<32>().expect("a whole vector"))
        }
        #[inline(always)]
        fn splat_i32(self, value: i32) -> __m512i {
            self.avx512f._mm512_set1_epi32(value)
        }
        #[inline(always)]
        fn add_i16(self, a: __m512i, b: __m512i) -> __m512i {
            self.avx512bw._mm512_add_epi16(a, b)
        }
        #[inline(always)]
        fn add_i32(self, a: __m512i, b: __m512i) -> __m512i {
            self.avx512f._mm512_add_epi32(a, b)
        }
        #[inline(always)]
        fn interleave(self, a: __m512i, b: __m512i) -> [__m512i; 2] {
            let simd = self.avx512bw;
            [simd._mm512_unpacklo_epi16(a, b), simd._mm512_unpackhi_epi16(a, b)]
        }
        #[inline(always)]
        fn multiply_pairs(self, a: __m512i, b: __m512i) -> __m512i {
            self.avx512bw._mm512_madd_epi16(a, b)
        }
        #[inline(always)]
        fn store_i16(self, [low, high]: [__m512i; 2], to: &mut [i16]) {
            let low = self.avx512f._mm512_srli_epi32::<9>(low);
            let high = self.avx512f._mm512_srli_epi32::<9>(high);
            let packed = self.avx512bw._mm512_packus_epi32(low, high);
            *to.first_chunk_mut::<32>().expect("a whole vector") = cast(packed);
        }
        #[inline(always)]
        fn store_u8(self, [low, high]: [__m512i; 2], to: &mut [u8]) {
            let low = self.avx512f._mm512_srli_epi32::<23>(low);
            let high = self.avx512f._mm512_srli_epi32::<23>(high);
            let packed = self.avx512bw._mm512_packus_epi32(low, high);
            let bytes = self.avx512bw._mm512_cvtepi16_epi8(packed);
            *to.first_chunk_mut::<32>().expect("a whole vector") = cast(bytes);
        }
    }

    impl Lanes for V3 {
        type Vector = __m256i;
        const COUNT: usize = 16;

        fn get() -> Self {
            Self::try_new().expect("chosen on processors that have it")
        }
        #[inline(always)]
        fn load(self, from: &[i16]) -> __m256i {
            cast(*from.first_chunk::<16>().expect("a whole vector"))
        }
        #[inline(always)]
        fn splat_i32(self, value: i32) -> __m256i {
            self.avx._mm256_set1_epi32(value)
        }
        #[inline(always)]
        fn add_i16(self, a: __m256i, b: __m256i) -> __m256i {
            self.avx2._mm256_add_epi16(a, b)
        }
        #[inline(always)]
        fn add_i32(self, a: __m256i, b: __m256i) -> __m256i {
            self.avx2._mm256_add_epi32(a, b)
        }
        #[inline(always)]
        fn interleave(self, a: __m256i, b: __m256i) -> [__m256i; 2] {
            [self.avx2._mm256_unpacklo_epi16(a, b), self.avx2._mm256_unpackhi_epi16(a, b)]
        }
        #[inline(always)]
        fn multiply_pairs(self, a: __m256i, b: __m256i) -> __m256i {
            self.avx2._mm256_madd_epi16(a, b)
        }
        #[inline(always)]
        fn store_i16(self, [low, high]: [__m256i; 2], to: &mut [i16]) {
            let low = self.avx2._mm256_srli_epi32::<9>(low);
            let high = self.avx2._mm256_srli_epi32::<9>(high);
            let packed = self.avx2._mm256_packus_epi32(low, high);
            *to.first_chunk_mut::<16>().expect("a whole vector") = cast(packed);
        }
        #[inline(always)]
        fn store_u8(self, [low, high]: [__m256i; 2], to: &mut [u8]) {
            let low = self.avx2._mm256_srli_epi32::<23>(low);
            let high = self.avx2._mm256_srli_epi32::<23>(high);
            let packed = self.avx2._mm256_packus_epi32(low, high);
            let lower = self.avx._mm256_castsi256_si128(packed);
            let upper = self.avx2._mm256_extracti128_si256::<1>(packed);
            let bytes = self.sse2._mm_packus_epi16(lower, upper);
            *to.first_chunk_mut::<16>().expect("a whole vector") = cast(bytes);
        }
    }
}
