//! The values of one component of pixels of any type, each with its weight: 1, or the pixel's alpha as an integer.

use super::CHUNK;
use crate::{
    data::{
        dtype::{Dtype, Scalar},
        samples::Samples,
    },
    for_samples,
    kernels::histogram::{
        bins::Bins,
        counts::{Component, Counts, Pixels, alpha_unit},
    },
    util::parallel::Parallel,
};

/// A fold over values and their weights. Parts of the pixels are folded in parallel.
pub trait ValueFold: Sync {
    /// Number of pixels in a part.
    const PART: usize = CHUNK / 4;

    /// The result of one or more parts.
    type State: Send;

    /// The result before the first part.
    fn start(&self) -> Self::State;

    /// Adds the values of a part, with their weights.
    fn add(&self, state: &mut Self::State, values: impl Iterator<Item = (f64, u64)>);
}

/// Folds the values of `component`, and returns the results of all threads. If `weighted`, the weight of a pixel with
/// alpha is its alpha in steps of 1 / [`alpha_unit`]; otherwise it is 1.
pub fn fold_values<W: ValueFold>(
    pixels: &Pixels,
    component: Component,
    weighted: bool,
    work: &W,
) -> Vec<W::State> {
    let channels = pixels.channels;
    let weighted = weighted && matches!(channels, 2 | 4);
    match (component, &pixels.samples) {
        (Component::Channel(channel), samples) => for_samples!(samples, samples => {
            #[allow(clippy::cast_lossless, clippy::unnecessary_cast)]
            each(samples, channels, weighted, |pixel| pixel[channel] as f64, work)
        }),
        (Component::Luma(luma), Samples::U8(samples)) => {
            each(samples, channels, weighted, luma.in_samples(255), work)
        }
        (Component::Luma(luma), Samples::U16(samples)) => {
            each(samples, channels, weighted, luma.in_samples(65535), work)
        }
        (Component::Luma(luma), samples) => for_samples!(samples, samples => {
            each(samples, channels, weighted, |pixel| luma.float(pixel).into(), work)
        }),
    }
}

fn each<T: Scalar + Into<f64> + Sync, W: ValueFold>(
    samples: &[T],
    channels: usize,
    weighted: bool,
    value: impl Fn(&[T]) -> f64 + Sync,
    work: &W,
) -> Vec<W::State> {
    let weight = |pixel: &[T]| if weighted { alpha_steps(pixel[channels - 1]) } else { 1 };
    samples.chunks(W::PART * channels).par_fold(
        || work.start(),
        |state, chunk| {
            let pixels = chunk.chunks_exact(channels);
            work.add(state, pixels.map(|pixel| (value(pixel), weight(pixel))));
        },
    )
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
    let mut sums = vec![0; slots];
    for part in fold_values(pixels, component, true, &Slots { slots, slot }) {
        sums.iter_mut().zip(part).for_each(|(sum, more)| *sum += more);
    }
    match has_levels {
        true => Counts::from_patterns(sums, dtype, bins),
        false => Counts::from_slots(&sums),
    }
}

/// Adds up weights by slot.
struct Slots<F> {
    slots: usize,
    slot: F,
}

impl<F: Fn(f64) -> usize + Sync> ValueFold for Slots<F> {
    type State = Vec<u64>;

    fn start(&self) -> Vec<u64> {
        vec![0; self.slots]
    }

    fn add(&self, sums: &mut Vec<u64>, values: impl Iterator<Item = (f64, u64)>) {
        values.for_each(|(value, weight)| sums[(self.slot)(value)] += weight);
    }
}
