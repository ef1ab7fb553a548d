//! Blurs of images and volumes.

use super::{
    filter::filter,
    operation::{
        Choice, FINITE, Given, Kind, Operation, PerAxis, Value, WrongParameter, choices, operation,
    },
};
use crate::{
    kernels::{
        blur::{self, BlurByAxis, Edge, MAX_RADIUS, MAX_SIGMA, Method, Taps},
        channel_mask::{ChannelMask, ChannelName},
        filter::Filter,
    },
    util::error::Result,
};

choices! {
    Method {
        Gaussian: "gaussian", "exp(-d² / (2 sigma²)) at distance d";
        Box: "box", "Equal weights";
    }
}

choices! {
    ChannelName {
        Red: "r|red", "Red";
        Green: "g|green", "Green";
        Blue: "b|blue", "Blue";
        Grey: "grey|gray", "Grey";
        Alpha: "a|alpha", "Alpha";
    }
}

/// The edge modes, with the names that SciPy, NumPy and OpenCV give them.
const EDGES: [Choice; 5] = [
    Choice::named_in_python("clamp|nearest|replicate|edge", "nearest"),
    Choice::named_in_python("reflect|symmetric|grid-mirror", "reflect|grid-mirror"),
    Choice::named_in_python("mirror|reflect101|reflect_101", "mirror"),
    Choice::named_in_python("wrap|grid-wrap", "wrap|grid-wrap"),
    Choice::named_in_python("zero|constant|grid-constant", "constant|grid-constant"),
];

impl Value for PerAxis<Edge> {
    const KIND: Kind = Kind::ChoiceOrNumber(&EDGES);

    fn from_given(given: Given) -> Option<Self> {
        let edge = |name| match name {
            "clamp" => Edge::Clamp,
            "reflect" => Edge::Reflect,
            "mirror" => Edge::Mirror,
            "wrap" => Edge::Wrap,
            _ => Edge::Constant(0.0),
        };
        match given {
            Given::Choice(name) => Some(edge(name).into()),
            Given::Choices(names) => {
                Some(Self::each(&names.into_iter().map(edge).collect::<Vec<_>>()))
            }
            Given::Numbers(numbers) => Some(numbers.map(Edge::Constant)),
            _ => None,
        }
    }

    /// The constants, so that their range is checked. Other edges count as 0.
    fn given(&self) -> Given {
        let number = |edge| if let Edge::Constant(value) = edge { value } else { 0.0 };
        Given::Numbers((*self).map(number))
    }
}

operation! {
    /// Blur images and volumes by a Gaussian or a box.
    ///
    /// The result is the same on every device. The format of the output follows its extension. Depth and channels are kept.
    /// Volumes (NIfTI, NRRD, MetaImage, MRC, DICOM, OME-Zarr, .npy, raw, folders of slices) are blurred in three dimensions.
    /// A folder of images is a batch, unless the output is a volume.
    Blur {
        /// Standard deviation in pixels, 0 to 500 [default: 2, or a third of `radius`]
        ///
        /// With 0, an axis is not blurred.
        sigma: Option<PerAxis<f64>>, within 0.0..=MAX_SIGMA, flag "-s, --sigma <S[,S..]>";
        /// Half width of the window in pixels, 0 to 10000 [default: from `sigma`]
        ///
        /// For a box, the default is the radius that gives the standard deviation `sigma`.
        radius: Option<PerAxis<usize>>, within 0.0..=10_000.0, flag "-r, --radius <R[,R..]>";
        /// Width of the window of a box in pixels, 1 to 20001
        ///
        /// A window of even width has one pixel more before the centre than after it, as in SciPy.
        size: Option<PerAxis<usize>>, within 1.0..=20_001.0;
        /// Cut the Gaussian off at this many standard deviations, 0.1 to 20
        ///
        /// The radius is rounded up.
        truncate: f64 = 3.0, within 0.1..=20.0, flag "--truncate <T>" in "--help", python "";
        /// Radius of the window in standard deviations, rounded as by SciPy
        cutoff: Option<f64>, within 0.0..=f64::MAX, python truncate, library ();
        /// Weights of the neighbours
        method: Method = "gaussian", flag "-m, --method <METHOD>";
        /// Number of blurs, one after another, 1 to 10
        iterations: usize = 1, within 1.0..=10.0, flag "-n, --iterations <N>";
        /// Samples outside of the image
        ///
        /// A row abcd continues as aaa|abcd|ddd (clamp or nearest), cba|abcd|dcb (reflect), dcb|abcd|cba (mirror),
        /// bcd|abcd|abc (wrap), or with a constant in units of the samples. Other names of SciPy and OpenCV also work.
        edge: PerAxis<Edge> = "clamp", within FINITE, flag "-e, --edge <EDGE>", python mode;
        /// Samples outside of the image where `edge` is "constant"
        cval: f64 = 0.0, within FINITE, library 0.0;
        /// Blur only these channels, such as r,g
        channels: Vec<ChannelName>, flag "--channels <C[,C..]>", python "";
        /// Blur linear light instead of stored sRGB values
        ///
        /// 8-bit and 16-bit samples are decoded by the sRGB curve, and encoded again afterwards. Floats are taken as linear.
        linear_light: bool, flag "--linear";
    }
    returns "Array of the shape and type of `image`. Integers are rounded once, at the end.";
    python gaussian(sigma = 1.0; edge = "nearest", cval, cutoff = 4.0, radius, linear_light)
        with method "gaussian": "Gaussian blur.",
        ">>> image = np.zeros((5, 5), np.uint8)\n>>> image[2, 2] = 255\n>>> gp.gaussian(image, sigma=1)[2]\narray([ 5, 25, 41, 25,  5], dtype=uint8)";
    python uniform_filter(size = 3; edge = "reflect", cval)
        with method "box": "Mean of the samples in a window. Integers are rounded; SciPy truncates them.",
        ">>> gp.uniform_filter(np.array([0, 0, 9, 0, 0], np.int16), 3)\narray([0, 3, 3, 3, 0], dtype=int16)";
    examples
        "gpuproc blur photo.jpg -o soft.jpg --sigma 8"
        "gpuproc blur icon.png icon.png --radius 3 --edge reflect"
        "gpuproc blur scan.tif smooth.tif --method box --radius 20 --iterations 3"
        "gpuproc blur skull_256x256x256_uint8.raw -o soft/ --sigma 1,1,1.5"
        "gpuproc blur head.nii.gz smooth.nii.gz --sigma 1.5"
        "gpuproc blur slices/ smooth.nrrd --sigma 1.5    slices of a volume"
        "gpuproc blur photos/ -o soft/ --sigma 3 --quality 85    a batch of pictures"
        "gpuproc blur photos/*.jpg -o 'soft/{stem}-blur.{ext}' --to webp"
        "gpuproc blur walk.gif soft.webp --page 2..4"
        "gpuproc blur photo.jpg --compare -o compare.html --sigma 8"
        "curl -s https://example.org/a.png | gpuproc blur - a.png"
        "gpuproc blur photo.png - --format jpeg > soft.jpg";
}

impl Blur {
    /// A Gaussian with the standard deviations `sigma`, cut off at 3 sigma.
    ///
    /// ```
    /// use gpuproc::{Blur, Device, Edge, Volume};
    ///
    /// # fn main() -> gpuproc::Result<()> {
    /// let volume = Volume::new([3, 1, 1], vec![0i16, 0, 90])?;
    /// assert_eq!(Blur::gaussian(0.5).run(&Device::best(), &volume)?.samples(), [0, 10, 80]);
    /// let mean = Blur::box_filter([1, 0, 0]).edge(Edge::Wrap).run(&Device::best(), &volume)?;
    /// assert_eq!(mean.samples(), [30, 30, 30]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn gaussian(sigma: impl Into<PerAxis<f64>>) -> Self {
        Self::default().sigma(sigma.into())
    }

    /// A box filter: the mean of the `2 * radius + 1` pixels around each pixel, along each axis.
    pub fn box_filter(radius: impl Into<PerAxis<usize>>) -> Self {
        Self::default().method(Method::Box).radius(radius.into())
    }

    /// Radius of the window of a Gaussian.
    fn gaussian_radius(&self, sigma: f64) -> Result<usize> {
        let radius = match self.cutoff {
            Some(cutoff) => (cutoff * sigma + 0.5).floor(),
            None => (self.truncate * sigma).ceil(),
        };
        if radius > MAX_RADIUS as f64 {
            let text = format!(": the radius is {radius}, expected at most {MAX_RADIUS}");
            return Err(WrongParameter::error("cutoff", text));
        }
        Ok(radius as usize)
    }

    /// Radius of a box that has the standard deviation `sigma` after all iterations: n boxes of N taps have the
    /// variance n (N² - 1) / 12.
    fn box_radius(&self, sigma: f64) -> usize {
        let taps = (12.0 * sigma * sigma / self.iterations as f64 + 1.0).sqrt();
        ((taps - 1.0) / 2.0).round() as usize
    }

    /// The weights along the first `axes` axes.
    fn taps(&self, axes: usize) -> Result<[Taps; 3]> {
        let sigma = self.sigma.map(|own| own.along("sigma", axes)).transpose()?;
        let radius = self.radius.map(|own| own.along("radius", axes)).transpose()?;
        let size = self.size.map(|own| own.along("size", axes)).transpose()?;
        let mut taps = [Taps::NONE; 3];
        for (axis, taps) in taps[..axes].iter_mut().enumerate() {
            let radius = radius.map(|all| all[axis]);
            let default = radius.map_or(2.0, |radius| radius as f64 / 3.0);
            let sigma = sigma.map_or(default, |all| all[axis]);
            *taps = match (self.method, radius, size) {
                (Method::Gaussian, Some(radius), _) => Taps::gaussian(sigma, radius),
                (Method::Gaussian, None, _) => Taps::gaussian(sigma, self.gaussian_radius(sigma)?),
                (Method::Box, Some(radius), _) => Taps::box_filter(radius),
                (Method::Box, None, Some(all)) => Taps::box_of_size(all[axis]),
                (Method::Box, None, None) => Taps::box_filter(self.box_radius(sigma)),
            };
        }
        Ok(taps)
    }
}

impl Operation for Blur {
    type Kernel = Box<dyn Filter>;

    fn filter(&self, axes: usize) -> Result<Box<dyn Filter>> {
        if axes > 2 && !self.channels.is_empty() {
            let text = " is for images; this is a volume".into();
            return Err(WrongParameter::error("channels", text));
        }
        let edges = self.edge.along("edge", axes)?.map(|edge| match edge {
            Edge::Constant(value) => Edge::Constant(value + self.cval),
            edge => edge,
        });
        let is_constant = |edge: &Edge| matches!(edge, Edge::Constant(_));
        let constant = edges[..axes].iter().copied().find(is_constant);
        let blur = blur::Blur {
            method: self.method,
            axes: self.taps(axes)?,
            iterations: self.iterations,
            edge: constant.unwrap_or(edges[0]),
            linear: self.linear_light,
        };
        let filter: Box<dyn Filter> = if edges[..axes].iter().all(|&edge| edge == edges[0]) {
            blur.into()
        } else {
            BlurByAxis { blur, edges }.into()
        };
        if self.channels.is_empty() {
            return Ok(filter);
        }
        Ok(ChannelMask { filter, channels: self.channels.clone() }.into())
    }
}

filter!(Blur => I);
