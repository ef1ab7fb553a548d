//! Filters of images and volumes: thresholds, morphology, changes of size, projections, adjustments.

use super::{
    device::Device,
    image::Image,
    raster::{Raster, filtered, sealed::Stored},
    sample::Sample,
};
use crate::{
    data::grid::Grid,
    kernels::{
        histogram::{LookupTable, Pixels, luminance_histogram},
        label,
        morph::{self, ElementShape, Operation},
        project::{self, Method},
        resize::{self, Interpolation, Size},
        threshold::{self, Classify},
    },
    util::error::{Error, Result},
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

    /// Computes the thresholds between 2 to 16 `classes` by Otsu's method (A Threshold Selection Method from
    /// Gray-Level Histograms, 1979).
    pub fn otsu(classes: usize) -> Self {
        Self(threshold::Threshold::Otsu(classes.wrapping_sub(1)))
    }

    /// Returns the classes of all pixels or voxels, in one channel.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) when thresholds are not ascending or their number is out of range,
    /// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when the input has no samples, or too few different ones,
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) when the device fails.
    pub fn run<I: Raster>(&self, device: &Device, input: &I) -> Result<I::Of<u8>> {
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
            _ => filtered(device, &Classify::from(self.0.clone()), input),
        }
    }
}

/// Greyscale morphology with a structuring element. Each channel is processed by itself; samples outside do not count.
///
/// ```
/// use gpuproc::{Channels, Device, Image, Morph, MorphOperation};
///
/// # fn main() -> gpuproc::Result<()> {
/// let image = Image::new(5, 1, Channels::Gray, vec![0u8, 0, 9, 0, 0])?;
/// let wide = Morph::new(MorphOperation::Dilate, [1, 0, 0]).run(&Device::best(), &image)?;
/// assert_eq!(wide.samples(), [0, 9, 9, 9, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Morph {
    operation: Operation,
    element: ElementShape,
    radius: [usize; 3],
}

impl Morph {
    /// An operation with a box that extends `radius` samples to both sides along x, y and z: at most 10,000 for a box
    /// and 100 for other elements. For images, z is ignored.
    pub fn new(operation: Operation, radius: [usize; 3]) -> Self {
        Self { operation, element: ElementShape::Box, radius }
    }

    /// Sets the shape of the structuring element. A ball has one radius for all axes.
    #[must_use]
    pub fn element(self, element: ElementShape) -> Self {
        Self { element, ..self }
    }

    /// Returns the result, which has the type and the size of the input.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) when a radius is out of range,
    /// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when the input has no samples,
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) when the device fails.
    pub fn run<I: Raster>(&self, device: &Device, input: &I) -> Result<I> {
        let mut radius = self.radius;
        radius[I::AXES..].fill(0);
        filtered(device, &morph::Morph::new(self.operation, self.element, radius)?, input)
    }
}

/// Changes the size of images and volumes. Colours are premultiplied by alpha meanwhile.
///
/// ```
/// use gpuproc::{Channels, Device, Image, Resize, Size};
///
/// # fn main() -> gpuproc::Result<()> {
/// let image = Image::new(4, 2, Channels::Gray, vec![50u8; 8])?;
/// let half = Resize::new(Size::Scale([0.5; 3])).run(&Device::best(), &image)?;
/// assert_eq!((half.width(), half.samples()), (2, &[50, 50][..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Resize {
    size: Size,
    interpolation: Interpolation,
    linear: bool,
}

impl Resize {
    /// A change to `size` by Lanczos interpolation with three lobes. For images, z is ignored.
    pub fn new(size: Size) -> Self {
        Self { size, interpolation: Interpolation::Lanczos3, linear: false }
    }

    /// Sets how samples are interpolated.
    #[must_use]
    pub fn interpolation(self, interpolation: Interpolation) -> Self {
        Self { interpolation, ..self }
    }

    /// Averages `u8` and `u16` samples in linear light rather than by their stored sRGB values.
    #[must_use]
    pub fn linear_light(self) -> Self {
        Self { linear: true, ..self }
    }

    /// Returns the input in the new size.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) when a side is 0 or a factor is not a positive number,
    /// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when the input has no samples, or the result is too large,
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) when the device fails.
    pub fn run<I: Raster>(&self, device: &Device, input: &I) -> Result<I> {
        let is_valid = match &self.size {
            Size::Exact(sides) => {
                sides[..I::AXES].iter().any(Option::is_some)
                    && sides.iter().all(|&side| side != Some(0))
            }
            Size::Scale(factors) => factors.iter().all(|&f| f > 0.0 && f.is_finite()),
            Size::Longest(side) => *side > 0,
        };
        if !is_valid {
            let size = &self.size;
            return Err(Error::usage(format_args!("{size:?}: expected a size above 0")));
        }
        let (size, filter, linear) = (self.size.clone(), self.interpolation, self.linear);
        let resize = resize::Resize { size, axes: I::AXES, filter, linear, shrink_on_load: false };
        filtered(device, &resize, input)
    }
}

/// Connected components: neighbouring samples that are not 0 get the same number, from 1 in the order of their first
/// samples. Background is 0.
///
/// ```
/// use gpuproc::{Channels, Device, Image, Label};
///
/// # fn main() -> gpuproc::Result<()> {
/// let mask = Image::new(5, 1, Channels::Gray, vec![9u8, 1, 0, 0, 3])?;
/// let labels = Label::new(8).run(&Device::best(), &mask)?;
/// assert_eq!(labels.samples(), [1, 1, 0, 0, 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    connectivity: usize,
    is_equal: bool,
    min_size: u64,
}

impl Label {
    /// Components of samples with this number of neighbours: 4 or 8 in images, 6, 18 or 26 in volumes.
    pub fn new(connectivity: usize) -> Self {
        Self { connectivity, is_equal: false, min_size: 1 }
    }

    /// Joins only neighbours with equal samples.
    #[must_use]
    pub fn equal(self) -> Self {
        Self { is_equal: true, ..self }
    }

    /// Makes components of fewer than `samples` samples background.
    #[must_use]
    pub fn min_size(self, samples: u64) -> Self {
        Self { min_size: samples, ..self }
    }

    /// Returns the number of the component of each pixel or voxel, in one channel.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for a number of neighbours that the input does not have,
    /// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when the input has no samples, or there are several channels
    /// that cannot be compared, [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) when the device fails.
    pub fn run<I: Raster>(&self, device: &Device, input: &I) -> Result<I::Of<u32>> {
        let connectivity = Some(self.connectivity);
        let label = label::Label::new(connectivity, I::AXES, self.is_equal, self.min_size)?;
        filtered(device, &label, input)
    }
}

/// Projections: the samples of each line along an axis become one. Results have one position along that axis.
///
/// ```
/// use gpuproc::{Device, Projection, Volume};
///
/// # fn main() -> gpuproc::Result<()> {
/// let volume = Volume::new([2, 1, 2], vec![1u8, 7, 2, 3])?;
/// let z = Projection::along(2);
/// assert_eq!(z.max(&Device::best(), &volume)?.samples(), [2, 7]);
/// assert_eq!(z.mean(&Device::best(), &volume)?.samples(), [1.5, 5.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Projection {
    axis: usize,
}

impl Projection {
    /// Projections along `axis`: 0 for x, 1 for y, 2 for z.
    pub fn along(axis: usize) -> Self {
        Self { axis }
    }

    /// The maximum of each line; NaN if a sample is NaN.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) when the input has no such axis,
    /// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when it has no samples,
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) when the device fails.
    pub fn max<I: Raster>(&self, device: &Device, input: &I) -> Result<I> {
        self.run(device, input, Method::Max)
    }

    /// The minimum of each line; NaN if a sample is NaN.
    ///
    /// # Errors
    /// As [`Projection::max`].
    pub fn min<I: Raster>(&self, device: &Device, input: &I) -> Result<I> {
        self.run(device, input, Method::Min)
    }

    /// The mean of each line.
    ///
    /// # Errors
    /// As [`Projection::max`].
    pub fn mean<I: Raster>(&self, device: &Device, input: &I) -> Result<I::Of<f32>> {
        self.run(device, input, Method::Mean)
    }

    /// The sum of each line.
    ///
    /// # Errors
    /// As [`Projection::max`].
    pub fn sum<I: Raster>(&self, device: &Device, input: &I) -> Result<I::Of<f64>> {
        self.run(device, input, Method::Sum)
    }

    /// The standard deviation of all samples of each line.
    ///
    /// # Errors
    /// As [`Projection::max`].
    pub fn std<I: Raster>(&self, device: &Device, input: &I) -> Result<I::Of<f32>> {
        self.run(device, input, Method::Std)
    }

    fn run<I: Raster, O: Raster>(&self, device: &Device, input: &I, method: Method) -> Result<O> {
        match self.axis < I::AXES {
            true => filtered(device, &project::Projection { method, axis: self.axis }, input),
            false => Err(Error::usage(format_args!(
                "the axis is {}, expected 0 to {}",
                self.axis,
                I::AXES - 1
            ))),
        }
    }
}

/// Equalises the histogram of the luminance of an image of `u8` or `u16` samples (Gonzalez and Woods, Digital Image
/// Processing, 3.3.1).
///
/// # Errors
/// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) for other types of samples,
/// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) when the device fails.
pub fn equalize<T: Sample>(device: &Device, image: &Image<T>) -> Result<Image<T>> {
    adjusted(device, image, LookupTable::equalize)
}

/// Stretches the luminance of an image of `u8` or `u16` samples to the full range: a share `clip` of the pixels, at least
/// 0 and less than 0.5, becomes black, and the same share white.
///
/// # Errors
/// As [`equalize`], and [`ErrorKind::Usage`](crate::ErrorKind::Usage) when `clip` is out of range.
pub fn auto_levels<T: Sample>(device: &Device, image: &Image<T>, clip: f64) -> Result<Image<T>> {
    match (0.0..0.5).contains(&clip) {
        true => adjusted(device, image, |counts| LookupTable::levels(counts, clip)),
        false => {
            Err(Error::usage(format_args!("clip is {clip}, expected at least 0 and less than 0.5")))
        }
    }
}

fn adjusted<T: Sample>(
    device: &Device,
    image: &Image<T>,
    table: impl Fn(&crate::kernels::histogram::Counts) -> LookupTable,
) -> Result<Image<T>> {
    let grid = image.grid();
    let histogram = luminance_histogram(T::DTYPE, grid.channels)?;
    let pixels = Pixels { samples: grid.samples.copy()?, channels: grid.channels };
    let samples = match pixels.is_empty() {
        true => pixels.samples,
        false => device.run(&table(&device.run(&histogram, &pixels)?[0]), &pixels)?,
    };
    Ok(Image::from_grid(Grid { samples, ..*grid }))
}
