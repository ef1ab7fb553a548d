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
/// need two passes, the first one for their range: 32-bit integers have one bin per value if their range has at most
/// 65,536 values; otherwise, there are 65,536 bins.
#[derive(Clone, Debug)]
pub struct Otsu {
    low: f64,
    high: f64,
    /// Number of samples in each bin; empty until the range is known.
    counts: Vec<u64>,
    dtype: Dtype,
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
        let range = type_range(dtype).filter(|_| dtype.size() <= 2);
        let (low, high) = range.unwrap_or((f64::MAX, f64::MIN));
        Self { low, high, counts: Vec::new(), dtype }
    }

    /// Whether [`Otsu::widen_range`] has to see all samples before [`Otsu::count`] does.
    pub fn needs_range(&self) -> bool {
        self.dtype.size() > 2
    }

    /// Widens the range to finite samples.
    pub fn widen_range(&mut self, samples: &Samples) {
        let [low, high] = extremes(samples);
        (self.low, self.high) = (self.low.min(low), self.high.max(high));
    }

    /// Whether each value has its own bin.
    fn is_exact(&self) -> bool {
        !self.dtype.is_float() && self.high - self.low < BINS as f64
    }

    /// Counts finite samples, each `times` times.
    pub fn count(&mut self, samples: &Samples, times: u64) {
        let is_exact = self.is_exact();
        let bins = if is_exact { (self.high - self.low) as usize + 1 } else { BINS };
        self.counts.resize(bins, 0);
        // Half the values, whose differences do not overflow.
        let (low, width) = (self.low / 2.0, self.high / 2.0 - self.low / 2.0);
        let scale = if is_exact { 2.0 } else { BINS as f64 / width };
        quantile::count(&mut self.counts, samples, times, |value| {
            let bin = || (((value / 2.0 - low) * scale) as usize).min(bins - 1);
            value.is_finite().then(bin)
        });
    }

    /// Whether no sample has been counted.
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|&count| count == 0)
    }

    /// The `count` thresholds with the maximum variance between classes (Otsu 1979), midway between neighbouring
    /// classes. Of several equally good divisions, that with the lowest last threshold is chosen, then that with the
    /// lowest threshold before it, and so on. `None` if the samples have too few different values.
    pub fn thresholds(&self, count: usize) -> Option<Vec<f64>> {
        let filled: Vec<usize> = (0..self.counts.len()).filter(|&i| self.counts[i] > 0).collect();
        if filled.len() <= count {
            return None;
        }
        let sums = PrefixSums::new(&filled, &self.counts);
        let between = |cut: usize| self.boundary((filled[cut - 1] + filled[cut] + 1) as f64 / 2.0);
        Some(sums.best_cuts(count).into_iter().map(between).collect())
    }

    /// The value between bin `bin - 1` and `bin`. A bin that holds one value extends 1/2 to both sides of it.
    fn boundary(&self, bin: f64) -> f64 {
        if self.is_exact() {
            return self.low + (bin - 0.5);
        }
        let share = bin / BINS as f64;
        self.low * (1.0 - share) + self.high * share
    }
}

/// The number of samples before each bin that is not empty and in all bins, and the sum of their bin numbers.
struct PrefixSums(Vec<(u64, u128)>);

impl PrefixSums {
    /// The sums of the bins `filled`.
    fn new(filled: &[usize], counts: &[u64]) -> Self {
        /// Maximum number of bits of the number of samples, with which the squares of all sums are below 2^128.
        const MAX_BITS: u32 = 47;
        let total: u128 = counts.iter().map(|&count| u128::from(count)).sum();
        let shift = (u128::BITS - total.leading_zeros()).saturating_sub(MAX_BITS);
        let add = |(before, moment): &mut (u64, u128), &bin: &usize| {
            let count = (counts[bin] >> shift).max(1);
            (*before, *moment) = (*before + count, *moment + bin as u128 * u128::from(count));
            Some((*before, *moment))
        };
        Self(iter::once((0, 0)).chain(filled.iter().scan((0, 0), add)).collect())
    }

    /// The size of the class of bins `from` to `to - 1`, and the square of its sum. Bins are numbered without empty ones.
    fn class(&self, from: usize, to: usize) -> (u128, u128) {
        let ((before, moment_before), (end, moment_end)) = (self.0[from], self.0[to]);
        let moment = moment_end - moment_before;
        (u128::from(end - before), moment * moment)
    }

    /// The size of the class of bins `from` to `to - 1`, times its squared mean, as a fixed-point number, rounded down.
    /// The variance between classes and the sum of these weights have their maximum at the same division.
    fn weight(&self, from: usize, to: usize) -> u128 {
        /// Fractional bits. Sums of weights are below 2^79.
        const FRACTION: u32 = 48;
        let (count, square) = self.class(from, to);
        let whole = square / count;
        (whole << FRACTION) + ((square - whole * count) << FRACTION) / count
    }

    /// Whether the exact sum of the weights of the first of two divisions is larger. Each has the bounds of its
    /// classes, from the last bin on.
    fn is_better(&self, divisions: [Vec<usize>; 2]) -> bool {
        /// Bits that are added to the quotients at a time.
        const DIGIT: u32 = 64;
        let mut parts = Vec::new();
        for (bounds, sign) in divisions.iter().zip([1, -1]) {
            parts.extend(bounds.windows(2).map(|ends| (self.class(ends[1], ends[0]), sign)));
        }
        // Different sums differ by at least the inverse of the product of all sizes. With one more bit for each class,
        // that exceeds the undivided remainders and the largest undecided difference.
        let bits: u32 = parts.iter().map(|((count, _), _)| count.ilog2() + 2).sum();
        let mut difference = 0i128;
        for _ in 0..=bits.div_ceil(DIGIT) {
            difference <<= DIGIT;
            for ((count, rest), sign) in &mut parts {
                difference += *sign * (*rest / *count) as i128;
                *rest = (*rest % *count) << DIGIT;
            }
            if difference.unsigned_abs() > parts.len() as u128 {
                return difference > 0;
            }
        }
        false
    }

    /// The best division into `count + 1` classes: the first bin of each class but the first.
    ///
    /// `best[to]` is the maximum weight of bins 0 to `to - 1` in some number of classes. One more class begins at the bin
    /// `cut < to` with the largest `best[cut] + weight(cut, to)`. This bin never decreases with `to`, since the weights
    /// fulfil the quadrangle inequality. So the bin for the middle `to` divides those that have to be tried for the
    /// others: n log n sums for each class (Wu, Optimal Quantization by Matrix Searching, 1991).
    fn best_cuts(&self, count: usize) -> Vec<usize> {
        let bins = self.0.len() - 1;
        let mut best: Vec<u128> =
            (0..=bins).map(|to| if to == 0 { 0 } else { self.weight(0, to) }).collect();
        let mut starts = Vec::new();
        for class in 1..=count {
            let mut next: Vec<u128> = memory::filled(0, bins + 1);
            let mut cuts: Vec<u32> = memory::filled(0, bins + 1);
            // Only the last class ends at the last bin.
            let first = if class == count { bins } else { class + 1 };
            let mut ranges = vec![(first..bins + 1, class..bins)];
            while let Some((ends, tried)) = ranges.pop() {
                if ends.is_empty() {
                    continue;
                }
                let to = usize::midpoint(ends.start, ends.end);
                let mut cut = tried.start;
                next[to] = best[cut] + self.weight(cut, to);
                let others = cut + 1..tried.end.min(to);
                for (start, before) in others.clone().zip(&best[others]) {
                    let sum = before + self.weight(start, to);
                    // The weights of `class + 1` classes are rounded down.
                    let error = class as u128 + 1;
                    let bounds =
                        |start| [vec![to, start], first_bins(&starts, start), vec![0]].concat();
                    if sum >= next[to] + error
                        || sum + error > next[to] && self.is_better([start, cut].map(bounds))
                    {
                        (next[to], cut) = (sum, start);
                    }
                }
                cuts[to] = cut as u32;
                ranges.push((ends.start..to, tried.start..cut + 1));
                ranges.push((to + 1..ends.end, cut..tried.end));
            }
            best = next;
            starts.push(cuts);
        }
        let mut cuts = first_bins(&starts, bins);
        cuts.reverse();
        cuts
    }
}

/// The first bin of each class but the first, from the last class on, of the best division of bins 0 to `to - 1`.
/// `starts` has that of the last class for each number of classes and each `to`.
fn first_bins(starts: &[Vec<u32>], mut to: usize) -> Vec<usize> {
    let before = |cuts: &Vec<u32>| {
        to = cuts[to] as usize;
        to
    };
    starts.iter().rev().map(before).collect()
}
