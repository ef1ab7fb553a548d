//! Sums over the samples of a component, for its statistics. They are exact, so that they do not depend on how the
//! samples are divided.

use serde::{Deserialize, Serialize};

use super::{
    counts::{Component, Pixels},
    cpu::values::fold_values,
};
use crate::data::exact_sum::ExactSum;

/// Sums over the finite samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// Number of samples.
    pub count: u64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
    /// The sum of the samples, if the bins have a lower end.
    sum: ExactSum,
    /// The sum of their squares.
    squares: ExactSum,
    /// Samples exactly at the lower end of the bins.
    pub(super) at_low: u64,
    /// Samples exactly at the upper end of the bins.
    pub(super) at_high: u64,
}

impl Default for Moments {
    /// The moments of no samples.
    fn default() -> Self {
        Self {
            count: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            sum: ExactSum::default(),
            squares: ExactSum::default(),
            at_low: 0,
            at_high: 0,
        }
    }
}

impl Moments {
    /// The moments of values with their counts. The bins are from `low` to `high`.
    pub(super) fn from_bins(values: impl Iterator<Item = (f64, u64)>, low: f64, high: f64) -> Self {
        let mut moments = Self::default();
        values.for_each(|(value, n)| moments.add(value, n, low, high));
        moments
    }

    /// Adds `n` samples of the same value if it is finite.
    #[inline(always)]
    fn add(&mut self, value: f64, n: u64, low: f64, high: f64) {
        if !value.is_finite() || n == 0 {
            return;
        }
        self.count += n;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        // Bins without a lower end are used to find minimum and maximum only.
        if low.is_finite() {
            self.sum.add_times(value, n);
            self.squares.add_square(value, n);
        }
        self.at_low += if value == low { n } else { 0 };
        self.at_high += if value == high { n } else { 0 };
    }

    /// The moments of both sets of samples.
    #[must_use]
    pub fn merged(mut self, other: Self) -> Self {
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

    /// The arithmetic mean and the standard deviation of the whole population, which is at least one sample.
    ///
    /// Both sums of this equation are exact; m is the mean rounded to f64:
    ///
    /// ```text
    /// variance = sum (v - m)^2 / n - (sum (v - m) / n)^2,    sum (v - m)^2 = sum v^2 - 2 m sum v + n m^2
    /// ```
    pub(super) fn mean_and_deviation(&self) -> [f64; 2] {
        let n = self.count as f64;
        let mean = (self.sum.value() / n).clamp(self.min, self.max);
        let (mut offset, mut squares) = (self.sum.clone(), self.squares.clone());
        offset.add_times(-mean, self.count);
        squares.add_product(&self.sum, -2.0 * mean);
        squares.add_square(mean, self.count);
        let variance = squares.value() / n - (offset.value() / n).powi(2);
        [mean, if variance < 0.0 { 0.0 } else { variance.sqrt() }]
    }
}

/// The moments of the finite values of one component, which is counted in bins from `low` to `high`. If `weighted`, values
/// are weighted by alpha, as the counts are.
///
/// # Panics
/// If the pixels lack the component.
pub fn moments(
    pixels: &Pixels,
    component: Component,
    low: f64,
    high: f64,
    weighted: bool,
) -> Moments {
    let add = |moments: &mut Moments, value, n| moments.add(value, n, low, high);
    let parts = fold_values(pixels, component, weighted, Moments::default, add, |_| ());
    parts.into_iter().fold(Moments::default(), Moments::merged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{noise::Noise, samples::Samples};

    /// Wide ranges, large offsets and both signs against two passes over differences from the exact mean in i128.
    #[test]
    fn deviations_do_not_cancel() {
        let mut noise = Noise(4);
        for (offset, unit) in [(0, 1.0), (4_000_000_000, 1.0), (-1 << 52, 1.0), (7, 2f64.powi(-40))]
        {
            let integers: Vec<i128> =
                (0..1000).map(|_| i128::from(noise.next() >> 58) + offset).collect();
            let values = integers.iter().map(|&n| (n as f64 * unit, 1));
            let found = Moments::from_bins(values, -1e30, 1e30).mean_and_deviation();
            // In units of 1 / 1000, in which the mean is an integer.
            let sum: i128 = integers.iter().sum();
            let squares: i128 = integers.iter().map(|n| (1000 * n - sum).pow(2)).sum();
            let expected = [sum as f64 / 1e3, (squares as f64 / 1e3).sqrt() / 1e3];
            for (found, expected) in found.into_iter().zip(expected) {
                let error = (found - expected * unit).abs();
                assert!(error <= 1e-15 * (expected * unit).abs(), "{found} {expected} {offset}");
            }
        }
        let constant = Moments::from_bins([(0.1, 3)].into_iter(), 0.0, 1.0);
        assert_eq!(constant.mean_and_deviation(), [0.1, 0.0]);
    }

    #[test]
    fn pixels_without_color_weigh_nothing() {
        let samples = Samples::F32(vec![0.25, 1.0, 0.75, 0.0, 0.5, 0.5]);
        let pixels = Pixels { samples, channels: 2 };
        let found = moments(&pixels, Component::Channel(0), 0.0, 1.0, true);
        assert_eq!((found.count, found.min, found.max), (65535 + 32768, 0.25, 0.5));
    }
}
