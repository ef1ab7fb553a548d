//! From quantized coefficients to pixels on the CPU, with libjpeg's results: the inverse DCT of Loeffler, Ligtenberg
//! and Moschytz (1989, figure 1; constants of 13 bits), chroma enlarged to full resolution by triangle filters, and
//! conversion to RGB in 16-bit fixed point (T.871, 7).

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::{
    ColourModel, Component, Frame, Upsampling,
    lanes::{Lanes, constants::*, descaled, difference, pairs, sum, transposed, weighted},
};
use crate::{
    memory::{self, raise},
    simd,
};

/// Fraction bits between the two passes of the DCT.
const PASS_BITS: u32 = 2;
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
    /// The steps of a component.
    pub fn new(component: &Component) -> Self {
        let square = |of: fn(u16) -> u16| {
            let values = component.steps.map(|step| of(step) as i16);
            *values.as_chunks::<8>().0.first_chunk().expect("8 x 8")
        };
        Self {
            // As in libjpeg, steps have 16 bits with a sign. No encoder writes larger ones.
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
    /// DC coefficients that are stored apart, to be added to those of the blocks.
    pub first: Option<&'a [i16]>,
    /// For each block, a mask that is 0 if it has no AC coefficients; empty if that is not known.
    pub more: &'a [u64],
}

/// The conversion of a row of blocks to eight rows of samples, `stride` apart.
struct Transform<'a> {
    row: BlockView<'a>,
    steps: &'a Steps,
    samples: &'a mut [u8],
    stride: usize,
}

impl Transform<'_> {
    fn run(self, arch: Arch) {
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
    /// Whether the `count` blocks from `start` on have no AC coefficients.
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
                // The result of both passes, with sums that wrap around.
                let [column, ..] = line::<{ BITS - PASS_BITS }>([first, 0, 0, 0, 0, 0, 0, 0]);
                let [value, ..] = line::<LAST>([column, 0, 0, 0, 0, 0, 0, 0]);
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

/// The inverse DCT, 8 times too large before the last shift. Sums wrap around in 32 bits.
pub fn dct(mut rows: [[i32; 8]; 8]) -> [[i32; 8]; 8] {
    for x in 0..8 {
        let column = line::<{ BITS - PASS_BITS }>(rows.map(|row| row[x]));
        rows.iter_mut().zip(column).for_each(|(row, value)| row[x] = value);
    }
    rows.map(line::<LAST>)
}

/// The inverse DCT along one dimension, with results shifted right by `SHIFT`.
fn line<const SHIFT: u32>(v: [i32; 8]) -> [i32; 8] {
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
    let round = |value: W<i32>| (value + W(1 << (SHIFT - 1))).0 >> SHIFT;
    let mut out = [0; 8];
    for k in 0..4 {
        (out[k], out[7 - k]) = (round(even[k] + odd[k]), round(even[k] - odd[k]));
    }
    out
}

/// As [`BlockView::one`], for as many blocks as a vector has. Returns false if their values are too large for 16-bit
/// lanes.
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

/// As [`line()`], for all lanes.
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

/// The coefficients of a picture, row by row.
pub trait Source: Sync {
    /// Row `y` of the blocks of component `c`; `None` if all its coefficients are 0.
    fn row(&self, c: usize, y: usize) -> Option<BlockView<'_>>;
}

impl Source for super::Coefficients {
    fn row(&self, c: usize, y: usize) -> Option<BlockView<'_>> {
        let [across, _] = self.frame.blocks(c);
        let blocks = self.blocks[c].get(y * across..(y + 1) * across)?;
        Some(BlockView { blocks, first: None, more: &[] })
    }
}

/// The conversion of bands of MCU rows to rows of pixels.
#[derive(Debug)]
pub struct Renderer<'a> {
    frame: &'a Frame,
    steps: Vec<Steps>,
    upsampling: Vec<Upsampling>,
}

/// Rows of MCUs in a band.
pub const BAND: usize = 8;

impl<'a> Renderer<'a> {
    /// For pictures of `frame`; `None` if the resolution of a component is no integer fraction of the picture's.
    pub fn new(frame: &'a Frame) -> Option<Self> {
        let steps = frame.components.iter().map(Steps::new).collect();
        let upsampling = (0..frame.components.len()).map(|c| frame.upsampling(c));
        Some(Self { frame, steps, upsampling: upsampling.collect::<Option<_>>()? })
    }

    /// Bytes of the pixels of a band; the last band may have fewer.
    pub fn band_bytes(&self) -> usize {
        self.frame.size[0] * self.frame.colour.channels() * 8 * BAND * self.frame.most()[1]
    }

    /// The last row of MCUs on which band `number` depends, counted from 0 and not limited to the picture.
    pub fn last_row(&self, number: usize) -> usize {
        let beyond = self.upsampling.iter().any(|upsampling| upsampling.needs_neighbours());
        (number + 1) * BAND - usize::from(!beyond)
    }

    /// The rows of blocks of component `c` on which band `number` depends.
    pub fn rows(&self, c: usize, number: usize) -> Range<usize> {
        let beyond = usize::from(self.upsampling[c].needs_neighbours());
        let [_, all] = self.frame.blocks(c);
        let rows = BAND * self.frame.components[c].sampling[1];
        let start = (number * rows).saturating_sub(beyond);
        start.min(all)..((number + 1) * rows + beyond).min(all)
    }

    /// Computes the pixels of band `number`.
    pub fn render(&self, source: &impl Source, number: usize, pixels: &mut [u8]) {
        let arch = simd::arch();
        let Self { frame, upsampling, .. } = self;
        let [width, _] = frame.size;
        let [_, down] = frame.most();
        let planes: Vec<Plane> =
            (0..upsampling.len()).map(|c| self.plane(arch, source, c, number)).collect();
        let mut rows: Vec<Vec<u8>> =
            planes.iter().map(|plane| vec![0; plane.full_width()]).collect();
        let mut sums = vec![0; width];
        let top = number * BAND * down * 8;
        let channels = frame.colour.channels();
        for (y, pixels) in pixels.chunks_exact_mut(width * channels).enumerate() {
            let y = top + y;
            for (plane, row) in planes.iter().zip(&mut rows) {
                plane.upsample(arch, y, &mut sums, row);
            }
            let of = |c: usize| match upsampling[c] {
                Upsampling::Full => planes[c].row(y as isize),
                _ => &rows[c][..width],
            };
            match frame.colour {
                ColourModel::Grey => pixels.copy_from_slice(of(0)),
                ColourModel::Rgb => interleave(pixels, [of(0), of(1), of(2)]),
                ColourModel::YCbCr => {
                    arch.dispatch(Colour { y: of(0), cb: of(1), cr: of(2), rgb: pixels });
                }
                ColourModel::Cmyk => {
                    interleave(pixels, [of(0), of(1), of(2)]);
                    darken(pixels, of(3));
                }
                ColourModel::Ycck => {
                    arch.dispatch(Colour { y: of(0), cb: of(1), cr: of(2), rgb: pixels });
                    // The results are inverted cyan, magenta and yellow, inverted once more.
                    pixels.iter_mut().for_each(|value| *value = 255 - *value);
                    darken(pixels, of(3));
                }
            }
        }
    }

    /// Computes the samples of component `c` on which band `number` depends.
    fn plane(&self, arch: Arch, source: &impl Source, c: usize, number: usize) -> Plane {
        let (frame, upsampling) = (self.frame, self.upsampling[c]);
        let ([across, _], range) = (frame.blocks(c), self.rows(c, number));
        let stride = 8 * across;
        let mut values = memory::zeros(range.len() * 8 * stride).unwrap_or_else(raise);
        for (y, samples) in range.clone().zip(values.chunks_exact_mut(8 * stride)) {
            match source.row(c, y) {
                Some(row) => {
                    Transform { row, steps: &self.steps[c], samples, stride }.run(arch);
                }
                None => samples.fill(128),
            }
        }
        let [width, height] = frame.samples(c);
        Plane { values, stride, first: 8 * range.start, last: height - 1, width, upsampling }
    }
}

/// Some rows of samples of a component.
struct Plane {
    values: Vec<u8>,
    stride: usize,
    /// Number of the first row, and of the last row in the picture.
    first: usize,
    last: usize,
    /// Samples of a row that are in the picture.
    width: usize,
    upsampling: Upsampling,
}

impl Plane {
    /// Row `y`, or the nearest row in the picture.
    fn row(&self, y: isize) -> &[u8] {
        let y = y.clamp(0, self.last as isize) as usize - self.first;
        &self.values[y * self.stride..][..self.width]
    }

    /// The length of a row at full resolution, which may extend beyond the picture; 0 if no upsampling is needed.
    fn full_width(&self) -> usize {
        self.width
            * match self.upsampling {
                Upsampling::Full => 0,
                Upsampling::Down => 1,
                Upsampling::Across | Upsampling::Both => 2,
                Upsampling::Repeat([across, _]) => across,
            }
    }

    /// Computes row `y` of the picture at full resolution; does nothing if the component has that.
    fn upsample(&self, arch: Arch, y: usize, sums: &mut [i32], out: &mut [u8]) {
        // The nearest row of samples, and the next nearest one, on the other side of the pixel row.
        let near = || self.row((y / 2) as isize);
        let far = || self.row((y / 2) as isize + if y.is_multiple_of(2) { -1 } else { 1 });
        let filter = match self.upsampling {
            Upsampling::Full => return,
            Upsampling::Across => Filter::Across { row: self.row(y as isize) },
            Upsampling::Down => Filter::Down { near: near(), far: far(), bias: 1 + (y % 2) as u16 },
            Upsampling::Both => Filter::Both { near: near(), far: far(), sums },
            Upsampling::Repeat([across, down]) => {
                let row = self.row((y / down) as isize);
                for (out, &value) in out.chunks_exact_mut(across).zip(row) {
                    out.fill(value);
                }
                return;
            }
        };
        arch.dispatch(Filtering { filter, out });
    }
}

/// libjpeg's triangle filters: 3/4 of the nearest sample and 1/4 of the next nearest along each axis, rounded up and
/// down in turn.
enum Filter<'a> {
    Across { row: &'a [u8] },
    Down { near: &'a [u8], far: &'a [u8], bias: u16 },
    Both { near: &'a [u8], far: &'a [u8], sums: &'a mut [i32] },
}

impl Filter<'_> {
    #[inline(always)]
    fn run(self, out: &mut [u8]) {
        match self {
            Self::Across { row } => {
                let n = row.len();
                let value = |i: usize| i32::from(row[i]);
                for i in 1..n - 1 {
                    let (before, here, after) = (value(i - 1), 3 * value(i), value(i + 1));
                    out[2 * i] = ((here + before + 1) >> 2) as u8;
                    out[2 * i + 1] = ((here + after + 2) >> 2) as u8;
                }
                out[0] = row[0];
                out[1] = ((3 * value(0) + value(1) + 2) >> 2) as u8;
                out[2 * n - 2] = ((3 * value(n - 1) + value(n - 2) + 1) >> 2) as u8;
                out[2 * n - 1] = row[n - 1];
            }
            Self::Down { near, far, bias } => {
                for ((out, &near), &far) in out.iter_mut().zip(near).zip(far) {
                    *out = ((3 * u16::from(near) + u16::from(far) + bias) >> 2) as u8;
                }
            }
            Self::Both { near, far, sums } => {
                let n = near.len();
                for ((sum, &near), &far) in sums.iter_mut().zip(near).zip(far) {
                    *sum = 3 * i32::from(near) + i32::from(far);
                }
                let inner = out[2..2 * n - 2].as_chunks_mut::<2>().0;
                for (i, pair) in inner.iter_mut().enumerate() {
                    let (before, here, after) = (sums[i], 3 * sums[i + 1], sums[i + 2]);
                    *pair = [((here + before + 8) >> 4) as u8, ((here + after + 7) >> 4) as u8];
                }
                out[0] = ((4 * sums[0] + 8) >> 4) as u8;
                out[1] = ((3 * sums[0] + sums[1] + 7) >> 4) as u8;
                out[2 * n - 2] = ((3 * sums[n - 1] + sums[n - 2] + 8) >> 4) as u8;
                out[2 * n - 1] = ((4 * sums[n - 1] + 7) >> 4) as u8;
            }
        }
    }
}

struct Filtering<'a> {
    filter: Filter<'a>,
    out: &'a mut [u8],
}

impl WithSimd for Filtering<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        simd.vectorize(
            #[inline(always)]
            || self.filter.run(self.out),
        );
    }
}

/// Converts Y, Cb and Cr to RGB (T.871, 7), with libjpeg's constants and rounding.
struct Colour<'a> {
    y: &'a [u8],
    cb: &'a [u8],
    cr: &'a [u8],
    rgb: &'a mut [u8],
}

impl WithSimd for Colour<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        const fn fixed(value: f64) -> i32 {
            (value * 65536.0 + 0.5) as i32
        }
        simd.vectorize(
            #[inline(always)]
            || {
                let pixels = self.rgb.as_chunks_mut::<3>().0;
                let samples = self.y.iter().zip(self.cb).zip(self.cr);
                for (pixel, ((&y, &cb), &cr)) in pixels.iter_mut().zip(samples) {
                    let (y, blue, red) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
                    let add = |value: i32| (y + ((value + (1 << 15)) >> 16)).clamp(0, 255) as u8;
                    *pixel = [
                        add(fixed(1.402) * red),
                        add(-fixed(0.34414) * blue - fixed(0.71414) * red),
                        add(fixed(1.772) * blue),
                    ];
                }
            },
        );
    }
}

fn interleave(pixels: &mut [u8], rows: [&[u8]; 3]) {
    for (x, pixel) in pixels.as_chunks_mut::<3>().0.iter_mut().enumerate() {
        *pixel = rows.map(|row| row[x]);
    }
}

/// Multiplies inverted cyan, magenta and yellow by inverted black, which gives red, green and blue.
fn darken(pixels: &mut [u8], black: &[u8]) {
    for (pixel, &black) in pixels.as_chunks_mut::<3>().0.iter_mut().zip(black) {
        *pixel = pixel.map(|value| ((2 * u32::from(value) * u32::from(black) + 255) / 510) as u8);
    }
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
