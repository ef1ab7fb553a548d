//! One component in any number of slots: levels of a 16-bit channel, binned luminance, binned values.

use super::{
    CHUNK,
    tally::{Tally, increment},
};
use crate::{
    data::samples::Samples,
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
        (Route::Luma(luma), Samples::U8(samples)) => {
            count_luma(samples, channels, bins, *luma, 255)
        }
        (Route::Luma(luma), Samples::U16(samples)) => {
            count_luma(samples, channels, bins, *luma, 65535)
        }
        (Route::Values(Component::Luma(luma)), samples) => {
            let values = luma.float_plane(samples, channels);
            let find = bins.slot_finder(1.0);
            count_slots(&values, 1, bins.slots(), |value| find.slot(value[0].into()))
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

fn count_luma<T: Pod + Sync + Into<u32>>(
    samples: &[T],
    channels: usize,
    bins: &Bins,
    luma: Luma,
    max: u32,
) -> Vec<u64> {
    let (value, unit) = luma.integer(max);
    if (bins.low, bins.high) != (0.0, f64::from(max)) {
        let find = bins.slot_finder(unit);
        return count_slots(samples, channels, bins.slots(), |pixel| {
            find.slot(value(pixel).into())
        });
    }
    // Over the whole range, the bin is v * count / d in integers. The inverse is too large by less than 1, so the
    // quotient by less than v / 2^64; v and d are below 2^30.
    let d = unit as u128 * u128::from(max);
    let inverse = ((bins.count as u128) << 64).div_ceil(d);
    let last = bins.count - 1;
    count_slots(samples, channels, bins.slots(), |pixel| {
        let bin = (u128::from(value(pixel)) * inverse) >> 64;
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
