//! Gradient magnitude: the length of the vector of the derivatives along all axes.

use std::ops::Range;

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    blur::{Combination, Composite, Passes, RunPasses, Taps},
    channel_mask::copy_channel,
    filter::{Block, Cost, Filter, Properties, Reach},
    pointwise::{combined, float_type, to_floats},
};
use crate::{
    data::{
        description::{Description, Kind},
        dtype::Dtype,
        grid::{Grid, GridType, Shape},
        samples::Samples,
    },
    device::{Device, Kernel},
    util::error::Result,
};

/// The gradient magnitude of each channel but alpha, which is kept. Samples outside of the image or volume are the
/// nearest ones inside.
///
/// Results of 8 and 16 bits by Sobel's filter are the exact roots, rounded and clamped to the type. Derivatives of
/// Gaussians are computed in f32, and those of 32-bit integers and f64 in f64.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gradient {
    /// Number of axes: 2 for images, 3 for volumes.
    pub axes: usize,
    /// Standard deviations along x, y and z of the Gaussian whose derivatives are taken, 0 for no derivative along an
    /// axis; `None` for Sobel's filter.
    pub sigma: Option<[f64; 3]>,
    /// Whether results are floats, neither rounded nor clamped: f32, or f64 for 32-bit integers and f64.
    pub is_float: bool,
}

impl Gradient {
    /// The type of the result for samples of type `dtype`.
    fn result_type(&self, dtype: Dtype) -> Dtype {
        if self.is_float { float_type(dtype) } else { dtype }
    }

    /// Number of positions before and after a position along `axis` that the result there depends on.
    fn halo(&self, axis: usize) -> usize {
        let radius = self.sigma.map_or(1, |sigma| Taps::scipy_gaussian(sigma[axis]).radius);
        if axis < self.axes { radius } else { 0 }
    }

    /// The passes of each derivative of floats of type `dtype`.
    fn derivatives(&self, dtype: Dtype, shape: Shape) -> Vec<Passes> {
        let taps = self.sigma.map(|sigma| sigma.map(Taps::scipy_gaussian));
        let axes: Vec<usize> = (0..self.axes).filter(|&axis| self.halo(axis) > 0).collect();
        let along = |&axis: &usize| Passes::derivative(axis, &axes, taps, dtype, shape);
        axes.iter().map(along).collect()
    }
}

impl Composite for Gradient {
    const NAME: &'static str = "gradient";

    fn on_device(&self, grid: &Grid) -> Option<(Combination, Vec<Passes>)> {
        // The shader finds integer results by comparing the sum of squares with a table. Float results need an exact root,
        // which its `sqrt` does not give.
        (!self.is_float).then(|| (Combination::Root, self.derivatives(Dtype::F32, grid.shape())))
    }

    fn compute(&self, grid: &Grid, run: RunPasses<'_>) -> Result<Samples> {
        let GridType { shape, dtype } = grid.checked_type()?;
        let (float, to) = (float_type(dtype), self.result_type(dtype));
        let passes = self.derivatives(float, shape);
        if grid.samples.is_empty() || passes.is_empty() {
            return Samples::zeros(to, shape.samples());
        }
        let floats = to_floats(&grid.samples, float)?;
        let run = |passes| run(passes, &floats);
        let derivatives = passes.iter().map(run).collect::<Result<Vec<_>>>()?;
        let mut magnitudes = match &derivatives[..] {
            [x] => combined(to, [x], |[x]| x.abs()),
            [x, y] => combined(to, [x, y], |[x, y]| (x * x + y * y).sqrt()),
            [x, y, z, ..] => combined(to, [x, y, z], |[x, y, z]| (x * x + y * y + z * z).sqrt()),
            [] => unreachable!("there is an axis"),
        }?;
        if grid.has_alpha() {
            let from = if self.is_float { &floats } else { &grid.samples };
            copy_channel(from, &mut magnitudes, grid.channels - 1, grid.channels);
        }
        Ok(magnitudes)
    }
}

impl Filter for Gradient {
    fn name(&self) -> &'static str {
        <Self as Kernel>::NAME
    }

    fn parameters(&self) -> Value {
        json!(self)
    }

    fn reach(&self, axis: usize, _output: &Range<usize>, _shape: Shape) -> Reach {
        Reach::Halo(self.halo(axis))
    }

    fn properties(&self) -> Properties {
        Properties { needs_straight_alpha: true, ..Properties::default() }
    }

    fn describe(&self, input: Description) -> Result<Description> {
        let dtype = self.result_type(input.grid.dtype);
        Ok(input.of(Kind::Quantity).computed_as(dtype))
    }

    fn cost(&self, input: GridType) -> Cost {
        // The derivatives, and one more pass.
        let floats = (self.axes + 1) * float_type(input.dtype).size();
        Cost { working: (2 * input.dtype.size() + floats) as u64, ..Cost::of(input) }
    }

    fn run(&self, device: &Device, input: &Grid, _block: &Block) -> Result<Samples> {
        device.run(self, input)
    }
}
