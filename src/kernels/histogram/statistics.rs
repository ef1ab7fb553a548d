//! Statistics of a component: mean, percentiles, entropy and the like.

use serde::Serialize;

use super::{
    bins::{Bins, type_range},
    counts::Counts,
    exact::Values,
    moments::Moments,
};
use crate::data::dtype::Dtype;

/// Statistics of the samples inside the bins' range, in units of the stored samples.
///
/// For channels of 8 and 16 bits all are exact. For other samples they are exact given [`Values`], as far as these tell
/// values apart. Without [`Values`], count, minimum, maximum, mean, deviation and clipped shares are exact to double
/// precision; percentiles are interpolated in their bin, the mode is the centre of the fullest bin, and the entropy is
/// that of the bins.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// Samples inside the range; of weighted pixels the sum of alpha in steps.
    #[serde(serialize_with = "as_integer_where_it_is_one")]
    pub count: f64,
    /// Least sample.
    pub min: f64,
    /// Greatest sample.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// The 50th percentile.
    pub median: f64,
    /// Standard deviation of the whole population.
    pub deviation: f64,
    /// Most frequent value; of several, the least.
    pub mode: f64,
    /// Shannon entropy of the values, in bits.
    pub entropy: f64,
    /// Share of all samples at or below the lower end of the range.
    pub clipped_low: f64,
    /// Share of all samples at or above the upper end of the range.
    pub clipped_high: f64,
    /// Each requested percentage with the least value that at least so many percent of the samples do not exceed.
    pub percentiles: Vec<(f64, f64)>,
}

fn as_integer_where_it_is_one<S: serde::Serializer>(
    value: &f64,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value.fract() == 0.0 && value.abs() < 2f64.powi(53) {
        true => serializer.serialize_i64(*value as i64),
        false => serializer.serialize_f64(*value),
    }
}

impl Statistics {
    /// The statistics of `counts`. `moments`, over the same range, are needed where the counts hold
    /// no levels; `values` make them exact there. Nothing when no sample is in the range.
    pub fn new(
        counts: &Counts,
        bins: &Bins,
        dtype: Dtype,
        moments: Option<&Moments>,
        values: Option<&Values>,
        percentages: &[f64],
    ) -> Option<Self> {
        let least = type_range(dtype).map_or(0.0, |(least, _)| least);
        let levels: Option<Vec<(f64, u64)>> = counts.levels.as_ref().map(|levels| {
            let values = levels.iter().enumerate().map(|(i, &n)| (least + i as f64, n));
            values.filter(|&(value, _)| value >= bins.low && value <= bins.high).collect()
        });
        let moments = match (&levels, moments) {
            (Some(levels), _) => Moments::of(levels.iter().copied(), bins.low, bins.high),
            (None, Some(moments)) => moments.clone(),
            (None, None) => return None,
        };
        let levels = levels.or_else(|| values.map(|values| values.levels(moments.min)));
        if moments.count == 0 {
            return None;
        }
        let count = moments.count as f64;
        let percentile = |percentage: f64| match &levels {
            Some(levels) => level_percentile(levels, moments.count, percentage),
            None => bin_percentile(counts, bins, percentage).clamp(moments.min, moments.max),
        };
        let mode = match &levels {
            Some(levels) => fullest(levels.iter().map(|&(_, n)| n)).map(|i| levels[i].0),
            None => fullest(counts.bins.iter().copied()).map(|k| bins.centre(k)),
        };
        let all = counts.total() as f64;
        let [sum, squares] = moments.above_low();
        let offset = sum / count;
        Some(Self {
            count,
            min: moments.min,
            max: moments.max,
            mean: bins.low + offset,
            median: percentile(50.0),
            deviation: (squares / count - offset * offset).max(0.0).sqrt(),
            mode: mode.unwrap_or(f64::NAN),
            entropy: match &levels {
                Some(levels) => entropy(levels.iter().map(|&(_, n)| n)),
                None => entropy(counts.bins.iter().copied()),
            },
            clipped_low: (counts.below + moments.at_low) as f64 / all,
            clipped_high: (counts.above + moments.at_high) as f64 / all,
            percentiles: percentages.iter().map(|&p| (p, percentile(p))).collect(),
        })
    }
}

/// The nearest-rank percentile: the least level that `percentage` of `count` samples do not exceed.
fn level_percentile(levels: &[(f64, u64)], count: u64, percentage: f64) -> f64 {
    let rank = (percentage / 100.0 * count as f64).ceil().max(1.0) as u64;
    let mut seen = 0;
    for &(value, n) in levels {
        seen += n;
        if seen >= rank {
            return value;
        }
    }
    levels.last().map_or(f64::NAN, |last| last.0)
}

/// The percentile inside its bin, on a straight line from edge to edge.
fn bin_percentile(counts: &Counts, bins: &Bins, percentage: f64) -> f64 {
    let rank = percentage / 100.0 * counts.in_range() as f64;
    let mut seen = 0.0;
    for (k, &n) in counts.bins.iter().enumerate().filter(|&(_, &n)| n > 0) {
        let n = n as f64;
        if seen + n >= rank {
            let part = ((rank - seen) / n).clamp(0.0, 1.0);
            return bins.edge(k) + part * (bins.edge(k + 1) - bins.edge(k));
        }
        seen += n;
    }
    bins.high
}

fn fullest(counts: impl Iterator<Item = u64>) -> Option<usize> {
    let most = counts.enumerate().max_by_key(|&(i, n)| (n, std::cmp::Reverse(i)));
    most.filter(|&(_, n)| n > 0).map(|(i, _)| i)
}

/// -sum p log2 p over the counts that are not 0.
fn entropy(counts: impl Iterator<Item = u64> + Clone) -> f64 {
    let total = counts.clone().sum::<u64>() as f64;
    let term = |n: u64| {
        let p = n as f64 / total;
        -p * p.log2()
    };
    counts.filter(|&n| n > 0).map(term).sum::<f64>().max(0.0)
}
