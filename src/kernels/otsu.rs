//! An isovalue from the data: Otsu's threshold (1979), which splits the samples' histogram into the
//! two classes whose means differ most, weighted by their sizes.

use super::{
    histogram::type_range,
    quantile::{self, DIGITS as BINS},
};
use crate::{
    data::{dtype::Dtype, samples::Samples},
    for_samples,
    util::parallel::Parallel,
};

/// The histogram of a volume, gathered part by part. Types of 8 and 16 bits have one bin per value. Other types need
/// two passes, the first one for their range.
#[derive(Clone, Debug)]
pub struct Otsu {
    low: f64,
    high: f64,
    /// Samples a bin; empty until the range is known.
    counts: Vec<u64>,
    exact: bool,
}

/// The least and the greatest finite sample; where there is none, the greatest number and the least.
pub fn extremes(samples: &Samples) -> [f64; 2] {
    let ranges = for_samples!(samples, values => values
    .chunks(1 << 16)
    .par_map(|chunk| chunk.iter().fold([f64::MAX, f64::MIN], |[low, high], &value| {
        #[allow(clippy::unnecessary_cast)]
        let value = value as f64;
        match value.is_finite() {
            true => [low.min(value), high.max(value)],
            false => [low, high],
        }
    })));
    let wider = |[low, high]: [f64; 2], part: [f64; 2]| [low.min(part[0]), high.max(part[1])];
    ranges.into_iter().fold([f64::MAX, f64::MIN], wider)
}

impl Otsu {
    /// For samples of type `dtype`.
    pub fn new(dtype: Dtype) -> Self {
        let exact = dtype.size() <= 2;
        let range = type_range(dtype).filter(|_| exact);
        let (low, high) = range.unwrap_or((f64::MAX, f64::MIN));
        Self { low, high, counts: vec![0; if exact { BINS } else { 0 }], exact }
    }

    /// Whether [`Otsu::range`] has to see all samples before [`Otsu::count`] does.
    pub fn needs_range(&self) -> bool {
        !self.exact
    }

    /// Widens the range to finite samples.
    pub fn range(&mut self, samples: &Samples) {
        let [low, high] = extremes(samples);
        (self.low, self.high) = (self.low.min(low), self.high.max(high));
    }

    /// Counts finite samples, each `times` times.
    pub fn count(&mut self, samples: &Samples, times: u64) {
        let (low, high, exact) = (self.low, self.high, self.exact);
        let scale = if exact { 1.0 } else { (BINS - 1) as f64 / (high - low) };
        self.counts.resize(BINS, 0);
        quantile::count(&mut self.counts, (samples, times), |value| {
            let bin = || (((value - low) * scale) as usize).min(BINS - 1);
            value.is_finite().then(bin)
        });
    }

    /// Whether no sample is finite.
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|&count| count == 0)
    }

    /// So many thresholds between one class more: those with the greatest variance between classes (Otsu 1979, for
    /// several thresholds). `None` when the samples have too few different values.
    ///
    /// With up to [`MOST_PLACES`] values, by dynamic programming over all of them (Liao, Chen and Chung 2001 have the
    /// sums); else over as many bins, and then each threshold moves to its best place between its neighbours until none
    /// does.
    pub fn thresholds(&self, thresholds: usize) -> Option<Vec<f64>> {
        let filled: Vec<usize> = (0..self.counts.len()).filter(|&i| self.counts[i] > 0).collect();
        if filled.len() <= thresholds {
            return None;
        }
        let sums = PrefixSums::of(&self.counts);
        let is_coarse = filled.len() > MOST_PLACES;
        let mut places = filled.clone();
        if is_coarse {
            let step = self.counts.len().div_ceil(MOST_PLACES);
            places = (0..self.counts.len()).step_by(step).collect();
        }
        places.push(self.counts.len());
        let mut cuts = sums.best_cuts(&places, thresholds);
        if is_coarse {
            sums.refine(&mut cuts);
        }
        // Midway between the values on both sides.
        let between = |&cut: &usize| {
            let above = filled.partition_point(|&bin| bin < cut);
            self.value((filled[above - 1] + filled[above] - 1) as f64 / 2.0)
        };
        Some(cuts[1..=thresholds].iter().map(between).collect())
    }

    /// The value at the upper end of a bin.
    fn value(&self, bin: f64) -> f64 {
        let step = if self.exact { 1.0 } else { (self.high - self.low) / (BINS - 1) as f64 };
        self.low + (bin + 0.5) * step
    }

    /// The threshold: midway between the two classes where bins between them are empty. `None` when all samples are
    /// equal.
    pub fn threshold(&self) -> Option<f64> {
        let total: u64 = self.counts.iter().sum();
        let moment = |(bin, &count): (usize, &u64)| bin as f64 * count as f64;
        let all: f64 = self.counts.iter().enumerate().map(moment).sum();
        let (mut count, mut sum) = (0u64, 0.0);
        let mut best: Option<(f64, usize, usize)> = None;
        for (bin, &here) in self.counts.iter().enumerate() {
            count += here;
            sum += bin as f64 * here as f64;
            if count == 0 || count == total {
                continue;
            }
            let (below, above) = (count as f64, (total - count) as f64);
            let apart = sum / below - (all - sum) / above;
            let between = below * above * apart * apart;
            match &mut best {
                Some((most, _, last)) if between == *most && here == 0 => *last = bin,
                Some((most, ..)) if between <= *most => {}
                _ => best = Some((between, bin, bin)),
            }
        }
        let (_, first, last) = best?;
        Some(self.value((first + last) as f64 / 2.0))
    }
}

/// The most values or bins of which all divisions into classes are tried.
const MOST_PLACES: usize = 1024;

/// For each bin, and behind the last: how many samples the bins before it have, and the sum of their bin numbers.
struct PrefixSums(Vec<[f64; 2]>);

impl PrefixSums {
    fn of(counts: &[u64]) -> Self {
        let mut sums = vec![[0.0; 2]];
        for (bin, &count) in counts.iter().enumerate() {
            let [before, moment] = sums[bin];
            sums.push([before + count as f64, moment + bin as f64 * count as f64]);
        }
        Self(sums)
    }

    /// The size of the class of bins `from` to `to - 1`, times its squared mean. The variance between classes is
    /// greatest where the sum of these weights is.
    fn weight(&self, from: usize, to: usize) -> f64 {
        let [count, moment] = std::array::from_fn(|i| self.0[to][i] - self.0[from][i]);
        if count == 0.0 { 0.0 } else { moment * moment / count }
    }

    /// The division into `thresholds + 1` classes that begin at some of `places`, the last of which is behind all bins:
    /// 0, the first bin of each further class, and the last place.
    fn best_cuts(&self, places: &[usize], thresholds: usize) -> Vec<usize> {
        let last = places.len() - 1;
        // By end of the classes so far: their greatest weight; and for each class, where it begins then.
        let mut best: Vec<f64> = (0..=last).map(|to| self.weight(places[0], places[to])).collect();
        let mut starts = Vec::new();
        for class in 1..=thresholds {
            let mut next = vec![f64::NEG_INFINITY; last + 1];
            let mut cuts = vec![0; last + 1];
            for to in class + 1..=last {
                for cut in class..to {
                    let sum = best[cut] + self.weight(places[cut], places[to]);
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
            cuts.push(class[*cuts.last().expect("one at least")]);
        }
        let mut cuts: Vec<usize> = cuts.iter().rev().map(|&cut| places[cut]).collect();
        cuts.insert(0, 0);
        cuts
    }

    /// Moves each cut to its best bin between its neighbours, until none moves.
    fn refine(&self, cuts: &mut [usize]) {
        /// Rounds at most: each improves the sum, and few are needed.
        const ROUNDS: usize = 100;
        for _ in 0..ROUNDS {
            let before = cuts.to_vec();
            for i in 1..cuts.len() - 1 {
                let (low, high) = (cuts[i - 1], cuts[i + 1]);
                let sum = |cut: &usize| self.weight(low, *cut) + self.weight(*cut, high);
                let better = (low + 1..high).max_by(|a, b| sum(a).total_cmp(&sum(b)));
                cuts[i] = better.unwrap_or(cuts[i]);
            }
            if cuts == before {
                break;
            }
        }
    }
}
