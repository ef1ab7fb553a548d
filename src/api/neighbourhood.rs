//! Filters of the samples around each sample: percentiles, gradients, sharpening.

use super::{
    filter::filter,
    operation::{Operation, PerAxis, WrongParameter, operation},
    sample::Sample,
};
use crate::{
    kernels::{blur::MAX_SIGMA, gradient::Gradient, median, unsharp::Unsharp},
    util::error::Result,
};

operation! {
    /// Replace each sample by the median or a percentile around it.
    ///
    /// This removes specks and noise, and keeps edges. Type and channels are kept, and each channel is computed by itself.
    /// Volumes are computed in three dimensions. Outside, the nearest sample counts. The result is the same on every device.
    Median: Copy {
        /// Radius of the box of neighbours in pixels, 0 to 50
        radius: PerAxis<usize> = 1, within 0.0..=50.0, flag "-r, --radius <R[,R..]>";
        /// Percentile to take, 0 (the smallest) to 100 (the largest)
        percentile: f64 = 50.0, within 0.0..=100.0, flag "-p, --percentile <P>";
    }
    returns "Array of the shape and type of `image`.";
    python median(radius),
        ">>> gp.median(np.array([1, 9, 2, 2, 3], np.uint8))\narray([1, 2, 2, 2, 3], dtype=uint8)";
    examples
        "gpuproc median photo.png clean.png"
        "gpuproc median scan.tif paper.tif --percentile 90 --radius 20"
        "gpuproc median head.nii.gz smooth.nii.gz --radius 2,2,1";
}

impl Median {
    /// The median of boxes that extend `radius` samples to both sides. NaN is greater than all numbers.
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
    pub fn new(radius: impl Into<PerAxis<usize>>) -> Self {
        Self::default().radius(radius)
    }
}

impl Operation for Median {
    type Kernel = median::Median;

    fn filter(&self, axes: usize) -> Result<median::Median> {
        Ok(median::Median::new(self.percentile, self.radius.along("radius", axes)?))
    }
}

filter!(Median => I);

operation! {
    /// Compute the gradient magnitude of images and volumes.
    ///
    /// The strength of edges: the root of the summed squares of the derivatives along x, y and, in volumes, z. By default,
    /// Sobel's filter computes them, with the weights -1 0 1 along the axis and 1 2 1 along the others, not divided by their
    /// sum; with `sigma`, derivatives of a Gaussian. Each channel is computed by itself, and alpha is kept.
    GradientMagnitude: Copy {
        /// Take derivatives of a Gaussian with this standard deviation in pixels, 0 to 500
        ///
        /// The result is the change per pixel, or per voxel, of the smoothed samples. With 0, there is no derivative along an
        /// axis.
        sigma: Option<PerAxis<f64>>, within 0.0..=MAX_SIGMA, flag "-s, --sigma <S[,S..]>";
        /// Write floats that are neither rounded nor clamped to the type of the samples
        float: bool, flag "--float", library true;
    }
    returns "float32, or float64 for 32-bit integers and float64.";
    python gradient_magnitude(sigma),
        ">>> gp.gradient_magnitude(np.array([[0, 0, 2, 2]] * 3, np.uint8))[1]\narray([0., 8., 8., 0.], dtype=float32)";
    examples
        "gpuproc gradient photo.png edges.png"
        "gpuproc gradient scan.tif edges.tif --sigma 2"
        "gpuproc gradient head.nii.gz edges.nii.gz --sigma 1.5 --float"
        "gpuproc gradient photos/ -o edges/";
}

impl GradientMagnitude {
    /// Derivatives by Sobel's filter. Results are `f32`, or `f64` for `u32`, `i32` and `f64`.
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
    pub fn sobel() -> Self {
        Self::default()
    }

    /// Derivatives of a Gaussian with the standard deviations `sigma`.
    pub fn gaussian(sigma: impl Into<PerAxis<f64>>) -> Self {
        Self::default().sigma(sigma.into())
    }
}

impl Operation for GradientMagnitude {
    type Kernel = Gradient;

    fn filter(&self, axes: usize) -> Result<Gradient> {
        let sigma = self.sigma.map(|sigma| sigma.along("sigma", axes)).transpose()?;
        if sigma == Some([0.0; 3]) {
            let text = ": expected a value above 0 along at least one axis".into();
            return Err(WrongParameter::error("sigma", text));
        }
        // Rows of a NumPy array are images of one row.
        Ok(Gradient { axes: axes.max(2), sigma, is_float: self.float })
    }
}

filter!(GradientMagnitude => I::Of<<I::Sample as Sample>::Float>);

operation! {
    /// Sharpen images and volumes by an unsharp mask.
    ///
    /// Each sample becomes itself plus `amount` times its difference to a Gaussian blur. Type and channels are kept, and alpha
    /// stays the same. Volumes are sharpened in three dimensions. The result is the same on every device.
    UnsharpMask: Copy {
        /// Standard deviation of the blur in pixels, 0 to 500
        sigma: PerAxis<f64> = 1.0, within 0.0..=MAX_SIGMA, flag "-s, --sigma <S[,S..]>";
        /// Strength, -100 to 100; 1 adds the whole difference, and numbers below 0 soften
        amount: f64 = 1.0, within -100.0..=100.0, flag "-a, --amount <A>";
        /// Sharpen only samples whose difference to the blur is larger than this, in units of the samples
        ///
        /// A few units keep noise from being sharpened.
        threshold: f64 = 0.0, within 0.0..=f64::MAX, flag "-T, --threshold <T>";
    }
    returns "Array of the shape and type of `image`. Integers are rounded and clamped to their range.";
    python unsharp_mask(sigma, amount),
        ">>> gp.unsharp_mask(np.array([40, 40, 80, 80], np.uint8), 0.5)\narray([40, 36, 84, 80], dtype=uint8)";
    examples
        "gpuproc unsharp photo.jpg sharp.jpg"
        "gpuproc unsharp photo.png sharp.png --sigma 2 --amount 1.5 --threshold 3"
        "gpuproc unsharp photos/*.jpg -o sharp/ --amount 0.7 --quality 92"
        "gpuproc unsharp head.nii.gz sharp.nii.gz --sigma 1.5";
}

impl UnsharpMask {
    /// A mask whose blur has the standard deviations `sigma`.
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
    pub fn new(sigma: impl Into<PerAxis<f64>>) -> Self {
        Self::default().sigma(sigma)
    }
}

impl Operation for UnsharpMask {
    type Kernel = Unsharp;

    fn filter(&self, axes: usize) -> Result<Unsharp> {
        let Self { sigma, amount, threshold } = *self;
        Ok(Unsharp { sigma: sigma.along("sigma", axes)?, amount, threshold })
    }
}

filter!(UnsharpMask => I);
