//! Counts in which a pixel counts as often as its alpha has steps, on every device.

use super::CHUNK;
use crate::{
    data::{dtype::Dtype, samples::Samples},
    kernels::histogram::{
        bins::Bins,
        counts::{Component, Counts, Pixels, alpha_unit},
    },
    parallel::Parallel,
};
use bytemuck::Pod;

/// The weighted counts of a component of pixels with alpha.
pub fn count(pixels: &Pixels, bins: &Bins, component: Component) -> Counts {
    let dtype = pixels.samples.dtype();
    let levels = match (component, dtype) {
        (Component::Channel(_), Dtype::U8 | Dtype::U16) => Some(alpha_unit(dtype) as usize + 1),
        _ => None,
    };
    let find = bins.finder(1.0);
    let parts = values(pixels, component, |values| {
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

/// The value of one component in each pixel, and the pixel's alpha in steps of 1 / [`alpha_unit`], handed
/// to `consume` pixel by pixel, in parts that run side by side.
pub fn values<R: Send>(
    pixels: &Pixels,
    component: Component,
    consume: impl Fn(&mut dyn Iterator<Item = (f64, u64)>) -> R + Sync,
) -> Vec<R> {
    let channels = pixels.channels;
    let wide_steps = |alpha: f64| (alpha.clamp(0.0, 1.0) * 65535.0).round() as u64;
    let steps = |alpha: f32| wide_steps(alpha.into());
    match (component, &pixels.samples) {
        (Component::Channel(c), Samples::U8(s)) => {
            parts(s, channels, |p| p[c].into(), u64::from, consume)
        }
        (Component::Channel(c), Samples::U16(s)) => {
            parts(s, channels, |p| p[c].into(), u64::from, consume)
        }
        (Component::Channel(c), Samples::F32(s)) => {
            parts(s, channels, |p| p[c].into(), steps, consume)
        }
        (Component::Channel(c), Samples::F64(s)) => {
            parts(s, channels, |p| p[c], wide_steps, consume)
        }
        (Component::Luma(luma), Samples::U8(s)) => {
            parts(s, channels, luma.in_samples(255), u64::from, consume)
        }
        (Component::Luma(luma), Samples::U16(s)) => {
            parts(s, channels, luma.in_samples(65535), u64::from, consume)
        }
        (Component::Luma(luma), Samples::F32(s)) => {
            parts(s, channels, |pixel| luma.float(pixel).into(), steps, consume)
        }
        (Component::Luma(luma), Samples::F64(s)) => {
            parts(s, channels, |pixel| luma.float(pixel).into(), wide_steps, consume)
        }
        (_, samples) => unreachable!("no alpha in {}", samples.dtype()),
    }
}

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
    samples.chunks(CHUNK * channels).par_map(part)
}
