//! The weights of a resampling along one axis. The CPU and all GPUs use the same ones.
//!
//! As in Pillow, the filter is stretched by the scale when the axis becomes shorter, so that no sample is skipped, and
//! the weights at the ends of the axis are divided by their sum.

use std::{f64::consts::PI, ops::Range};

use serde::Serialize;

use crate::util::{error::Result, memory};

/// The filter that weighs the samples around a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Interpolation {
    /// The nearest sample.
    Nearest,
    /// Mean over the part of the axis that a result covers: each sample counts by its covered length.
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
            Self::Linear => (1.0 - distance).max(0.0),
            Self::Cubic if distance < 1.0 => (1.5 * distance - 2.5) * distance * distance + 1.0,
            Self::Cubic if distance < 2.0 => {
                ((-0.5 * distance + 2.5) * distance - 4.0) * distance + 2.0
            }
            Self::Lanczos3 if distance < 3.0 => sinc(distance) * sinc(distance / 3.0),
            Self::Cubic | Self::Lanczos3 => 0.0,
            Self::Nearest | Self::Area => unreachable!("its weights are ratios of integers"),
        }
    }
}

/// A resampling of one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisFilter {
    /// How samples are weighed.
    filter: Interpolation,
    from: usize,
    to: usize,
    /// Number of results after which the weights repeat, and the number of samples between them.
    period: [usize; 2],
}

impl AxisFilter {
    /// The filter from `from` to `to` samples; both are at least 1.
    pub fn new(filter: Interpolation, from: usize, to: usize) -> Self {
        let (mut divisor, mut rest) = (from, to);
        while rest > 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        Self { filter, from, to, period: [to / divisor, from / divisor] }
    }

    /// `position` * `factor` / `divisor`, rounded down and up.
    fn scaled(position: usize, factor: usize, divisor: usize) -> [usize; 2] {
        let (product, divisor) = (position as u128 * factor as u128, divisor as u128);
        [product / divisor, product.div_ceil(divisor)].map(|quotient| quotient as usize)
    }

    fn scale(self) -> f64 {
        self.from as f64 / self.to as f64
    }

    /// The centre of result `position`, relative to a sample that is also returned. Results a period apart have the
    /// same bits.
    fn centre(self, position: usize) -> (f64, usize) {
        let [period, step] = self.period;
        (((position % period) as f64 + 0.5) * self.scale(), position / period * step)
    }

    /// The samples that result `position` depends on.
    pub fn window(self, position: usize) -> Range<usize> {
        let Self { filter, from, to, .. } = self;
        match filter {
            Interpolation::Nearest => {
                // Between two samples, the second.
                let nearest = Self::scaled(2 * position + 1, from, 2 * to)[0];
                nearest..nearest + 1
            }
            Interpolation::Area => {
                Self::scaled(position, from, to)[0]..Self::scaled(position + 1, from, to)[1]
            }
            _ => {
                let (centre, origin) = self.centre(position);
                let support = filter.support() * self.scale().max(1.0);
                let at = |offset: f64| (origin as i64 + offset.floor() as i64).max(0) as usize;
                let first = at(centre - support + 0.5).min(from - 1);
                first..at(centre + support + 0.5).clamp(first + 1, from)
            }
        }
    }

    /// Stores the weights of `window`, the samples of result `position`, in `weights`. They sum to 1.
    fn weigh(self, position: usize, window: Range<usize>, weights: &mut [f64]) {
        let Self { filter, from, to, .. } = self;
        match filter {
            Interpolation::Nearest => weights.fill(1.0),
            Interpolation::Area => {
                // In units of 1 / `to` of a sample.
                let edge = |at: usize, unit: usize| at as u128 * unit as u128;
                let covered = [edge(position, from), edge(position + 1, from)];
                for (weight, at) in weights.iter_mut().zip(window) {
                    let overlap = covered[1].min(edge(at + 1, to)) - covered[0].max(edge(at, to));
                    *weight = overlap as f64 / from as f64;
                }
            }
            _ => {
                let (centre, origin) = self.centre(position);
                let stretch = self.scale().max(1.0);
                for (weight, at) in weights.iter_mut().zip(window) {
                    let at = (at as i64 - origin as i64) as f64;
                    *weight = filter.value((at - centre + 0.5) / stretch);
                }
                let sum: f64 = weights.iter().sum();
                weights.iter_mut().for_each(|weight| *weight /= sum);
            }
        }
    }

    /// Samples needed for the results `output`. Includes the samples that the results cover, so that the ranges of
    /// neighbouring blocks have no gap.
    pub fn range(self, output: &Range<usize>) -> Range<usize> {
        let Range { start, end } = *output;
        if output.is_empty() {
            return 0..0;
        }
        let first = self.window(start).start.min(Self::scaled(start, self.from, self.to)[0]);
        let last = self.window(end - 1).end.max(Self::scaled(end, self.from, self.to)[1]);
        first..last.min(self.from)
    }

    /// Number of samples in the longest window, or a few more.
    pub fn taps(self) -> usize {
        let width = match self.filter {
            Interpolation::Nearest => 1,
            // A mean covers parts of samples at both ends.
            filter => (2.0 * filter.support() * self.scale().max(1.0)).ceil() as usize + 1,
        };
        width.min(self.from).max(1)
    }
}

/// Bits of the fraction of integer weights.
pub const FRACTION: u32 = 18;

/// The samples that results depend on, and their weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// Positions of the samples of each result.
    pub windows: Vec<Range<usize>>,
    /// Length of a row of weights.
    pub stride: usize,
    /// A row for each result, with zeros at its end.
    pub weights: Vec<f64>,
}

impl Weights {
    /// The weights of the results `output`. Windows count from the first of the samples `loaded`, which are in memory.
    /// If `is_padded`, weights of 0 fill windows to a multiple of 4 samples where these are loaded. Vectors of 4 then
    /// have no remainder: images take 0.6 to 0.9 times as long along x.
    pub fn new(
        axis: AxisFilter,
        output: Range<usize>,
        loaded: &Range<usize>,
        is_padded: bool,
    ) -> Result<Self> {
        let group = if is_padded { 4 } else { 1 };
        let stride = axis.taps().next_multiple_of(group);
        let mut windows: Vec<Range<usize>> = memory::room(output.len())?;
        let mut weights: Vec<f64> = memory::zeros(output.len().saturating_mul(stride))?;
        let [period, step] = axis.period;
        for (number, position) in output.enumerate() {
            let window = axis.window(position);
            let taps = window.len().next_multiple_of(group);
            let padded = if taps <= loaded.len() {
                let start = window.start.min(loaded.end - taps);
                start..start + taps
            } else {
                window.clone()
            };
            let padded = padded.start - loaded.start..padded.end - loaded.start;
            let before = number.checked_sub(period).filter(|&before| {
                let moved = |range: &Range<usize>| range.start + step..range.end + step;
                moved(&axis.window(position - period)) == window
                    && moved(&windows[before]) == padded
            });
            let row = number * stride;
            match before {
                Some(before) => {
                    weights.copy_within(before * stride..(before + 1) * stride, row);
                }
                None => {
                    let first = row + window.start - loaded.start - padded.start;
                    let row = &mut weights[first..][..window.len()];
                    axis.weigh(position, window, row);
                }
            }
            windows.push(padded);
        }
        Ok(Self { windows, stride, weights })
    }

    /// The weights as integers that sum to exactly 2^`fraction` in each window.
    ///
    /// Each is a difference of rounded cumulative sums, so that the sum of any run of weights has an error of at most
    /// one unit.
    pub fn integers(&self, fraction: u32) -> Result<Vec<i32>> {
        let scale = f64::from(1 << fraction);
        let mut integers = memory::zeros(self.weights.len())?;
        let rows = integers.chunks_exact_mut(self.stride);
        for (integers, weights) in rows.zip(self.weights.chunks_exact(self.stride)) {
            let (mut sum, mut before) = (0.0, 0);
            for (integer, weight) in integers.iter_mut().zip(weights) {
                sum += weight;
                let after = (sum * scale).round() as i32;
                *integer = after - std::mem::replace(&mut before, after);
            }
            // The sum in f64 may differ from 1 in its last bits, which rounding hides.
            let largest = (0..integers.len()).max_by_key(|&at| integers[at]);
            largest.into_iter().for_each(|at| integers[at] += (1 << fraction) - before);
        }
        Ok(integers)
    }
}
