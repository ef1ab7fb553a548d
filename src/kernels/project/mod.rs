//! Projections: one sample of the result for each line of samples along an axis.

mod cpu;
mod gpu;
mod lines;

use serde_json::{Value, json};

pub use self::{
    gpu::variants,
    lines::{LineValues, Lines, Method, Projection, Step},
};
use super::filter::{Block, Cost, Filter, Preparation, Ready};
use crate::{
    data::{
        description::{Description, Kind},
        dtype::Dtype,
        grid::{Grid, GridType, Shape},
        placement::Placement,
        samples::Samples,
    },
    device::{Device, Kernel},
    gpu::Context,
    util::error::Result,
};

impl Kernel for Step<'_> {
    type In = Grid;
    type Out = Lines;
    const NAME: &'static str = "project";

    fn cpu(&self, grid: &Grid) -> Result<Lines> {
        cpu::add(self, grid)
    }

    fn gpu(&self, context: &Context, grid: &Grid) -> Result<Lines> {
        let is_order = matches!(self.projection.method, Method::Max | Method::Min);
        match grid.samples.dtype() {
            Dtype::F64 => cpu::add(self, grid),
            Dtype::F32 if !is_order => cpu::add(self, grid),
            _ => gpu::add(self, context, grid),
        }
    }
}

impl Projection {
    /// Adds `grid` to `lines`.
    fn add(self, device: &Device, lines: &mut Option<Lines>, grid: &Grid) -> Result<()> {
        let added = device.run(&Step { projection: self, before: lines.as_ref() }, grid)?;
        *lines = Some(added);
        Ok(())
    }
}

impl Filter for Projection {
    fn name(&self) -> &'static str {
        Step::NAME
    }

    fn parameters(&self) -> Value {
        let axis = ["x", "y", "z"][self.axis];
        json!({ "method": self.method, "axis": axis })
    }

    /// A sample of the result is placed as the box of all samples of its line.
    fn describe(&self, input: Description) -> Result<Description> {
        let GridType { shape, dtype } = input.grid;
        let len = shape.dims[self.axis];
        let mut dims = shape.dims;
        dims[self.axis] = 1;
        let dtype = match self.method {
            Method::Max | Method::Min => dtype,
            Method::Mean | Method::Std => Dtype::F32,
            Method::Sum => Dtype::F64,
        };
        let place = |own: Placement| {
            let mut middle = [0.0; 3];
            middle[self.axis] = (len - 1) as f64 / 2.0;
            let mut flat = Placement { first: own.at(middle), ..own };
            flat.steps[self.axis] = flat.steps[self.axis].map(|step| step * len as f64);
            flat
        };
        let input = match self.method {
            Method::Max | Method::Min => input,
            Method::Mean => input.averaged(),
            Method::Sum | Method::Std => input.of(Kind::Quantity),
        };
        let input = input.computed_as(dtype);
        let grid = GridType { shape: Shape { dims, ..shape }, dtype };
        Ok(Description { grid, placement: input.placement.map(place), ..input })
    }

    /// Lines before and after a step, and the result.
    fn cost(&self, input: GridType) -> Cost {
        let lines = match self.method {
            Method::Max | Method::Min => input.dtype.size(),
            Method::Mean | Method::Sum => 8,
            Method::Std => 32,
        };
        let [x, y, z] = input.shape.dims.map(|dim| dim as u64);
        let count = [y * z, x * z, x * y][self.axis] * input.shape.channels as u64;
        let held = count.saturating_mul(2 * lines as u64 + 8);
        Cost { held, working: input.dtype.size() as u64, ..Cost::of(input) }
    }

    fn prepare(&self, own: Preparation<'_>) -> Result<Ready> {
        if own.axis != self.axis {
            return Ok(Ready::default());
        }
        let mut lines = None;
        (own.pass)(&mut |grid| self.add(own.device, &mut lines, grid))?;
        let result = lines.map(|lines| lines.finish(self.method)).transpose()?;
        Ok(Ready { filter: None, result })
    }

    fn run(&self, device: &Device, input: &Grid, _block: &Block) -> Result<Samples> {
        let mut lines = None;
        self.add(device, &mut lines, input)?;
        lines.expect("a grid was added").finish(self.method)
    }
}
