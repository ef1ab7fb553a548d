//! Sums over the samples of a component, for its statistics. Terms are added exactly, so that the sums do not depend on
//! how the samples are divided.

use serde::{Deserialize, Serialize};

use super::{
    counts::{Component, Pixels},
    cpu,
    luma::Luma,
};
use crate::{
    data::{bits, exact_sum::ExactSum, samples::Samples},
    for_samples,
    parallel::Parallel,
};

/// Pixels that a thread takes at a time.
const CHUNK: usize = 1 << 16;

/// Sums over samples inside a range; samples outside and NaN are left out.
///
/// The sums are of numbers v in another unit: a sample lies `v / unit + shift` above the lower end of the range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// Samples inside.
    pub count: u64,
    /// Least of them.
    #[serde(with = "bits")]
    pub min: f64,
    /// Greatest of them.
    #[serde(with = "bits")]
    pub max: f64,
    /// The sum of v, where the range has a lower end.
    sum: ExactSum,
    /// The sum of the squares of v.
    squares: ExactSum,
    #[serde(with = "bits")]
    unit: f64,
    #[serde(with = "bits")]
    shift: f64,
    /// Samples exactly at the lower end.
    pub(super) at_low: u64,
    /// Samples exactly at the upper end.
    pub(super) at_high: u64,
}

impl Default for Moments {
    /// Those of no sample.
    fn default() -> Self {
        Self {
            count: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            sum: ExactSum::default(),
            squares: ExactSum::default(),
            unit: 1.0,
            shift: 0.0,
            at_low: 0,
            at_high: 0,
        }
    }
}

impl Moments {
    /// The sum of the distances of samples from the range's lower end, and the sum of their squares.
    pub(super) fn above_low(&self) -> [f64; 2] {
        let &Self { unit, shift, .. } = self;
        let count = self.count as f64;
        let (sum, squares) = (self.sum.value() / unit, self.squares.value() / (unit * unit));
        [sum + shift * count, squares + 2.0 * shift * sum + shift * shift * count]
    }

    pub(super) fn of(values: impl Iterator<Item = (f64, u64)>, low: f64, high: f64) -> Self {
        let mut m = Self::default();
        let inside =
            |&(value, n): &(f64, u64)| value >= low && value <= high && value.is_finite() && n > 0;
        for (value, n) in values.filter(inside) {
            m.count += n;
            m.min = m.min.min(value);
            m.max = m.max.max(value);
            // A range without a lower end serves to find the ends of the data: no sums are wanted.
            if low.is_finite() {
                let above = value - low;
                m.sum.add(above * n as f64);
                m.squares.add(above * above * n as f64);
            }
            m.at_low += if value == low { n } else { 0 };
            m.at_high += if value == high { n } else { 0 };
        }
        m
    }

    /// The same moments with sums in units of the samples.
    fn in_samples(self) -> Self {
        let [sum, squares] = self.above_low();
        let mut same = Self { unit: 1.0, shift: 0.0, ..self };
        (same.sum, same.squares) = (ExactSum::default(), ExactSum::default());
        same.sum.add(sum);
        same.squares.add(squares);
        same
    }

    /// The moments of two sets together.
    pub fn and(mut self, other: Self) -> Self {
        if self.count == 0 || other.count == 0 {
            return if self.count == 0 { other } else { self };
        }
        let mut other = other;
        if (self.unit, self.shift) != (other.unit, other.shift) {
            // As grey values and luminances have.
            (self, other) = (self.in_samples(), other.in_samples());
        }
        self.sum.add_sum(&other.sum);
        self.squares.add_sum(&other.squares);
        Self {
            count: self.count + other.count,
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            at_low: self.at_low + other.at_low,
            at_high: self.at_high + other.at_high,
            ..self
        }
    }
}

/// The moments of one component's values from `low` to `high`, weighted by alpha as the counts are. The
/// sums are the same run after run.
///
/// # Panics
/// When there is no such component, for which counting fails.
pub fn moments(
    pixels: &Pixels,
    component: Component,
    low: f64,
    high: f64,
    weighted: bool,
) -> Moments {
    if weighted && matches!(pixels.channels, 2 | 4) {
        let parts =
            cpu::weighted::values(pixels, component, |values| Moments::of(values, low, high));
        return parts.into_iter().fold(Moments::default(), Moments::and);
    }
    fn chunks<T: Sync>(
        samples: &[T],
        channels: usize,
        value: impl Fn(&[T]) -> f64 + Sync,
        [low, high]: [f64; 2],
    ) -> Moments {
        let parts = samples.chunks(channels * CHUNK).par_map(|chunk| {
            let values = chunk.chunks_exact(channels).map(|pixel| (value(pixel), 1));
            Moments::of(values, low, high)
        });
        parts.into_iter().fold(Moments::default(), Moments::and)
    }
    let range = [low, high];
    let channels = pixels.channels;
    match (component, &pixels.samples) {
        (Component::Channel(channel), samples) => for_samples!(samples, values => {
            #[allow(clippy::cast_lossless, clippy::unnecessary_cast)]
            chunks(values, channels, |pixel| pixel[channel] as f64, range)
        }),
        (Component::Luma(luma), Samples::U8(samples)) => {
            luminances(samples, channels, luma, 255, range)
        }
        (Component::Luma(luma), Samples::U16(samples)) => {
            luminances(samples, channels, luma, 65535, range)
        }
        (Component::Luma(luma), samples) => {
            let values = luma.float_plane(samples, channels);
            chunks(&values, 1, |value| value[0].into(), range)
        }
    }
}

/// The moments of the luminances of integer pixels whose greatest sample is `max`: sums of integers, in
/// samples' units only at the end.
fn luminances<T: Copy + Into<u32> + Sync>(
    samples: &[T],
    channels: usize,
    luma: Luma,
    max: u32,
    [low, high]: [f64; 2],
) -> Moments {
    let (value, unit) = luma.integer(max);
    let in_samples = |value: u32| f64::from(value) / unit;
    let inside = [first(|v| in_samples(v) >= low), first(|v| in_samples(v) > high)];
    let [after_low, from_high] = [first(|v| in_samples(v) > low), first(|v| in_samples(v) >= high)];
    let parts = samples.chunks(channels * CHUNK).par_map(|chunk| {
        let mut sums = Sums { least: u32::MAX, ..Sums::default() };
        // Squares are below 2^60, and sums of 16 of them below 2^64.
        for pixels in chunk.chunks(channels * 16) {
            let (mut sum, mut squares) = (0, 0);
            for v in pixels.chunks_exact(channels).map(&value) {
                let wide = u64::from(v);
                if wide < inside[0] || wide >= inside[1] {
                    continue;
                }
                let above = wide - inside[0];
                sum += above;
                squares += above * above;
                sums.count += 1;
                sums.least = sums.least.min(v);
                sums.greatest = sums.greatest.max(v);
                sums.at_low += u64::from(wide < after_low);
                sums.at_high += u64::from(wide >= from_high);
            }
            sums.sum += sum;
            sums.squares += u128::from(squares);
        }
        sums
    });
    let Some(sums) = parts.into_iter().filter(|sums| sums.count > 0).reduce(Sums::and) else {
        return Moments::default();
    };
    // Sums count from the first integer inside, which lies above the range's lower end by `shift`.
    let shift = inside[0] as f64 / unit - if low.is_finite() { low } else { 0.0 };
    let mut moments = Moments {
        count: sums.count,
        min: in_samples(sums.least),
        max: in_samples(sums.greatest),
        unit,
        shift,
        at_low: sums.at_low,
        at_high: sums.at_high,
        ..Moments::default()
    };
    moments.sum.add_integer(sums.sum.into());
    moments.squares.add_integer(sums.squares);
    moments
}

/// The least u32 for which `is_so` is true, by bisection: it is true for all greater numbers, too. 2^32 where there is
/// none.
fn first(is_so: impl Fn(u32) -> bool) -> u64 {
    let (mut from, mut to) = (0, 1 << 32);
    while from < to {
        let middle = (from + to) / 2;
        match is_so(middle as u32) {
            true => to = middle,
            false => from = middle + 1,
        }
    }
    from
}

/// Moments of integers.
#[derive(Clone, Copy, Default)]
struct Sums {
    count: u64,
    least: u32,
    greatest: u32,
    sum: u64,
    squares: u128,
    at_low: u64,
    at_high: u64,
}

impl Sums {
    fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            least: self.least.min(other.least),
            greatest: self.greatest.max(other.greatest),
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
            at_low: self.at_low + other.at_low,
            at_high: self.at_high + other.at_high,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::noise::Noise;

    /// Integer sums against those of f64, for ranges that begin on, between and outside of values.
    #[test]
    fn luminances_have_the_moments_of_their_values() {
        let mut noise = Noise(4);
        let bytes = noise.bytes(3 * 70_000);
        let wide: Vec<u16> = bytemuck::pod_collect_to_vec(&noise.bytes(6 * 3_000));
        let ranges = [
            [0.0, 255.0],
            [17.0, 99.5],
            [-1000.0, 30.3],
            [f64::NEG_INFINITY, f64::INFINITY],
            [254.9, 70_000.0],
            [0.0, 0.0],
        ];
        for luma in [Luma::Bt709, Luma::Bt601, Luma::Linear] {
            for [low, high] in ranges {
                let close = |found: Moments, value: &mut dyn Iterator<Item = f64>| {
                    let naive = Moments::of(value.map(|v| (v, 1)), low, high);
                    let exact = |m: &Moments| (m.count, m.min, m.max, m.at_low, m.at_high);
                    assert_eq!(exact(&found), exact(&naive), "{luma:?} {low} {high}");
                    for (a, b) in found.above_low().into_iter().zip(naive.above_low()) {
                        if !low.is_finite() {
                            break;
                        }
                        assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} {b} {luma:?} {low} {high}");
                    }
                };
                let value = luma.in_samples(255);
                let found = luminances(&bytes, 3, luma, 255, [low, high]);
                close(found, &mut bytes.chunks_exact(3).map(value));
                let value = luma.in_samples(65535);
                let found = luminances(&wide, 3, luma, 65535, [low, high]);
                close(found, &mut wide.chunks_exact(3).map(value));
            }
        }
    }
}
