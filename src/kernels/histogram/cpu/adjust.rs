//! Replaces colour samples by entries of a table, or adds the entry for the luminance of a pixel to all its colours.

use crate::util::{
    memory::{self, raise},
    parallel::Parallel,
};

/// Adjusts the colours of pixels with samples from 0 to `max`. Alpha, the second or fourth channel, is not changed. If
/// `shifts`, the table has a shift for each luminance, otherwise a new sample for each old one.
pub fn apply<T: Copy + Send + Sync + Into<i32> + TryFrom<i32>>(
    samples: &[T],
    channels: usize,
    max: i32,
    table: &[i32],
    shifts: bool,
) -> Vec<T> {
    let colours = channels - usize::from(matches!(channels, 2 | 4));
    let clamped = |value: i32| T::try_from(value.clamp(0, max)).ok().expect("clamped");
    let level = |pixel: &[T]| match *pixel {
        [r, g, b, ..] => (1063 * r.into() + 3576 * g.into() + 361 * b.into() + 2500) / 5000,
        _ => pixel[0].into(),
    };
    let mut result = memory::copied(samples).unwrap_or_else(raise);
    result.chunks_mut(channels << 12).par_each(|chunk| {
        for pixel in chunk.chunks_exact_mut(channels) {
            if shifts {
                let shift = table[level(pixel) as usize];
                for sample in &mut pixel[..colours] {
                    *sample = clamped((*sample).into() + shift);
                }
            } else {
                for sample in &mut pixel[..colours] {
                    *sample = clamped(table[(*sample).into() as usize]);
                }
            }
        }
    });
    result
}
