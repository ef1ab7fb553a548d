//! Replaces colour samples by entries of a table, or adds the entry for the luminance of a pixel to all its colours.

use crate::{
    data::number::Number,
    kernels::histogram::luma::Luma,
    util::{
        memory::{self, raise},
        parallel::Parallel,
    },
};

/// Adjusts the colours of pixels with samples from 0 to `max`. Alpha, the second or fourth channel, is not changed. If
/// `shifts`, the table has a shift for each luminance, otherwise a new sample for each old one.
pub fn apply<T: Number + Into<i32> + Into<f64> + TryFrom<i32>>(
    samples: &[T],
    channels: usize,
    max: i32,
    table: &[i32],
    shifts: bool,
) -> Vec<T> {
    let colours = channels - usize::from(matches!(channels, 2 | 4));
    let clamped = |value: i32| T::try_from(value.clamp(0, max)).ok().expect("clamped");
    let luminance = Luma::Bt709.rounded::<T>();
    let level = |pixel: &[T]| -> i32 {
        if channels < 3 { pixel[0].into() } else { luminance(pixel).into() }
    };
    let mut result = memory::copied(samples).unwrap_or_else(raise);
    result.chunks_mut(channels << 12).par_each(|chunk| {
        for pixel in chunk.chunks_exact_mut(channels) {
            if shifts {
                let shift = table[level(pixel) as usize];
                for sample in &mut pixel[..colours] {
                    let old: i32 = (*sample).into();
                    *sample = clamped(old + shift);
                }
            } else {
                for sample in &mut pixel[..colours] {
                    let old: i32 = (*sample).into();
                    *sample = clamped(table[old as usize]);
                }
            }
        }
    });
    result
}
