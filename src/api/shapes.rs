//! Resizing and projection.

use std::sync::Arc;

use super::{
    device::{Device, Progress},
    filter::{filter, filtered},
    operation::{
        Choice, Given, Kind, Number, Operation, PerAxis, Value, WrongParameter, choices, operation,
    },
    raster::Raster,
};
use crate::{
    kernels::{
        project::{self, Method},
        resize::{self, Interpolation, Size},
    },
    util::error::Result,
};

choices! {
    Interpolation {
        Nearest: "nearest", "The nearest sample: for labels and pixel art";
        Area: "area", "Mean of the samples that a result covers";
        Linear: "linear", "Linear";
        Cubic: "cubic", "Cubic (Catmull-Rom)";
        Lanczos3: "lanczos3", "Lanczos of 3 lobes";
    }
}

/// Length of a side of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Side {
    /// Keeps the aspect ratio.
    #[default]
    InProportion,
    /// Number of positions.
    Length(usize),
    /// Share of the side of the input. As a number, it is negative.
    Share(f64),
}

impl Side {
    fn length(self) -> Option<usize> {
        if let Self::Length(length) = self { Some(length) } else { None }
    }
}

impl Number for Side {
    const IS_WHOLE: bool = true;

    fn from_f64(number: f64) -> Self {
        if number > 0.0 {
            Self::Length(number as usize)
        } else if number < 0.0 {
            Self::Share(-number)
        } else {
            Self::InProportion
        }
    }

    fn to_f64(self) -> f64 {
        self.length().map_or(1.0, |side| side as f64)
    }
}

/// Reads a size such as 800x600, 800x, 64x64x32 or 50%. A side that is omitted is 0.
fn parse_size(text: &str) -> Result<Given, String> {
    if text.ends_with('%') {
        let Given::Numbers(shares) = parse_scale(text)? else { unreachable!("it reads numbers") };
        return Ok(Given::Numbers(shares.map(|share| -share)));
    }
    sides(text).map(|all| match all[..] {
        [x] => Given::Numbers([x, 0.0, 0.0].into()),
        [x, y] => Given::Numbers([x, y, 0.0].into()),
        _ => Given::Numbers(PerAxis::each(&all)),
    })
}

/// Reads a box such as 800x600 or 800x. One number is for all sides.
fn parse_box(text: &str) -> Result<Given, String> {
    sides(text).map(|all| match all[..] {
        [side] => side.into(),
        [x, y] => Given::Numbers([x, y, 0.0].into()),
        _ => Given::Numbers(PerAxis::each(&all)),
    })
}

/// Reads one to three sides. One that is omitted is 0.
fn sides(text: &str) -> Result<Vec<f64>, String> {
    /// Maximum number of positions along an axis.
    const MAX_SIDE: f64 = (1 << 24) as f64;
    let side = |text: &str| {
        if text.is_empty() {
            return Ok(0.0);
        }
        let side = text.parse::<u64>().ok().map(|side| side as f64);
        let side = side.filter(|side| (1.0..=MAX_SIDE).contains(side));
        side.ok_or_else(|| format!("expected a whole number from 1 to {MAX_SIDE}"))
    };
    let sides = text.split(['x', 'X']).map(side).collect::<Result<Vec<_>, _>>()?;
    if sides.len() > 3 || sides.iter().sum::<f64>() == 0.0 {
        return Err("expected WIDTHxHEIGHT such as 800x600, 800x or x600".into());
    }
    Ok(sides)
}

/// Reads a factor for all axes or for each, such as 50%, 2x or 1,1,0.5.
fn parse_scale(text: &str) -> Result<Given, String> {
    let factor = |text: &str| -> Option<f64> {
        let text = text.trim();
        let factor = match text.strip_suffix('%') {
            Some(percent) => percent.parse::<f64>().ok()? / 100.0,
            None => text.strip_suffix(['x', 'X']).unwrap_or(text).parse().ok()?,
        };
        (factor > 0.0 && factor <= 1000.0).then_some(factor)
    };
    let factors: Option<Vec<f64>> = text.split(',').map(factor).collect();
    match factors.as_deref() {
        Some(&[all]) => Ok(all.into()),
        Some(&[x, y]) => Ok(Given::Numbers([x, y, 1.0].into())),
        Some(&[x, y, z]) => Ok(Given::Numbers([x, y, z].into())),
        _ => Err("expected one to three factors above 0, at most 1000, such as 50% or 0.5".into()),
    }
}

operation! {
    /// Resize images and volumes.
    ///
    /// Smaller results are averaged over all samples that they cover, so that fine patterns do not turn into coarse ones
    /// (antialiasing). Alpha is premultiplied meanwhile. The spacing and the origin of volumes change so that the corners
    /// stay in place; the pixel density of images is kept.
    Resize: Copy {
        /// Size of the result
        size: Option<PerAxis<Side>>, within 1.0..=f64::MAX,
            flag "--size <WxH>" parse parse_size ": 800x600, or 800x and x600 with the other side in proportion; 64x64x32 for volumes",
            python output_shape, one of target;
        /// Largest size with the same aspect ratio that fits into a box
        ///
        /// As in vipsthumbnail and ImageMagick, smaller inputs are enlarged. `max` does not enlarge them.
        fit: Option<PerAxis<Side>>, within 1.0..=f64::MAX,
            flag "--fit <WxH>" parse parse_box ": 800x600, or 800 for all sides",
            python "", one of target;
        /// Size that is filled without distortion; what does not fit is cut off at both ends
        fill: Option<PerAxis<Side>>, within 1.0..=f64::MAX,
            flag "--fill <WxH>" parse parse_box ": 800x600, or 800 for all sides",
            python "", one of target;
        /// Factor
        scale: Option<PerAxis<f64>>,
            flag "--scale <F>" parse parse_scale " for all axes, such as 50% or 0.5, or one per axis: 1,1,0.5",
            python "", one of target;
        /// Longest side of the result; smaller inputs keep their size
        max: Option<usize>, within 1.0..=f64::MAX, flag "--max <N>", python "", one of target;
        /// How samples are interpolated
        interpolation: Interpolation = "lanczos3", flag "--filter <FILTER>";
        /// Average linear light instead of stored values
        ///
        /// 8- and 16-bit samples are decoded from the sRGB curve and encoded again; floats are taken as linear.
        linear_light: bool, flag "--linear";
        /// Decode all pixels of JPEG images and TIFF pyramids that become much smaller
        ///
        /// By default, the decoder makes JPEG images 2, 4 or 8 times smaller if the filter can still halve the result and the
        /// sides are multiples of that. Pixels change by 0.2 of 255 on average. Of a pyramid, the smallest level that can
        /// still be halved is decoded. Not with `linear_light`, nearest and area.
        no_shrink_on_load: bool, flag "--no-shrink-on-load", library true;
    }
    returns "Array of the type of `image`. The corners of both images coincide.";
    python resize(size; interpolation, linear_light),
        ">>> gp.resize(np.array([[0, 2, 4, 6]], np.float32), (1, 2), interpolation=\"area\")\narray([[1., 5.]], dtype=float32)";
    examples
        "gpuproc resize photo.jpg small.jpg --scale 50%"
        "gpuproc resize photos/*.jpg -o small/ --max 1024 --quality 85"
        "gpuproc resize icon.png large.png --size 512x512 --filter nearest"
        "gpuproc resize page.png wide.png --size 1200x"
        "gpuproc resize photos/*.jpg -o tiles/ --fill 256x256"
        "gpuproc resize head.nii.gz half.nii.gz --scale 0.5 --filter area"
        "gpuproc resize organs.nii.gz coarse.nii.gz --size 24x20x18 --filter nearest";
}

impl Resize {
    /// Resizes to `size`. For images, z is ignored.
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
    pub fn new(size: Size) -> Self {
        let own = Self::default();
        let side = |side: Option<usize>| side.map_or(Side::InProportion, Side::Length);
        match size {
            Size::Exact(sides) => Self { size: Some(sides.map(side).into()), ..own },
            Size::Fit(sides) => Self { fit: Some(sides.map(side).into()), ..own },
            Size::Fill(sides) => Self { fill: Some(sides.map(side).into()), ..own },
            Size::Scale(factors) => Self { scale: Some(factors.into()), ..own },
            Size::Longest(side) => Self { max: Some(side), ..own },
        }
    }
}

/// The lengths of the sides that the parameter `name` states, for an input of `axes` axes.
fn lengths(name: &'static str, sides: PerAxis<Side>, axes: usize) -> Result<[Option<usize>; 3]> {
    let count = sides.values(3).len();
    let text = format!(" has {count} sides, but the input has {axes} axes");
    let wrong = |_| WrongParameter::error(name, text);
    let lengths = sides.along(name, axes).map_err(wrong)?.map(Side::length);
    if lengths.iter().all(Option::is_none) {
        let text = ": expected a length along an axis of the input".into();
        return Err(WrongParameter::error(name, text));
    }
    Ok(lengths)
}

impl Operation for Resize {
    type Kernel = resize::Resize;

    fn filter(&self, axes: usize) -> Result<resize::Resize> {
        let size = if let Some(own) = self.size {
            let shares = own.along("size", axes).map(|all| {
                all.map(|side| match side {
                    Side::Share(share) => share,
                    _ => 0.0,
                })
            });
            match shares {
                Ok(shares) if shares[0] > 0.0 => Size::Scale(shares),
                _ => {
                    let mut sides = lengths("size", own, axes)?;
                    if axes == 1 {
                        sides[1] = Some(1);
                    }
                    Size::Exact(sides)
                }
            }
        } else if let Some(own) = self.fit {
            Size::Fit(lengths("fit", own, axes)?)
        } else if let Some(own) = self.fill {
            Size::Fill(lengths("fill", own, axes)?)
        } else if let Some(factors) = self.scale {
            let factors = factors.along("scale", 3)?;
            if !factors.iter().all(|&factor| factor > 0.0 && factor.is_finite()) {
                let text = ": expected factors above 0".into();
                return Err(WrongParameter::error("scale", text));
            }
            Size::Scale(factors)
        } else {
            Size::Longest(self.max.unwrap_or(usize::MAX))
        };
        Ok(resize::Resize {
            size,
            // A NumPy array with one axis is an image of one row.
            axes: axes.max(2),
            filter: self.interpolation,
            linear: self.linear_light,
            shrink_on_load: !self.no_shrink_on_load,
        })
    }
}

filter!(Resize => I);

choices! {
    Method {
        Max: "max|mip|maximum", "Maximum, of the type of the samples";
        Min: "min|minip|minimum", "Minimum, of the type of the samples";
        Mean: "mean|average", "Mean as f32";
        Sum: "sum", "Sum as f64, exact for integers up to 2^53";
        Std: "std", "Standard deviation as f32";
    }
}

/// An axis: 0 for x, 1 for y, 2 for z.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis(usize);

const AXES: [Choice; 3] = [
    Choice { names: "x", python: None, text: "Along rows" },
    Choice { names: "y", python: None, text: "Along columns" },
    Choice { names: "z", python: None, text: "Through the slices of a volume" },
];

impl Value for Axis {
    const KIND: Kind = Kind::Axis(&AXES);

    fn from_given(given: Given) -> Option<Self> {
        AXES.iter().position(|own| Some(own.name()) == given.choice()).map(Self)
    }

    fn given(&self) -> Given {
        AXES.get(self.0).map_or(Given::Nothing, |own| Given::Choice(own.name()))
    }
}

operation! {
    /// Project volumes and images along an axis by maximum, mean or sum.
    ///
    /// Each line of samples along the axis becomes one: the maximum, minimum, mean, sum or standard deviation. The projection
    /// of a volume is written as an image (such as PNG, TIFF and JPEG) or as a volume with one sample along the axis (NIfTI,
    /// NRRD, MetaImage, .npy, OME-Zarr), which keeps its position in the world. Sums are exact for integers, and the file is
    /// read once, block by block.
    Projection: Copy {
        /// Value that stands for a line of samples
        method: Method = "max", flag "-m, --method <METHOD>", library "max";
        /// Axis to project along [default: z for volumes, y for images]
        axis: Option<Axis>, flag "-a, --axis <AXIS>", library ();
    }
    returns "Minimum and maximum have the type of `image`, mean and standard deviation are float32, and sums are float64.";
    python project(axis = 0; method): "Project an image or volume along an axis, which is removed.",
        ">>> gp.project(np.array([[1, 5], [4, 2]], np.uint8), axis=0)\narray([4, 5], dtype=uint8)";
    examples
        "gpuproc project head.nii.gz mip.png"
        "gpuproc project head.nii.gz side.tif --axis x --method mean"
        "gpuproc project slices/ sum.nrrd --method sum"
        "gpuproc project skull_256x256x256_uint8.raw deviation.npy --method std"
        "gpuproc project head.nii.gz organs.nii.gz -o mips/ --to png";
}

impl Projection {
    /// Projections along `axis`: 0 for x, 1 for y, 2 for z. Results have one position along that axis.
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
    pub fn along(axis: usize) -> Self {
        Self { axis: Some(Axis(axis)), ..Self::default() }
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

    /// The population standard deviation of each line.
    ///
    /// # Errors
    /// As [`Projection::max`].
    pub fn std<I: Raster>(&self, device: &Device, input: &I) -> Result<I::Of<f32>> {
        self.run(device, input, Method::Std)
    }

    fn run<I: Raster, O: Raster>(&self, device: &Device, input: &I, method: Method) -> Result<O> {
        let kernel = Self { method, ..*self }.kernel(I::AXES)?;
        filtered(&Progress::new(device), Arc::new(kernel), input)
    }
}

impl Operation for Projection {
    type Kernel = project::Projection;

    fn filter(&self, axes: usize) -> Result<project::Projection> {
        let axis = self.axis.map_or(axes - 1, |Axis(axis)| axis);
        if axis < axes {
            return Ok(project::Projection { method: self.method, axis });
        }
        let text = if axis == 2 {
            " z is for volumes; this is an image: use x or y".into()
        } else {
            format!(" is {axis}, expected 0 to {}", axes - 1)
        };
        Err(WrongParameter::error("axis", text))
    }
}
