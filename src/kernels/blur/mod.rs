//! Blur: Gaussian and box, separable, in one to three dimensions. The bytes are the same on every device, and do not
//! depend on how an image or volume is divided into blocks.
//!
//! | module | holds |
//! |---|---|
//! | `taps` | the weights along one axis |
//! | `plan` | a blur as a list of passes, each along one axis |
//! | `working_space` | stored samples to those that passes blur, and back |
//! | `cpu`, `gpu` | the twins: routes, each of which computes one pass or several |
//!
mod cpu;
mod gpu;
mod plan;
mod taps;
mod working_space;

pub use gpu::{Resident, variants};
pub use plan::{Arithmetic, Format, Pass, Rounding};
pub use taps::{Method, Taps};

use std::borrow::Cow;

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

/// The greatest standard deviation, in pixels.
pub const MAX_SIGMA: f64 = 500.0;
/// The greatest radius, in pixels.
pub const MAX_RADIUS: usize = 10_000;

/// What lies outside of an image or volume, as scipy names it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Edge {
    /// The nearest sample: a a a | a b c d | d d d.
    Clamp,
    /// The samples again, backwards: c b a | a b c d | d c b.
    Reflect,
    /// As reflect, with the outermost sample only once: d c b | a b c d | c b a.
    Mirror,
    /// The other end: b c d | a b c d | a b c.
    Wrap,
    /// This value, in units of the samples. With an alpha channel the outside is opaque, except that value 0 makes it
    /// transparent.
    Constant(f64),
}

impl Edge {
    /// The sample that stands for position `at` on an axis of `len` samples; `None` for the constant.
    pub fn map(self, at: isize, len: usize) -> Option<usize> {
        let n = len as isize;
        if (0..n).contains(&at) {
            return Some(at as usize);
        }
        let inside = match self {
            Self::Clamp => at.clamp(0, n - 1),
            Self::Reflect => {
                let at = at.rem_euclid(2 * n);
                at.min(2 * n - 1 - at)
            }
            Self::Mirror => {
                let period = (2 * n - 2).max(1);
                let at = at.rem_euclid(period);
                at.min(period - at)
            }
            Self::Wrap => at.rem_euclid(n),
            Self::Constant(_) => return None,
        };
        Some(inside.clamp(0, n - 1) as usize)
    }
}

/// A blur of an image or a volume.
#[derive(Clone, Debug, PartialEq)]
pub struct Blur {
    /// How samples are weighed.
    pub method: Method,
    /// The blur along x, y and z.
    pub axes: [Taps; 3],
    /// How many times the passes along all axes are repeated.
    pub iterations: usize,
    /// What lies outside.
    pub edge: Edge,
    /// Whether to blur light, not the stored sRGB values.
    pub linear: bool,
}

/// Samples before or after a pass. Those of [`Format::U24`] are u32.
type Values<'a> = Cow<'a, Samples>;

impl Blur {
    /// Whether it leaves everything as it is.
    pub fn is_idle(&self) -> bool {
        self.iterations == 0 || self.axes.iter().all(|axis| axis.radius == 0)
    }

    /// The blur of u8 samples without alpha that stay on `context`. `None` where the device cannot hold them in one
    /// piece, and for a blur that is in linear light or [idle](Blur::is_idle).
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device fails.
    pub fn resident<'c>(&self, context: &'c Context, shape: Shape) -> Result<Option<Resident<'c>>> {
        if self.linear || self.is_idle() {
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
        if self.is_idle() || raster.samples.is_empty() {
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
    if blur.is_idle() {
        return Ok(volume);
    }
    let Volume { dims, samples } = volume;
    let samples = device.run(blur, &Grid { dims, channels: 1, alpha: Alpha::None, samples })?;
    Ok(Volume { dims, samples })
}
