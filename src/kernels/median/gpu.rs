//! Percentiles on a GPU: the bits of each result, the highest first, from counts of the window.

use super::window::Window;
use crate::{
    data::{dtype::Dtype, grid::Shape, samples::Samples},
    gpu::{Batch, Buffer, Context, Shader},
    kernels::{
        device_blocks::{fits, in_blocks},
        gpu_step::{GpuLayout, GpuStep, GpuStepResult},
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
        pitch: u32,
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
    in_blocks(context, samples, shape, window.radius, step.group()?, |batch, layout, input| {
        step.record_block(batch, layout, input)
    })
}

/// Whether a device can find the percentiles of samples of type `dtype`.
pub fn is_supported(dtype: Dtype, window: &Window) -> bool {
    dtype != Dtype::F64 && window.size() <= MAX_WINDOW
}

/// As [`select`], of whole grids of the layout `input` on the device.
pub fn prepare<'c>(context: &'c Context, input: GpuLayout, window: &Window) -> GpuStepResult<'c> {
    let Some(percentile) = Percentile::new(context, input.grid.dtype, window) else {
        return Ok(None);
    };
    let fits = fits(context, input.bytes(), percentile.group()?);
    let record = move |batch: &mut Batch<'c>, grid| percentile.record_block(batch, input, grid);
    Ok(fits.then(|| GpuStep::new(input, record)))
}

/// A percentile on the device.
struct Percentile<'c> {
    context: &'c Context,
    shader: Shader,
    window: Window,
}

impl<'c> Percentile<'c> {
    fn new(context: &'c Context, dtype: Dtype, window: &Window) -> Option<Self> {
        is_supported(dtype, window).then(|| Self {
            context,
            shader: specialised(&SHADER, dtype),
            window: *window,
        })
    }

    /// Words that a workgroup computes.
    fn group(&self) -> Result<u32> {
        Ok(self.context.pipeline(&self.shader, "neighbourhood")?.workgroup_size[0])
    }

    /// Records the percentiles of the grid in `input`.
    fn record_block(
        &self,
        batch: &mut Batch<'c>,
        layout: GpuLayout,
        input: Buffer,
    ) -> Result<Buffer> {
        let &Self { context, ref shader, window } = self;
        let words = layout.bytes().div_ceil(4) as u32;
        let Shape { dims, channels } = layout.grid.shape;
        let [width, height, depth] = dims.map(|dim| dim as u32);
        let [x, y, z] = window.radius.map(|radius| radius as u32);
        let (channels, pitch, rank) = (channels as u32, layout.pitch as u32, window.rank as u32);
        let params = MedianParams { words, channels, width, pitch, height, depth, x, y, z, rank };
        let result = context.allocate("percentiles", layout.bytes())?;
        let entry = "neighbourhood";
        let buffers = [("source", &input), ("result", &result)];
        batch.dispatch_over("median", shader, entry, &params, &buffers, words as usize)?;
        Ok(result)
    }
}
