//! From coefficients to pixels, to the bit as libjpeg does by default: its accurate integer transform
//! (after Loeffler, Ligtenberg and Moschytz 1989), triangle-filtered colour, and 16-bit fixed point
//! from YCbCr to RGB (JFIF 1.02).

use crate::memory::{self, raise};
use pulp::{Simd, WithSimd};

/// Blocks of eight by eight samples side by side.
#[derive(Debug, Default)]
pub struct BlockRow {
    /// 64 coefficients a block, row by row.
    pub values: Vec<i16>,
    /// Which of them are not 0, in coded order, but for the first.
    pub nonzero: Vec<u64>,
}

impl BlockRow {
    pub fn new(blocks: usize) -> Self {
        let values = memory::zeros(64 * blocks).unwrap_or_else(raise);
        Self { values, nonzero: vec![0; blocks] }
    }
}

/// Transforms a row of blocks into eight rows of samples.
pub struct Transform<'a> {
    pub row: &'a BlockRow,
    /// First coefficients that are kept apart; added to those of the row.
    pub first: Option<&'a [i16]>,
    pub quantum: &'a [i32; 64],
    /// Eight rows of `stride` samples.
    pub samples: &'a mut [u8],
    pub stride: usize,
}

impl WithSimd for Transform<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        simd.vectorize(
            #[inline(always)]
            || {
                let blocks = self.row.values.as_chunks::<64>().0;
                for (i, (block, &nonzero)) in blocks.iter().zip(&self.row.nonzero).enumerate() {
                    let first = block[0].wrapping_add(self.first.map_or(0, |first| first[i]));
                    let square = match nonzero {
                        0 => [[flat(first, self.quantum[0]); 8]; 8],
                        _ => transform(block, first, self.quantum),
                    };
                    for (y, eight) in square.iter().enumerate() {
                        self.samples[y * self.stride + 8 * i..][..8].copy_from_slice(eight);
                    }
                }
            },
        );
    }
}

/// Bits behind the point of the constants.
const BITS: u32 = 13;
/// Bits behind the point between the two passes.
const BETWEEN: u32 = 2;

/// What all samples are where there is nothing but the first coefficient.
#[inline(always)]
fn flat(first: i16, quantum: i32) -> u8 {
    let value = i32::from(first).wrapping_mul(quantum) << BETWEEN;
    sample(value.wrapping_add(1 << (BETWEEN + 2)) >> (BETWEEN + 3))
}

#[inline(always)]
fn sample(value: i32) -> u8 {
    (value + 128).clamp(0, 255) as u8
}

type Eight = [i32; 8];

#[inline(always)]
fn transform(block: &[i16; 64], first: i16, quantum: &[i32; 64]) -> [[u8; 8]; 8] {
    let mut rows = [[0i32; 8]; 8];
    for (y, row) in rows.iter_mut().enumerate() {
        for x in 0..8 {
            row[x] = i32::from(block[8 * y + x]).wrapping_mul(quantum[8 * y + x]);
        }
    }
    rows[0][0] = i32::from(first).wrapping_mul(quantum[0]);
    let columns = transposed(pass::<{ BITS - BETWEEN }>(rows));
    let rows = transposed(pass::<{ BITS + BETWEEN + 3 }>(columns));
    rows.map(|row| row.map(sample))
}

#[inline(always)]
fn transposed(rows: [Eight; 8]) -> [Eight; 8] {
    let mut columns = [[0; 8]; 8];
    for (y, row) in rows.iter().enumerate() {
        for x in 0..8 {
            columns[x][y] = row[x];
        }
    }
    columns
}

/// The inverse transform across the outer index, of eight lines side by side; rounded and shifted.
#[inline(always)]
fn pass<const SHIFT: u32>(v: [Eight; 8]) -> [Eight; 8] {
    let mut out = [[0; 8]; 8];
    for i in 0..8 {
        let times = |value: i32, factor: f64| {
            value.wrapping_mul((factor * f64::from(1 << BITS) + 0.5).floor() as i32)
        };
        let add = i32::wrapping_add;
        let sub = i32::wrapping_sub;
        // Even coefficients.
        let turned = times(add(v[2][i], v[6][i]), 0.541196100);
        let c = sub(turned, times(v[6][i], 1.847759065));
        let d = add(turned, times(v[2][i], 0.765366865));
        let a = add(v[0][i], v[4][i]).wrapping_shl(BITS);
        let b = sub(v[0][i], v[4][i]).wrapping_shl(BITS);
        let even = [add(a, d), add(b, c), sub(b, c), sub(a, d)];
        // Odd coefficients.
        let [a, b, c, d] = [v[7][i], v[5][i], v[3][i], v[1][i]];
        let all = times(add(add(a, c), add(b, d)), 1.175875602);
        let outer = times(add(a, d), 0.899976223);
        let inner = times(add(b, c), 2.562915447);
        let third = sub(all, times(add(a, c), 1.961570560));
        let fourth = sub(all, times(add(b, d), 0.390180644));
        let a = add(sub(times(a, 0.298631336), outer), third);
        let b = add(sub(times(b, 2.053119869), inner), fourth);
        let c = add(sub(times(c, 3.072711026), inner), third);
        let d = add(sub(times(d, 1.501321110), outer), fourth);
        let odd = [d, c, b, a];
        for k in 0..4 {
            let half = 1 << (SHIFT - 1);
            out[k][i] = add(add(even[k], odd[k]), half) >> SHIFT;
            out[7 - k][i] = add(sub(even[k], odd[k]), half) >> SHIFT;
        }
    }
    out
}

/// Brings a row of colour to full resolution.
pub enum Upsample<'a> {
    /// Twice the width: from the row itself.
    Across { near: &'a [u8] },
    /// Twice the width and height: from the nearest row and the one beyond it.
    Both { near: &'a [u8], far: &'a [u8], sums: &'a mut [i32] },
}

impl Upsample<'_> {
    /// To `out`, twice as long as the row, which has at least three samples.
    #[inline(always)]
    fn run(self, out: &mut [u8]) {
        match self {
            Self::Across { near } => {
                let n = near.len();
                let value = |i: usize| i32::from(near[i]);
                for i in 1..n - 1 {
                    let (before, here, after) = (value(i - 1), 3 * value(i), value(i + 1));
                    out[2 * i] = ((here + before + 1) >> 2) as u8;
                    out[2 * i + 1] = ((here + after + 2) >> 2) as u8;
                }
                out[0] = near[0];
                out[1] = ((3 * value(0) + value(1) + 2) >> 2) as u8;
                out[2 * n - 2] = ((3 * value(n - 1) + value(n - 2) + 1) >> 2) as u8;
                out[2 * n - 1] = near[n - 1];
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

/// [`Upsample`] at a SIMD level.
pub struct Upsampling<'a> {
    pub rows: Upsample<'a>,
    pub out: &'a mut [u8],
}

impl WithSimd for Upsampling<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        simd.vectorize(
            #[inline(always)]
            || self.rows.run(self.out),
        );
    }
}

/// Makes pixels of a row of luminance, blue and red differences.
pub struct Colours<'a> {
    pub y: &'a [u8],
    pub blue: &'a [u8],
    pub red: &'a [u8],
    /// Three samples a pixel.
    pub rgb: &'a mut [u8],
}

impl WithSimd for Colours<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        simd.vectorize(
            #[inline(always)]
            || {
                const fn fixed(value: f64) -> i32 {
                    (value * 65536.0 + 0.5) as i32
                }
                let pixels = self.rgb.as_chunks_mut::<3>().0;
                let samples = self.y.iter().zip(self.blue).zip(self.red);
                for (pixel, ((&y, &blue), &red)) in pixels.iter_mut().zip(samples) {
                    let (y, blue, red) =
                        (i32::from(y), i32::from(blue) - 128, i32::from(red) - 128);
                    let shifted =
                        |value: i32| (y + ((value + (1 << 15)) >> 16)).clamp(0, 255) as u8;
                    *pixel = [
                        shifted(fixed(1.402) * red),
                        shifted(-fixed(0.34414) * blue - fixed(0.71414) * red),
                        shifted(fixed(1.772) * blue),
                    ];
                }
            },
        );
    }
}
