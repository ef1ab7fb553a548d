//! Thresholds: the same for all samples, or one for each sample.

use super::filter::filter;
use crate::{
    kernels::{
        blur::{MAX_RADIUS, MAX_SIGMA},
        hysteresis,
        local_threshold::{self, LocalMethod},
        threshold::{self, Classify},
    },
    util::error::{Error, Result, check_range},
};

/// Divides samples into classes by thresholds. Colours are compared by their luminance (BT.709).
///
/// ```
/// use gpuproc::{Channels, Device, Image, Threshold};
///
/// # fn main() -> gpuproc::Result<()> {
/// let image = Image::new(4, 1, Channels::Gray, vec![10u8, 20, 200, 210])?;
/// let mask = Threshold::otsu(2).run(&Device::best(), &image)?;
/// assert_eq!(mask.samples(), [0, 0, 255, 255]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold(threshold::Threshold);

impl Threshold {
    /// A mask: 255 for samples greater than `value`, 0 for all others.
    pub fn above(value: f64) -> Self {
        Self::classes(&[value])
    }

    /// The class of a sample is the number of `thresholds` that it exceeds. There are 1 to 255 of them, ascending. With
    /// one threshold, the classes are 0 and 255.
    pub fn classes(thresholds: &[f64]) -> Self {
        Self(threshold::Threshold::Values(thresholds.to_vec()))
    }

    /// Computes the thresholds that separate `classes` classes (2 to 16) by Otsu's method (A Threshold Selection Method
    /// from Gray-Level Histograms, 1979).
    pub fn otsu(classes: usize) -> Self {
        Self(threshold::Threshold::Otsu(classes.wrapping_sub(1)))
    }

    fn kernel(&self, _axes: usize) -> Result<Classify> {
        match &self.0 {
            threshold::Threshold::Values(values)
                if !(1..=255).contains(&values.len()) || !values.is_sorted_by(|a, b| a < b) =>
            {
                Err(Error::usage("expected 1 to 255 ascending thresholds"))
            }
            threshold::Threshold::Values(values) if values[0].is_nan() => {
                Err(Error::usage("the threshold is NaN"))
            }
            threshold::Threshold::Otsu(count) if !(1..=15).contains(count) => {
                Err(Error::usage("expected 2 to 16 classes"))
            }
            _ => Ok(Classify::from(self.0.clone())),
        }
    }
}

filter!(Threshold => I::Of<u8>);

/// Local (adaptive) thresholding: compares each sample with a threshold that is computed from its neighbourhood. The
/// thresholds are those of scikit-image's `threshold_local` and `threshold_sauvola`. The result is a mask with one channel;
/// colours are compared by their luminance (BT.709).
///
/// ```
/// use gpuproc::{Channels, Device, Image, LocalThreshold};
///
/// # fn main() -> gpuproc::Result<()> {
/// let image = Image::new(6, 1, Channels::Gray, vec![10u8, 30, 10, 90, 150, 90])?;
/// let mask = LocalThreshold::mean([3, 1, 1]).offset(-9.0).run(&Device::best(), &image)?;
/// assert_eq!(mask.samples(), [0, 255, 0, 0, 255, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LocalThreshold {
    window: [usize; 3],
    kernel: local_threshold::LocalThreshold,
}

impl LocalThreshold {
    /// The threshold is the mean of a window of odd sizes along x, y and z, 1 to 20,001 samples. For images, z is ignored.
    pub fn mean(window: [usize; 3]) -> Self {
        let (method, sigma, radius) = (LocalMethod::Mean, [0.0; 3], window.map(|size| size / 2));
        let (offset, k, range) = (0.0, 0.2, None);
        let kernel = local_threshold::LocalThreshold { method, radius, sigma, offset, k, range };
        Self { window, kernel }
    }

    /// The threshold is the Gaussian-weighted mean. `sigma` are the standard deviations along x, y and z in samples, 0 to
    /// 500. For images, z is ignored.
    pub fn gaussian(sigma: [f64; 3]) -> Self {
        Self::mean([1; 3])
            .with(|kernel| (kernel.method, kernel.sigma) = (LocalMethod::Gaussian, sigma))
    }

    /// The threshold is `m * (1 + k * (s / range - 1))`, with the mean m and the standard deviation s of the window (Sauvola
    /// and Pietikäinen, Adaptive document image binarization, 2000).
    pub fn sauvola(window: [usize; 3]) -> Self {
        Self::mean(window).with(|kernel| kernel.method = LocalMethod::Sauvola)
    }

    /// Sets the number that is subtracted from means, instead of 0. Sauvola's method ignores it.
    #[must_use]
    pub fn offset(self, offset: f64) -> Self {
        self.with(|kernel| kernel.offset = offset)
    }

    /// Sets the factor k of Sauvola's method, instead of 0.2. Larger values make the mask larger.
    #[must_use]
    pub fn k(self, k: f64) -> Self {
        self.with(|kernel| kernel.k = k)
    }

    /// Sets `range` of Sauvola's method. By default, it is half the range of an integer type, or 1 for floats.
    #[must_use]
    pub fn range(self, range: f64) -> Self {
        self.with(|kernel| kernel.range = Some(range))
    }

    fn with(mut self, change: impl FnOnce(&mut local_threshold::LocalThreshold)) -> Self {
        change(&mut self.kernel);
        self
    }

    fn kernel(&self, axes: usize) -> Result<local_threshold::LocalThreshold> {
        let mut kernel = self.kernel.clone();
        kernel.radius[axes..].fill(0);
        kernel.sigma[axes..].fill(0.0);
        let max = 2 * MAX_RADIUS + 1;
        if let Some(size) = self.window[..axes].iter().find(|&&size| size % 2 == 0 || size > max) {
            return Err(Error::usage(format_args!(
                "the window is {size}, expected an odd number from 1 to {max}"
            )));
        }
        kernel.sigma.iter().try_for_each(|&sigma| check_range("sigma", sigma, 0.0..=MAX_SIGMA))?;
        for (name, value) in
            [("offset", Some(kernel.offset)), ("k", Some(kernel.k)), ("range", kernel.range)]
        {
            if let Some(value) = value.filter(|value| !value.is_finite()) {
                return Err(Error::usage(format_args!(
                    "{name} is {value}, expected a finite number"
                )));
            }
        }
        Ok(kernel)
    }
}

filter!(LocalThreshold => I::Of<u8>);

/// Hysteresis thresholding: a mask of the samples above a low threshold that are connected to a sample above a high one
/// (4-connectivity in images, 6-connectivity in volumes). It has one channel; colours are compared by luminance (BT.709).
///
/// ```
/// use gpuproc::{Device, Hysteresis, Volume};
///
/// # fn main() -> gpuproc::Result<()> {
/// let volume = Volume::new([5, 1, 1], vec![5i16, 9, 0, 5, 5])?;
/// let mask = Hysteresis::new(4.0, 8.0).run(&Device::best(), &volume)?;
/// assert_eq!(mask.samples(), [255, 255, 0, 0, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hysteresis {
    low: f64,
    high: f64,
}

impl Hysteresis {
    /// Sets the thresholds; `low` is at most `high`.
    pub fn new(low: f64, high: f64) -> Self {
        Self { low, high }
    }

    fn kernel(&self, _axes: usize) -> Result<hysteresis::Hysteresis> {
        let Self { low, high } = *self;
        if low <= high {
            return Ok(hysteresis::Hysteresis::new([low, high]));
        }
        Err(Error::usage(format_args!("low is {low}, expected at most high ({high})")))
    }
}

filter!(Hysteresis => I::Of<u8>);
