//! The native twin.

use bytemuck::Pod;
use rayon::prelude::*;

use super::{Bins, BytesRows, Counts, Luma, LumaDivision, Pixels, Plan, Row, alpha_unit};
use crate::{
    data::samples::{Dtype, Samples},
    for_samples,
    memory::{self, raise},
};

/// Pixels that a thread takes at a time: their counts fit 32 bits with ease.
const CHUNK: usize = 1 << 18;

/// Counts every row of `rows` in one pass over 8-bit pixels.
pub(super) fn count_bytes(pixels: &Pixels, rows: &BytesRows) -> Vec<Vec<u64>> {
    let bytes = pixels.samples.as_bytes();
    let channels = pixels.channels;
    let bytes = &bytes[..pixels.len() * channels];
    let whole = bytes
        .par_chunks(CHUNK * channels)
        .map(|chunk| match channels {
            1 => count_chunk::<1>(chunk, rows.luma.as_ref()),
            2 => count_chunk::<2>(chunk, rows.luma.as_ref()),
            3 => count_chunk::<3>(chunk, rows.luma.as_ref()),
            _ => count_chunk::<4>(chunk, rows.luma.as_ref()),
        })
        .reduce(|| [[0; SIZE]; 5], add_tables);
    let mut counted: Vec<Vec<u64>> = (0..4)
        .filter(|&channel| rows.channels[channel])
        .map(|channel| whole[channel][..256].to_vec())
        .collect();
    counted.extend(rows.luma.map(|luma| {
        let mut bins = whole[4][..luma.bins].to_vec();
        // Full white alone is counted one past the last bin, where it belongs.
        bins[luma.bins - 1] += whole[4][luma.bins];
        bins
    }));
    counted
}

/// Slots of a table: 256 levels, or luminance bins with one for full white, in a power of two that
/// needs no check of the index.
const SIZE: usize = 512;

/// Four channels, then luminance.
type Tables<T> = [[T; SIZE]; 5];

fn add_tables(mut sum: Tables<u64>, more: Tables<u64>) -> Tables<u64> {
    for (sum, more) in sum.as_flattened_mut().iter_mut().zip(more.as_flattened()) {
        *sum += more;
    }
    sum
}

/// Counts every channel of C, and the luminance where it is asked for.
fn count_chunk<const C: usize>(chunk: &[u8], luma: Option<&LumaDivision>) -> Tables<u64> {
    // Neighbours count in different tables: an increment of the counter that the last one has just
    // written would wait for that write.
    let mut tables = [[[0u32; SIZE]; 5]; 4];
    let divide = luma.map(|luma| {
        let inverse = (1u64 << SHIFT).div_ceil(u64::from(luma.divisor));
        (luma.weights.map(|weight| weight * luma.times), inverse)
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

/// n / d = n * ceil(2^52 / d) >> 52 for n < 2^30 and d < 2^21: the inverse is too large by less than
/// one, so the quotient by less than 2^30 / 2^52, and the fraction of n / d leaves 2^-21 at least.
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
    if let (true, Some(([red, green, blue], inverse))) = (C >= 3, divide) {
        let [r, g, b] = [pixel[0], pixel[1], pixel[2 % C]].map(u32::from);
        let sum = red * r + green * g + blue * b;
        let bin = (u64::from(sum) * inverse) >> SHIFT;
        table[4][bin as usize % SIZE] += 1;
    }
}

/// Counts every channel of 16-bit pixels in one pass: the patterns of each.
pub(super) fn count_halves(pixels: &Pixels) -> Vec<Vec<u64>> {
    fn count<const C: usize>(halves: &[u16]) -> Vec<Vec<u64>> {
        let count_chunk = |chunk: &[u16]| {
            let mut tables = vec![[0u32; 1 << 16]; C];
            let counters: &mut [_; C] = tables.as_mut_slice().try_into().expect("as many");
            for pixel in chunk.chunks_exact(C) {
                for (counters, &half) in counters.iter_mut().zip(pixel) {
                    counters[usize::from(half)] += 1;
                }
            }
            tables
        };
        let mut sums = vec![vec![0u64; 1 << 16]; C];
        // As many pieces as threads: tables of this size are worth filling with many pixels only.
        let piece =
            (halves.len() / C).div_ceil(rayon::current_num_threads()).clamp(1 << 20, 1 << 31);
        let parts: Vec<_> = halves.par_chunks(piece * C).map(count_chunk).collect();
        for part in &parts {
            for (sums, part) in sums.iter_mut().zip(part) {
                sums.iter_mut().zip(part).for_each(|(sum, &more)| *sum += u64::from(more));
            }
        }
        sums
    }
    let halves: &[u16] = bytemuck::cast_slice(pixels.samples.as_bytes());
    match pixels.channels {
        1 => count::<1>(halves),
        2 => count::<2>(halves),
        3 => count::<3>(halves),
        _ => count::<4>(halves),
    }
}

/// Counts one row of any other kind: patterns or slots, as `plan` says.
pub(super) fn count_row(pixels: &Pixels, bins: &Bins, plan: &Plan) -> Vec<u64> {
    match (plan, &pixels.samples) {
        (Plan::Halves(channel), samples) => {
            let halves: &[u16] = bytemuck::cast_slice(samples.as_bytes());
            count(halves, pixels.channels, 1 << 16, |pixel| usize::from(pixel[*channel]))
        }
        (Plan::Luma(luma), Samples::U8(bytes)) => {
            count_luma(bytes, pixels.channels, bins, *luma, 255)
        }
        (Plan::Luma(luma), Samples::U16(halves)) => {
            count_luma(halves, pixels.channels, bins, *luma, 65535)
        }
        (Plan::Values(Row::Luma(luma)), samples) => {
            let values = luminance(samples, pixels.channels, *luma);
            let find = bins.finder(1.0);
            count(&values, 1, bins.slots(), |value| find.slot(value[0].into()))
        }
        (Plan::Values(Row::Channel(channel)), samples) => {
            let find = bins.finder(1.0);
            for_samples!(samples, values => {
                count(values, pixels.channels, bins.slots(), |pixel| {
                    #[allow(clippy::cast_lossless, clippy::unnecessary_cast)]
                    find.slot(pixel[*channel] as f64)
                })
            })
        }
        (plan, samples) => unreachable!("{plan:?} of {}", samples.dtype()),
    }
}

fn count_luma<T: Pod + Sync + Into<u32>>(
    samples: &[T],
    channels: usize,
    bins: &Bins,
    luma: Luma,
    max: u32,
) -> Vec<u64> {
    let (value, unit) = luma_units(luma, max);
    if (bins.low, bins.high) != (0.0, f64::from(max)) {
        let find = bins.finder(unit);
        return count(samples, channels, bins.slots(), |pixel| find.slot(value(pixel).into()));
    }
    // Over the whole range the bin is v * count / d in integers. The inverse is too large by less than
    // one, so the quotient by less than v / 2^64, and v and d are below 2^30.
    let d = unit as u128 * u128::from(max);
    let inverse = ((bins.count as u128) << 64).div_ceil(d);
    let last = bins.count - 1;
    count(samples, channels, bins.slots(), |pixel| {
        let bin = (u128::from(value(pixel)) * inverse) >> 64;
        (bin as usize).min(last) + 1
    })
}

/// The luminance of integer pixels in units of the samples.
pub(super) fn luma_value<T: Copy + Into<u32>>(luma: Luma, max: u32) -> impl Fn(&[T]) -> f64 {
    let (value, unit) = luma_units(luma, max);
    move |pixel| f64::from(value(pixel)) / unit
}

/// The luminance of integer pixels, in integer units, and how many of those one sample step has.
fn luma_units<T: Copy + Into<u32>>(luma: Luma, max: u32) -> (impl Fn(&[T]) -> u32, f64) {
    let ([red, green, blue], sum) = luma.weights();
    let (light, fine) = luma.light(max);
    let value = move |pixel: &[T]| {
        // Without a curve the table would only repeat the samples, out of a slower cache.
        let light = |sample: T| match fine > 1 {
            true => light[sample.into() as usize],
            false => sample.into(),
        };
        red * light(pixel[0]) + green * light(pixel[1]) + blue * light(pixel[2])
    };
    (value, f64::from(sum) * f64::from(fine))
}

/// The luminance of float pixels: summed in double precision, red first, and rounded once.
pub(super) fn luminance(samples: &Samples, channels: usize, luma: Luma) -> Vec<f32> {
    let Samples::F32(samples) = samples else { unreachable!("of {}", samples.dtype()) };
    let pixels = samples.par_chunks_exact(channels);
    memory::collect(pixels.map(|pixel| float_luminance(pixel, luma))).unwrap_or_else(raise)
}

fn float_luminance(pixel: &[f32], luma: Luma) -> f32 {
    let [red, green, blue] = luma.fractions();
    let [r, g, b] = [pixel[0], pixel[1], pixel[2]].map(f64::from);
    (red * r + green * g + blue * b) as f32
}

/// Tables of more slots than this are not doubled.
const MOST_TWICE: usize = 8192;

/// Counts `slot` of every pixel in `slots` counters.
fn count<T: Pod + Sync>(
    samples: &[T],
    channels: usize,
    slots: usize,
    slot: impl Fn(&[T]) -> usize + Sync,
) -> Vec<u64> {
    let count_chunk = |chunk: &[T]| {
        // Two tables, as above, unless they would crowd each other out of the cache.
        let mut even = vec![0u32; slots];
        let mut odd = vec![0u32; if slots <= MOST_TWICE { slots } else { 0 }];
        let mut rest = chunk;
        if !odd.is_empty() {
            let mut pairs = chunk.chunks_exact(2 * channels);
            for pair in &mut pairs {
                even[slot(&pair[..channels])] += 1;
                odd[slot(&pair[channels..])] += 1;
            }
            rest = pairs.remainder();
        }
        for pixel in rest.chunks_exact(channels) {
            even[slot(pixel)] += 1;
        }
        let mut sums: Vec<u64> = even.into_iter().map(u64::from).collect();
        sums.iter_mut().zip(odd).for_each(|(sum, more)| *sum += u64::from(more));
        sums
    };
    let add = |mut sum: Vec<u64>, more: Vec<u64>| {
        sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        sum
    };
    // Tables of 65,536 slots are worth filling only with many pixels.
    let chunk = CHUNK.max(slots * 16) * channels;
    samples.par_chunks(chunk).map(count_chunk).reduce(|| vec![0; slots], add)
}

/// The value of one row in each pixel, and the pixel's alpha in steps of 1 / [`alpha_unit`], handed
/// to `consume` pixel by pixel, in parts that run side by side.
pub(super) fn weighted_values<R: Send>(
    pixels: &Pixels,
    row: Row,
    consume: impl Fn(&mut dyn Iterator<Item = (f64, u64)>) -> R + Sync,
) -> Vec<R> {
    fn parts<T: Pod + Sync, R: Send>(
        samples: &[T],
        channels: usize,
        value: impl Fn(&[T]) -> f64 + Sync,
        weight: impl Fn(T) -> u64 + Sync,
        consume: impl Fn(&mut dyn Iterator<Item = (f64, u64)>) -> R + Sync,
    ) -> Vec<R> {
        let part = |chunk: &[T]| {
            let pixels = chunk.chunks_exact(channels);
            consume(&mut pixels.map(|pixel| (value(pixel), weight(pixel[channels - 1]))))
        };
        samples.par_chunks(CHUNK * channels).map(part).collect()
    }
    let channels = pixels.channels;
    let of_float = |alpha: f32| (f64::from(alpha.clamp(0.0, 1.0)) * 65535.0).round() as u64;
    match (row, &pixels.samples) {
        (Row::Channel(c), Samples::U8(s)) => {
            parts(s, channels, |p| p[c].into(), u64::from, consume)
        }
        (Row::Channel(c), Samples::U16(s)) => {
            parts(s, channels, |p| p[c].into(), u64::from, consume)
        }
        (Row::Channel(c), Samples::F32(s)) => {
            parts(s, channels, |p| p[c].into(), of_float, consume)
        }
        (Row::Luma(luma), Samples::U8(s)) => {
            parts(s, channels, luma_value(luma, 255), u64::from, consume)
        }
        (Row::Luma(luma), Samples::U16(s)) => {
            parts(s, channels, luma_value(luma, 65535), u64::from, consume)
        }
        (Row::Luma(luma), Samples::F32(s)) => {
            parts(s, channels, |pixel| float_luminance(pixel, luma).into(), of_float, consume)
        }
        (_, samples) => unreachable!("no alpha in {}", samples.dtype()),
    }
}

/// Counts every pixel as often as its alpha has steps.
pub(super) fn count_weighted(pixels: &Pixels, bins: &Bins, row: Row) -> Counts {
    let dtype = pixels.samples.dtype();
    let levels = match (row, dtype) {
        (Row::Channel(_), Dtype::U8 | Dtype::U16) => Some(alpha_unit(dtype) as usize + 1),
        _ => None,
    };
    let find = bins.finder(1.0);
    let parts = weighted_values(pixels, row, |values| {
        let mut sums = vec![0u64; levels.unwrap_or(bins.slots())];
        for (value, weight) in values {
            sums[if levels.is_some() { value as usize } else { find.slot(value) }] += weight;
        }
        sums
    });
    let mut sums = vec![0u64; levels.unwrap_or(bins.slots())];
    for part in parts {
        sums.iter_mut().zip(part).for_each(|(sum, more)| *sum += more);
    }
    match levels {
        Some(_) => Counts::from_patterns(sums, dtype, bins),
        None => Counts::from_slots(&sums),
    }
}
