//! Blurs of volumes of any sample type. The kernel blurs u8, u16 and f32:
//! - i8 and i16 are blurred as u8 and u16 with the sign bit flipped, which adds half of the range: the
//!   weights sum to 1, so the blur commutes with it;
//! - u32, i32 and f64 are blurred as f64, on the CPU.
//!
//! Where no neighbour counts, samples of any type stay as they are.

use super::{Blur, Edge, wide::is_wide};
use crate::{
    data::{dtype::Dtype, raster::Raster, samples::Samples, volume::Volume},
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
    let dtype = volume.samples.dtype();
    if is_wide(dtype) && device.may_be_gpu() {
        log::debug!("{dtype} samples are blurred on the CPU, in f64");
    }
    let mut blur = blur.clone();
    if let Edge::Constant(value) = &mut blur.edge {
        *value += match dtype {
            Dtype::I8 => 128.0,
            Dtype::I16 => 32768.0,
            _ => 0.0,
        };
    }
    let samples = to_blurrable(volume.samples)?;
    let raster = Raster { dims: volume.dims, channels: 1, alpha: false, samples };
    let blurred = device.run(&blur, &raster)?;
    Ok(Volume { dims: volume.dims, samples: from_blurrable(blurred, dtype)? })
}

fn to_blurrable(samples: Samples) -> Result<Samples> {
    Ok(match samples {
        Samples::I8(v) => Samples::U8(parallel::mapped(&v, |&v| (v as u8) ^ 0x80)?),
        Samples::I16(v) => Samples::U16(parallel::mapped(&v, |&v| (v as u16) ^ 0x8000)?),
        other => other,
    })
}

fn from_blurrable(samples: Samples, dtype: Dtype) -> Result<Samples> {
    Ok(match (samples, dtype) {
        (Samples::U8(v), Dtype::I8) => Samples::I8(parallel::mapped(&v, |&v| (v ^ 0x80) as i8)?),
        (Samples::U16(v), Dtype::I16) => {
            Samples::I16(parallel::mapped(&v, |&v| (v ^ 0x8000) as i16)?)
        }
        (other, _) => other,
    })
}
