//! Looks colour samples up in a table, or adds to all colours of a pixel the table's entry for its luminance.

use crate::util::{
    memory::{self, raise},
    parallel::Parallel,
};

/// Pixels of `channels` samples from 0 to `most`, of which the second or fourth is alpha and stays.
/// `shifts`: whether the table holds shifts by luminance, or else new samples by old ones.
pub fn apply<T: Copy + Send + Sync + Into<i32> + TryFrom<i32>>(
    samples: &[T],
    channels: usize,
    most: i32,
    table: &[i32],
    shifts: bool,
) -> Vec<T> {
    let colours = channels - usize::from(matches!(channels, 2 | 4));
    let clamped = |value: i32| T::try_from(value.clamp(0, most)).ok().expect("clamped");
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
