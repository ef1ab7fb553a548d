//! Vectors of 16-bit lanes for the DCTs: rows of eight values of several blocks, one block in each 128 bits.
//!
//! ```text
//! bits    0 ..  127   128 ..  255   256 ..  383   384 ..  511
//! AVX2    block 0     block 1
//! AVX-512 block 0     block 1       block 2       block 3
//! ```
//! Instructions that unpack and pack work within 128 bits, so one sequence of operations transforms all blocks.

/// Vectors of `8 * BLOCKS` 16-bit values, and the operations that the DCTs need.
pub trait Lanes: pulp::Simd {
    type V: Copy;
    /// Number of blocks in a vector.
    const BLOCKS: usize;

    /// The first `8 * BLOCKS` bytes as 16-bit values.
    fn widen(self, bytes: &[u8]) -> Self::V;
    /// Loads row `y` of each block.
    fn load(self, y: usize, blocks: &[[i16; 64]]) -> Self::V;
    /// A vector with the same row for all blocks.
    fn row(self, row: &[i16; 8]) -> Self::V;
    fn splat16(self, value: i16) -> Self::V;
    fn splat32(self, value: i32) -> Self::V;
    /// Stores row `y` of each block.
    fn store(self, v: Self::V, y: usize, blocks: &mut [[i16; 64]]);
    /// Stores the values as bytes, clamped to 0 to 255.
    fn store_bytes(self, v: Self::V, to: &mut [u8]);
    /// Whether any value of `a` is greater than that of `b`, both unsigned.
    fn any_above(self, a: Self::V, b: Self::V) -> bool;

    fn abs16(self, a: Self::V) -> Self::V;
    fn shift_left16<const BY: u32>(self, a: Self::V) -> Self::V;
    fn shift_right16<const BY: u32>(self, a: Self::V) -> Self::V;
    fn shift_right32<const BY: u32>(self, a: Self::V) -> Self::V;

    fn add16(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub16(self, a: Self::V, b: Self::V) -> Self::V;
    /// Unsigned sums, clamped to 65,535.
    fn add_limited(self, a: Self::V, b: Self::V) -> Self::V;
    /// The low 16 bits of products.
    fn mul_low(self, a: Self::V, b: Self::V) -> Self::V;
    /// The high 16 bits of unsigned products.
    fn mul_high(self, a: Self::V, b: Self::V) -> Self::V;
    fn xor(self, a: Self::V, b: Self::V) -> Self::V;
    fn add32(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub32(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a0 b0 + a1 b1` of each pair of neighbouring lanes, as 32 bits.
    fn madd(self, a: Self::V, b: Self::V) -> Self::V;
    /// 32-bit values of `a`, then of `b`, clamped to 16 bits with sign.
    fn pack(self, a: Self::V, b: Self::V) -> Self::V;
    fn low16(self, a: Self::V, b: Self::V) -> Self::V;
    fn high16(self, a: Self::V, b: Self::V) -> Self::V;
    fn low32(self, a: Self::V, b: Self::V) -> Self::V;
    fn high32(self, a: Self::V, b: Self::V) -> Self::V;
    fn low64(self, a: Self::V, b: Self::V) -> Self::V;
    fn high64(self, a: Self::V, b: Self::V) -> Self::V;
}

/// The transpose of the 8 x 8 values of each block.
#[inline(always)]
pub fn transposed<L: Lanes>(l: L, r: [L::V; 8]) -> [L::V; 8] {
    // Rows 2i and 2i + 1 interleaved: columns 0 to 3, and 4 to 7.
    let a = [l.low16(r[0], r[1]), l.low16(r[2], r[3]), l.low16(r[4], r[5]), l.low16(r[6], r[7])];
    let b =
        [l.high16(r[0], r[1]), l.high16(r[2], r[3]), l.high16(r[4], r[5]), l.high16(r[6], r[7])];
    // Four rows of two columns.
    let a = [l.low32(a[0], a[1]), l.low32(a[2], a[3]), l.high32(a[0], a[1]), l.high32(a[2], a[3])];
    let b = [l.low32(b[0], b[1]), l.low32(b[2], b[3]), l.high32(b[0], b[1]), l.high32(b[2], b[3])];
    [
        l.low64(a[0], a[1]),
        l.high64(a[0], a[1]),
        l.low64(a[2], a[3]),
        l.high64(a[2], a[3]),
        l.low64(b[0], b[1]),
        l.high64(b[0], b[1]),
        l.low64(b[2], b[3]),
        l.high64(b[2], b[3]),
    ]
}

/// The values of `a` and `b` interleaved, in two vectors, for [`weighted`].
#[inline(always)]
pub fn pairs<L: Lanes>(l: L, a: L::V, b: L::V) -> [L::V; 2] {
    [l.low16(a, b), l.high16(a, b)]
}

/// `wa a + wb b` of [`pairs`], as 32 bits.
#[inline(always)]
pub fn weighted<L: Lanes>(l: L, pairs: [L::V; 2], [wa, wb]: [i32; 2]) -> [L::V; 2] {
    let weights = l.splat32(wa & 0xffff | wb << 16);
    [l.madd(pairs[0], weights), l.madd(pairs[1], weights)]
}

#[inline(always)]
pub fn sum<L: Lanes>(l: L, a: [L::V; 2], b: [L::V; 2]) -> [L::V; 2] {
    [l.add32(a[0], b[0]), l.add32(a[1], b[1])]
}

#[inline(always)]
pub fn difference<L: Lanes>(l: L, a: [L::V; 2], b: [L::V; 2]) -> [L::V; 2] {
    [l.sub32(a[0], b[0]), l.sub32(a[1], b[1])]
}

/// 32-bit values divided by 2^BY with rounding, as 16 bits.
#[inline(always)]
pub fn descaled<L: Lanes, const BY: u32>(l: L, v: [L::V; 2]) -> L::V {
    let half = l.splat32(1 << (BY - 1));
    l.pack(l.shift_right32::<BY>(l.add32(v[0], half)), l.shift_right32::<BY>(l.add32(v[1], half)))
}

/// Constants of the DCTs with 13 fraction bits, in the order of the paper's rotations.
pub mod constants {
    /// Fraction bits.
    pub const BITS: u32 = 13;

    const fn fixed(value: f64) -> i32 {
        (value * (1 << BITS) as f64 + 0.5) as i32
    }

    pub const C0_298: i32 = fixed(0.298631336);
    pub const C0_390: i32 = fixed(0.390180644);
    pub const C0_541: i32 = fixed(0.541196100);
    pub const C0_765: i32 = fixed(0.765366865);
    pub const C0_899: i32 = fixed(0.899976223);
    pub const C1_175: i32 = fixed(1.175875602);
    pub const C1_501: i32 = fixed(1.501321110);
    pub const C1_847: i32 = fixed(1.847759065);
    pub const C1_961: i32 = fixed(1.961570560);
    pub const C2_053: i32 = fixed(2.053119869);
    pub const C2_562: i32 = fixed(2.562915447);
    pub const C3_072: i32 = fixed(3.072711026);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__m256i, __m512i};

    use pulp::{
        cast,
        x86::{V3, V4},
    };

    use super::Lanes;

    /// Operations of two vectors, each one instruction.
    macro_rules! two {
        ($vector:ty: $($name:ident = $set:ident $instruction:ident;)+) => {
            $(#[inline(always)]
            fn $name(self, a: $vector, b: $vector) -> $vector {
                self.$set.$instruction(a, b)
            })+
        };
    }

    impl Lanes for V3 {
        type V = __m256i;
        const BLOCKS: usize = 2;

        #[inline(always)]
        fn widen(self, bytes: &[u8]) -> __m256i {
            self.avx2._mm256_cvtepu8_epi16(cast(*bytes.first_chunk::<16>().expect("a vector")))
        }
        #[inline(always)]
        fn load(self, y: usize, blocks: &[[i16; 64]]) -> __m256i {
            let [a, b] = blocks.first_chunk().expect("as many blocks as a vector has");
            cast([a.as_chunks::<8>().0[y], b.as_chunks::<8>().0[y]])
        }
        #[inline(always)]
        fn row(self, row: &[i16; 8]) -> __m256i {
            cast([*row; 2])
        }
        #[inline(always)]
        fn splat16(self, value: i16) -> __m256i {
            self.avx._mm256_set1_epi16(value)
        }
        #[inline(always)]
        fn splat32(self, value: i32) -> __m256i {
            self.avx._mm256_set1_epi32(value)
        }
        #[inline(always)]
        fn store(self, v: __m256i, y: usize, blocks: &mut [[i16; 64]]) {
            let rows: [[i16; 8]; 2] = cast(v);
            let [a, b] = blocks.first_chunk_mut().expect("as many blocks as a vector has");
            a.as_chunks_mut::<8>().0[y] = rows[0];
            b.as_chunks_mut::<8>().0[y] = rows[1];
        }
        #[inline(always)]
        fn store_bytes(self, v: __m256i, to: &mut [u8]) {
            let low = self.avx2._mm256_extracti128_si256::<0>(v);
            let high = self.avx2._mm256_extracti128_si256::<1>(v);
            let bytes = cast(self.sse2._mm_packus_epi16(low, high));
            *to.first_chunk_mut::<16>().expect("a vector") = bytes;
        }
        #[inline(always)]
        fn any_above(self, a: __m256i, b: __m256i) -> bool {
            let excess = self.avx2._mm256_subs_epu16(a, b);
            self.avx._mm256_testz_si256(excess, excess) == 0
        }
        #[inline(always)]
        fn abs16(self, a: __m256i) -> __m256i {
            self.avx2._mm256_abs_epi16(a)
        }
        #[inline(always)]
        fn shift_left16<const BY: u32>(self, a: __m256i) -> __m256i {
            self.avx2._mm256_sll_epi16(a, cast([u64::from(BY), 0]))
        }
        #[inline(always)]
        fn shift_right16<const BY: u32>(self, a: __m256i) -> __m256i {
            self.avx2._mm256_sra_epi16(a, cast([u64::from(BY), 0]))
        }
        #[inline(always)]
        fn shift_right32<const BY: u32>(self, a: __m256i) -> __m256i {
            self.avx2._mm256_sra_epi32(a, cast([u64::from(BY), 0]))
        }
        two! { __m256i:
            add16 = avx2 _mm256_add_epi16;
            sub16 = avx2 _mm256_sub_epi16;
            add_limited = avx2 _mm256_adds_epu16;
            mul_low = avx2 _mm256_mullo_epi16;
            mul_high = avx2 _mm256_mulhi_epu16;
            xor = avx2 _mm256_xor_si256;
            add32 = avx2 _mm256_add_epi32;
            sub32 = avx2 _mm256_sub_epi32;
            madd = avx2 _mm256_madd_epi16;
            pack = avx2 _mm256_packs_epi32;
            low16 = avx2 _mm256_unpacklo_epi16;
            high16 = avx2 _mm256_unpackhi_epi16;
            low32 = avx2 _mm256_unpacklo_epi32;
            high32 = avx2 _mm256_unpackhi_epi32;
            low64 = avx2 _mm256_unpacklo_epi64;
            high64 = avx2 _mm256_unpackhi_epi64;
        }
    }

    impl Lanes for V4 {
        type V = __m512i;
        const BLOCKS: usize = 4;

        #[inline(always)]
        fn widen(self, bytes: &[u8]) -> __m512i {
            self.avx512bw._mm512_cvtepu8_epi16(cast(*bytes.first_chunk::<32>().expect("a vector")))
        }
        #[inline(always)]
        fn load(self, y: usize, blocks: &[[i16; 64]]) -> __m512i {
            let blocks: &[[i16; 64]; 4] = blocks.first_chunk().expect("as many as a vector has");
            let mut rows = [[0; 8]; 4];
            for (row, block) in rows.iter_mut().zip(blocks) {
                *row = block.as_chunks::<8>().0[y];
            }
            cast(rows)
        }
        #[inline(always)]
        fn row(self, row: &[i16; 8]) -> __m512i {
            cast([*row; 4])
        }
        #[inline(always)]
        fn splat16(self, value: i16) -> __m512i {
            self.avx512f._mm512_set1_epi16(value)
        }
        #[inline(always)]
        fn splat32(self, value: i32) -> __m512i {
            self.avx512f._mm512_set1_epi32(value)
        }
        #[inline(always)]
        fn store(self, v: __m512i, y: usize, blocks: &mut [[i16; 64]]) {
            let rows: [[i16; 8]; 4] = cast(v);
            let blocks: &mut [[i16; 64]; 4] =
                blocks.first_chunk_mut().expect("as many as a vector has");
            for (row, block) in rows.iter().zip(blocks) {
                block.as_chunks_mut::<8>().0[y] = *row;
            }
        }
        #[inline(always)]
        fn store_bytes(self, v: __m512i, to: &mut [u8]) {
            let least = self.avx512bw._mm512_max_epi16(v, self.splat16(0));
            let bytes = cast(self.avx512bw._mm512_cvtusepi16_epi8(least));
            *to.first_chunk_mut::<32>().expect("a vector") = bytes;
        }
        #[inline(always)]
        fn any_above(self, a: __m512i, b: __m512i) -> bool {
            self.avx512bw._mm512_cmpgt_epu16_mask(a, b) != 0
        }
        #[inline(always)]
        fn abs16(self, a: __m512i) -> __m512i {
            self.avx512bw._mm512_abs_epi16(a)
        }
        #[inline(always)]
        fn shift_left16<const BY: u32>(self, a: __m512i) -> __m512i {
            self.avx512bw._mm512_slli_epi16::<BY>(a)
        }
        #[inline(always)]
        fn shift_right16<const BY: u32>(self, a: __m512i) -> __m512i {
            self.avx512bw._mm512_srai_epi16::<BY>(a)
        }
        #[inline(always)]
        fn shift_right32<const BY: u32>(self, a: __m512i) -> __m512i {
            self.avx512f._mm512_srai_epi32::<BY>(a)
        }
        two! { __m512i:
            add16 = avx512bw _mm512_add_epi16;
            sub16 = avx512bw _mm512_sub_epi16;
            add_limited = avx512bw _mm512_adds_epu16;
            mul_low = avx512bw _mm512_mullo_epi16;
            mul_high = avx512bw _mm512_mulhi_epu16;
            xor = avx512f _mm512_xor_si512;
            add32 = avx512f _mm512_add_epi32;
            sub32 = avx512f _mm512_sub_epi32;
            madd = avx512bw _mm512_madd_epi16;
            pack = avx512bw _mm512_packs_epi32;
            low16 = avx512bw _mm512_unpacklo_epi16;
            high16 = avx512bw _mm512_unpackhi_epi16;
            low32 = avx512f _mm512_unpacklo_epi32;
            high32 = avx512f _mm512_unpackhi_epi32;
            low64 = avx512f _mm512_unpacklo_epi64;
            high64 = avx512f _mm512_unpackhi_epi64;
        }
    }
}
