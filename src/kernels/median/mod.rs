//! Median and other percentiles of the samples around each sample.

mod gpu;
mod histogram;
mod network;
mod ranks;
mod window;

pub use gpu::variants;
pub use window::Window;

use serde_json::{Value, json};

use super::{
    filter::Filter,
    ordered_keys::{OrderFilter, Value as Ordered, run_ordered},
};
use crate::{
    data::{
        grid::{Grid, GridType, Shape},
        samples::Samples,
    },
    device::{Device, Kernel},
    gpu::Context,
    util::error::{Error, Result},
};

/// Windows up to this size are computed by a network of comparisons.
const MAX_NETWORK: usize = 49;
/// As [`MAX_NETWORK`], for bytes.
const MAX_BYTE_NETWORK: usize = 27;

/// A percentile of the samples in a box around each sample. Outside of the image or volume, the nearest sample counts.
/// -0 is less than +0, and NaN is greater than all numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Median {
    percentile: f64,
    window: Window,
}

impl Median {
    /// Maximum radius of the box.
    pub const MAX_RADIUS: usize = 50;

    /// The percentile `percentile`, 0 to 100, of boxes of this radius along x, y and z. For images, that along z is 0.
    ///
    /// # Errors
    /// [`Kind::Usage`](crate::util::error::Kind::Usage) when a number is out of range.
    pub fn new(percentile: f64, radius: [usize; 3]) -> Result<Self> {
        if !(0.0..=100.0).contains(&percentile) {
            return Err(Error::usage(format_args!(
                "the percentile is {percentile}, expected 0 to 100"
            )));
        }
        if let Some(radius) = radius.into_iter().find(|&radius| radius > Self::MAX_RADIUS) {
            return Err(Error::usage(format_args!(
                "the radius is {radius}, expected 0 to {}",
                Self::MAX_RADIUS
            )));
        }
        Ok(Self { percentile, window: Window::new(radius, percentile) })
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

/// The filter on the CPU, for samples of any type.
struct Select {
    window: Window,
    shape: Shape,
}

impl OrderFilter for Select {
    fn run<T: Ordered>(&self, values: &[T]) -> Result<Vec<T>> {
        let Self { window, shape } = self;
        match size_of::<T>() {
            1 if window.len() > MAX_BYTE_NETWORK => ranks::run(values, *shape, window),
            _ if window.len() > MAX_NETWORK => ranks::run(values, *shape, window),
            _ => network::run(values, *shape, window),
        }
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
        let (window, shape) = (self.window, grid.shape());
        let has_histogram = (MAX_BYTE_NETWORK + 1..=histogram::MAX_WINDOW).contains(&window.len());
        match &grid.samples {
            Samples::U8(samples) if has_histogram => {
                Ok(Samples::U8(histogram::run(samples, shape, &window)?))
            }
            samples => run_ordered(&Select { window, shape }, samples),
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

impl Filter for Median {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn parameters(&self) -> Value {
        json!({ "percentile": self.percentile, "radius": self.window.radius })
    }

    fn halo(&self, axis: usize) -> usize {
        self.window.radius[axis]
    }

    fn is_identity(&self) -> bool {
        self.window.radius == [0; 3]
    }

    fn working_bytes(&self, input: GridType) -> u64 {
        // Input, result, keys of both, and buffers of threads.
        6 * input.dtype.size() as u64 + 16
    }

    fn copies(&self) -> u64 {
        8
    }

    fn run(&self, device: &Device, input: &Grid) -> Result<Samples> {
        device.run(self, input)
    }

    fn core_seconds_per_byte(&self) -> f64 {
        20e-9
    }
}
