//! YCbCr to RGB (ITU-T T.871, clause 7), to the bit as libjpeg: in 16-bit fixed point.

use pulp::{Simd, WithSimd};

/// Converts one row.
pub struct YcbcrToRgb<'a> {
    pub y: &'a [u8],
    pub cb: &'a [u8],
    pub cr: &'a [u8],
    /// Three samples a pixel.
    pub rgb: &'a mut [u8],
}

const fn fixed(value: f64) -> i32 {
    (value * 65536.0 + 0.5) as i32
}

const CR_TO_R: i32 = fixed(1.402);
const CB_TO_G: i32 = -fixed(0.34414);
const CR_TO_G: i32 = -fixed(0.71414);
const CB_TO_B: i32 = fixed(1.772);

impl WithSimd for YcbcrToRgb<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        simd.vectorize(
            #[inline(always)]
            || {
                let pixels = self.rgb.as_chunks_mut::<3>().0;
                let samples = self.y.iter().zip(self.cb).zip(self.cr);
                for (pixel, ((&y, &cb), &cr)) in pixels.iter_mut().zip(samples) {
                    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
                    let plus = |value: i32| (y + ((value + (1 << 15)) >> 16)).clamp(0, 255) as u8;
                    *pixel =
                        [plus(CR_TO_R * cr), plus(CB_TO_G * cb + CR_TO_G * cr), plus(CB_TO_B * cb)];
                }
            },
        );
    }
}
