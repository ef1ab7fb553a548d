//! Levels of all 8-bit channels, and bins of their luminance, in one pass over the pixels.
//!
//! Each thread counts in its own tables. Four neighbouring pixels count in four tables: a second increment of
//! the same counter would wait for the write of the first.

use bytemuck::allocation::zeroed_box;

use super::CHUNK;
use crate::{
    data::division::Reciprocal,
    kernels::histogram::{
        counts::Pixels,
        luma::LumaBins,
        route::{U8Components, U8Counts},
    },
    util::parallel::Parallel,
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
    let parts = bytes
        .chunks(CHUNK * channels)
        .par_fold(Counters::zeros, |counters, chunk| count_chunk(counters, chunk, luma));
    let mut sums: Box<Tables<u64>> = zeroed_box();
    for part in &parts {
        let counts = part.sums.as_flattened();
        sums.as_flattened_mut().iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    let [red, green, blue, alpha, by_luma] = &*sums;
    let luma = luma.map(|luma| {
        let mut bins = by_luma[..luma.count].to_vec();
        // Full white is counted in the bin after the last one, to which it belongs.
        bins[luma.count - 1] += by_luma[luma.count];
        bins
    });
    U8Counts {
        channels: [red, green, blue, alpha].map(|levels| levels[..256].to_vec()),
        luma: luma.unwrap_or_default(),
    }
}

/// Counters of a table: 256 levels, or bins of luminance and one more for full white, rounded up to a power of two, by
/// which indices are masked.
const SIZE: usize = 512;

/// Four channels, then luminance.
type Tables<T> = [[T; SIZE]; 5];

/// Tables of a thread. They are not on the stack: a thread that waits for a nested loop starts other work on the same
/// stack.
struct Counters {
    /// Tables of the current chunk, one for each of four neighbouring pixels.
    chunk: Box<[Tables<u32>; 4]>,
    /// Sums of all chunks.
    sums: Box<Tables<u64>>,
}

impl Counters {
    fn zeros() -> Self {
        Self { chunk: zeroed_box(), sums: zeroed_box() }
    }
}

/// Counts all C channels, and the luminance if asked for.
fn count_chunk<const C: usize>(counters: &mut Counters, chunk: &[u8], luma: Option<&LumaBins>) {
    let Counters { chunk: tables, sums } = counters;
    tables.as_flattened_mut().as_flattened_mut().fill(0);
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
    for table in tables.iter() {
        let counts = table.as_flattened();
        let sums = sums.as_flattened_mut().iter_mut();
        sums.zip(counts).for_each(|(sum, &count)| *sum += u64::from(count));
    }
}

/// Shift of the reciprocal that divides weighted sums n < 2^30 by d < 2^21: for the excess e < d of [`Reciprocal`],
/// n e < 2^51. A constant shift gives a faster loop than the smallest possible one.
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
