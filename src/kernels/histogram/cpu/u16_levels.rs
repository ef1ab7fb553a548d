//! The 65,536 levels of all 16-bit channels in one pass over the pixels. A single one of several channels is counted by
//! `slots`.

use super::{
    CHUNK,
    tally::{Tally, increment},
};
use crate::{kernels::histogram::counts::Pixels, util::parallel::Parallel};

/// Levels of 16 bits.
const LEVELS: usize = 1 << 16;

/// For each channel, the number of samples with each bit pattern.
pub fn count(pixels: &Pixels) -> Vec<Vec<u64>> {
    let samples: &[u16] = bytemuck::cast_slice(pixels.samples.as_bytes());
    // Neighbouring samples of several channels count in different tables anyway, so a second copy would only use cache.
    match pixels.channels {
        1 => count_channels::<1, 2>(samples),
        2 => count_channels::<2, 1>(samples),
        3 => count_channels::<3, 1>(samples),
        _ => count_channels::<4, 1>(samples),
    }
}

fn count_channels<const C: usize, const COPIES: usize>(samples: &[u16]) -> Vec<Vec<u64>> {
    let start = || std::array::from_fn(|_| Tally::new(LEVELS));
    let tallies = samples.chunks(CHUNK * C).par_fold(start, count_chunk::<C, COPIES>);
    let mut channels = [const { Vec::new() }; C];
    for (channel, tally) in tallies.into_iter().flat_map(|tallies| tallies.into_iter().enumerate())
    {
        channels[channel].push(tally);
    }
    channels.into_iter().map(|tallies| Tally::total(tallies, LEVELS)).collect()
}

fn count_chunk<const C: usize, const COPIES: usize>(
    tallies: &mut [Tally<COPIES>; C],
    chunk: &[u16],
) {
    let mut tables = tallies.each_mut().map(Tally::tables::<LEVELS>);
    let mut count = |pixel: &[u16], copy| {
        for ((low, sums), &sample) in tables.iter_mut().zip(pixel) {
            increment(*low, *sums, usize::from(sample), copy);
        }
    };
    let mut groups = chunk.chunks_exact(COPIES * C);
    for group in &mut groups {
        for (copy, pixel) in group.chunks_exact(C).enumerate() {
            count(pixel, copy);
        }
    }
    groups.remainder().chunks_exact(C).for_each(|pixel| count(pixel, 0));
}
