//! Blur: Gaussian and box, separable, in one to three dimensions, exact on every device for 8-bit
//! samples.

mod bands;
mod bench;
mod bytes;
mod cpu;
mod gpu;
mod means;
mod plan;
mod taps;
mod tone;

pub use bands::Bands;
pub use bench::{cases, sweep};
pub use gpu::{Resident, SHADERS};
pub use plan::{Depth, Finish, Format, Math, Pass};
pub use taps::{Axis, Method};

use std::borrow::Cow;

use tone::Tone;

use crate::{
    data::samples::Samples,
    device::Kernel,
    error::{Error, Result},
    gpu::Context,
};

/// What lies outside of an image or volume, as scipy names it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Edge {
    /// The nearest sample: a a a | a b c d | d d d.
    Clamp,
    /// The samples again, backwards: c b a | a b c d | d c b.
    Reflect,
    /// The same, with the outermost sample only once: d c b | a b c d | c b a.
    Mirror,
    /// The other end: b c d | a b c d | a b c.
    Wrap,
    /// This value, in units of the samples. Where there is alpha, the surroundings are opaque, but
    /// those of value 0 are transparent.
    Constant(f64),
}

impl Edge {
    /// The sample that stands for position `at` on an axis of `len` samples; nothing where the
    /// constant does.
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
    pub axes: [Axis; 3],
    /// How often all axes are gone through.
    pub iterations: usize,
    /// What lies outside.
    pub edge: Edge,
    /// Whether to blur light, not the stored sRGB values.
    pub linear: bool,
}

/// Samples on a grid: x fastest but for the channels, then y, then z.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Positions along x, y and z; an image has depth 1.
    pub dims: [usize; 3],
    /// Samples a position.
    pub channels: usize,
    /// Whether the last channel is alpha, which the others are multiplied with while blurring.
    pub alpha: bool,
    /// `dims[0] * dims[1] * dims[2] * channels` samples: u8, u16 or f32.
    pub samples: Samples,
}

/// Samples before or after a pass.
#[derive(Clone, Debug, PartialEq)]
pub enum Data<'a> {
    /// [`Format::Bytes`].
    Bytes(Cow<'a, [u8]>),
    /// [`Format::Halves`].
    Halves(Cow<'a, [u16]>),
    /// [`Format::Words`].
    Words(Cow<'a, [u32]>),
    /// [`Format::Floats`].
    Floats(Cow<'a, [f32]>),
}

/// Where a plan's samples lie: the grid's positions and the samples at each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Positions along x, y and z.
    pub dims: [usize; 3],
    /// Samples a position.
    pub channels: usize,
}

impl Shape {
    /// Samples in all.
    pub fn samples(&self) -> usize {
        self.dims.iter().product::<usize>() * self.channels
    }

    /// For a walk along `axis`: how many lines of samples lie outside, positions along the axis, and
    /// samples that lie side by side at each position.
    pub fn along(&self, axis: usize) -> [usize; 3] {
        let [x, y, z] = self.dims;
        match axis {
            0 => [y * z, x, self.channels],
            1 => [z, y, x * self.channels],
            _ => [1, z, x * y * self.channels],
        }
    }
}

impl Blur {
    /// Prepares the samples, has `passes` blur them, and brings them back into their form.
    fn run(
        &self,
        grid: &Grid,
        passes: impl for<'d> FnOnce(&[Pass], Shape, Data<'d>) -> Result<Data<'d>>,
    ) -> Result<Samples> {
        let shape = Shape { dims: grid.dims, channels: grid.channels };
        if shape.samples() != grid.samples.len() || !(1..=4).contains(&grid.channels) {
            return Err(Error::bad_input("the samples do not fill the grid"));
        }
        let idle = self.iterations == 0 || self.axes.iter().all(|axis| axis.radius == 0);
        if idle || grid.samples.is_empty() {
            return Ok(grid.samples.clone());
        }
        let tone = Tone::of(self, grid)?;
        let plan = self.plan(tone.depth(), tone.fill(self.edge, grid));
        let blurred = passes(&plan, shape, tone.expose(grid))?;
        Ok(tone.develop(grid, blurred))
    }
}

impl Kernel for Blur {
    type In = Grid;
    type Out = Samples;
    const NAME: &'static str = "blur";

    fn cpu(&self, grid: &Grid) -> Result<Samples> {
        self.run(grid, |plan, shape, data| cpu::run(plan, self.edge, shape, data))
    }

    fn gpu(&self, context: &Context, grid: &Grid) -> Result<Samples> {
        self.run(grid, |plan, shape, data| gpu::run(context, self, plan, shape, data))
    }
}
