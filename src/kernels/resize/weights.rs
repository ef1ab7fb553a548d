//! The weights of a resampling along one axis. The CPU and all GPUs use the same ones.
//!
//! As in Pillow, the filter is stretched by the scale when the axis becomes shorter, so that no sample is skipped, and
//! the weights at the ends of the axis are divided by their sum.

use std::{f64::consts::PI, ops::Range};

use serde::Serialize;

/// The filter that weighs the samples around a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Interpolation {
    /// The nearest sample.
    Nearest,
    /// Mean of the samples that a result covers.
    Area,
    /// Triangle, 2 samples wide.
    Linear,
    /// Cubic with a = -1/2 (Keys 1981), 4 samples wide.
    Cubic,
    /// Sinc with a window of sinc, 6 samples wide.
    Lanczos3,
}

impl Interpolation {
    /// Distance from the centre from which on the filter is 0, in samples of the result or the input, whichever are
    /// farther apart.
    fn support(self) -> f64 {
        match self {
            Self::Nearest | Self::Area => 0.5,
            Self::Linear => 1.0,
            Self::Cubic => 2.0,
            Self::Lanczos3 => 3.0,
        }
    }

    fn value(self, x: f64) -> f64 {
        let distance = x.abs();
        let sinc = |x: f64| if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) };
        match self {
            Self::Nearest | Self::Area => f64::from(x > -0.5 && x <= 0.5),
            Self::Linear => (1.0 - distance).max(0.0),
            Self::Cubic if distance < 1.0 => (1.5 * distance - 2.5) * distance * distance + 1.0,
            Self::Cubic if distance < 2.0 => {
                ((-0.5 * distance + 2.5) * distance - 4.0) * distance + 2.0
            }
            Self::Lanczos3 if distance < 3.0 => sinc(distance) * sinc(distance / 3.0),
            Self::Cubic | Self::Lanczos3 => 0.0,
        }
    }
}

/// Bits of the fraction of integer weights. The magnitudes of the weights of a result sum to less than 2, so that a
/// weighted sum of samples of 12 bits fits 31 bits and a sign.
pub const FRACTION: u32 = 18;

/// The samples that each position of the result depends on, and their weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// Positions of the samples.
    pub windows: Vec<Range<usize>>,
    /// The weights of each window; they sum to 1.
    pub weights: Vec<Vec<f64>>,
}

impl Weights {
    /// The positions that result `position` of `to` depends on, and its weights, for an axis of `from` samples.
    fn window(
        filter: Interpolation,
        [from, to]: [usize; 2],
        position: usize,
    ) -> (Range<usize>, Vec<f64>) {
        if filter == Interpolation::Nearest {
            // Between two samples, the second.
            let nearest = (2 * position + 1) * from / (2 * to);
            return (nearest..nearest + 1, vec![1.0]);
        }
        let scale = from as f64 / to as f64;
        let centre = (position as f64 + 0.5) * scale;
        let stretch = scale.max(1.0);
        let support = filter.support() * stretch;
        let first = ((centre - support + 0.5).max(0.0) as usize).min(from - 1);
        let end = ((centre + support + 0.5) as usize).clamp(first + 1, from);
        let value = |at: usize| filter.value((at as f64 - centre + 0.5) / stretch);
        let mut weights: Vec<f64> = (first..end).map(value).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= sum);
        (first..end, weights)
    }

    /// The weights of the results `output` of `to`, of an axis of `from` samples.
    pub fn new(filter: Interpolation, lengths: [usize; 2], output: Range<usize>) -> Self {
        let all = output.map(|position| Self::window(filter, lengths, position));
        let (windows, weights) = all.unzip();
        Self { windows, weights }
    }

    /// The samples that any of the results `output` depends on, and those that these cover, so that neighbouring ranges
    /// leave no gap.
    pub fn range(
        filter: Interpolation,
        lengths: [usize; 2],
        output: &Range<usize>,
    ) -> Range<usize> {
        if output.is_empty() {
            return 0..0;
        }
        let [from, to] = lengths;
        let first = Self::window(filter, lengths, output.start).0.start;
        let end = Self::window(filter, lengths, output.end - 1).0.end;
        let edge = |position: usize| position as f64 * from as f64 / to as f64;
        let covered = (edge(output.start) as usize, (edge(output.end).ceil() as usize).min(from));
        first.min(covered.0)..end.max(covered.1)
    }

    /// Number of weights in the longest window.
    pub fn taps(&self) -> usize {
        self.windows.iter().map(ExactSizeIterator::len).max().unwrap_or(0)
    }

    /// The same for samples of which the first `skipped` are not in memory.
    pub fn shifted(mut self, skipped: usize) -> Self {
        for window in &mut self.windows {
            *window = window.start - skipped..window.end - skipped;
        }
        self
    }

    /// The same with weights of 0, so that windows have a multiple of 4 samples, if there are as many as `length`. Vectors
    /// of 4 leave no rest then: images take 0.6 to 0.9 times as long along x.
    pub fn padded(mut self, length: usize) -> Self {
        for (window, weights) in self.windows.iter_mut().zip(&mut self.weights) {
            let taps = window.len().next_multiple_of(4);
            if let Some(last) = length.checked_sub(taps) {
                let start = window.start.min(last);
                weights.splice(..0, vec![0.0; window.start - start]);
                weights.resize(taps, 0.0);
                *window = start..start + taps;
            }
        }
        self
    }

    /// The weights as integers that sum to exactly 2^[`FRACTION`] in each window.
    ///
    /// Each is a difference of rounded cumulative sums, so that the sum of any run of weights has an error of at most
    /// one unit.
    pub fn integers(&self) -> Vec<Vec<i32>> {
        let scale = f64::from(1 << FRACTION);
        let rounded = |weights: &Vec<f64>| {
            let (mut sum, mut before) = (0.0, 0);
            let mut integers: Vec<i32> = weights
                .iter()
                .map(|weight| {
                    sum += weight;
                    let after = (sum * scale).round() as i32;
                    after - std::mem::replace(&mut before, after)
                })
                .collect();
            // The sum in f64 may differ from 1 in its last bits, which rounding hides.
            let largest = (0..integers.len()).max_by_key(|&at| integers[at]);
            largest.into_iter().for_each(|at| integers[at] += (1 << FRACTION) - before);
            integers
        };
        self.weights.iter().map(rounded).collect()
    }
}
