//! Thresholds that follow the brightness around each sample.

use std::ops::Range;

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    blur::{Blur, Composite, Edge, Method, Passes, RunPasses, Taps},
    filter::{Block, Cost, Filter, Reach},
    histogram::{Luma, type_range},
    pointwise::{combined, to_floats},
};
use crate::{
    data::{
        description::{Description, Kind},
        dtype::Dtype,
        grid::{Alpha, Grid, GridType, Shape},
        samples::Samples,
    },
    device::{Device, Kernel},
    util::{error::Result, parallel},
};

/// The threshold of a sample, computed from those in a window around it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LocalMethod {
    /// The mean of the window.
    Mean,
    /// The mean with the weights of a Gaussian.
    Gaussian,
    /// The mean m and the standard deviation s of the window as m (1 + k (s / range - 1)) (Sauvola and Pietikäinen,
    /// Adaptive document image binarization, 2000).
    Sauvola,
}

/// Makes a mask of the samples of one channel above a threshold that is computed for each of them, as scikit-image's
/// `threshold_local` and `threshold_sauvola`. Sums of u8 and u16 are exact integers if they fit 32 bits; other sums and
/// Gaussians are computed in f64.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LocalThreshold {
    /// The rule.
    pub method: LocalMethod,
    /// Samples of the window on each side of its centre along x, y and z.
    pub radius: [usize; 3],
    /// Standard deviations of the Gaussian.
    pub sigma: [f64; 3],
    /// Difference of the mean and the threshold, unless this is Sauvola's.
    pub offset: f64,
    /// Sauvola's parameter.
    pub k: f64,
    /// Range of Sauvola's standard deviation; `None`: half of the range of integers, 1 for floats.
    pub range: Option<f64>,
}

impl LocalThreshold {
    /// The weights of the window, with the samples outside that scikit-image takes.
    fn blur(&self) -> Blur {
        let (method, axes) = match self.method {
            LocalMethod::Gaussian => (Method::Gaussian, self.sigma.map(Taps::scipy_gaussian)),
            _ => (Method::Box, self.radius.map(Taps::box_filter)),
        };
        let is_sauvola = self.method == LocalMethod::Sauvola;
        let edge = if is_sauvola { Edge::Mirror } else { Edge::Reflect };
        Blur { method, axes, iterations: 1, edge, linear: false }
    }

    /// Whether sums of integers up to `max` over the window are exact in 32 bits.
    fn fits(&self, max: f64) -> bool {
        let blur = self.blur();
        let count: f64 = blur.axes.iter().map(|taps| taps.count() as f64).product();
        blur.method == Method::Box && max * count <= f64::from(u32::MAX)
    }

    /// Sums of the samples, or of their squares, over the windows, and the factor by which they exceed the means.
    fn sums(&self, grid: &Grid, is_squared: bool, run: RunPasses<'_>) -> Result<(Samples, f64)> {
        let (blur, shape) = (self.blur(), grid.shape());
        let count: f64 = blur.axes.iter().map(|taps| taps.count() as f64).product();
        let sums = |samples: &Samples| {
            let passes = Passes::sums(self.radius, blur.edge, samples.dtype(), shape);
            Ok((run(&passes, samples)?, count))
        };
        match &grid.samples {
            Samples::U8(_) if !is_squared && self.fits(255.0) => sums(&grid.samples),
            Samples::U16(_) if !is_squared && self.fits(65535.0) => sums(&grid.samples),
            Samples::U8(values) if is_squared && self.fits(65025.0) => {
                let square = |&value: &u8| u16::from(value) * u16::from(value);
                sums(&parallel::mapped(values, square)?.into())
            }
            samples => {
                let numbers = match is_squared {
                    true => combined(Dtype::F64, [samples], |[value]| value * value)?,
                    false => to_floats(samples, Dtype::F64)?,
                };
                Ok((run(&Passes::blur(&blur, Dtype::F64, shape), &numbers)?, 1.0))
            }
        }
    }
}

impl Composite for LocalThreshold {
    const NAME: &'static str = "threshold";

    fn compute(&self, grid: &Grid, run: RunPasses<'_>) -> Result<Samples> {
        /// Equal samples have a mean that differs from them by its rounding.
        const SLACK: f64 = 1e-12;
        let (samples, dtype) = (&grid.samples, grid.checked_type()?.dtype);
        if samples.is_empty() {
            return Samples::zeros(Dtype::U8, 0);
        }
        let class = |is_above: bool| if is_above { 255.0 } else { 0.0 };
        let (sums, count) = self.sums(grid, false, run)?;
        if self.method != LocalMethod::Sauvola {
            return combined(Dtype::U8, [samples, &sums], |[sample, sum]| {
                let mean = sum / count;
                class(sample > mean + mean.abs() * SLACK - self.offset)
            });
        }
        let (squares, squares_count) = self.sums(grid, true, run)?;
        let half_range = type_range(dtype).map_or(1.0, |(min, max)| (max - min) / 2.0);
        let range = self.range.unwrap_or(half_range);
        combined(Dtype::U8, [samples, &sums, &squares], |[sample, sum, square]| {
            let mean = sum / count;
            let deviation = (square / squares_count - mean * mean).max(0.0).sqrt();
            class(sample > mean * (1.0 + self.k * (deviation / range - 1.0)))
        })
    }
}

impl Filter for LocalThreshold {
    fn name(&self) -> &'static str {
        <Self as Kernel>::NAME
    }

    fn parameters(&self) -> Value {
        json!(self)
    }

    fn reach(&self, axis: usize, _output: &Range<usize>, _shape: Shape) -> Reach {
        Reach::Halo(self.blur().halo(axis))
    }

    fn describe(&self, input: Description) -> Result<Description> {
        Ok(input.of_one_channel(Kind::Mask, Dtype::U8))
    }

    fn cost(&self, input: GridType) -> Cost {
        let size = input.dtype.size() as u64;
        // Buffers of a pass (input and result). Sauvola runs a second pass over the squares. Floats also keep the
        // unconverted samples.
        let (is_exact, is_square_exact) = match input.dtype {
            Dtype::U8 => (self.fits(255.0), self.fits(65_025.0)),
            Dtype::U16 => (self.fits(65_535.0), false),
            _ => (false, false),
        };
        let sums = if is_exact { 8 } else { 24 };
        let squares = match self.method {
            LocalMethod::Sauvola => {
                let held = if is_exact { 4 } else { 8 };
                held + if is_square_exact { 10 } else { 24 }
            }
            _ => 0,
        };
        // The pixels, and what is made of their luminance.
        let channels = input.shape.channels.max(1) as u64;
        let working = (channels * size + size + sums.max(squares)).div_ceil(channels);
        Cost { working, ..Cost::of(input) }
    }

    fn run(&self, device: &Device, input: &Grid, _block: &Block) -> Result<Samples> {
        let samples = Luma::Bt709.grey(&input.samples, input.channels)?.into_owned();
        device.run(self, &Grid { dims: input.dims, channels: 1, alpha: Alpha::None, samples })
    }
}
