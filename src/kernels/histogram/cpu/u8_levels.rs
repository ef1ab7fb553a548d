//! Levels of all 8-bit channels, and bins of their luminance, in one pass over the pixels.
//!
//! Each thread counts chunks in tables of its own. Four neighbouring pixels count in four tables: an
//! increment of the counter that the one before has just written would wait for that write.

use super::CHUNK;
use crate::{
    data::division::Reciprocal,
    kernels::histogram::{
        counts::Pixels,
        luma::LumaBins,
        plan::{U8Components, U8Counts},
    },
    parallel::Parallel,
};

/// Counts `components` of 8-bit pixels.
pub fn count(pixels: &Pixels, components: &U8Components) -> U8Counts {
    let channels = pixels.channels;
    let bytes = &pixels.samples.as_bytes()[..pixels.len() * channels];
    let count_chunk = match channels {
        1 => count_chunk::<1>,
        2 => count_chunk::<2>,
        3 => count_chunk::<3>,
        _ => count_chunk::<4>,
    };
    let luma = components.luma.as_ref();
    let [red, green, blue, alpha, by_luma] = bytes
        .chunks(CHUNK * channels)
        .par_fold(|| [[0; SIZE]; 5], |sums, chunk| add_tables(sums, &count_chunk(chunk, luma)))
        .iter()
        .fold([[0; SIZE]; 5], |mut sums, more| {
            add_tables(&mut sums, more);
            sums
        });
    let luma = luma.map(|luma| {
        let mut bins = by_luma[..luma.count].to_vec();
        // Full white is counted one past the last bin, where it belongs.
        bins[luma.count - 1] += by_luma[luma.count];
        bins
    });
    U8Counts {
        channels: [red, green, blue, alpha].map(|levels| levels[..256].to_vec()),
        luma: luma.unwrap_or_default(),
    }
}

/// Counters of a table: 256 levels, or bins of luminance with one for full white, in a power of two that
/// needs no check of the index.
const SIZE: usize = 512;

/// Four channels, then luminance.
type Tables<T> = [[T; SIZE]; 5];

fn add_tables(sums: &mut Tables<u64>, more: &Tables<u64>) {
    for (sum, more) in sums.as_flattened_mut().iter_mut().zip(more.as_flattened()) {
        *sum += more;
    }
}

/// Counts every channel of C, and the luminance where it is asked for.
fn count_chunk<const C: usize>(chunk: &[u8], luma: Option<&LumaBins>) -> Tables<u64> {
    let mut tables = [[[0u32; SIZE]; 5]; 4];
    let divide = luma.map(|luma| {
        let weights = luma.weights.map(|weight| weight * luma.ratio.times);
        let largest = 255 * u64::from(weights.iter().sum::<u32>());
        let divisor = luma.ratio.divisor.into();
        let reciprocal = Reciprocal::new(divisor, largest, u64::MAX / largest, SHIFT..SHIFT + 1);
        (weights, reciprocal.expect("sums below 2^30 and divisors below 2^21").factor)
    });
    let mut fours = chunk.chunks_exact(4 * C);
    for four in &mut fours {
        for (table, pixel) in tables.iter_mut().zip(four.chunks_exact(C)) {
            add_pixel::<C>(table, pixel, divide);
        }
    }
    for pixel in fours.remainder().chunks_exact(C) {
        add_pixel::<C>(&mut tables[0], pixel, divide);
    }
    std::array::from_fn(|row| {
        std::array::from_fn(|slot| tables.iter().map(|table| u64::from(table[row][slot])).sum())
    })
}

/// The shift of the reciprocal by which weighted sums n < 2^30 are divided, by d < 2^21: the excess e < d of
/// [`Reciprocal`] then fulfils n e < 2^51. A constant shift compiles to a faster loop than the best one.
const SHIFT: u32 = 52;

#[inline(always)]
fn add_pixel<const C: usize>(
    table: &mut Tables<u32>,
    pixel: &[u8],
    divide: Option<([u32; 3], u64)>,
) {
    for c in 0..C {
        table[c][usize::from(pixel[c])] += 1;
    }
    if let (true, Some(([red, green, blue], factor))) = (C >= 3, divide) {
        let [r, g, b] = [pixel[0], pixel[1], pixel[2 % C]].map(u32::from);
        let sum = red * r + green * g + blue * b;
        let bin = (u64::from(sum) * factor) >> SHIFT;
        table[4][bin as usize % SIZE] += 1;
    }
}
