//! Statistics of a component, such as mean, percentiles and entropy.

use serde::{Deserialize, Serialize};

use super::{
    bins::{Bins, type_range},
    counts::Counts,
    moments::Moments,
    value_counts::ValueCounts,
};
use crate::data::dtype::Dtype;

/// Statistics of all finite samples, also outside the bins, in units of the stored samples.
///
/// For channels of 8 and 16 bits, all are exact. For other samples, count, minimum, maximum, mean, deviation and
/// clipped shares are exact to double precision. The rest have the precision of [`ValueCounts`], which may drop low
/// bits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Number of finite samples; of weighted pixels the sum of alpha in steps.
    #[serde(serialize_with = "serialize_integer_if_whole")]
    pub count: f64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// The 50th percentile.
    pub median: f64,
    /// Standard deviation of the whole population.
    pub deviation: f64,
    /// Most frequent value; the smallest one if there are several.
    pub mode: f64,
    /// Shannon entropy of the values, in bits. For the luminance of 8-bit and 16-bit pixels, values are rounded to the
    /// nearest sample first.
    pub entropy: f64,
    /// Share of all samples at or below the lower end of the bins.
    pub clipped_low: f64,
    /// Share of all samples at or above the upper end of the bins.
    pub clipped_high: f64,
    /// Each requested percentage with its percentile (nearest-rank method).
    pub percentiles: Vec<(f64, f64)>,
}

fn serialize_integer_if_whole<S: serde::Serializer>(
    value: &f64,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let is_whole = value.fract() == 0.0 && value.abs() < 2f64.powi(53);
    match is_whole && serializer.is_human_readable() {
        true => serializer.serialize_i64(*value as i64),
        false => serializer.serialize_f64(*value),
    }
}

impl Statistics {
    /// The statistics of `counts`; `None` if no sample is finite. `measured`, with the same bins, is needed if the counts
    /// have no levels. If `rounds`, the entropy is that of values rounded to integers.
    pub fn new(
        counts: &Counts,
        bins: &Bins,
        dtype: Dtype,
        measured: Option<(Moments, ValueCounts)>,
        rounds: bool,
        percentages: &[f64],
    ) -> Option<Self> {
        let (moments, levels) = match measured {
            Some((moments, values)) => {
                let levels = values.levels(moments.min);
                (moments, levels)
            }
            None => {
                let min = type_range(dtype).map_or(0.0, |(min, _)| min);
                let all = counts.levels.as_ref()?.iter().zip(0..);
                let all = all.map(|(&n, level)| (min + f64::from(level), n));
                let levels: Vec<_> = all.filter(|&(_, n)| n > 0).collect();
                (Moments::from_bins(levels.iter().copied(), bins.low, bins.high), levels)
            }
        };
        if moments.count == 0 {
            return None;
        }
        let percentile = |percentage: f64| {
            let mut left = rank(percentage, moments.count);
            let level = levels.iter().find(|(_, n)| {
                left = left.saturating_sub(*n);
                left == 0
            });
            level.map_or(f64::NAN, |level| level.0)
        };
        let mode = levels.iter().rev().max_by_key(|(_, n)| n);
        let [mean, deviation] = moments.mean_and_deviation();
        let all = counts.total() as f64;
        Some(Self {
            count: moments.count as f64,
            min: moments.min,
            max: moments.max,
            mean,
            median: percentile(50.0),
            deviation,
            mode: mode.map_or(f64::NAN, |mode| mode.0),
            entropy: entropy(&levels, rounds),
            clipped_low: (counts.below + moments.at_low) as f64 / all,
            clipped_high: (counts.above + moments.at_high) as f64 / all,
            percentiles: percentages.iter().map(|&p| (p, percentile(p))).collect(),
        })
    }
}

/// The rank, counted from 1, of a percentile among `count` samples in ascending order (nearest-rank method).
pub fn rank(percentage: f64, count: u64) -> u64 {
    ((percentage * count as f64 / 100.0).ceil() as u64).clamp(1, count.max(1))
}

/// -sum p log2 p over values in ascending order, rounded to the nearest integer if `rounds`.
fn entropy(levels: &[(f64, u64)], rounds: bool) -> f64 {
    let total = levels.iter().map(|&(_, n)| n).sum::<u64>() as f64;
    let level = |value: f64| if rounds { (value + 0.5).floor() } else { value };
    let groups = levels.chunk_by(|a, b| level(a.0) == level(b.0));
    let term = |group: &[(f64, u64)]| {
        let p = group.iter().map(|&(_, n)| n).sum::<u64>() as f64 / total;
        -p * p.log2()
    };
    groups.map(term).sum::<f64>().max(0.0)
}
