//! Percentiles on a GPU: the bits of each result, the highest first, from counts of the window.

use super::window::Window;
use crate::{
    data::{dtype::Dtype, grid::Shape, samples::Samples},
    gpu::{Context, Shader},
    kernels::{
        device_blocks::in_blocks,
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
///
/// # Errors
/// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device fails.
pub fn select(
    context: &Context,
    samples: &Samples,
    shape: Shape,
    window: &Window,
) -> Result<Option<Samples>> {
    if samples.dtype() == Dtype::F64 || window.size() > MAX_WINDOW {
        return Ok(None);
    }
    let shader = specialised(&SHADER, samples.dtype());
    let entry = (&shader, "neighbourhood");
    let group = context.pipeline(&shader, entry.1)?.workgroup_size[0];
    in_blocks(context, samples, shape, (window.radius, group), |shape, from, to| {
        let words = from.len().div_ceil(4) as u32;
        let [width, height, depth] = shape.dims.map(|dim| dim as u32);
        let [x, y, z] = window.radius.map(|radius| radius as u32);
        let (channels, rank) = (shape.channels as u32, window.rank as u32);
        let params = MedianParams { words, channels, width, height, depth, x, y, z, rank };
        let source = context.upload("samples", from)?;
        let result = context.allocate("percentiles", from.len() as u64)?;
        let mut batch = context.batch();
        let buffers = [("source", &source), ("result", &result)];
        batch.dispatch_over("median", entry, &params, &buffers, words as usize)?;
        batch.run()?;
        context.read_into(&result, to)
    })
}
