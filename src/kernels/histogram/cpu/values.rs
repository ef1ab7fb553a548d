//! The values of one component of pixels of any type, each with its weight: 1, or the pixel's alpha as an integer.

use super::CHUNK;
use crate::{
    data::{
        dtype::{Dtype, Scalar},
        number::Number,
    },
    for_samples,
    kernels::histogram::{
        bins::Bins,
        counts::{Component, Counts, Pixels, alpha_unit},
        luma::Luma,
    },
    util::{memory, parallel::Parallel},
};

/// Number of pixels in a chunk.
const CHUNK_PIXELS: usize = CHUNK / 4;

/// Folds the values of `component` and their weights, chunk by chunk in parallel, and returns the states of all threads.
/// `finish_chunk` is called after each chunk. If `weighted`, the weight of a pixel with alpha is its alpha in steps of
/// 1 / [`alpha_unit`]; otherwise it is 1.
pub fn fold_values<S: Send>(
    pixels: &Pixels,
    component: Component,
    weighted: bool,
    start: impl Fn() -> S + Sync,
    add: impl Fn(&mut S, f64, u64) + Sync,
    finish_chunk: impl Fn(&mut S) + Sync,
) -> Vec<S> {
    let channels = pixels.channels;
    let weighted = weighted && matches!(channels, 2 | 4);
    let fold = (start, add, finish_chunk);
    match (component, &pixels.samples) {
        (Component::Channel(channel), samples) => for_samples!(samples, samples => {
            #[allow(clippy::cast_lossless, clippy::unnecessary_cast)]
            fold_samples(samples, channels, weighted, |pixel| pixel[channel] as f64, fold)
        }),
        (Component::Luma(luma), samples) => for_samples!(samples, samples => {
            fold_luma(samples, channels, weighted, luma, fold)
        }),
    }
}

fn fold_luma<T: Number + Into<f64>, S: Send>(
    samples: &[T],
    channels: usize,
    weighted: bool,
    luma: Luma,
    fold: (impl Fn() -> S + Sync, impl Fn(&mut S, f64, u64) + Sync, impl Fn(&mut S) + Sync),
) -> Vec<S> {
    if T::DTYPE.is_float() {
        return fold_samples(samples, channels, weighted, |pixel| luma.float(pixel).into(), fold);
    }
    let (value, unit) = luma.integer::<T>();
    fold_samples(samples, channels, weighted, |pixel| value(pixel) / unit, fold)
}

fn fold_samples<T: Scalar + Into<f64> + Sync, S: Send>(
    samples: &[T],
    channels: usize,
    weighted: bool,
    value: impl Fn(&[T]) -> f64 + Sync,
    (start, add, finish_chunk): (
        impl Fn() -> S + Sync,
        impl Fn(&mut S, f64, u64) + Sync,
        impl Fn(&mut S) + Sync,
    ),
) -> Vec<S> {
    let weight = |pixel: &[T]| if weighted { alpha_steps(pixel[channels - 1]) } else { 1 };
    samples.chunks(CHUNK_PIXELS * channels).par_fold(start, |state, chunk| {
        for pixel in chunk.chunks_exact(channels) {
            add(state, value(pixel), weight(pixel));
        }
        finish_chunk(state);
    })
}

fn alpha_steps<T: Scalar + Into<f64>>(alpha: T) -> u64 {
    let alpha: f64 = alpha.into();
    match T::DTYPE.is_float() {
        true => (alpha.clamp(0.0, 1.0) * 65535.0).round() as u64,
        false => alpha as u64,
    }
}

/// The counts of a component, weighted by alpha.
pub fn count_weighted(pixels: &Pixels, bins: &Bins, component: Component) -> Counts {
    let dtype = pixels.samples.dtype();
    let has_levels = matches!((component, dtype), (Component::Channel(_), Dtype::U8 | Dtype::U16));
    let find = bins.slot_finder(1.0);
    let slots = if has_levels { alpha_unit(dtype) as usize + 1 } else { bins.slots() };
    let slot = |value: f64| if has_levels { value as usize } else { find.slot(value) };
    let add = |sums: &mut Vec<u64>, value, weight| sums[slot(value)] += weight;
    let mut sums = memory::filled(0, slots);
    for part in fold_values(pixels, component, true, || memory::filled(0, slots), add, |_| ()) {
        sums.iter_mut().zip(part).for_each(|(sum, more)| *sum += more);
    }
    if has_levels { Counts::from_patterns(sums, dtype, bins) } else { Counts::from_slots(&sums) }
}
