//! Replaces colour samples by entries of a table, or adds the entry for the luminance of a pixel to all its colours.

use crate::{
    data::samples::Samples,
    gpu::{Context, Shader},
    kernels::{
        histogram::{counts::Pixels, luma::Luma},
        pointwise::map_words,
    },
    shader, shader_struct,
    util::error::Result,
};

static SHADER: Shader = shader!("histogram/adjust");

shader_struct! {
    struct AdjustParams {
        words: u32,
    }
}

/// The shader for samples of `size` bytes.
fn specialised(size: usize, channels: usize, shifts: bool) -> Shader {
    let shader = Luma::Bt709.weighted(&SHADER).with(&[("BITS", size * 8), ("CHANNELS", channels)]);
    shader.with(&[("ALPHA", matches!(channels, 2 | 4)), ("SHIFTS", shifts)])
}

/// The shaders for all samples.
pub fn variants() -> Vec<Shader> {
    let mut shaders = Vec::new();
    for (size, channels) in [1, 2].into_iter().flat_map(|size| (1..=4).map(move |n| (size, n))) {
        shaders.extend([false, true].map(|shifts| specialised(size, channels, shifts)));
    }
    shaders
}

/// Adjusts 8-bit or 16-bit pixels. If `shifts`, the table has a shift for each luminance, otherwise a new sample for
/// each old one.
pub fn apply(context: &Context, pixels: &Pixels, table: &[i32], shifts: bool) -> Result<Samples> {
    let (channels, size) = (pixels.channels, pixels.samples.dtype().size());
    let (shader, table) = (specialised(size, channels, shifts), context.upload("table", table)?);
    let mut result = Samples::zeros(pixels.samples.dtype(), pixels.samples.len())?;
    let data = (pixels.samples.as_bytes(), result.as_bytes_mut());
    let (sizes, table) = (([size; 2], channels), ("table", &table));
    map_words(context, (&shader, "adjust"), data, sizes, table, |words| AdjustParams { words })?;
    Ok(result)
}
