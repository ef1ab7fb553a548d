//! Colours become grey.

use crate::{data::samples::Samples, for_dtype, util::error::Result};

/// The mean of the colours of each pixel; alpha is left out.
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
    }, _ => unreachable!("no type of samples"));
    Ok(grey)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_averaged() {
        let rgb = Samples::U8(vec![0, 0, 1, 1, 1, 0, 255, 255, 255, 10, 20, 40]);
        assert_eq!(grey(&rgb, 3).unwrap(), Samples::U8(vec![0, 1, 255, 23]));
        let rgba = Samples::F32(vec![0.5, 1.0, 0.0, 0.25]);
        assert_eq!(grey(&rgba, 4).unwrap(), Samples::F32(vec![0.5]));
        let with_alpha = Samples::U16(vec![7, 9, 65535, 1]);
        assert_eq!(grey(&with_alpha, 2).unwrap(), Samples::U16(vec![7, 65535]));
    }
}
