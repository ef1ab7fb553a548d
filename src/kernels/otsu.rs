//! Otsu's method (1979): thresholds that divide a histogram into classes with the maximum variance between their means.

use std::iter;

use super::{
    histogram::type_range,
    quantile::{self, DIGIT_VALUES as BINS},
};
use crate::{
    data::{dtype::Dtype, samples::Samples},
    for_samples,
    util::{memory, parallel::Parallel, simd},
};

/// The histogram of an input that is read block by block. Types of 8 and 16 bits have one bin per value. Other types
/// need two passes, the first one for their range.
#[derive(Clone, Debug)]
pub struct Otsu {
    low: f64,
    high: f64,
    /// Number of samples in each bin; empty until the range is known.
    counts: Vec<u64>,
    exact: bool,
}

/// Minimum and maximum of the finite samples. If there are none, [`f64::MAX`] and [`f64::MIN`].
pub fn extremes(samples: &Samples) -> [f64; 2] {
    /// Minima and maxima that do not wait for each other.
    const LANES: usize = 16;
    let none = [f64::MAX, f64::MIN];
    let wider = |[low, high]: [f64; 2], part: [f64; 2]| {
        [if part[0] < low { part[0] } else { low }, if part[1] > high { part[1] } else { high }]
    };
    let ranges = for_samples!(samples, values => values.chunks(1 << 16).par_map(|chunk| {
        let mut lanes = [none; LANES];
        simd::vectorize(
            #[inline(always)]
            || for values in chunk.chunks(LANES) {
                for (lane, &value) in lanes.iter_mut().zip(values) {
                    #[allow(clippy::unnecessary_cast)]
                    let value = value as f64;
                    *lane = wider(*lane, if value.is_finite() { [value; 2] } else { none });
                }
            },
        );
        lanes.into_iter().fold(none, wider)
    }));
    ranges.into_iter().fold(none, wider)
}

impl Otsu {
    /// An empty histogram of samples of type `dtype`.
    pub fn new(dtype: Dtype) -> Self {
        let exact = dtype.size() <= 2;
        let range = type_range(dtype).filter(|_| exact);
        let (low, high) = range.unwrap_or((f64::MAX, f64::MIN));
        let bins = if exact { (high - low) as usize + 1 } else { 0 };
        Self { low, high, counts: memory::filled(0, bins), exact }
    }

    /// Whether [`Otsu::widen_range`] has to see all samples before [`Otsu::count`] does.
    pub fn needs_range(&self) -> bool {
        !self.exact
    }

    /// Widens the range to finite samples.
    pub fn widen_range(&mut self, samples: &Samples) {
        let [low, high] = extremes(samples);
        (self.low, self.high) = (self.low.min(low), self.high.max(high));
    }

    /// Counts finite samples, each `times` times.
    pub fn count(&mut self, samples: &Samples, times: u64) {
        let (low, high, exact) = (self.low, self.high, self.exact);
        let scale = if exact { 1.0 } else { (BINS - 1) as f64 / (high - low) };
        if !exact {
            self.counts.resize(BINS, 0);
        }
        let last = self.counts.len() - 1;
        quantile::count(&mut self.counts, (samples, times), |value| {
            let bin = || (((value - low) * scale) as usize).min(last);
            value.is_finite().then(bin)
        });
    }

    /// Whether no sample has been counted.
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|&count| count == 0)
    }

    /// The `count` thresholds with the maximum variance between classes (Otsu 1979), midway between neighbouring
    /// classes. `None` if the samples have too few different values.
    ///
    /// Dynamic programming over the sums of Liao, Chen and Chung (2001) tries all divisions of up to [`MAX_CANDIDATES`]
    /// values. If there are more, it divides that number of bins, and then each threshold moves to its best bin between
    /// its neighbours, until none moves.
    pub fn thresholds(&self, count: usize) -> Option<Vec<f64>> {
        let filled: Vec<usize> = (0..self.counts.len()).filter(|&i| self.counts[i] > 0).collect();
        if filled.len() <= count {
            return None;
        }
        let sums = PrefixSums::new(filled.iter().map(|&bin| (bin, self.counts[bin])));
        let is_coarse = filled.len() > MAX_CANDIDATES;
        let step = if is_coarse { self.counts.len().div_ceil(MAX_CANDIDATES) } else { 1 };
        // More than 1024 bins lie in at least 17 of these steps, as many as 16 classes need.
        let is_new = |&at: &usize| at == 0 || filled[at] / step > filled[at - 1] / step;
        let mut candidates: Vec<usize> = (0..filled.len()).filter(is_new).collect();
        candidates.push(filled.len());
        let mut cuts = sums.best_cuts(&candidates, count);
        if is_coarse {
            sums.refine(&mut cuts);
        }
        // Midway between the values on both sides.
        let between = |&cut: &usize| self.value((filled[cut - 1] + filled[cut] - 1) as f64 / 2.0);
        Some(cuts[1..=count].iter().map(between).collect())
    }

    /// The value at the upper end of a bin.
    fn value(&self, bin: f64) -> f64 {
        let step = if self.exact { 1.0 } else { (self.high - self.low) / (BINS - 1) as f64 };
        self.low + (bin + 0.5) * step
    }
}

/// Maximum number of values or bins of which all divisions into classes are tried.
const MAX_CANDIDATES: usize = 1024;

/// The number of samples before each bin that is not empty and in all bins, and the sum of their bin numbers.
struct PrefixSums(Vec<[f64; 2]>);

impl PrefixSums {
    /// The sums of bins and their counts.
    fn new(bins: impl Iterator<Item = (usize, u64)>) -> Self {
        let add = |[before, moment]: &mut [f64; 2], (bin, count): (usize, u64)| {
            (*before, *moment) = (*before + count as f64, *moment + bin as f64 * count as f64);
            Some([*before, *moment])
        };
        Self(iter::once([0.0; 2]).chain(bins.scan([0.0; 2], add)).collect())
    }

    /// The size of the class of bins `from` to `to - 1`, times its squared mean. The variance between classes and the
    /// sum of these weights have their maximum at the same division. Bins are numbered without empty ones.
    fn weight(&self, from: usize, to: usize) -> f64 {
        let [count, moment] = std::array::from_fn(|i| self.0[to][i] - self.0[from][i]);
        if count == 0.0 { 0.0 } else { moment * moment / count }
    }

    /// The best division into `count + 1` classes: 0, the first bin of each further class, which is one of
    /// `candidates`, and the last candidate, which is the number of bins.
    fn best_cuts(&self, candidates: &[usize], count: usize) -> Vec<usize> {
        let last = candidates.len() - 1;
        // For each end of the classes so far, their maximum weight; and for each class, its start in that division.
        let mut best: Vec<f64> =
            (0..=last).map(|to| self.weight(candidates[0], candidates[to])).collect();
        let mut starts = Vec::new();
        for class in 1..=count {
            let mut next = memory::filled(f64::NEG_INFINITY, last + 1);
            let mut cuts = memory::filled(0, last + 1);
            // Only the last class ends at the last candidate.
            for to in if class == count { last } else { class + 1 }..=last {
                for cut in class..to {
                    let sum = best[cut] + self.weight(candidates[cut], candidates[to]);
                    if sum > next[to] {
                        (next[to], cuts[to]) = (sum, cut);
                    }
                }
            }
            best = next;
            starts.push(cuts);
        }
        let mut cuts = vec![last];
        for class in starts.iter().rev() {
            cuts.push(class[*cuts.last().expect("at least one")]);
        }
        let mut cuts: Vec<usize> = cuts.iter().rev().map(|&cut| candidates[cut]).collect();
        cuts.insert(0, 0);
        cuts
    }

    /// Moves each cut to its best bin between its neighbours, until none moves.
    fn refine(&self, cuts: &mut [usize]) {
        /// Maximum number of rounds. Each improves the sum, and few are needed.
        const MAX_ROUNDS: usize = 100;
        for _ in 0..MAX_ROUNDS {
            let before = cuts.to_vec();
            for i in 1..cuts.len() - 1 {
                let (low, high) = (cuts[i - 1], cuts[i + 1]);
                let sum = |cut| (self.weight(low, cut) + self.weight(cut, high), cut);
                let better = (low + 1..high).map(sum).max_by(|a, b| a.0.total_cmp(&b.0));
                cuts[i] = better.map_or(cuts[i], |(_, cut)| cut);
            }
            // A single cut has the same neighbours in each round.
            if cuts == before || cuts.len() == 3 {
                break;
            }
        }
    }
}
