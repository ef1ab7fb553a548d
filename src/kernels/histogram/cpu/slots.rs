//! One component in any number of slots: levels of a 16-bit channel, binned luminance, binned values.

use super::{
    CHUNK,
    tally::{Tally, increment},
};
use crate::{
    data::{dtype::Dtype, number::Number},
    for_samples,
    kernels::histogram::{
        bins::Bins,
        counts::{Component, Pixels},
        luma::Luma,
        route::Route,
    },
    util::parallel::Parallel,
};
use bytemuck::Pod;

/// Counts the levels or slots of one component, as `route` states.
pub fn count(pixels: &Pixels, bins: &Bins, route: &Route) -> Vec<u64> {
    let channels = pixels.channels;
    match (route, &pixels.samples) {
        (Route::U16Levels(channel), samples) => {
            let samples: &[u16] = bytemuck::cast_slice(samples.as_bytes());
            count_slots(samples, channels, 1 << 16, |pixel| usize::from(pixel[*channel]))
        }
        (Route::Luma(luma) | Route::Values(Component::Luma(luma)), samples) => {
            for_samples!(samples, samples => count_luma(samples, channels, bins, *luma))
        }
        (Route::Values(Component::Channel(channel)), samples) => {
            let find = bins.slot_finder(1.0);
            for_samples!(samples, values => {
                count_slots(values, channels, bins.slots(), |pixel| {
                    #[allow(clippy::cast_lossless, clippy::unnecessary_cast)]
                    find.slot(pixel[*channel] as f64)
                })
            })
        }
        (route, samples) => unreachable!("{route:?} of {}", samples.dtype()),
    }
}

fn count_luma<T: Number + Into<f64>>(
    samples: &[T],
    channels: usize,
    bins: &Bins,
    luma: Luma,
) -> Vec<u64> {
    if T::DTYPE.is_float() {
        let find = bins.slot_finder(1.0);
        let slot = |pixel: &[T]| find.slot(luma.float(pixel).into());
        return count_slots(samples, channels, bins.slots(), slot);
    }
    let (value, unit) = luma.integer::<T>();
    let max: u32 = match T::DTYPE {
        Dtype::U8 => 255,
        Dtype::U16 => 65535,
        _ => 0,
    };
    if max == 0 || (bins.low, bins.high) != (0.0, f64::from(max)) {
        let find = bins.slot_finder(unit);
        return count_slots(samples, channels, bins.slots(), |pixel| find.slot(value(pixel)));
    }
    // Over the whole range, the bin is v * count / d in integers. The inverse is too large by less than 1, so the
    // quotient by less than v / 2^64; v and d are below 2^30.
    let d = unit as u128 * u128::from(max);
    let inverse = ((bins.count as u128) << 64).div_ceil(d);
    let last = bins.count - 1;
    count_slots(samples, channels, bins.slots(), |pixel| {
        let bin = (u128::from(value(pixel) as u64) * inverse) >> 64;
        (bin as usize).min(last) + 1
    })
}

/// Counts the slot of every pixel.
fn count_slots<T: Pod + Sync>(
    samples: &[T],
    channels: usize,
    slots: usize,
    slot: impl Fn(&[T]) -> usize + Sync,
) -> Vec<u64> {
    let count_chunk = |tally: &mut Tally<2>, chunk: &[T]| {
        let (low, sums) = tally.slices();
        let mut pairs = chunk.chunks_exact(2 * channels);
        for pair in &mut pairs {
            increment(low, sums, slot(&pair[..channels]), 0);
            increment(low, sums, slot(&pair[channels..]), 1);
        }
        for pixel in pairs.remainder().chunks_exact(channels) {
            increment(low, sums, slot(pixel), 0);
        }
    };
    let tallies = samples.chunks(CHUNK * channels).par_fold(|| Tally::new(slots), count_chunk);
    Tally::total(tallies, slots)
}
