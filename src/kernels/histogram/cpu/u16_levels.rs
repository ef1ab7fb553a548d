//! The 65,536 levels of every 16-bit channel in one pass over the pixels; for one channel alone, `slots`.

use crate::{kernels::histogram::counts::Pixels, parallel::Parallel};

/// Levels of 16 bits.
const LEVELS: usize = 1 << 16;

/// Of each channel, samples of each bit pattern.
pub fn count(pixels: &Pixels) -> Vec<Vec<u64>> {
    let samples: &[u16] = bytemuck::cast_slice(pixels.samples.as_bytes());
    match pixels.channels {
        1 => count_channels::<1>(samples),
        2 => count_channels::<2>(samples),
        3 => count_channels::<3>(samples),
        _ => count_channels::<4>(samples),
    }
}

fn count_channels<const C: usize>(samples: &[u16]) -> Vec<Vec<u64>> {
    // One piece a thread: tables of this size are worth filling with many pixels only.
    let piece = (samples.len() / C).div_ceil(rayon::current_num_threads()).clamp(1 << 20, 1 << 31);
    let parts = samples.chunks(piece * C).par_map(count_piece::<C>);
    let mut sums = vec![vec![0; LEVELS]; C];
    for part in &parts {
        for (sums, part) in sums.iter_mut().zip(part) {
            sums.iter_mut().zip(part).for_each(|(sum, &more)| *sum += u64::from(more));
        }
    }
    sums
}

fn count_piece<const C: usize>(samples: &[u16]) -> Vec<[u32; LEVELS]> {
    let mut tables = vec![[0; LEVELS]; C];
    let counters: &mut [[u32; LEVELS]; C] = tables.as_mut_slice().try_into().expect("C tables");
    for pixel in samples.chunks_exact(C) {
        for (counters, &sample) in counters.iter_mut().zip(pixel) {
            counters[usize::from(sample)] += 1;
        }
    }
    tables
}
