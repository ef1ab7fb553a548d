//! Blurs of samples of any type. The kernel blurs u8, u16 and f32:
//! - i8 and i16 are blurred as u8 and u16 with the sign bit flipped, which adds half of the range: the
//!   weights sum to 1, so the blur commutes with it;
//! - u32, i32 and f64 are blurred as f64, on the CPU.
//!
//! None of these types is on the sRGB curve: their samples are linear light or other quantities. With all radii 0,
//! samples of any type stay as they are.

use std::borrow::Cow;

use super::{Blur, Edge, wide::is_wide};
use crate::{
    data::{
        grid::{Alpha, Grid},
        samples::Samples,
        volume::Volume,
    },
    device::Device,
    error::Result,
    parallel,
};

/// `volume` after `blur` on `device`, of the same type.
///
/// # Errors
/// Those of the device.
pub fn blur_volume(device: &Device, blur: &Blur, volume: Volume) -> Result<Volume> {
    if blur.axes.iter().all(|axis| axis.radius == 0) {
        return Ok(volume);
    }
    let Volume { dims, samples } = volume;
    let raster = Grid { dims, channels: 1, alpha: Alpha::None, samples };
    let samples = blur_any(device, blur, Cow::Owned(raster))?;
    Ok(Volume { dims, samples })
}

/// The samples of `raster` after `blur` on `device`, of the same type.
///
/// # Errors
/// Those of the device.
pub fn blur_grid(device: &Device, blur: &Blur, raster: &Grid) -> Result<Samples> {
    blur_any(device, blur, Cow::Borrowed(raster))
}

fn blur_any(device: &Device, blur: &Blur, raster: Cow<'_, Grid>) -> Result<Samples> {
    let dtype = raster.samples.dtype();
    if is_wide(dtype) && device.may_be_gpu() {
        log::debug!("{dtype} samples are blurred on the CPU, in f64");
    }
    let (flipped, offset) = match &raster.samples {
        Samples::I8(v) => (Samples::U8(parallel::mapped(v, |&v| (v as u8) ^ 0x80)?), 128.0),
        Samples::I16(v) => (Samples::U16(parallel::mapped(v, |&v| (v as u16) ^ 0x8000)?), 32768.0),
        _ => return device.run(blur, raster.as_ref()),
    };
    let mut blur = Blur { linear: false, ..blur.clone() };
    if let Edge::Constant(value) = &mut blur.edge {
        *value += offset;
    }
    let raster = Grid { samples: flipped, ..without_samples(raster) };
    Ok(match device.run(&blur, &raster)? {
        Samples::U8(v) => Samples::I8(parallel::mapped(&v, |&v| (v ^ 0x80) as i8)?),
        Samples::U16(v) => Samples::I16(parallel::mapped(&v, |&v| (v ^ 0x8000) as i16)?),
        other => other,
    })
}

/// The shape of `raster`, whose samples are freed where it is owned.
fn without_samples(raster: Cow<'_, Grid>) -> Grid {
    let Grid { dims, channels, alpha, .. } = *raster;
    Grid { dims, channels, alpha, samples: Samples::U8(Vec::new()) }
}
