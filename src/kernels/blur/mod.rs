//! Separable Gaussian and box blur in one to three dimensions. Results are the same bytes on every device, however an
//! image or volume is divided into blocks.
//!
//! | module | holds |
//! |---|---|
//! | `taps` | the weights along one axis |
//! | `params` | the parameters of a blur |
//! | `plan` | a blur as a list of passes, each along one axis |
//! | `passes` | derivatives, sums and means, for other filters |
//! | `working_space` | conversion of stored samples to those that passes blur, and back |
//! | `cpu`, `gpu` | routes, each of which computes one pass or several |
mod cpu;
mod gpu;
mod params;
mod passes;
mod plan;
mod taps;
mod working_space;

pub use gpu::{Combination, DeviceSpace, Resident, variants};
pub use params::{Blur, BlurByAxis, Edge, MAX_RADIUS, MAX_SIGMA};
pub use passes::{Composite, Passes, RunPasses};
pub use plan::{Arithmetic, Pass, PassFormat, Rounding};
pub use taps::{Method, Taps};
pub use working_space::WorkingSpace;

use params::Values;

use crate::{
    data::{
        grid::{Grid, Shape},
        samples::Samples,
    },
    device::Kernel,
    gpu::Context,
    util::{error::Result, parallel},
};

impl Blur {
    /// Prepares the blur of samples without alpha that stay on `context`. `None` if they do not fit on the device as a
    /// whole, if results differ from those of the CPU, in linear light, and for [the identity](Blur::is_identity).
    pub fn resident<'c>(
        &self,
        context: &'c Context,
        format: PassFormat,
        shape: Shape,
    ) -> Result<Option<Resident<'c>>> {
        if self.linear || self.is_identity() {
            return Ok(None);
        }
        let fill = match (self.edge, format) {
            (Edge::Constant(value), PassFormat::U8) => value.round().clamp(0.0, 255.0),
            (Edge::Constant(value), PassFormat::U16) => value.round().clamp(0.0, 65535.0),
            (Edge::Constant(value), _) => value,
            _ => 0.0,
        };
        let plan = self.plan(format, [fill; 4]);
        let fits = gpu::fits(context, &plan, self.edge, shape);
        match fits && gpu::agrees_with_cpu(context, &plan)? {
            true => Resident::new(context, &plan, shape, self.edge).map(Some),
            false => Ok(None),
        }
    }

    /// Checks the grid, then calls `passes` with the plan and the values in the [`WorkingSpace`] of the blur.
    fn run(
        &self,
        grid: &Grid,
        passes: impl for<'d> FnOnce(&Self, &[Pass], Values<'d>) -> Result<Values<'d>>,
    ) -> Result<Samples> {
        grid.checked_type()?;
        if self.is_identity() || grid.samples.is_empty() {
            return Ok(grid.samples.clone());
        }
        if let Some((unsigned, half)) = unsigned(&grid.samples)? {
            let mut blur = Self { linear: false, ..self.clone() };
            if let Edge::Constant(value) = &mut blur.edge {
                *value += half;
            }
            return signed(blur.run(&Grid { samples: unsigned, ..*grid }, passes)?);
        }
        let space = WorkingSpace::new(self, grid);
        let plan = self.plan(space.format(), space.fill(self.edge, grid));
        Ok(space.to_stored(grid, passes(self, &plan, space.to_working(grid))?))
    }
}

/// Converts i8 and i16 to u8 and u16 by flipping the sign bit, which adds half of the range, and returns that number.
/// The weights of a blur sum to 1, so that the same number can be subtracted after the blur.
fn unsigned(samples: &Samples) -> Result<Option<(Samples, f64)>> {
    Ok(Some(match samples {
        Samples::I8(v) => (Samples::U8(parallel::mapped(v, |&v| v as u8 ^ 0x80)?), 128.0),
        Samples::I16(v) => (Samples::U16(parallel::mapped(v, |&v| v as u16 ^ 0x8000)?), 32768.0),
        _ => return Ok(None),
    }))
}

/// Undoes [`unsigned`].
fn signed(samples: Samples) -> Result<Samples> {
    Ok(match samples {
        Samples::U8(v) => Samples::I8(parallel::mapped(&v, |&v| (v ^ 0x80) as i8)?),
        Samples::U16(v) => Samples::I16(parallel::mapped(&v, |&v| (v ^ 0x8000) as i16)?),
        other => other,
    })
}

/// Converts `grid` to the space in which a weighted mean of samples is that of the light: colours are premultiplied by
/// alpha, and with `linear`, 8 and 16 bits are linear light. Calls `work`, and converts its result back, which may have
/// another size.
pub fn in_working_space(
    grid: &Grid,
    linear: bool,
    work: impl Fn(&Samples) -> Result<Samples>,
) -> Result<Samples> {
    if let Some((samples, _)) = unsigned(&grid.samples)? {
        return signed(in_working_space(&Grid { samples, ..*grid }, false, work)?);
    }
    let space = WorkingSpace::for_averaging(linear, grid);
    Ok(space.to_stored(grid, std::borrow::Cow::Owned(work(&space.to_working(grid))?)))
}

impl Kernel for Blur {
    type In = Grid;
    type Out = Samples;
    const NAME: &'static str = "blur";

    fn cpu(&self, grid: &Grid) -> Result<Samples> {
        self.run(grid, |blur, plan, values| cpu::run(plan, blur.edge, grid.shape(), values))
    }

    fn gpu(&self, context: &Context, grid: &Grid) -> Result<Samples> {
        self.run(grid, |blur, plan, values| match gpu::agrees_with_cpu(context, plan)? {
            true => gpu::run(context, plan, blur.edge, grid.shape(), values),
            false => {
                log::debug!("{} samples are blurred on the CPU", grid.samples.dtype());
                cpu::run(plan, blur.edge, grid.shape(), values)
            }
        })
    }
}

impl Kernel for BlurByAxis {
    type In = Grid;
    type Out = Samples;
    const NAME: &'static str = Blur::NAME;

    fn cpu(&self, grid: &Grid) -> Result<Samples> {
        self.blur.run(grid, |_, plan, values| {
            plan.chunks(1).try_fold(values, |values, pass| {
                cpu::run(pass, self.edges[pass[0].axis], grid.shape(), values)
            })
        })
    }

    fn gpu(&self, _: &Context, grid: &Grid) -> Result<Samples> {
        self.cpu(grid)
    }
}
