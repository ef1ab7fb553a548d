//! Chroma brought to full resolution.

use pulp::{Simd, WithSimd};

/// libjpeg's triangle filters: 3/4 of the nearest sample and 1/4 of the next nearest along each axis, rounded up and
/// down in turn.
pub(super) enum Filter<'a> {
    /// Twice the width.
    Across { row: &'a [u8] },
    /// Twice the height: one of the two rows between `near` and `far`.
    Down { near: &'a [u8], far: &'a [u8], bias: u16 },
    /// Twice both; `sums` is scratch memory.
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

/// A filter and the row that it writes.
pub(super) struct Filtering<'a> {
    pub filter: Filter<'a>,
    pub out: &'a mut [u8],
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
