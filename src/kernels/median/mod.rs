//! Median and other percentiles of the samples around each sample.

mod gpu;
mod histogram;
mod network;
mod ranks;
mod search;
mod window;

pub use gpu::variants;
pub use window::Window;

use std::ops::Range;

use serde_json::{Value, json};

use super::{
    filter::{Block, Cost, Filter, Properties, Reach},
    gpu_step::{GpuFilter, GpuLayout, GpuStepResult},
    ordered_keys::Value as Ordered,
};
use crate::{
    data::{
        grid::{Grid, GridType, Shape},
        samples::Samples,
    },
    device::{Device, Kernel},
    for_samples,
    gpu::Context,
    util::error::{Error, Result},
};

/// A percentile of the samples in a box around each sample. Outside of the image or volume, the nearest sample counts.
/// -0 is less than +0, and NaN is greater than all numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Median {
    percentile: f64,
    window: Window,
}

impl Median {
    /// The percentile `percentile`, 0 to 100, of boxes of this radius along x, y and z. For images, that along z is 0.
    pub fn new(percentile: f64, radius: [usize; 3]) -> Self {
        Self { percentile, window: Window::new(radius, percentile) }
    }

    /// Checks the number of samples. Returns whether there are any.
    fn check(grid: &Grid) -> Result<bool> {
        let (Shape { dims: [x, y, z], channels }, found) = (grid.shape(), grid.samples.len());
        match grid.shape().samples() == found {
            true => Ok(found > 0),
            false => Err(Error::bad_input(format_args!(
                "expected {x} x {y} x {z} x {channels} samples, found {found}"
            ))),
        }
    }
}

/// Length of the largest windows that are searched in less time than by other methods, for samples of `size` bytes.
fn max_search(size: usize) -> usize {
    [0, 128, 256, 0, 25].get(size).copied().unwrap_or_default()
}

/// The percentiles of samples of any type.
fn select<T: Ordered>(samples: &[T], shape: Shape, window: &Window) -> Result<Vec<T>> {
    match window.size() {
        _ if network::has(window) => network::run(samples, shape, window),
        len if len <= max_search(size_of::<T>()) => search::run(samples, shape, window),
        _ => ranks::run(samples, shape, window),
    }
}

impl Kernel for Median {
    type In = Grid;
    type Out = Samples;
    const NAME: &'static str = "median";

    fn cpu(&self, grid: &Grid) -> Result<Samples> {
        if !Self::check(grid)? {
            return Ok(grid.samples.clone());
        }
        let (window, shape) = (&self.window, grid.shape());
        let has_histogram = (max_search(1) + 1..=histogram::MAX_WINDOW).contains(&window.size());
        match &grid.samples {
            Samples::U8(samples) if has_histogram => {
                Ok(histogram::run(samples, shape, window)?.into())
            }
            samples => for_samples!(samples, samples => Ok(select(samples, shape, window)?.into())),
        }
    }

    fn gpu(&self, context: &Context, grid: &Grid) -> Result<Samples> {
        if !Self::check(grid)? {
            return Ok(grid.samples.clone());
        }
        match gpu::select(context, &grid.samples, grid.shape(), &self.window)? {
            Some(result) => Ok(result),
            None => self.cpu(grid),
        }
    }
}

impl GpuFilter for Median {
    fn prepare<'c>(&'c self, context: &'c Context, input: GpuLayout) -> GpuStepResult<'c> {
        gpu::prepare(context, input, &self.window)
    }
}

impl Filter for Median {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn parameters(&self) -> Value {
        json!({ "percentile": self.percentile, "radius": self.window.radius })
    }

    fn reach(&self, axis: usize, _output: &Range<usize>, _shape: Shape) -> Reach {
        Reach::Halo(self.window.radius[axis])
    }

    fn properties(&self) -> Properties {
        Properties { is_identity: self.window.radius == [0; 3], ..Properties::default() }
    }

    fn cost(&self, input: GridType) -> Cost {
        let size = input.dtype.size();
        let max = if size == 1 { histogram::MAX_WINDOW } else { max_search(size) };
        let has_ranks = self.window.size() > max && !network::has(&self.window);
        let ranks = || ranks::working_bytes(input.shape, &self.window, size) as u64;
        let held = if has_ranks { ranks() } else { 0 };
        Cost { held, core_seconds: Some(16.6e-9), ..Cost::of(input) }
    }

    fn run(&self, device: &Device, input: &Grid, _block: &Block) -> Result<Samples> {
        device.run(self, input)
    }

    fn on_gpu(&self, input: GridType) -> Option<&dyn GpuFilter> {
        let is_supported = gpu::is_supported(input.dtype, &self.window);
        (is_supported && !self.properties().is_identity).then_some(self)
    }
}
