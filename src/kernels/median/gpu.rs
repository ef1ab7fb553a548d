//! Percentiles on a GPU: the bits of each result, the highest first, from counts of the window.

use super::window::Window;
use crate::{
    data::{
        dtype::Dtype,
        grid::{GridType, Shape},
        samples::Samples,
    },
    gpu::{Batch, Buffer, Context, Shader},
    kernels::{
        device_blocks::{fits, in_blocks},
        filter::{GpuStep, GpuStepResult},
        pointwise::{specialisations, specialised},
    },
    shader, shader_struct,
    util::error::Result,
};

static SHADER: Shader = shader!("median/median");

shader_struct! {
    struct MedianParams {
        words: u32,
        channels: u32,
        width: u32,
        height: u32,
        depth: u32,
        x: u32,
        y: u32,
        z: u32,
        rank: u32,
    }
}

/// Larger windows are left to the CPU, which computes them in less time. Software devices also end loops after 65,535
/// iterations of an invocation, and each of its samples takes an iteration for each bit and sample of the window.
const MAX_WINDOW: usize = 900;

/// The shaders for all types of samples.
pub fn variants() -> Vec<Shader> {
    specialisations(&SHADER)
}

/// The percentiles of a grid. `None` for samples of 64 bits and for windows that are too large for the device.
pub fn select(
    context: &Context,
    samples: &Samples,
    shape: Shape,
    window: &Window,
) -> Result<Option<Samples>> {
    let Some(step) = Percentile::new(context, samples.dtype(), window) else { return Ok(None) };
    in_blocks(context, samples, shape, (window.radius, step.group()?), &step)
}

/// As [`select`], of whole grids of the type `input` on the device.
pub fn on_gpu<'c>(context: &'c Context, input: GridType, window: &Window) -> GpuStepResult<'c> {
    let Some(step) = Percentile::new(context, input.dtype, window) else { return Ok(None) };
    let fits = fits(context, input.bytes(), step.group()?);
    Ok(fits.then(|| Box::new(step) as _))
}

/// A percentile on the device.
struct Percentile<'c> {
    context: &'c Context,
    shader: Shader,
    bytes: usize,
    window: Window,
}

impl<'c> Percentile<'c> {
    fn new(context: &'c Context, dtype: Dtype, window: &Window) -> Option<Self> {
        let is_supported = dtype != Dtype::F64 && window.size() <= MAX_WINDOW;
        let (bytes, window) = (dtype.size(), *window);
        is_supported.then(|| Self { context, shader: specialised(&SHADER, dtype), bytes, window })
    }

    /// Words that a workgroup computes.
    fn group(&self) -> Result<u32> {
        Ok(self.context.pipeline(&self.shader, "neighbourhood")?.workgroup_size[0])
    }
}

impl<'c> GpuStep<'c> for Percentile<'c> {
    fn record(&self, batch: &mut Batch<'c>, shape: Shape, input: Buffer) -> Result<Buffer> {
        let &Self { context, ref shader, bytes, window } = self;
        let bytes = shape.samples() * bytes;
        let words = bytes.div_ceil(4) as u32;
        let [width, height, depth] = shape.dims.map(|dim| dim as u32);
        let [x, y, z] = window.radius.map(|radius| radius as u32);
        let (channels, rank) = (shape.channels as u32, window.rank as u32);
        let params = MedianParams { words, channels, width, height, depth, x, y, z, rank };
        let result = context.allocate("percentiles", bytes as u64)?;
        let buffers = [("source", &input), ("result", &result)];
        batch.dispatch_over(
            "median",
            (shader, "neighbourhood"),
            &params,
            &buffers,
            words as usize,
        )?;
        Ok(result)
    }
}
