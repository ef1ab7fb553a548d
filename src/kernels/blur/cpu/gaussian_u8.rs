//! Sums of a Gaussian of u8 along x and then y, as pairs of 16-bit products. Chosen for a single iteration over an
//! image, with radii below [`LONG_RADIUS`](super::super::plan), on processors with AVX2.
//!
//! Sums along x are below 2^24 and are rounded to 15 bits with 7 fraction bits; sums along y are below 2^31. The
//! arithmetic is exact modulo 2^32, so results are the same as those of single passes.

use bytemuck::{Pod, cast_slice_mut};
use pulp::Simd;

use super::{
    Arithmetic, Pass, PassFormat, Rounding,
    lanes::Lanes,
    number::{NoRounding, Round, Sample},
    sums::{Sums, Tiled},
};

/// Number of rows that are summed at once along y: each loaded line is added to all of them.
const ROWS: usize = 4;
/// Number of vectors that are summed at once along x.
const VECTORS: usize = 4;

/// The sums of a pass in lanes of `L`.
pub struct U8Sums<L> {
    lanes: L,
    radius: usize,
    weights: Weights,
}

impl<L: Lanes> Tiled for U8Sums<L> {
    type Intermediate = i16;
    const CACHE: usize = 1 << 18;

    fn fits(pass: &Pass) -> bool {
        let kind = (pass.arithmetic, pass.rounding, pass.to);
        kind == match pass.axis {
            0 => (Arithmetic::ExactF32, Rounding::Shift(9), PassFormat::U16),
            _ => (Arithmetic::U32, Rounding::Shift(23), PassFormat::U8),
        }
    }

    fn for_pass(pass: &Pass) -> Self {
        let weights = match pass.axis {
            0 => Weights::along_x(&pass.integer_weights),
            _ => Weights::along_y(&pass.integer_weights),
        };
        Self { lanes: L::get(), radius: pass.taps.radius, weights }
    }
}

impl<L: Lanes> Sums for U8Sums<L> {
    type Number = i16;
    type Round = NoRounding;

    #[inline(always)]
    fn lanes<S: Simd>() -> usize {
        VECTORS * L::COUNT
    }

    #[inline(always)]
    fn along_row<S: Simd, D: Pod>(&self, padded: &[i16], step: usize, target: &mut [D])
    where
        NoRounding: Round<i16, D>,
    {
        let Self { lanes, radius, weights } = self;
        along_x(*lanes, padded, weights, [*radius, step], cast_slice_mut(target));
    }

    #[inline(always)]
    fn across_lines<S: Simd, T: Sample<i16>, D: Pod>(
        &self,
        lines: &[&[T]],
        rows: &mut [&mut [D]],
        _: usize,
    ) where
        NoRounding: Round<i16, D>,
    {
        let lines: Vec<&[i16]> = lines.iter().map(|line| bytemuck::cast_slice(line)).collect();
        for (number, rows) in rows.chunks_mut(ROWS).enumerate() {
            along_y(self.lanes, &lines[number * ROWS..], self.radius, &self.weights, rows);
        }
    }
}

/// Weights of a pass, in pairs of i16 in an i32.
struct Weights {
    pairs: Vec<i32>,
    /// Whether the weight of the centre does not fit i16 and wraps around to a value that is too small by 2^16.
    centre_wraps: bool,
}

fn pair(first: u32, second: u32) -> i32 {
    (first & 0xffff | second << 16) as i32
}

impl Weights {
    /// Pairs of weights at distances 0 and 1, 2 and 3, .. for the sums of both samples at each distance. The centre is
    /// added to itself, so its weight, which is even, is halved.
    fn along_x(half: &[u32]) -> Self {
        let weight = |i: usize| match i {
            0 => half[0] / 2,
            _ => half.get(i).copied().unwrap_or(0),
        };
        let pairs = (0..half.len()).step_by(2).map(|i| pair(weight(i), weight(i + 1))).collect();
        Self { pairs, centre_wraps: weight(0) > i16::MAX as u32 }
    }

    /// Pairs of weights of lines 0 and 1, 2 and 3, .. of the window of [`ROWS`] rows, for each of these rows.
    fn along_y(half: &[u32]) -> Self {
        let radius = half.len() as isize - 1;
        let weight = |tap: isize| match (tap - radius).unsigned_abs() {
            distance if distance < half.len() => half[distance],
            _ => 0,
        };
        let lines = 2 * radius + ROWS as isize;
        let pairs = (0..lines)
            .step_by(2)
            .flat_map(|line| {
                (0..ROWS as isize).map(move |row| pair(weight(line - row), weight(line - row + 1)))
            })
            .collect();
        Self { pairs, centre_wraps: half[0] > i16::MAX as u32 }
    }
}

/// Computes sums along x, with positions `step` samples apart, rounded to 7 fraction bits.
#[inline(always)]
fn along_x<L: Lanes>(
    lanes: L,
    padded: &[i16],
    weights: &Weights,
    [radius, step]: [usize; 2],
    to: &mut [i16],
) {
    let span = VECTORS * L::COUNT;
    let centre = radius * step;
    for (number, to) in to.chunks_exact_mut(span).enumerate() {
        let padded = &padded[number * span..][..2 * centre + span];
        let mut sums = [[lanes.splat_i32(1 << 8); 2]; VECTORS];
        if weights.centre_wraps {
            for (i, sums) in sums.iter_mut().enumerate() {
                let middle = lanes.load(&padded[centre + i * L::COUNT..]);
                add_shifted(lanes, lanes.add_i16(middle, middle), sums);
            }
        }
        for (i, &pair) in weights.pairs.iter().enumerate() {
            let pair = lanes.splat_i32(pair);
            // The weight of an odd tap beyond the radius is 0.
            let (even, odd) = (2 * i * step, (2 * i + 1).min(radius) * step);
            let [a, b] = [centre - even, centre + even].map(|at| &padded[at..at + span]);
            let [c, d] = [centre - odd, centre + odd].map(|at| &padded[at..at + span]);
            for (i, sums) in sums.iter_mut().enumerate() {
                let at = i * L::COUNT;
                let even = lanes.add_i16(lanes.load(&a[at..]), lanes.load(&b[at..]));
                let odd = lanes.add_i16(lanes.load(&c[at..]), lanes.load(&d[at..]));
                add_products(lanes, lanes.interleave(even, odd), pair, sums);
            }
        }
        for (sums, to) in sums.into_iter().zip(to.chunks_exact_mut(L::COUNT)) {
            lanes.store_i16(sums, to);
        }
    }
}

/// Computes up to [`ROWS`] rows of u8 as sums along y of `lines`, the results of [`along_x`].
#[inline(always)]
fn along_y<L: Lanes, D: Pod>(
    lanes: L,
    lines: &[&[i16]],
    radius: usize,
    weights: &Weights,
    rows: &mut [&mut [D]],
) {
    // If there are fewer rows, the lines of the missing rows have no effect.
    let line = |at: usize| lines[at.min(lines.len() - 1)];
    for start in (0..rows[0].len()).step_by(L::COUNT) {
        let mut sums = [[lanes.splat_i32(1 << 22); 2]; ROWS];
        if weights.centre_wraps {
            for (row, sums) in sums.iter_mut().enumerate() {
                add_shifted(lanes, lanes.load(&line(radius + row)[start..]), sums);
            }
        }
        for (two, pairs) in weights.pairs.as_chunks::<ROWS>().0.iter().enumerate() {
            let [a, b] = [2 * two, 2 * two + 1].map(|at| lanes.load(&line(at)[start..]));
            let samples = lanes.interleave(a, b);
            for (sums, &pair) in sums.iter_mut().zip(pairs) {
                add_products(lanes, samples, lanes.splat_i32(pair), sums);
            }
        }
        for (row, sums) in rows.iter_mut().zip(sums) {
            let row: &mut [u8] = cast_slice_mut(row);
            match row.get_mut(start..start + L::COUNT) {
                Some(row) => lanes.store_u8(sums, row),
                None => {
                    let mut bytes = [0; 32];
                    lanes.store_u8(sums, &mut bytes);
                    let rest = &mut row[start..];
                    rest.copy_from_slice(&bytes[..rest.len()]);
                }
            }
        }
    }
}

/// Adds the products of interleaved samples with a pair of weights.
#[inline(always)]
fn add_products<L: Lanes>(
    lanes: L,
    samples: [L::Vector; 2],
    pair: L::Vector,
    sums: &mut [L::Vector; 2],
) {
    for (sum, samples) in sums.iter_mut().zip(samples) {
        *sum = lanes.add_i32(*sum, lanes.multiply_pairs(samples, pair));
    }
}

/// Adds 2^16 times `samples`, for a weight of the centre that wraps around.
#[inline(always)]
fn add_shifted<L: Lanes>(lanes: L, samples: L::Vector, sums: &mut [L::Vector; 2]) {
    let shifted = lanes.interleave(lanes.splat_i32(0), samples);
    for (sum, shifted) in sums.iter_mut().zip(shifted) {
        *sum = lanes.add_i32(*sum, shifted);
    }
}
