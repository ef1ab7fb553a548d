//! From pixels to quantized coefficients on the CPU, with libjpeg's results: conversion to YCbCr in 16-bit fixed point
//! (T.871, 7), chroma averaged over the pixels that share a sample, the forward DCT of Loeffler, Ligtenberg and
//! Moschytz (1989, figure 1; constants of 13 bits), and division with rounding (T.81, A.3.4).

use pulp::{Arch, Simd, WithSimd};

use super::{
    Frame, fixed_16,
    lanes::{Lanes, constants::*, descaled, pairs, sum, transposed, weighted},
};

use crate::simd;

/// Fraction bits between the two passes of the DCT.
const PASS_BITS: u32 = 2;

/// The division by the quantization steps of one table.
///
/// The results of the DCT are 8 times too large, so a magnitude `v` becomes `floor((v + d / 2) / d)` with `d = 8 step`.
/// With `s = ceil(log2 d) - 1` and `m = ceil(2^(16 + s) / d) < 2^16`, the quotient of `n < 2^15` is `n m >> (16 + s)`.
/// Proof: `m` is too large by less than 1, so the product is too large by less than `n < 2^15 <= 2^(16 + s) / d`. This
/// is at most the distance of `n / d` to the next integer, which is at least `1 / d`, times `2^(16 + s)`. Two
/// multiplications that keep the upper 16 bits compute it: by `m`, then by `2^(16 - s)`.
#[derive(Clone, Debug)]
pub struct Divisor {
    half: [[i16; 8]; 8],
    factor: [[i16; 8]; 8],
    scale: [[i16; 8]; 8],
    divisor: [i32; 64],
}

impl Divisor {
    /// For steps from 1 to 255, row by row.
    pub fn new(steps: &[u16; 64]) -> Self {
        let divisor = steps.map(|step| 8 * u32::from(step));
        let square = |of: fn(u32) -> u32| {
            let values = divisor.map(|d| of(d) as i16);
            *values.as_chunks::<8>().0.first_chunk().expect("8 x 8")
        };
        Self {
            half: square(|d| d / 2),
            factor: square(|d| (1u32 << (16 + (d - 1).ilog2())).div_ceil(d)),
            scale: square(|d| 1 << (16 - (d - 1).ilog2())),
            divisor: divisor.map(|d| d as i32),
        }
    }
}

/// The planes of one row of MCUs: eight rows of samples for each row of blocks of each component.
#[derive(Clone, Debug)]
pub struct McuRow {
    planes: Vec<Vec<u8>>,
    strides: Vec<usize>,
    /// Chroma at full resolution of the pixel rows that share one row of samples.
    chroma: [Vec<u8>; 2],
    coefficients: Vec<Vec<[i16; 64]>>,
}

/// Maximal number of blocks in a vector.
const MOST_BLOCKS: usize = 4;

impl McuRow {
    /// Allocates the planes for a row of MCUs of `frame`.
    pub fn new(frame: &Frame) -> Self {
        let components = 0..frame.components.len();
        let rows = |c: usize| frame.components[c].sampling[1];
        let blocks = |c: usize| frame.blocks(c)[0].next_multiple_of(MOST_BLOCKS);
        let [_, down] = frame.most();
        let strides: Vec<usize> = components.clone().map(|c| 8 * blocks(c)).collect();
        // Chroma is averaged from rows that are as long as those of luma.
        let long = strides.iter().copied().max().unwrap_or(0);
        Self {
            planes: components.clone().map(|c| vec![0; 8 * rows(c) * strides[c]]).collect(),
            chroma: [(); 2].map(|()| vec![0; down * long]),
            coefficients: components.map(|c| vec![[0; 64]; rows(c) * blocks(c)]).collect(),
            strides,
        }
    }

    /// Computes the coefficients of row `number` of MCUs: for each component its rows of blocks, of [`McuRow::stride`]
    /// blocks each.
    ///
    /// `pixels` are those of the whole picture, grey or RGB. To the right of the picture, samples repeat its last
    /// column. Below the picture, chroma rows repeat the last one that has a pixel, and luma rows the last row of the
    /// picture.
    pub fn transform(
        &mut self,
        frame: &Frame,
        divisors: &[Divisor],
        pixels: &[u8],
        number: usize,
    ) -> &[Vec<[i16; 64]>] {
        let arch = simd::arch();
        self.fill_planes(arch, frame, pixels, number);
        for (c, divisor) in divisors.iter().enumerate() {
            let stride = self.strides[c];
            let rows = self.planes[c].chunks_exact(8 * stride);
            for (samples, blocks) in rows.zip(self.coefficients[c].chunks_exact_mut(stride / 8)) {
                transform(arch, Rows { samples, stride, divisor, blocks });
            }
        }
        &self.coefficients
    }

    /// Number of blocks from one row of blocks of component `c` to the next.
    pub fn stride(&self, c: usize) -> usize {
        self.strides[c] / 8
    }

    fn fill_planes(&mut self, arch: Arch, frame: &Frame, pixels: &[u8], number: usize) {
        let ([width, height], [across, down]) = (frame.size, frame.most());
        let row_bytes = width * frame.colour.channels();
        let row = |y: usize| &pixels[y.min(height - 1) * row_bytes..][..row_bytes];
        let Self { planes, strides, chroma, .. } = self;
        let [luma, others @ ..] = &mut planes[..] else { return };
        let (stride, first) = (strides[0], 8 * down * number);
        for (group, luma) in luma.chunks_exact_mut(down * stride).enumerate() {
            for (k, luma) in luma.chunks_exact_mut(stride).enumerate() {
                let pixels = row(first + down * group + k);
                match others {
                    [] => luma[..width].copy_from_slice(pixels),
                    _ => {
                        let [cb, cr] = chroma.each_mut().map(|c| &mut c[k * stride..][..stride]);
                        let [y, b, r] =
                            [&mut *luma, &mut *cb, &mut *cr].map(|row| &mut row[..width]);
                        arch.dispatch(Convert { rgb: pixels, y, cb: b, cr: r });
                        repeat_last(cb, width);
                        repeat_last(cr, width);
                    }
                }
                repeat_last(luma, width);
            }
            for (plane, (chroma, &to)) in others.iter_mut().zip(chroma.iter().zip(&strides[1..])) {
                let (done, rest) = plane.split_at_mut(group * to);
                // Below the picture there are no pixels to average.
                if first + down * group >= height && group > 0 {
                    rest[..to].copy_from_slice(&done[done.len() - to..]);
                    continue;
                }
                match [across, down] {
                    [1, 1] => rest[..to].copy_from_slice(&chroma[..to]),
                    _ => arch.dispatch(Average {
                        above: &chroma[..stride],
                        below: &chroma[stride..][..stride],
                        to: &mut rest[..to],
                    }),
                }
            }
        }
    }
}

fn repeat_last(row: &mut [u8], width: usize) {
    let last = row[width - 1];
    row[width..].fill(last);
}

/// Converts RGB pixels to Y, Cb and Cr (T.871, 7), with libjpeg's constants and rounding.
struct Convert<'a> {
    rgb: &'a [u8],
    y: &'a mut [u8],
    cb: &'a mut [u8],
    cr: &'a mut [u8],
}

impl WithSimd for Convert<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        simd.vectorize(
            #[inline(always)]
            || {
                const HALF: i32 = 1 << 15;
                const CENTRE: i32 = (128 << 16) + HALF - 1;
                let pixels = self.rgb.as_chunks::<3>().0;
                let planes = self.y.iter_mut().zip(self.cb).zip(self.cr);
                for (&[r, g, b], ((y, cb), cr)) in pixels.iter().zip(planes) {
                    let [r, g, b] = [i32::from(r), i32::from(g), i32::from(b)];
                    let luma = fixed_16(0.299) * r + fixed_16(0.587) * g + fixed_16(0.114) * b;
                    let blue = (b << 15) - fixed_16(0.16874) * r - fixed_16(0.33126) * g;
                    let red = (r << 15) - fixed_16(0.41869) * g - fixed_16(0.08131) * b;
                    *y = ((luma + HALF) >> 16) as u8;
                    *cb = ((blue + CENTRE) >> 16) as u8;
                    *cr = ((red + CENTRE) >> 16) as u8;
                }
            },
        );
    }
}

/// Averages 2 x 2 samples. As in libjpeg, 1 and 2 are added in turn before the division by 4.
struct Average<'a> {
    above: &'a [u8],
    below: &'a [u8],
    to: &'a mut [u8],
}

impl WithSimd for Average<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        simd.vectorize(
            #[inline(always)]
            || {
                let (above, below) = (self.above.as_chunks::<4>().0, self.below.as_chunks::<4>().0);
                let to = self.to.as_chunks_mut::<2>().0;
                for (to, (a, b)) in to.iter_mut().zip(above.iter().zip(below)) {
                    let [a0, a1, a2, a3] = a.map(u16::from);
                    let [b0, b1, b2, b3] = b.map(u16::from);
                    *to = [
                        ((a0 + a1 + b0 + b1 + 1) >> 2) as u8,
                        ((a2 + a3 + b2 + b3 + 2) >> 2) as u8,
                    ];
                }
            },
        );
    }
}

/// A row of blocks: eight rows of samples, `stride` apart.
struct Rows<'a> {
    samples: &'a [u8],
    stride: usize,
    divisor: &'a Divisor,
    blocks: &'a mut [[i16; 64]],
}

/// Transforms and quantizes a row of blocks.
fn transform(arch: Arch, rows: Rows<'_>) {
    match arch {
        #[cfg(target_arch = "x86_64")]
        Arch::V4(simd) => rows.with_lanes(simd),
        #[cfg(target_arch = "x86_64")]
        Arch::V3(simd) => rows.with_lanes(simd),
        _ => rows.one_by_one(),
    }
}

impl Rows<'_> {
    fn with_lanes<L: Lanes>(self, lanes: L) {
        Simd::vectorize(
            lanes,
            #[inline(always)]
            || {
                let Self { samples, stride, divisor, blocks } = self;
                for (k, blocks) in blocks.chunks_exact_mut(L::BLOCKS).enumerate() {
                    several(lanes, &samples[8 * L::BLOCKS * k..], stride, divisor, blocks);
                }
            },
        );
    }

    fn one_by_one(self) {
        for (k, block) in self.blocks.iter_mut().enumerate() {
            let mut values = [[0; 8]; 8];
            for (y, row) in values.iter_mut().enumerate() {
                for (x, value) in row.iter_mut().enumerate() {
                    *value = i32::from(self.samples[y * self.stride + 8 * k + x]) - 128;
                }
            }
            for (i, value) in dct(values).as_flattened().iter().enumerate() {
                let d = self.divisor.divisor[i];
                block[i] = (value.signum() * ((value.abs() + d / 2) / d)) as i16;
            }
        }
    }
}

/// The forward DCT, 8 times too large.
pub fn dct(mut rows: [[i32; 8]; 8]) -> [[i32; 8]; 8] {
    for row in &mut rows {
        *row = line::<{ BITS - PASS_BITS }>(*row, |even| even << PASS_BITS);
    }
    for x in 0..8 {
        let column = line::<{ BITS + PASS_BITS }>(rows.map(|row| row[x]), |even| {
            (even + (1 << (PASS_BITS - 1))) >> PASS_BITS
        });
        rows.iter_mut().zip(column).for_each(|(row, value)| row[x] = value);
    }
    rows
}

/// The DCT along one dimension: odd and rotated results are shifted right by `SHIFT`, the others are scaled by `even`.
fn line<const SHIFT: u32>(v: [i32; 8], even: fn(i32) -> i32) -> [i32; 8] {
    let round = |value: i32| (value + (1 << (SHIFT - 1))) >> SHIFT;
    let [s0, s1, s2, s3] = [v[0] + v[7], v[1] + v[6], v[2] + v[5], v[3] + v[4]];
    let [d0, d1, d2, d3] = [v[0] - v[7], v[1] - v[6], v[2] - v[5], v[3] - v[4]];
    let (a, b, c, d) = (s0 + s3, s1 + s2, s1 - s2, s0 - s3);
    let rotated = (c + d) * C0_541;
    let all = (d3 + d1 + d2 + d0) * C1_175;
    let (z1, z2) = ((d3 + d0) * C0_899, (d2 + d1) * C2_562);
    let (z3, z4) = (all - (d3 + d1) * C1_961, all - (d2 + d0) * C0_390);
    [
        even(a + b),
        round(d0 * C1_501 - z1 + z4),
        round(rotated + d * C0_765),
        round(d1 * C3_072 - z2 + z3),
        even(a - b),
        round(d2 * C2_053 - z2 + z4),
        round(rotated - c * C1_847),
        round(d3 * C0_298 - z1 + z3),
    ]
}

/// As [`Rows::one_by_one`], for as many blocks as a vector has.
#[inline(always)]
fn several<L: Lanes>(
    l: L,
    samples: &[u8],
    stride: usize,
    divisor: &Divisor,
    blocks: &mut [[i16; 64]],
) {
    let centre = l.splat16(128);
    let mut rows = [centre; 8];
    for (y, row) in rows.iter_mut().enumerate() {
        *row = l.sub16(l.widen(&samples[y * stride..]), centre);
    }
    let columns = pass::<L, { BITS - PASS_BITS }>(l, transposed(l, rows));
    let rows = pass::<L, { BITS + PASS_BITS }>(l, transposed(l, columns));
    for (y, &v) in rows.iter().enumerate() {
        let [half, factor, scale] =
            [&divisor.half, &divisor.factor, &divisor.scale].map(|rows| l.row(&rows[y]));
        let magnitude = l.add16(l.abs16(v), half);
        let quotient = l.mul_high(l.mul_high(magnitude, factor), scale);
        // Negation of lanes whose `sign` is -1: (x ^ -1) - -1 = -x.
        let sign = l.shift_right16::<15>(v);
        l.store(l.sub16(l.xor(quotient, sign), sign), y, blocks);
    }
}

/// As [`line()`], for all lanes. Products and their sums have 32 bits; all other values fit 16.
#[inline(always)]
fn pass<L: Lanes, const SHIFT: u32>(l: L, v: [L::V; 8]) -> [L::V; 8] {
    let s0 = l.add16(v[0], v[7]);
    let s1 = l.add16(v[1], v[6]);
    let s2 = l.add16(v[2], v[5]);
    let s3 = l.add16(v[3], v[4]);
    let d0 = l.sub16(v[0], v[7]);
    let d1 = l.sub16(v[1], v[6]);
    let d2 = l.sub16(v[2], v[5]);
    let d3 = l.sub16(v[3], v[4]);
    let (a, b) = (l.add16(s0, s3), l.add16(s1, s2));
    let rotated = pairs(l, l.sub16(s1, s2), l.sub16(s0, s3));
    let z = pairs(l, l.add16(d3, d1), l.add16(d2, d0));
    let z3 = weighted(l, z, [C1_175 - C1_961, C1_175]);
    let z4 = weighted(l, z, [C1_175, C1_175 - C0_390]);
    let (d30, d21) = (pairs(l, d3, d0), pairs(l, d2, d1));
    [
        scaled::<L, SHIFT>(l, l.add16(a, b)),
        descaled::<L, SHIFT>(l, sum(l, weighted(l, d30, [-C0_899, C1_501 - C0_899]), z4)),
        descaled::<L, SHIFT>(l, weighted(l, rotated, [C0_541, C0_541 + C0_765])),
        descaled::<L, SHIFT>(l, sum(l, weighted(l, d21, [-C2_562, C3_072 - C2_562]), z3)),
        scaled::<L, SHIFT>(l, l.sub16(a, b)),
        descaled::<L, SHIFT>(l, sum(l, weighted(l, d21, [C2_053 - C2_562, -C2_562]), z4)),
        descaled::<L, SHIFT>(l, weighted(l, rotated, [C0_541 - C1_847, C0_541])),
        descaled::<L, SHIFT>(l, sum(l, weighted(l, d30, [C0_298 - C0_899, -C0_899]), z3)),
    ]
}

/// The shift, in either pass, of sums that are not multiplied by a constant.
#[inline(always)]
fn scaled<L: Lanes, const SHIFT: u32>(l: L, v: L::V) -> L::V {
    match SHIFT < BITS {
        true => l.shift_left16::<PASS_BITS>(v),
        false => l.shift_right16::<PASS_BITS>(l.add16(v, l.splat16(1 << (PASS_BITS - 1)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::jpeg::Quality;

    /// The smallest and the largest dividend of every quotient, for every step.
    #[test]
    fn division_is_exact() {
        for step in 1..=255u16 {
            let divisor = Divisor::new(&[step; 64]);
            let high = |a: u32, b: i16| (a * u32::from(b as u16)) >> 16;
            let d = 8 * u32::from(step);
            for quotient in 0..(1 << 15) / d {
                for n in [quotient * d, quotient * d + d - 1] {
                    let found = high(high(n, divisor.factor[0][0]), divisor.scale[0][0]);
                    assert_eq!(found, quotient, "{n} / {d}");
                }
            }
        }
        assert_eq!(Quality(50).luma()[0], 16);
        assert_eq!((Quality(100).chroma(), Quality(1).luma()[0]), ([1; 64], 255));
    }
}
