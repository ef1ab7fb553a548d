//! Looks colour samples up in a table, or adds to all colours of a pixel the table's entry for its luminance.

use super::bands::BAND;
use crate::{
    data::samples::Samples,
    gpu::{Context, Shader},
    kernels::histogram::counts::Pixels,
    shader, shader_struct,
    util::error::Result,
};

static SHADER: Shader = shader!("histogram/adjust");

shader_struct! {
    struct AdjustJob {
        words: u32,
    }
}

/// The shader for samples of `size` bytes.
fn specialised(size: usize, channels: usize, shifts: bool) -> Shader {
    let flag = |flag: bool| if flag { "true" } else { "false" };
    SHADER.with(&[
        ("BITS", &format!("{}u", size * 8)),
        ("CHANNELS", &format!("{channels}u")),
        ("ALPHA", flag(matches!(channels, 2 | 4))),
        ("SHIFTS", flag(shifts)),
    ])
}

/// The shaders for all samples.
pub fn variants() -> Vec<Shader> {
    let mut shaders = Vec::new();
    for (size, channels) in [1, 2].into_iter().flat_map(|size| (1..=4).map(move |n| (size, n))) {
        shaders.extend([false, true].map(|shifts| specialised(size, channels, shifts)));
    }
    shaders
}

/// The adjusted samples of 8-bit or 16-bit pixels. `shifts`: whether the table holds shifts by luminance, or
/// else new samples by old ones.
///
/// # Errors
/// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device fails, [`Kind::Failure`](crate::util::error::Kind::Failure) when
/// there is no memory for the result.
pub fn apply(context: &Context, pixels: &Pixels, table: &[i32], shifts: bool) -> Result<Samples> {
    let (channels, size) = (pixels.channels, pixels.samples.dtype().size());
    let pipeline = context.pipeline(&specialised(size, channels, shifts), "adjust")?;
    let table = context.upload("table", table)?;
    let mut result = pixels.samples.copy()?;
    // Bands of whole pixels and whole words.
    let step = 4 * channels * size;
    let band = (context.max_binding().min(BAND) as usize / step).max(1) * step;
    let band = band.min(result.as_bytes().len().next_multiple_of(4));
    let data = context.allocate("pixels", band as u64)?;
    let adjusted = context.allocate("adjusted pixels", band as u64)?;
    for bytes in result.as_bytes_mut().chunks_mut(band.max(1)) {
        context.write(&data, 0, bytes)?;
        let words = bytes.len().div_ceil(4) as u32;
        let groups = u64::from(words).div_ceil(u64::from(pipeline.workgroup_size[0]));
        let mut batch = context.batch();
        batch
            .pass("adjust", &pipeline)
            .buffer("data", &data)
            .buffer("table", &table)
            .buffer("result", &adjusted)
            .uniform("job", &AdjustJob { words })
            .dispatch(context.fold(groups)?);
        batch.run()?;
        let mut at = 0;
        context.read_with(&adjusted, 0..bytes.len() as u64, |chunk| {
            bytes[at..at + chunk.len()].copy_from_slice(chunk);
            at += chunk.len();
            Ok(())
        })?;
    }
    Ok(result)
}
