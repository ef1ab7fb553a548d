//! Filters of images and volumes: morphology, changes of size, components, projections, adjustments.

use std::sync::Arc;

use super::{
    device::{Device, Progress},
    filter::{filter, filtered},
    image::Image,
    operation::{Operation, PerAxis, WrongParameter, choices, operation},
    raster::{Raster, sealed::Stored},
    sample::Sample,
};
use crate::{
    data::grid::Grid,
    kernels::{
        histogram::{LookupTable, Pixels, luminance_histogram},
        label,
        morph::{self, ElementShape},
        project::{self, Method},
        resize::{self, Interpolation, Size},
    },
    util::error::{Error, Result},
};

choices! {
    morph::Operation {
        Erode: "erode", "The smallest of the neighbours";
        Dilate: "dilate", "The largest of the neighbours";
        Open: "open", "Erode, then dilate: removes small bright spots";
        Close: "close", "Dilate, then erode: removes small dark spots";
        Gradient: "gradient", "Dilation minus erosion: outlines";
        TopHat: "tophat|white-tophat", "Input minus opening: small bright spots";
        BlackHat: "blackhat|black-tophat", "Closing minus input: small dark spots";
    }
}

choices! {
    ElementShape {
        Box: "box|square|cube", "All neighbours within the radius along each axis";
        Cross: "cross", "The neighbours along the axes";
        Ball: "ball|disk", "The neighbours within the radius: a disk in images";
    }
}

operation! {
    /// Erode, dilate, open or close images and volumes.
    ///
    /// Each sample becomes the smallest (erode) or largest (dilate) of the samples under a structuring element around it;
    /// other operations combine the two. Type and channels are kept, and each channel is computed by itself. Volumes are
    /// computed in three dimensions. Samples outside do not count. The result is the same on every device.
    Morph: Copy {
        /// Operation on the samples under the element
        op: morph::Operation, flag "--op <OP>";
        /// Radius of the element in pixels, 0 to 10000 (box) or 0 to 100 (cross, ball)
        radius: PerAxis<usize> = 1, within 0.0..=10000.0, flag "-r, --radius <R[,R..]>";
        /// Shape of the structuring element
        element: ElementShape = "box", flag "-e, --element <SHAPE>", python shape;
    }
    returns "Array of the shape and type of `image`. Samples outside do not count, as in SciPy's mode \"reflect\".";
    python erosion(radius) with op "erode": "Smallest sample under a structuring element.",
        ">>> gp.erosion(np.array([0, 9, 9, 9, 9], np.uint8))\narray([0, 0, 9, 9, 9], dtype=uint8)";
    python dilation(radius) with op "dilate": "Largest sample under a structuring element.",
        ">>> gp.dilation(np.array([0, 0, 9, 0, 0], np.uint8))\narray([0, 9, 9, 9, 0], dtype=uint8)";
    python opening(radius) with op "open": "Erosion, then dilation: removes small bright spots.",
        ">>> gp.opening(np.array([0, 9, 0, 0, 0], np.uint8))\narray([0, 0, 0, 0, 0], dtype=uint8)";
    python closing(radius) with op "close": "Dilation, then erosion: removes small dark spots.",
        ">>> gp.closing(np.array([9, 9, 0, 9, 9], np.uint8))\narray([9, 9, 9, 9, 9], dtype=uint8)";
    python morphological_gradient(radius) with op "gradient": "Dilation minus erosion: outlines.",
        ">>> gp.morphological_gradient(np.array([0, 0, 0, 9, 9], np.uint8))\narray([0, 0, 9, 9, 0], dtype=uint8)";
    python white_tophat(radius) with op "tophat": "Image minus its opening: small bright spots.",
        ">>> gp.white_tophat(np.array([1, 9, 1, 1, 1], np.uint8))\narray([0, 8, 0, 0, 0], dtype=uint8)";
    python black_tophat(radius) with op "blackhat": "Closing minus the image: small dark spots.",
        ">>> gp.black_tophat(np.array([9, 9, 1, 9, 9], np.uint8))\narray([0, 0, 8, 0, 0], dtype=uint8)";
    examples
        "gpuproc morph photo.png thin.png --op erode"
        "gpuproc morph mask.png clean.png --op open --radius 3 --element ball"
        "gpuproc morph page.png ink.png --op blackhat --radius 15"
        "gpuproc morph head.nii.gz closed.nii.gz --op close --radius 2,2,1";
}

impl Morph {
    /// An operation with a box that extends `radius` samples to both sides.
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
    pub fn new(operation: morph::Operation, radius: impl Into<PerAxis<usize>>) -> Self {
        Self::default().op(operation).radius(radius)
    }
}

impl Operation for Morph {
    type Kernel = morph::Morph;

    fn filter(&self, axes: usize) -> Result<morph::Morph> {
        /// Maximum radius of a cross and a ball.
        const MAX_RADIUS: usize = 100;
        let radius = self.radius.along("radius", axes)?;
        let wrong = |text| Err(WrongParameter::error("radius", text));
        if self.element != ElementShape::Box
            && let Some(radius) = radius.iter().find(|&&radius| radius > MAX_RADIUS)
        {
            return wrong(format!(" is {radius}, expected 0 to {MAX_RADIUS}"));
        }
        // On one axis, all shapes are lines.
        let is_line = self.element == ElementShape::Ball && axes == 1;
        let element = if is_line { ElementShape::Box } else { self.element };
        let [x, y, z] = radius;
        if element == ElementShape::Ball && (y != x || z != 0 && z != x) {
            return wrong(": a ball has one radius for all axes".into());
        }
        Ok(morph::Morph::new(self.op, element, radius))
    }
}

filter!(Morph => I);

choices! {
    Interpolation {
        Nearest: "nearest", "The nearest sample: for labels and pixel art";
        Area: "area", "Mean of the samples that a result covers";
        Linear: "linear", "Linear";
        Cubic: "cubic", "Cubic (Catmull-Rom)";
        Lanczos3: "lanczos3", "Lanczos of 3 lobes";
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

    fn kernel(&self, axes: usize) -> Result<resize::Resize> {
        let is_valid = match &self.size {
            Size::Exact(sides) => {
                sides[..axes].iter().any(Option::is_some)
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
        Ok(resize::Resize { size, axes, filter, linear, shrink_on_load: false })
    }
}

filter!(Resize => I);

operation! {
    /// Number the connected components of masks and segmentations.
    ///
    /// Neighbouring samples that are not 0 form a component. Components are numbered from 1 in the order of their first
    /// samples: by row in images, by slice and row in volumes. Background is 0. The result has 16 bits, or 32 if there are
    /// more than 65,535 components. It is the same on every device and for every division into blocks or shards.
    Label: Copy {
        /// Neighbours of a sample: 4 or 8 in images, 6, 18 or 26 in volumes [default: 8 or 26]
        ///
        /// 4 and 6 share a side. 8 and 26 share at least a corner, and 18 share at least an edge.
        connectivity: Option<usize>, flag "-n, --connectivity <N>", python "";
        /// Maximum number of axes along which neighbours differ, 1 to the number of axes; by default all
        reach: Option<usize>, within 1.0..=f64::MAX, python connectivity;
        /// Only neighbours of equal value belong together
        ///
        /// Use it to split the labels or classes of a segmentation into connected parts. In colour images of 8 bits,
        /// neighbours of equal colour belong together.
        equal: bool, flag "--equal";
        /// Make components of fewer than N samples background
        min_size: usize = 1, within 0.0..=f64::MAX, flag "--min-size <N>";
    }
    returns "uint16, or uint32 if there are more than 65535 components.";
    python label(reach; equal = true, min_size):
        "Number connected components: neighbours of equal samples, as in scikit-image.\n\n\
         With `equal=False`, neighbours that are not 0, as in SciPy.",
        ">>> gp.label(np.array([[1, 0, 1], [1, 0, 2]], np.uint8))\narray([[1, 0, 2],\n       [1, 0, 3]], dtype=uint16)";
    examples
        "gpuproc label mask.png labels.png"
        "gpuproc label cells.tif -o labels/ --connectivity 4 --min-size 20"
        "gpuproc label organs.nii.gz parts.nii.gz --equal --connectivity 6"
        "gpuproc label mask.png labels.png --table cells.csv --intensity page.png";
}

impl Label {
    /// Components of samples with this number of neighbours: 4 or 8 in images, 6, 18 or 26 in volumes.
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
    pub fn new(connectivity: usize) -> Self {
        Self::default().connectivity(connectivity)
    }
}

impl Operation for Label {
    type Kernel = label::Label;
    const MAKES_CLASSES: bool = true;

    fn filter(&self, axes: usize) -> Result<label::Label> {
        let known: &[usize] = if axes == 3 { &[6, 18, 26] } else { &[4, 8] };
        let connectivity = match self.reach {
            Some(reach) if !(1..=axes).contains(&reach) => {
                let text = format!(" is {reach}, expected 1 to {axes}");
                return Err(WrongParameter::error("reach", text));
            }
            reach => reach.map(|reach| known[reach - 1]).or(self.connectivity),
        };
        label::Label::new(connectivity, axes.max(2), self.equal, self.min_size as u64)
    }
}

filter!(Label => I::Of<u32>);

choices! {
    Method {
        Max: "max", "Maximum, of the type of the samples";
        Min: "min", "Minimum, of the type of the samples";
        Mean: "mean", "Mean as f32";
        Sum: "sum", "Sum as f64, exact for integers up to 2^53";
        Std: "std", "Standard deviation as f32";
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
            true => {
                let kernel = project::Projection { method, axis: self.axis };
                filtered(&Progress::new(device), Arc::new(kernel), input)
            }
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
/// ```
/// use gpuproc::{Channels, Device, Image, equalize};
///
/// # fn main() -> gpuproc::Result<()> {
/// let image = Image::new(3, 1, Channels::Gray, vec![100u8, 110, 120])?;
/// assert_eq!(equalize(&Device::best(), &image)?.samples(), [0, 128, 255]);
/// # Ok(())
/// # }
/// ```
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
/// ```
/// use gpuproc::{Channels, Device, Image, auto_levels};
///
/// # fn main() -> gpuproc::Result<()> {
/// let image = Image::new(3, 1, Channels::Gray, vec![100u8, 110, 120])?;
/// assert_eq!(auto_levels(&Device::best(), &image, 0.0)?.samples(), [0, 128, 255]);
/// # Ok(())
/// # }
/// ```
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
