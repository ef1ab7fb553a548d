//! Unsharp masking: adds the difference between the samples and their blur to the samples.

use std::ops::Range;

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    blur::{Blur, Combination, Composite, Edge, Method, Passes, RunPasses, Taps, in_working_space},
    channel_mask::copy_channel,
    filter::{Block, Cost, Filter, Properties, Reach},
    pointwise::{combined, float_type, to_floats},
};
use crate::{
    data::{
        description::Description,
        dtype::Dtype,
        grid::{Grid, GridType, Shape},
        samples::Samples,
    },
    device::{Device, Kernel},
    util::error::Result,
};

/// Sharpens all channels but alpha. The blur is computed in f32, and that of 32-bit integers and f64 in f64; only the
/// result is rounded and clamped to the type of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Unsharp {
    /// Standard deviations of the blur along x, y and z; 0 for no blur along an axis.
    pub sigma: [f64; 3],
    /// Factor for the difference.
    pub amount: f64,
    /// Samples whose difference is not larger than this, in units of the samples, stay the same.
    pub threshold: f64,
}

impl Unsharp {
    fn blur(&self) -> Blur {
        let (method, axes) = (Method::Gaussian, self.sigma.map(Taps::scipy_gaussian));
        Blur { method, axes, iterations: 1, edge: Edge::Clamp, linear: false }
    }
}

impl Composite for Unsharp {
    const NAME: &'static str = "unsharp";

    fn on_device(&self, grid: &Grid) -> Option<(Combination, Vec<Passes>)> {
        // With alpha, the blur is divided by the blurred alpha, which only the CPU does.
        let Self { amount, threshold, .. } = *self;
        let blur = || vec![Passes::blur(&self.blur(), Dtype::F32, grid.shape())];
        (!grid.has_alpha()).then(|| (Combination::Sharpen { amount, threshold }, blur()))
    }

    fn compute(&self, grid: &Grid, run: RunPasses<'_>) -> Result<Samples> {
        let GridType { shape, dtype } = grid.checked_type()?;
        if grid.samples.is_empty() {
            return Ok(grid.samples.clone());
        }
        let samples = to_floats(&grid.samples, float_type(dtype))?;
        let floats = Grid { samples, ..*grid };
        let blur = Passes::blur(&self.blur(), float_type(dtype), shape);
        let blurred = in_working_space(&floats, false, |working| run(&blur, working))?;
        let mut sharp = combined(dtype, [&floats.samples, &blurred], |[sample, blurred]| {
            let difference = sample - blurred;
            let is_larger = difference.abs() > self.threshold;
            sample + if is_larger { self.amount * difference } else { 0.0 }
        })?;
        if grid.has_alpha() {
            copy_channel(&grid.samples, &mut sharp, grid.channels - 1, grid.channels);
        }
        Ok(sharp)
    }
}

impl Filter for Unsharp {
    fn name(&self) -> &'static str {
        <Self as Kernel>::NAME
    }

    fn parameters(&self) -> Value {
        json!(self)
    }

    fn reach(&self, axis: usize, _output: &Range<usize>, _shape: Shape) -> Reach {
        Reach::Halo(self.blur().halo(axis))
    }

    fn properties(&self) -> Properties {
        let is_identity = self.amount == 0.0 || self.blur().is_identity();
        Properties { is_identity, needs_straight_alpha: true, ..Properties::default() }
    }

    fn describe(&self, input: Description) -> Result<Description> {
        Ok(input.averaged())
    }

    fn cost(&self, input: GridType) -> Cost {
        // Floats before and after a pass, and premultiplied ones.
        let floats = if matches!(input.shape.channels, 2 | 4) { 3 } else { 2 };
        let working = (2 * input.dtype.size() + floats * float_type(input.dtype).size()) as u64;
        Cost { working, ..Cost::of(input) }
    }

    fn run(&self, device: &Device, input: &Grid, _block: &Block) -> Result<Samples> {
        device.run(self, input)
    }
}
