//! Blurs of images and volumes.

use std::sync::Arc;

use super::{
    device::Progress,
    filter::{Filter, filtered, kernels, run_methods},
    raster::Raster,
};
use crate::{
    kernels::blur::{self, Edge, MAX_RADIUS, MAX_SIGMA, Method, Taps},
    util::error::{Error, Result, check_range},
};

/// A Gaussian or box blur, with one size for all axes or one for each. Pixels outside of the image have the
/// value of the nearest pixel inside, unless [`Blur::edge`] says otherwise.
///
/// Results are the same bytes on every device. The result of an input without samples is the input.
///
/// ```
/// use gpuproc::{Blur, Device, Edge, Volume};
///
/// # fn main() -> gpuproc::Result<()> {
/// let volume = Volume::new([3, 1, 1], vec![0i16, 0, 90])?;
/// let mean = Blur::box_filter_xyz([1, 0, 0]).edge(Edge::Wrap).run(&Device::best(), &volume)?;
/// assert_eq!(mean.samples(), [30, 30, 30]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Blur {
    method: Method,
    /// Standard deviations of a Gaussian, radii of a box.
    sizes: [f64; 3],
    iterations: usize,
    edge: Edge,
    linear: bool,
}

impl Blur {
    /// A Gaussian with a standard deviation of `sigma` pixels, 0 to 500, cut off at 3 sigma.
    pub fn gaussian(sigma: f64) -> Self {
        Self::gaussian_xyz([sigma; 3])
    }

    /// A Gaussian with a standard deviation for each of x, y and z. For images, z is ignored.
    pub fn gaussian_xyz(sigmas: [f64; 3]) -> Self {
        let (method, iterations, edge) = (Method::Gaussian, 1, Edge::Clamp);
        Self { method, sizes: sigmas, iterations, edge, linear: false }
    }

    /// A box filter: the mean of the `2 * radius + 1` pixels around each pixel, along each axis. `radius` is 0 to
    /// 10,000.
    pub fn box_filter(radius: usize) -> Self {
        Self::box_filter_xyz([radius; 3])
    }

    /// A box filter with a radius for each of x, y and z. For images, z is ignored.
    pub fn box_filter_xyz(radii: [usize; 3]) -> Self {
        let sizes = radii.map(|radius| radius as f64);
        Self { method: Method::Box, sizes, ..Self::gaussian(0.0) }
    }

    /// Sets the values outside of the image or volume.
    #[must_use]
    pub fn edge(self, edge: Edge) -> Self {
        Self { edge, ..self }
    }

    /// Sets how often the blur is applied, 1 to 10; three boxes approximate a Gaussian.
    #[must_use]
    pub fn iterations(self, iterations: usize) -> Self {
        Self { iterations, ..self }
    }

    /// Blurs `u8` and `u16` images in linear light rather than by their stored sRGB values. Volumes are refused, since
    /// their samples are not encoded for a display.
    #[must_use]
    pub fn linear_light(self) -> Self {
        Self { linear: true, ..self }
    }

    /// The kernel for an input with `axes` axes.
    fn kernel(&self, axes: usize) -> Result<blur::Blur> {
        if self.linear && axes > 2 {
            return Err(Error::usage("linear light is for images, not for volumes"));
        }
        check_range("iterations", self.iterations as f64, 1.0..=10.0)?;
        let mut taps = [Taps::NONE; 3];
        for (taps, &size) in taps[..axes].iter_mut().zip(&self.sizes) {
            match self.method {
                Method::Gaussian => check_range("sigma", size, 0.0..=MAX_SIGMA)?,
                Method::Box => check_range("radius", size, 0.0..=MAX_RADIUS as f64)?,
            }
            *taps = match self.method {
                Method::Gaussian => Taps::gaussian(size, (3.0 * size).ceil() as usize),
                Method::Box => Taps::box_filter(size as usize),
            };
        }
        let Self { method, iterations, edge, linear, .. } = *self;
        Ok(blur::Blur { method, axes: taps, iterations, edge, linear })
    }
}

impl Filter for Blur {
    type Output<I: Raster> = I;
    const STEPS: usize = 1;

    fn apply<I: Raster>(&self, progress: &Progress<'_>, input: &I) -> Result<I> {
        let kernel = self.kernel(I::AXES)?;
        match input.grid().samples.is_empty() {
            true => Ok(I::from_grid(input.grid().clone())),
            false => filtered(progress, Arc::new(kernel), input),
        }
    }

    kernels!();
}

impl Blur {
    run_methods!(I);
}
