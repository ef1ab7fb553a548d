//! Conversion of colours to grey.

use crate::{data::samples::Samples, for_dtype, util::error::Result};

/// Averages the colours of each pixel. Alpha is ignored.
#[allow(clippy::unnecessary_cast, reason = "one of the types is f64 itself")]
pub fn grey(samples: &Samples, channels: usize) -> Result<Samples> {
    let colours = if channels >= 3 { 3 } else { 1 };
    let dtype = samples.dtype();
    let mut grey = Samples::zeros(dtype, samples.len() / channels)?;
    for_dtype!(dtype, T in [u8 i8 u16 i16 u32 i32 f32 f64] => {
        let from: &[T] = bytemuck::cast_slice(samples.as_bytes());
        let to: &mut [T] = bytemuck::cast_slice_mut(grey.as_bytes_mut());
        for (to, pixel) in to.iter_mut().zip(from.chunks_exact(channels)) {
            let sum: f64 = pixel[..colours].iter().map(|&value| value as f64).sum();
            let mean = sum / colours as f64;
            *to = if dtype.is_float() { mean } else { mean.round() } as T;
        }
    }, _ => unreachable!("not a sample type"));
    Ok(grey)
}
