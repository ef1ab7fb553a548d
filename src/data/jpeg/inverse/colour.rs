//! From samples at full resolution to pixels.

use pulp::{Simd, WithSimd};

use crate::data::jpeg::fixed_16;

/// Converts Y, Cb and Cr to RGB (T.871, 7), with libjpeg's constants and rounding.
pub(super) struct YccToRgb<'a> {
    pub y: &'a [u8],
    pub cb: &'a [u8],
    pub cr: &'a [u8],
    pub rgb: &'a mut [u8],
}

impl WithSimd for YccToRgb<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        simd.vectorize(
            #[inline(always)]
            || {
                let pixels = self.rgb.as_chunks_mut::<3>().0;
                let samples = self.y.iter().zip(self.cb).zip(self.cr);
                for (pixel, ((&y, &cb), &cr)) in pixels.iter_mut().zip(samples) {
                    let (y, blue, red) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
                    let add = |value: i32| (y + ((value + (1 << 15)) >> 16)).clamp(0, 255) as u8;
                    *pixel = [
                        add(fixed_16(1.402) * red),
                        add(-fixed_16(0.34414) * blue - fixed_16(0.71414) * red),
                        add(fixed_16(1.772) * blue),
                    ];
                }
            },
        );
    }
}

/// Three rows of samples as a row of pixels.
pub(super) fn interleave(pixels: &mut [u8], rows: [&[u8]; 3]) {
    for (x, pixel) in pixels.as_chunks_mut::<3>().0.iter_mut().enumerate() {
        *pixel = rows.map(|row| row[x]);
    }
}

/// Turns inverted cyan, magenta and yellow into red, green and blue: multiplies them by inverted black, with rounding.
pub(super) fn darken(pixels: &mut [u8], black: &[u8]) {
    for (pixel, &black) in pixels.as_chunks_mut::<3>().0.iter_mut().zip(black) {
        *pixel = pixel.map(|value| ((2 * u32::from(value) * u32::from(black) + 255) / 510) as u8);
    }
}
