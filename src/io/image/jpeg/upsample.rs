//! Chroma of half the resolution brought to full resolution, to the bit as libjpeg's "fancy" upsampling:
//! a triangle filter, `3/4` of the nearest sample and `1/4` of the next one along each halved axis, with
//! samples centred as JFIF has them (ITU-T T.871, 10.1).

use pulp::{Simd, WithSimd};

/// Upsamples one row of chroma, of three samples or more.
pub struct Upsample<'a> {
    pub rows: Rows<'a>,
    /// Twice as long as the row.
    pub out: &'a mut [u8],
}

/// What a row of full resolution is made from.
pub enum Rows<'a> {
    /// Half the width: the row itself.
    Horizontal { near: &'a [u8] },
    /// Half the width and height: the nearest row, and the next one above or below. `sums` is room for
    /// as many values.
    Both { near: &'a [u8], far: &'a [u8], sums: &'a mut [i32] },
}

impl WithSimd for Upsample<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        simd.vectorize(
            #[inline(always)]
            || match self.rows {
                Rows::Horizontal { near } => horizontal(near, self.out),
                Rows::Both { near, far, sums } => both(near, far, sums, self.out),
            },
        );
    }
}

/// Rounded up for even samples and down for odd ones, so that errors do not accumulate to one side.
#[inline(always)]
fn horizontal(near: &[u8], out: &mut [u8]) {
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

#[inline(always)]
fn both(near: &[u8], far: &[u8], sums: &mut [i32], out: &mut [u8]) {
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
