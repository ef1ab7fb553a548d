//! The DCTs of two blocks at once by AVX2, one in each half of the vectors, in 16-bit lanes with 32-bit products.
//!
//! Instructions that unpack and pack work within halves, so one sequence of operations transforms both blocks.

use std::arch::x86_64::{__m128i, __m256i};

use pulp::{Arch, cast, x86::V3};

use super::dct::{BITS, EVEN, ODD, PASS_BITS, transposed};

/// The largest sum of dequantized magnitudes in a column for which the inverse DCT does not overflow 16 bits.
///
/// The first pass multiplies each by at most 1.39 and keeps two fraction bits, so its results are below `2946 * 1.39 *
/// 4 = 16,380`, and sums of two of them below 2^15. Blocks of real pictures stay below `sqrt(8) * 1024 = 2897`
/// (Parseval), except for rounding.
const MAX_SUM: u16 = 2946;

/// The division of results of the forward DCT by the quantization steps of one table.
///
/// The results are 8 times too large, so a magnitude `v` becomes `floor((v + d / 2) / d)` with `d = 8 step`. With `s =
/// ceil(log2 d) - 1` and `m = ceil(2^(16 + s) / d) < 2^16`, the quotient of `n < 2^15` is `n m >> (16 + s)`. Proof: `m`
/// is too large by less than 1, so the product is too large by less than `n < 2^15 <= 2^(16 + s) / d`. This is at most
/// the distance of `n / d` to the next integer, which is at least `1 / d`, times `2^(16 + s)`. Two multiplications that
/// keep the upper 16 bits compute it: by `m`, then by `2^(16 - s)`.
#[derive(Clone, Debug)]
pub struct Reciprocals {
    half: [[i16; 8]; 8],
    factor: [[i16; 8]; 8],
    scale: [[i16; 8]; 8],
}

impl Reciprocals {
    /// For steps from 1 to 255, row by row.
    pub fn new(steps: &[u16; 64]) -> Self {
        let divisors = steps.map(|step| 8 * u32::from(step));
        let for_each_step = |value: fn(u32) -> u32| rows(divisors.map(|d| value(d) as i16));
        Self {
            half: for_each_step(|d| d / 2),
            factor: for_each_step(|d| (1u32 << (16 + (d - 1).ilog2())).div_ceil(d)),
            scale: for_each_step(|d| 1 << (16 - (d - 1).ilog2())),
        }
    }
}

/// The rows of a block or of a table.
pub fn rows(values: [i16; 64]) -> [[i16; 8]; 8] {
    *values.as_chunks::<8>().0.first_chunk().expect("8 x 8")
}

/// The instructions of AVX2, if `arch` has them.
pub fn avx2(arch: Arch) -> Option<V3> {
    match arch {
        Arch::V4(simd) => Some(*simd),
        Arch::V3(simd) => Some(simd),
        _ => None,
    }
}

/// Writes the samples of two blocks to eight rows of 16 bytes, `stride` apart. Returns false, without a result, if
/// their values exceed 16 bits.
#[inline(always)]
pub fn inverse(
    s: V3,
    blocks: &[[i16; 64]; 2],
    steps: &[[i16; 8]; 8],
    samples: &mut [u8],
    stride: usize,
) -> bool {
    let zero = splat16(s, 0);
    let (mut rows, mut sums, mut excess, mut others) = ([zero; 8], zero, zero, zero);
    for (y, row) in rows.iter_mut().enumerate() {
        let (values, steps) = (load(blocks, y), both(&steps[y]));
        let ac = if y == 0 { without_first(s, values) } else { values };
        others = s.avx2._mm256_or_si256(others, ac);
        *row = s.avx2._mm256_mullo_epi16(values, steps);
        // The upper bits of products that fit 16 bits are those of their sign.
        let sign = s.avx2._mm256_srai_epi16::<15>(*row);
        let high = s.avx2._mm256_xor_si256(s.avx2._mm256_mulhi_epi16(values, steps), sign);
        excess = s.avx2._mm256_or_si256(excess, high);
        sums = s.avx2._mm256_adds_epu16(sums, s.avx2._mm256_abs_epi16(*row));
    }
    let above = s.avx2._mm256_subs_epu16(sums, splat16(s, MAX_SUM as i16));
    if !is_zero(s, s.avx2._mm256_or_si256(excess, above)) {
        return false;
    }
    if is_zero(s, others) {
        let [[a, ..], [b, ..]]: [[i16; 8]; 2] = cast(rows[0]);
        let value = |dc: i16| (((dc + 4) >> 3) + 128).clamp(0, 255) as u8;
        for samples in samples.chunks_mut(stride).take(8) {
            samples[..8].fill(value(a));
            samples[8..16].fill(value(b));
        }
        return true;
    }
    let columns = transposed_blocks(s, inverse_pass::<{ (BITS - PASS_BITS) as i32 }>(s, rows));
    let rows = transposed_blocks(s, inverse_pass::<{ (BITS + PASS_BITS) as i32 + 3 }>(s, columns));
    for (y, row) in rows.into_iter().enumerate() {
        let row = s.avx2._mm256_add_epi16(row, splat16(s, 128));
        let [low, high] = cast(row);
        *samples[y * stride..].first_chunk_mut::<16>().expect("two blocks") =
            cast(s.sse2._mm_packus_epi16(low, high));
    }
    true
}

#[inline(always)]
fn inverse_pass<const SHIFT: i32>(s: V3, v: [__m256i; 8]) -> [__m256i; 8] {
    let even = product(s, const { transposed(EVEN) }, [v[0], v[2], v[4], v[6]]);
    let odd = product(s, const { transposed(ODD) }, [v[1], v[3], v[5], v[7]]);
    let mut out = v;
    for x in 0..4 {
        let (mut sum, mut difference) = (even[x], even[x]);
        for half in 0..2 {
            sum[half] = s.avx2._mm256_add_epi32(even[x][half], odd[x][half]);
            difference[half] = s.avx2._mm256_sub_epi32(even[x][half], odd[x][half]);
        }
        (out[x], out[7 - x]) = (rounded::<SHIFT>(s, sum), rounded::<SHIFT>(s, difference));
    }
    out
}

/// Computes the quantized coefficients of two blocks from eight rows of 16 samples, `stride` apart.
#[inline(always)]
pub fn forward(
    s: V3,
    samples: &[u8],
    stride: usize,
    table: &Reciprocals,
    blocks: &mut [[i16; 64]; 2],
) {
    let mut rows = [splat16(s, 128); 8];
    for (y, row) in rows.iter_mut().enumerate() {
        let bytes: &[u8; 16] = samples[y * stride..].first_chunk().expect("two blocks");
        *row = s.avx2._mm256_sub_epi16(s.avx2._mm256_cvtepu8_epi16(cast(*bytes)), *row);
    }
    let columns = forward_pass::<{ (BITS - PASS_BITS) as i32 }>(s, transposed_blocks(s, rows));
    let rows = forward_pass::<{ (BITS + PASS_BITS) as i32 }>(s, transposed_blocks(s, columns));
    for (y, row) in rows.into_iter().enumerate() {
        let magnitude = s.avx2._mm256_add_epi16(s.avx2._mm256_abs_epi16(row), both(&table.half[y]));
        let high = s.avx2._mm256_mulhi_epu16(magnitude, both(&table.factor[y]));
        let quotient = s.avx2._mm256_mulhi_epu16(high, both(&table.scale[y]));
        let [a, b]: [[i16; 8]; 2] = cast(s.avx2._mm256_sign_epi16(quotient, row));
        blocks[0].as_chunks_mut().0[y] = a;
        blocks[1].as_chunks_mut().0[y] = b;
    }
}

#[inline(always)]
fn forward_pass<const SHIFT: i32>(s: V3, v: [__m256i; 8]) -> [__m256i; 8] {
    let (mut sums, mut differences, mut out) = ([v[0]; 4], [v[0]; 4], v);
    for x in 0..4 {
        sums[x] = s.avx2._mm256_add_epi16(v[x], v[7 - x]);
        differences[x] = s.avx2._mm256_sub_epi16(v[x], v[7 - x]);
    }
    let (even, odd) = (product(s, EVEN, sums), product(s, ODD, differences));
    for k in 0..4 {
        out[2 * k] = rounded::<SHIFT>(s, even[k]);
        out[2 * k + 1] = rounded::<SHIFT>(s, odd[k]);
    }
    out
}

/// The product of a matrix with a vector of 16-bit values, in 32 bits: four lanes of each block, and the other four.
#[inline(always)]
fn product(s: V3, matrix: [[i32; 4]; 4], v: [__m256i; 4]) -> [[__m256i; 2]; 4] {
    let low = [s.avx2._mm256_unpacklo_epi16(v[0], v[1]), s.avx2._mm256_unpacklo_epi16(v[2], v[3])];
    let high = [s.avx2._mm256_unpackhi_epi16(v[0], v[1]), s.avx2._mm256_unpackhi_epi16(v[2], v[3])];
    let mut out = [low; 4];
    for (out, row) in out.iter_mut().zip(matrix) {
        let a = s.avx._mm256_set1_epi32(row[0] & 0xffff | row[1] << 16);
        let b = s.avx._mm256_set1_epi32(row[2] & 0xffff | row[3] << 16);
        for (out, pairs) in out.iter_mut().zip([low, high]) {
            let [a, b] =
                [s.avx2._mm256_madd_epi16(pairs[0], a), s.avx2._mm256_madd_epi16(pairs[1], b)];
            *out = s.avx2._mm256_add_epi32(a, b);
        }
    }
    out
}

/// 32-bit values divided by `1 << SHIFT` with rounding, as 16 bits.
#[inline(always)]
fn rounded<const SHIFT: i32>(s: V3, halves: [__m256i; 2]) -> __m256i {
    let round = s.avx._mm256_set1_epi32(1 << (SHIFT - 1));
    let mut out = halves;
    for half in &mut out {
        *half = s.avx2._mm256_srai_epi32::<SHIFT>(s.avx2._mm256_add_epi32(*half, round));
    }
    s.avx2._mm256_packs_epi32(out[0], out[1])
}

/// The transpose of both blocks.
#[inline(always)]
fn transposed_blocks(s: V3, mut rows: [__m256i; 8]) -> [__m256i; 8] {
    // Each step interleaves rows i and i + 4.
    for _ in 0..3 {
        let v = rows;
        for i in 0..4 {
            rows[2 * i] = s.avx2._mm256_unpacklo_epi16(v[i], v[i + 4]);
            rows[2 * i + 1] = s.avx2._mm256_unpackhi_epi16(v[i], v[i + 4]);
        }
    }
    rows
}

#[inline(always)]
fn load(blocks: &[[i16; 64]; 2], y: usize) -> __m256i {
    cast([blocks[0].as_chunks::<8>().0[y], blocks[1].as_chunks::<8>().0[y]])
}

/// A vector with the same row for both blocks.
#[inline(always)]
fn both(row: &[i16; 8]) -> __m256i {
    cast([*row; 2])
}

#[inline(always)]
fn splat16(s: V3, value: i16) -> __m256i {
    s.avx._mm256_set1_epi16(value)
}

/// The first lane of each block set to 0.
#[inline(always)]
fn without_first(s: V3, v: __m256i) -> __m256i {
    s.avx2._mm256_and_si256(v, both(&[0, -1, -1, -1, -1, -1, -1, -1]))
}

#[inline(always)]
fn is_zero(s: V3, v: __m256i) -> bool {
    s.avx._mm256_testz_si256(v, v) == 1
}

/// A mask of the nonzero values: bit k stands for value k.
#[inline(always)]
pub fn nonzero(s: V3, values: &[i16; 64]) -> u64 {
    let mut mask = 0;
    for (i, sixteen) in values.as_chunks::<16>().0.iter().enumerate() {
        let [low, high]: [__m128i; 2] = cast(*sixteen);
        let bytes = s.sse2._mm_packs_epi16(low, high);
        let zeros = s.sse2._mm_movemask_epi8(s.sse2._mm_cmpeq_epi8(bytes, cast([0i16; 8])));
        mask |= u64::from(!zeros as u16) << (16 * i);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jpeg::dct;

    /// The smallest and the largest dividend of every quotient, for every step.
    #[test]
    fn division_is_exact() {
        for step in 1..=255u16 {
            let table = Reciprocals::new(&[step; 64]);
            let high = |a: u32, b: i16| (a * u32::from(b as u16)) >> 16;
            let d = 8 * u32::from(step);
            for quotient in 0..(1 << 15) / d {
                for n in [quotient * d, quotient * d + d - 1] {
                    let found = high(high(n, table.factor[0][0]), table.scale[0][0]);
                    assert_eq!(found, quotient, "{n} / {d}");
                }
            }
        }
    }

    /// Coefficients include those of damaged files, which exceed the range of pictures.
    #[test]
    fn blocks_of_one_coefficient_are_those_of_the_transform() {
        let Some(simd) = avx2(crate::util::simd::arch()) else { return };
        let steps = [[3; 8]; 8];
        for dc in i16::MIN..=i16::MAX {
            let (mut blocks, mut samples) = ([[0; 64]; 2], [1; 128]);
            blocks[1][0] = dc;
            if inverse(simd, &blocks, &steps, &mut samples, 16) {
                let mut block = [[0; 8]; 8];
                block[0][0] = 3 * i32::from(dc);
                let expected = (dct::inverse(block)[7][7] + 128).clamp(0, 255) as u8;
                let row = [[128; 8], [expected; 8]];
                assert_eq!(samples, *[row; 8].as_flattened().as_flattened(), "{dc}");
            }
        }
    }
}
