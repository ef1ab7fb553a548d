//! Blur: Gaussian and box, separable, in one to three dimensions. The bytes are the same on every device, and do not
//! depend on how an image or volume is divided into blocks.
//!
//! | module | holds |
//! |---|---|
//! | `taps` | the weights along one axis |
//! | `params` | the parameters of a blur |
//! | `plan` | a blur as a list of passes, each along one axis |
//! | `working_space` | stored samples to those that passes blur, and back |
//! | `cpu`, `gpu` | the twins: routes, each of which computes one pass or several |
//!
mod cpu;
mod gpu;
mod params;
mod plan;
mod taps;
mod working_space;

pub use gpu::{Resident, variants};
pub use params::{Blur, Edge, MAX_RADIUS, MAX_SIGMA};
pub use plan::{Arithmetic, Format, Pass, Rounding};
pub use taps::{Method, Taps};

use params::Values;
use working_space::WorkingSpace;

use crate::{
    data::{
        grid::{Alpha, Grid, Shape},
        samples::Samples,
        volume::Volume,
    },
    device::{Device, Kernel},
    gpu::Context,
    util::{
        error::{Error, Result},
        parallel,
    },
};

impl Blur {
    /// The blur of u8 samples without alpha that stay on `context`. `None` where the device cannot hold them in one
    /// piece, and for a blur that is in linear light or [the identity](Blur::is_identity).
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device fails.
    pub fn resident<'c>(&self, context: &'c Context, shape: Shape) -> Result<Option<Resident<'c>>> {
        if self.linear || self.is_identity() {
            return Ok(None);
        }
        let fill = match self.edge {
            Edge::Constant(value) => value.round().clamp(0.0, 255.0),
            _ => 0.0,
        };
        let plan = self.plan(Format::U8, [fill; 4]);
        match gpu::fits(context, self, &plan, shape) {
            true => Resident::new(context, &plan, shape, self.edge).map(Some),
            false => Ok(None),
        }
    }

    /// Checks the raster, then calls `passes` with the plan and the values in the [`WorkingSpace`] of the blur.
    fn run(
        &self,
        raster: &Grid,
        passes: impl for<'d> FnOnce(&Self, &[Pass], Values<'d>) -> Result<Values<'d>>,
    ) -> Result<Samples> {
        if raster.shape().samples() != raster.samples.len() || !(1..=4).contains(&raster.channels) {
            return Err(Error::bad_input("the samples do not fill the raster"));
        }
        if self.is_identity() || raster.samples.is_empty() {
            return Ok(raster.samples.clone());
        }
        if let Some((unsigned, half)) = unsigned(&raster.samples)? {
            let mut blur = Self { linear: false, ..self.clone() };
            if let Edge::Constant(value) = &mut blur.edge {
                *value += half;
            }
            return signed(blur.run(&Grid { samples: unsigned, ..*raster }, passes)?);
        }
        let space = WorkingSpace::of(self, raster);
        let plan = self.plan(space.format(), space.fill(self.edge, raster));
        Ok(space.to_stored(raster, passes(self, &plan, space.to_working(raster))?))
    }
}

/// Converts i8 and i16 to u8 and u16 by flipping the sign bit, and returns half of the range, which this adds. The
/// weights of a blur sum to 1, so half of the range may be added before and subtracted afterwards.
fn unsigned(samples: &Samples) -> Result<Option<(Samples, f64)>> {
    Ok(Some(match samples {
        Samples::I8(v) => (Samples::U8(parallel::mapped(v, |&v| v as u8 ^ 0x80)?), 128.0),
        Samples::I16(v) => (Samples::U16(parallel::mapped(v, |&v| v as u16 ^ 0x8000)?), 32768.0),
        _ => return Ok(None),
    }))
}

/// Reverts [`unsigned`].
fn signed(samples: Samples) -> Result<Samples> {
    Ok(match samples {
        Samples::U8(v) => Samples::I8(parallel::mapped(&v, |&v| (v ^ 0x80) as i8)?),
        Samples::U16(v) => Samples::I16(parallel::mapped(&v, |&v| (v ^ 0x8000) as i16)?),
        other => other,
    })
}

impl Kernel for Blur {
    type In = Grid;
    type Out = Samples;
    const NAME: &'static str = "blur";

    fn cpu(&self, raster: &Grid) -> Result<Samples> {
        self.run(raster, |blur, plan, values| cpu::run(plan, blur.edge, raster.shape(), values))
    }

    fn gpu(&self, context: &Context, raster: &Grid) -> Result<Samples> {
        self.run(raster, |blur, plan, values| match gpu::takes(context, plan)? {
            true => gpu::run(context, blur, plan, raster.shape(), values),
            false => {
                log::debug!("{} samples are blurred on the CPU", raster.samples.dtype());
                cpu::run(plan, blur.edge, raster.shape(), values)
            }
        })
    }
}

/// `volume` after `blur` on `device`, of the same type.
///
/// # Errors
/// Those of the device.
pub fn blur_volume(device: &Device, blur: &Blur, volume: Volume) -> Result<Volume> {
    if blur.is_identity() {
        return Ok(volume);
    }
    let Volume { dims, samples } = volume;
    let samples = device.run(blur, &Grid { dims, channels: 1, alpha: Alpha::None, samples })?;
    Ok(Volume { dims, samples })
}
