//! An isovalue from the data: Otsu's threshold (1979), which splits the samples' histogram into the
//! two classes whose means differ most, weighted by their sizes.

use crate::{
    data::{dtype::Dtype, samples::Samples},
    for_samples,
    parallel::Parallel,
};

/// Bins of the histogram: one a value for types of 8 and 16 bits.
const BINS: usize = 1 << 16;

/// The histogram of a volume, gathered part by part; types of more than 16 bits need two sweeps, the
/// first one for their range.
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
        let (low, high) = match dtype {
            Dtype::U8 => (0.0, 255.0),
            Dtype::I8 => (-128.0, 127.0),
            Dtype::U16 => (0.0, 65_535.0),
            Dtype::I16 => (-32_768.0, 32_767.0),
            _ => return Self { low: f64::MAX, high: f64::MIN, counts: Vec::new(), exact: false },
        };
        Self { low, high, counts: vec![0; BINS], exact: true }
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

    /// Counts finite samples.
    pub fn count(&mut self, samples: &Samples) {
        let (low, high, exact) = (self.low, self.high, self.exact);
        let scale = if exact { 1.0 } else { (BINS - 1) as f64 / (high - low) };
        let add = |counts: &mut [u64], value: f64| {
            if value.is_finite() {
                counts[(((value - low) * scale) as usize).min(BINS - 1)] += 1;
            }
        };
        self.counts.resize(BINS, 0);
        // A table for each task is more work than few samples are.
        if samples.len() < BINS {
            let counts = &mut self.counts[..];
            for_samples!(samples, values => values.iter().for_each(|&value| {
                #[allow(clippy::unnecessary_cast)]
                let value = value as f64;
                add(counts, value);
            }));
            return;
        }
        #[allow(clippy::unnecessary_cast)]
        let counts = for_samples!(samples, values => values
        .chunks(1 << 16)
        .par_fold(|| vec![0; BINS], |counts: &mut Vec<u64>, chunk| {
            chunk.iter().for_each(|&value| add(counts, value as f64));
        }));
        for counts in counts {
            self.counts.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }

    /// The threshold: midway between the two classes where bins between them are empty. Nothing
    /// when all samples are equal.
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
        let bin = (first + last) as f64 / 2.0 + 0.5;
        let step = if self.exact { 1.0 } else { (self.high - self.low) / (BINS - 1) as f64 };
        Some(self.low + bin * step)
    }
}
