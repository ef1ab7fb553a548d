//! From quantised coefficients to samples: the inverse DCT of Loeffler, Ligtenberg and Moschytz (1989, figure 1, 13-bit
//! constants), in 32-bit integers, or in 16-bit lanes of several blocks at once where their values fit.

use pulp::{Arch, Simd};

use crate::data::jpeg::{
    Component,
    lanes::{Lanes, constants::*, descaled, difference, pairs, sum, transposed, weighted},
};

/// Fraction bits between the two passes of the DCT, of samples of 8 bits and of 12 bits.
const PASS_BITS: u32 = 2;
const PASS_BITS_12: u32 = 1;
/// The shift after the second pass, whose results are 8 times too large.
const LAST: u32 = BITS + PASS_BITS + 3;

/// The quantization steps of one table, by which coefficients are multiplied.
#[derive(Clone, Debug)]
pub struct Steps {
    steps: [i32; 64],
    row: [[i16; 8]; 8],
    /// Largest magnitudes of coefficients for which the DCT in 16-bit lanes does not overflow.
    most: [[i16; 8]; 8],
}

/// The largest sum of dequantized magnitudes in a column for which the DCT in 16-bit lanes does not overflow.
///
/// The first pass multiplies each by at most 1.39 and keeps two fraction bits, so its results are below `2946 * 1.39 *
/// 4 = 16,380`, and sums of two of them below 2^15. Blocks of real pictures stay below `sqrt(8) * 1024 = 2897`
/// (Parseval), except for rounding.
const LARGEST: u16 = 2946;

impl Steps {
    /// The steps of a component's table.
    pub fn new(component: &Component) -> Self {
        let square = |of: fn(u16) -> u16| {
            let values = component.steps.map(|step| of(step) as i16);
            *values.as_chunks::<8>().0.first_chunk().expect("8 x 8")
        };
        Self {
            // As i16, as libjpeg holds them; no encoder writes larger ones.
            steps: component.steps.map(|step| (step as i16).into()),
            row: square(|step| step),
            most: square(|step| LARGEST / step.max(1)),
        }
    }
}

/// A row of a component's blocks.
#[derive(Clone, Copy, Debug)]
pub struct BlockView<'a> {
    /// Coefficients, row by row.
    pub blocks: &'a [[i16; 64]],
    /// DC coefficients that are held apart, one per block, to be added to those of the blocks.
    pub first: Option<&'a [i16]>,
    /// For each block, 0 where it has no AC coefficient; empty where that is not known.
    pub more: &'a [u64],
}

/// The step from a row of blocks to eight rows of samples, `stride` apart.
pub(super) struct Transform<'a> {
    pub row: BlockView<'a>,
    pub steps: &'a Steps,
    pub samples: &'a mut [u8],
    pub stride: usize,
}

impl Transform<'_> {
    pub fn run(self, arch: Arch) {
        match arch {
            #[cfg(target_arch = "x86_64")]
            Arch::V4(simd) => self.with_lanes(simd),
            #[cfg(target_arch = "x86_64")]
            Arch::V3(simd) => self.with_lanes(simd),
            _ => (0..self.row.blocks.len())
                .for_each(|i| self.row.one(i, self.steps, self.samples, self.stride)),
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn with_lanes<L: Lanes>(self, lanes: L) {
        Simd::vectorize(
            lanes,
            #[inline(always)]
            || {
                let Self { row, steps, samples, stride } = self;
                let whole = row.blocks.len() / L::BLOCKS * L::BLOCKS;
                for start in (0..whole).step_by(L::BLOCKS) {
                    if !row.flat(start, L::BLOCKS)
                        && several(lanes, &row, start, steps, &mut samples[8 * start..], stride)
                    {
                        continue;
                    }
                    (start..start + L::BLOCKS).for_each(|i| row.one(i, steps, samples, stride));
                }
                (whole..row.blocks.len()).for_each(|i| row.one(i, steps, samples, stride));
            },
        );
    }
}

impl BlockView<'_> {
    /// Whether `count` blocks from `start` on are known to have no AC coefficient.
    #[inline(always)]
    fn flat(&self, start: usize, count: usize) -> bool {
        self.more.get(start..start + count).is_some_and(|more| more.iter().all(|&more| more == 0))
    }

    #[inline(always)]
    fn first(&self, i: usize) -> i16 {
        self.blocks[i][0].wrapping_add(self.first.map_or(0, |first| first[i]))
    }

    /// Computes the samples of block `i`.
    fn one(&self, i: usize, steps: &Steps, samples: &mut [u8], stride: usize) {
        let first = i32::from(self.first(i)).wrapping_mul(steps.steps[0]);
        let square = match self.flat(i, 1) {
            true => {
                // The two passes of the DCT for one coefficient, with sums that wrap around.
                let [column, ..] = line([first, 0, 0, 0, 0, 0, 0, 0], BITS - PASS_BITS);
                let [value, ..] = line([column, 0, 0, 0, 0, 0, 0, 0], LAST);
                [[sample(value); 8]; 8]
            }
            false => {
                let mut values = [[0; 8]; 8];
                for (at, (&value, step)) in self.blocks[i].iter().zip(steps.steps).enumerate() {
                    values[at / 8][at % 8] = i32::from(value).wrapping_mul(step);
                }
                values[0][0] = first;
                dct(values).map(|row| row.map(sample))
            }
        };
        for (y, row) in square.iter().enumerate() {
            samples[y * stride + 8 * i..][..8].copy_from_slice(row);
        }
    }
}

fn sample(value: i32) -> u8 {
    value.saturating_add(128).clamp(0, 255) as u8
}

/// The inverse DCT of a block of 8-bit samples. Sums wrap around in 32 bits.
pub fn dct(rows: [[i32; 8]; 8]) -> [[i32; 8]; 8] {
    both_passes(rows, PASS_BITS)
}

/// [`dct`] of a block of 12-bit samples, of which libjpeg keeps one fraction bit less between the passes.
pub fn dct_12_bits(rows: [[i32; 8]; 8]) -> [[i32; 8]; 8] {
    both_passes(rows, PASS_BITS_12)
}

/// The inverse DCT, 8 times too large before the last shift, with `fraction` bits between the passes.
#[inline(always)]
fn both_passes(mut rows: [[i32; 8]; 8], fraction: u32) -> [[i32; 8]; 8] {
    for x in 0..8 {
        let column = line(rows.map(|row| row[x]), BITS - fraction);
        rows.iter_mut().zip(column).for_each(|(row, value)| row[x] = value);
    }
    rows.map(|row| line(row, BITS + fraction + 3))
}

/// The DCT along one dimension, with results shifted right by `shift`.
#[inline(always)]
fn line(v: [i32; 8], shift: u32) -> [i32; 8] {
    use std::num::Wrapping as W;
    let v = v.map(W);
    let [c0_298, c0_390, c0_541, c0_765] = [C0_298, C0_390, C0_541, C0_765].map(W);
    let [c0_899, c1_175, c1_501, c1_847] = [C0_899, C1_175, C1_501, C1_847].map(W);
    let [c1_961, c2_053, c2_562, c3_072] = [C1_961, C2_053, C2_562, C3_072].map(W);
    let rotated = (v[2] + v[6]) * c0_541;
    let (t2, t3) = (rotated - v[6] * c1_847, rotated + v[2] * c0_765);
    let (t0, t1) = ((v[0] + v[4]) << BITS as usize, (v[0] - v[4]) << BITS as usize);
    let even = [t0 + t3, t1 + t2, t1 - t2, t0 - t3];
    let all = (v[7] + v[3] + v[5] + v[1]) * c1_175;
    let (z1, z2) = ((v[7] + v[1]) * c0_899, (v[5] + v[3]) * c2_562);
    let (z3, z4) = (all - (v[7] + v[3]) * c1_961, all - (v[5] + v[1]) * c0_390);
    let odd = [
        v[1] * c1_501 - z1 + z4,
        v[3] * c3_072 - z2 + z3,
        v[5] * c2_053 - z2 + z4,
        v[7] * c0_298 - z1 + z3,
    ];
    let round = |value: W<i32>| (value + W(1 << (shift - 1))).0 >> shift;
    let mut out = [0; 8];
    for k in 0..4 {
        (out[k], out[7 - k]) = (round(even[k] + odd[k]), round(even[k] - odd[k]));
    }
    out
}

/// [`BlockView::one`] for the [`Lanes::BLOCKS`] blocks from `start` on; false, without a result, where their values
/// exceed 16-bit lanes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn several<L: Lanes>(
    l: L,
    row: &BlockView<'_>,
    start: usize,
    steps: &Steps,
    samples: &mut [u8],
    stride: usize,
) -> bool {
    let mut with_first = [[0; 64]; 4];
    let mut blocks = &row.blocks[start..start + L::BLOCKS];
    if row.first.is_some() {
        for (i, block) in with_first[..L::BLOCKS].iter_mut().enumerate() {
            *block = row.blocks[start + i];
            block[0] = row.first(start + i);
        }
        blocks = &with_first;
    }
    let zero = l.splat16(0);
    let (mut rows, mut sums, mut above) = ([zero; 8], zero, false);
    for (y, row) in rows.iter_mut().enumerate() {
        let value = l.load(y, blocks);
        above |= l.any_above(l.abs16(value), l.row(&steps.most[y]));
        *row = l.mul_low(value, l.row(&steps.row[y]));
        sums = l.add_limited(sums, l.abs16(*row));
    }
    if above || l.any_above(sums, l.splat16(LARGEST as i16)) {
        return false;
    }
    let columns = transposed(l, pass::<L, { BITS - PASS_BITS }>(l, rows));
    let rows = transposed(l, pass::<L, LAST>(l, columns));
    let centre = l.splat16(128);
    for (y, &row) in rows.iter().enumerate() {
        l.store_bytes(l.add16(row, centre), &mut samples[y * stride..]);
    }
    true
}

/// [`line()`] for all lanes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn pass<L: Lanes, const SHIFT: u32>(l: L, v: [L::V; 8]) -> [L::V; 8] {
    const ONE: i32 = 1 << BITS;
    let (v04, v26) = (pairs(l, v[0], v[4]), pairs(l, v[2], v[6]));
    let t0 = weighted(l, v04, [ONE, ONE]);
    let t1 = weighted(l, v04, [ONE, -ONE]);
    let t2 = weighted(l, v26, [C0_541, C0_541 - C1_847]);
    let t3 = weighted(l, v26, [C0_541 + C0_765, C0_541]);
    let (e0, e1) = (sum(l, t0, t3), sum(l, t1, t2));
    let (e2, e3) = (difference(l, t1, t2), difference(l, t0, t3));
    let z = pairs(l, l.add16(v[7], v[3]), l.add16(v[5], v[1]));
    let z3 = weighted(l, z, [C1_175 - C1_961, C1_175]);
    let z4 = weighted(l, z, [C1_175, C1_175 - C0_390]);
    let (v71, v53) = (pairs(l, v[7], v[1]), pairs(l, v[5], v[3]));
    let o0 = sum(l, weighted(l, v71, [-C0_899, C1_501 - C0_899]), z4);
    let o1 = sum(l, weighted(l, v53, [-C2_562, C3_072 - C2_562]), z3);
    let o2 = sum(l, weighted(l, v53, [C2_053 - C2_562, -C2_562]), z4);
    let o3 = sum(l, weighted(l, v71, [C0_298 - C0_899, -C0_899]), z3);
    [
        descaled::<L, SHIFT>(l, sum(l, e0, o0)),
        descaled::<L, SHIFT>(l, sum(l, e1, o1)),
        descaled::<L, SHIFT>(l, sum(l, e2, o2)),
        descaled::<L, SHIFT>(l, sum(l, e3, o3)),
        descaled::<L, SHIFT>(l, difference(l, e3, o3)),
        descaled::<L, SHIFT>(l, difference(l, e2, o2)),
        descaled::<L, SHIFT>(l, difference(l, e1, o1)),
        descaled::<L, SHIFT>(l, difference(l, e0, o0)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Coefficients include those of damaged files, which exceed the range of pictures.
    #[test]
    fn blocks_of_one_coefficient_are_those_of_the_transform() {
        let steps = Steps::new(&Component { sampling: [1, 1], steps: [3; 64] });
        for first in (i16::MIN..=i16::MAX).step_by(7) {
            let mut block = [0; 64];
            block[0] = first;
            let samples = |more: &[u64]| {
                let mut samples = [1; 64];
                let row = BlockView { blocks: &[block], first: None, more };
                row.one(0, &steps, &mut samples, 8);
                samples
            };
            assert_eq!(samples(&[0]), samples(&[]), "{first}");
        }
    }
}
