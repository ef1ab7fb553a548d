//! Dequantization and the inverse discrete cosine transform (ITU-T T.81, A.3.3 and A.3.4), to the bit as
//! libjpeg's accurate integer transform: the algorithm of Loeffler, Ligtenberg and Moschytz, "Practical
//! fast 1-D DCT algorithms with 11 multiplications" (ICASSP 1989), in 13-bit fixed point.

use pulp::{Simd, WithSimd};

use super::block::BlockRow;

/// Transforms a row of blocks into eight rows of samples.
pub struct Idct<'a> {
    pub row: &'a BlockRow,
    /// DC coefficients that are stored apart, one a block; added to those of the row.
    pub dc: Option<&'a [i16]>,
    pub quantization: &'a [i32; 64],
    /// Eight rows of `stride` samples.
    pub samples: &'a mut [u8],
    pub stride: usize,
}

impl WithSimd for Idct<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        simd.vectorize(
            #[inline(always)]
            || {
                let blocks = self.row.values.as_chunks::<64>().0;
                for (i, (block, &nonzero)) in blocks.iter().zip(&self.row.nonzero).enumerate() {
                    let dc = block[0].wrapping_add(self.dc.map_or(0, |dc| dc[i]));
                    let square = match nonzero {
                        0 => [[flat(dc, self.quantization[0]); 8]; 8],
                        _ => transform(block, dc, self.quantization),
                    };
                    for (y, eight) in square.iter().enumerate() {
                        self.samples[y * self.stride + 8 * i..][..8].copy_from_slice(eight);
                    }
                }
            },
        );
    }
}

/// Fraction bits of the constants.
const CONSTANT_BITS: u32 = 13;
/// Fraction bits of the values between the two passes.
const PASS_BITS: u32 = 2;

/// The sample of a block that has no AC coefficients.
#[inline(always)]
fn flat(dc: i16, quantization: i32) -> u8 {
    let value = i32::from(dc).wrapping_mul(quantization) << PASS_BITS;
    sample(value.wrapping_add(1 << (PASS_BITS + 2)) >> (PASS_BITS + 3))
}

/// Undoes the level shift (A.3.1).
#[inline(always)]
fn sample(value: i32) -> u8 {
    (value + 128).clamp(0, 255) as u8
}

type Eight = [i32; 8];

#[inline(always)]
fn transform(block: &[i16; 64], dc: i16, quantization: &[i32; 64]) -> [[u8; 8]; 8] {
    let mut rows = [[0i32; 8]; 8];
    for (y, row) in rows.iter_mut().enumerate() {
        for x in 0..8 {
            row[x] = i32::from(block[8 * y + x]).wrapping_mul(quantization[8 * y + x]);
        }
    }
    rows[0][0] = i32::from(dc).wrapping_mul(quantization[0]);
    let columns = transposed(pass::<{ CONSTANT_BITS - PASS_BITS }>(rows));
    // Each one-dimensional transform scales by sqrt(8): 3 bits more for both.
    let rows = transposed(pass::<{ CONSTANT_BITS + PASS_BITS + 3 }>(columns));
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

/// The one-dimensional transform across the outer index, of eight lines side by side; results are
/// rounded and lose `SHIFT` bits. With `c(k) = cos(k pi / 16)`, the constants are sums and differences of
/// `sqrt(2) c(k)`, such as `0.541196100 = sqrt(2) c(6)`.
#[inline(always)]
fn pass<const SHIFT: u32>(v: [Eight; 8]) -> [Eight; 8] {
    let mut out = [[0; 8]; 8];
    for i in 0..8 {
        let times = |value: i32, factor: f64| {
            value.wrapping_mul((factor * f64::from(1 << CONSTANT_BITS) + 0.5).floor() as i32)
        };
        let add = i32::wrapping_add;
        let sub = i32::wrapping_sub;
        // Coefficients 0, 2, 4, 6.
        let rotated = times(add(v[2][i], v[6][i]), 0.541196100);
        let c = sub(rotated, times(v[6][i], 1.847759065));
        let d = add(rotated, times(v[2][i], 0.765366865));
        let a = add(v[0][i], v[4][i]).wrapping_shl(CONSTANT_BITS);
        let b = sub(v[0][i], v[4][i]).wrapping_shl(CONSTANT_BITS);
        let even = [add(a, d), add(b, c), sub(b, c), sub(a, d)];
        // Coefficients 1, 3, 5, 7.
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
