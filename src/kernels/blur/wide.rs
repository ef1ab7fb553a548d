//! Blurs of u32, i32 and f64, which f32 cannot hold, in f64, whose 53 bits hold the integers exactly. They run on the
//! CPU whatever the device is, since WGSL has no f64.

use super::{Blur, Edge, cpu, plan::Format};
use crate::{
    data::{dtype::Dtype, grid::Grid, samples::Samples},
    error::{Error, Result},
    parallel,
};

/// Whether samples of this type are blurred here.
pub fn is_wide(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::U32 | Dtype::I32 | Dtype::F64)
}

/// The samples of `raster` after `blur`, of the same type.
///
/// # Errors
/// When there is no memory.
pub fn blur(blur: &Blur, raster: &Grid) -> Result<Samples> {
    let channels = raster.channels;
    // Full alpha.
    let full = match &raster.samples {
        Samples::U32(_) => f64::from(u32::MAX),
        Samples::I32(_) => f64::from(i32::MAX),
        _ => 1.0,
    };
    let mut values: Vec<f64> = match &raster.samples {
        Samples::U32(values) => parallel::mapped(values, |&value| value.into())?,
        Samples::I32(values) => parallel::mapped(values, |&value| value.into())?,
        Samples::F64(values) => parallel::mapped(values, |&value| value)?,
        other => {
            let dtype = other.dtype();
            return Err(Error::bad_input(format_args!("{dtype} samples are not blurred as f64")));
        }
    };
    let mut fill = [0.0; 4];
    if let Edge::Constant(value) = blur.edge {
        fill = [value; 4];
        if raster.has_alpha() {
            fill[channels - 1] = if value == 0.0 { 0.0 } else { full };
        }
    }
    if raster.has_alpha() {
        for pixel in values.chunks_exact_mut(channels) {
            let (alpha, colours) = pixel.split_last_mut().expect("a channel");
            colours.iter_mut().for_each(|value| *value *= *alpha / full);
        }
    }
    let plan = blur.plan(Format::F32, fill);
    let mut blurred = cpu::run_f64(&plan, blur.method, blur.edge, raster.shape(), values)?;
    if raster.has_alpha() {
        for pixel in blurred.chunks_exact_mut(channels) {
            let (alpha, colours) = pixel.split_last_mut().expect("a channel");
            let alpha = *alpha / full;
            colours
                .iter_mut()
                .for_each(|value| *value = if alpha == 0.0 { 0.0 } else { *value / alpha });
        }
    }
    // Casts saturate.
    Ok(match &raster.samples {
        Samples::U32(_) => Samples::U32(parallel::mapped(&blurred, |value| value.round() as u32)?),
        Samples::I32(_) => Samples::I32(parallel::mapped(&blurred, |value| value.round() as i32)?),
        _ => Samples::F64(blurred),
    })
}
