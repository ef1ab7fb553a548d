//! Filters of images and volumes: morphology, connected components, and adjustments of the histogram.

use super::{
    device::Device,
    filter::filter,
    image::Image,
    operation::{Operation, PerAxis, WrongParameter, choices, operation},
    raster::sealed::Stored,
    sample::Sample,
};
use crate::{
    data::grid::Grid,
    kernels::{
        histogram::{LookupTable, Pixels, luminance_histogram},
        label,
        morph::{self, ElementShape},
    },
    util::error::{Error, Result},
};

choices! {
    morph::Operation {
        Erode: "erode|erosion", "The smallest of the neighbours";
        Dilate: "dilate|dilation", "The largest of the neighbours";
        Open: "open|opening", "Erode, then dilate: removes small bright spots";
        Close: "close|closing", "Dilate, then erode: removes small dark spots";
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
    /// An operation with a box that extends `radius` samples in each direction.
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

operation! {
    /// Number the connected components of masks and segmentations.
    ///
    /// Neighbouring samples that are not 0 form a component. Components are numbered from 1 in the order of their first
    /// samples: by row in images, by slice and row in volumes. Background is 0. The result has 16 bits, or 32 if there are
    /// more than 65,535 components. It is the same on every device and for every division into blocks or shards.
    Label: Copy {
        /// Neighbours of a sample: 4 or 8 in images, 6, 18 or 26 in volumes [default: 8 or 26]
        ///
        /// With 4 or 6, neighbours share a side: an edge of a pixel, or a face of a voxel. With 18, they share at least
        /// an edge; with 8 or 26, at least a corner.
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
