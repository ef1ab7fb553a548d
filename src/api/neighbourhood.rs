//! Filters of the samples around each sample: percentiles, gradients, sharpening.

use super::{filter::filter, sample::Sample};
use crate::{
    kernels::{blur::MAX_SIGMA, gradient::Gradient, median, unsharp::Unsharp},
    util::error::{Error, Result, check_range},
};

/// The median, or another percentile, of the samples in a box around each sample. Each channel is computed by itself. Beyond
/// the border, the nearest sample counts. NaN is greater than all numbers.
///
/// ```
/// use gpuproc::{Channels, Device, Image, Median};
///
/// # fn main() -> gpuproc::Result<()> {
/// let (device, image) = (Device::best(), Image::new(5, 1, Channels::Gray, vec![1u8, 9, 2, 2, 3])?);
/// assert_eq!(Median::new([1; 3]).run(&device, &image)?.samples(), [1, 2, 2, 2, 3]);
/// assert_eq!(Median::new([1; 3]).percentile(100.0).run(&device, &image)?.samples(), [9, 9, 9, 3, 3]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Median {
    radius: [usize; 3],
    percentile: f64,
}

impl Median {
    /// The median of boxes that extend `radius` samples to both sides along x, y and z, 0 to 50. For images, z is ignored.
    pub fn new(radius: [usize; 3]) -> Self {
        Self { radius, percentile: 50.0 }
    }

    /// Sets the percentile, 0 for the smallest sample to 100 for the largest.
    #[must_use]
    pub fn percentile(self, percentile: f64) -> Self {
        Self { percentile, ..self }
    }

    fn kernel(&self, axes: usize) -> Result<median::Median> {
        let mut radius = self.radius;
        radius[axes..].fill(0);
        median::Median::new(self.percentile, radius)
    }
}

filter!(Median => I);

/// The gradient magnitude, which is large at edges: the root of the summed squares of the derivatives along all axes. Each
/// channel is computed by itself, and alpha is kept. Results are `f32`, or `f64` for `u32`, `i32` and `f64`.
///
/// ```
/// use gpuproc::{Channels, Device, GradientMagnitude, Image};
///
/// # fn main() -> gpuproc::Result<()> {
/// let image = Image::new(4, 1, Channels::Gray, vec![0u8, 0, 2, 2])?;
/// let edges = GradientMagnitude::sobel().run(&Device::best(), &image)?;
/// assert_eq!(edges.samples(), [0.0, 8.0, 8.0, 0.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientMagnitude {
    sigma: Option<[f64; 3]>,
}

impl GradientMagnitude {
    /// Derivatives by Sobel's filter: the weights -1 0 1 along the axis and 1 2 1 along the others, not divided by their
    /// sum.
    pub fn sobel() -> Self {
        Self { sigma: None }
    }

    /// Derivatives of a Gaussian. `sigma` are its standard deviations along x, y and z in samples, 0 to 500. An axis with 0
    /// is left out. For images, z is ignored.
    pub fn gaussian(sigma: [f64; 3]) -> Self {
        Self { sigma: Some(sigma) }
    }

    fn kernel(&self, axes: usize) -> Result<Gradient> {
        let sigma = self.sigma.map(|sigma| check_sigma(sigma, axes)).transpose()?;
        match sigma == Some([0.0; 3]) {
            true => Err(Error::usage("sigma: expected a value above 0 along at least one axis")),
            false => Ok(Gradient { axes, sigma, is_float: true }),
        }
    }
}

filter!(GradientMagnitude => I::Of<<I::Sample as Sample>::Float>);

/// Sharpens by an unsharp mask: `sample + amount * (sample - blurred)`, with a Gaussian blur. Alpha is kept.
///
/// ```
/// use gpuproc::{Channels, Device, Image, UnsharpMask};
///
/// # fn main() -> gpuproc::Result<()> {
/// let image = Image::new(4, 1, Channels::Gray, vec![40u8, 40, 80, 80])?;
/// let sharp = UnsharpMask::new([0.5; 3]).run(&Device::best(), &image)?;
/// assert_eq!(sharp.samples(), [40, 36, 84, 80]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnsharpMask(Unsharp);

impl UnsharpMask {
    /// A mask with standard deviations along x, y and z of 0 to 500, the amount 1 and the threshold 0. For images, z is
    /// ignored.
    pub fn new(sigma: [f64; 3]) -> Self {
        Self(Unsharp { sigma, amount: 1.0, threshold: 0.0 })
    }

    /// Sets the factor for the difference, 0 to 100.
    #[must_use]
    pub fn amount(self, amount: f64) -> Self {
        Self(Unsharp { amount, ..self.0 })
    }

    /// Keeps a sample unchanged if `|sample - blurred|` is at most `threshold`, in units of the samples.
    #[must_use]
    pub fn threshold(self, threshold: f64) -> Self {
        Self(Unsharp { threshold, ..self.0 })
    }

    fn kernel(&self, axes: usize) -> Result<Unsharp> {
        check_range("amount", self.0.amount, 0.0..=100.0)?;
        check_range("threshold", self.0.threshold, 0.0..=f64::MAX)?;
        Ok(Unsharp { sigma: check_sigma(self.0.sigma, axes)?, ..self.0 })
    }
}

filter!(UnsharpMask => I);

/// The standard deviations along the first `axes` axes, and 0 along others.
fn check_sigma(mut sigma: [f64; 3], axes: usize) -> Result<[f64; 3]> {
    sigma[axes..].fill(0.0);
    sigma.iter().try_for_each(|&sigma| check_range("sigma", sigma, 0.0..=MAX_SIGMA))?;
    Ok(sigma)
}
