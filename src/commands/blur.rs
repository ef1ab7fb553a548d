//! `gpuproc blur`: Gaussian and box blur of images and volumes.

use clap::ValueEnum;

use super::{
    completions::values,
    flags::{Choice, FilterArgs, FilterCommand, choice_parser, parse_per_axis, parse_sigma},
};
use crate::{
    api::operation::PerAxis,
    kernels::{
        blur::{Blur, Edge, MAX_RADIUS, Method, Taps},
        channel_mask::{ChannelMask, ChannelName},
    },
    util::error::{Error, Result},
};

/// Blur images and volumes by a Gaussian or a box.
///
/// The result is the same on every device. The format of the output follows its extension. Depth and channels are
/// kept. Volumes (NIfTI, NRRD, MetaImage, MRC, DICOM, OME-Zarr, .npy, raw, folders of slices) are blurred in three
/// dimensions. A folder of images is a batch, unless the output is a volume.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    blur: BlurArgs,

    #[command(flatten)]
    files: FilterArgs,
}

/// The parameters of a blur.
#[derive(Debug, clap::Args)]
struct BlurArgs {
    /// Standard deviation in pixels, 0 to 500 [default: 2, or a third of --radius]
    ///
    /// One value for all axes, or one per axis: 3,1 or 1,1,1.5. With 0, an axis is not blurred.
    #[arg(short, long, value_name = "S[,S..]", value_parser = parse_sigma)]
    sigma: Option<PerAxis<f64>>,

    /// Half width of the window in pixels, 0 to 10000 [default: from --sigma]
    ///
    /// One value for all axes, or one per axis. By default, it is --truncate times sigma, rounded up. For a box, it
    /// is the radius that gives the standard deviation sigma.
    #[arg(short, long, value_name = "R[,R..]", value_parser = parse_radius)]
    radius: Option<PerAxis<usize>>,

    /// Cut the Gaussian off at this many standard deviations
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "T", default_value_t = 3.0, value_parser = parse_truncate)]
    truncate: f64,

    /// Weights of the neighbours
    #[arg(short, long, value_enum, default_value = "gaussian")]
    method: MethodArg,

    /// Number of blurs, one after another, 1 to 10
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=10))]
    iterations: u8,

    /// Samples outside the image: clamp, reflect, mirror, wrap, zero or a number
    ///
    /// A row abcd continues as aaa|abcd|ddd (clamp), cba|abcd|dcb (reflect), dcb|abcd|cba (mirror) or bcd|abcd|abc
    /// (wrap). A number is in units of the samples. The names of scipy and OpenCV also work.
    #[arg(short, long, value_name = "EDGE", default_value = "clamp", value_parser = parse_edge)]
    #[arg(allow_hyphen_values = true, add = values(EDGES))]
    edge: Edge,

    /// Blur only these channels, such as r,g
    #[arg(long, value_name = "C[,C..]", value_delimiter = ',', value_parser = choice_parser(&CHANNELS))]
    channels: Vec<ChannelName>,

    /// Blur linear light instead of stored sRGB values
    ///
    /// 8-bit and 16-bit samples are decoded by the sRGB curve, and encoded again afterwards. Floats are taken as
    /// linear.
    #[arg(long)]
    linear: bool,
}

const EXAMPLES: &str = "\
Examples:
  gpuproc blur photo.jpg -o soft.jpg --sigma 8
  gpuproc blur icon.png icon.png --radius 3 --edge reflect
  gpuproc blur scan.tif smooth.tif --method box --radius 20 --iterations 3
  gpuproc blur skull_256x256x256_uint8.raw -o soft/ --sigma 1,1,1.5
  gpuproc blur head.nii.gz smooth.nii.gz --sigma 1.5
  gpuproc blur slices/ smooth.nrrd --sigma 1.5    slices of a volume
  gpuproc blur photos/ -o soft/ --sigma 3 --quality 85    a batch of pictures
  gpuproc blur photos/*.jpg -o 'soft/{stem}-blur.{ext}' --to webp
  gpuproc blur walk.gif soft.webp --page 2..4
  gpuproc blur photo.jpg --compare -o compare.html --sigma 8
  curl -s https://example.org/a.png | gpuproc blur - a.png
  gpuproc blur photo.png - --format jpeg > soft.jpg";

const DEFAULT_SIGMA: f64 = 2.0;

const CHANNELS: [Choice<ChannelName>; 5] = [
    ("r|red", ChannelName::Red, "Red"),
    ("g|green", ChannelName::Green, "Green"),
    ("b|blue", ChannelName::Blue, "Blue"),
    ("grey|gray", ChannelName::Grey, "Grey"),
    ("a|alpha", ChannelName::Alpha, "Alpha"),
];

/// The names of edges that shells complete.
const EDGES: [&str; 5] = ["clamp", "reflect", "mirror", "wrap", "zero"];

/// Blurs one file or several.
pub fn filter(args: Args) -> Result<FilterCommand> {
    let Args { files, blur } = args;
    Ok(FilterCommand::new(files, move |source, axes| {
        let filter = Box::new(blur.filter(axes)?);
        if blur.channels.is_empty() {
            return Ok(filter);
        }
        if axes == 3 {
            return Err(Error::usage(format_args!(
                "{source}: --channels is for images; this is a volume"
            )));
        }
        Ok(Box::new(ChannelMask { filter, channels: blur.channels.clone() }))
    }))
}

fn parse_radius(text: &str) -> Result<PerAxis<usize>, String> {
    let radius = |part: &str| part.parse().ok().filter(|&radius| radius <= MAX_RADIUS);
    parse_per_axis(text, radius).ok_or_else(|| {
        format!("expected one to three whole numbers from 0 to {MAX_RADIUS}, such as 3 or 3,3,5")
    })
}

fn parse_truncate(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value| (0.1..=20.0).contains(value));
    value.ok_or_else(|| "expected a number from 0.1 to 20".into())
}

fn parse_edge(text: &str) -> Result<Edge, String> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "clamp" | "nearest" | "replicate" | "edge" => Edge::Clamp,
        "reflect" | "symmetric" | "grid-mirror" => Edge::Reflect,
        "mirror" | "reflect101" | "reflect_101" => Edge::Mirror,
        "wrap" | "grid-wrap" => Edge::Wrap,
        "zero" | "constant" | "grid-constant" => Edge::Constant(0.0),
        other => match other.parse::<f64>() {
            Ok(value) if value.is_finite() => Edge::Constant(value),
            _ => {
                return Err("expected clamp, reflect, mirror, wrap, zero or a number".into());
            }
        },
    })
}

/// How neighbours are weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MethodArg {
    /// exp(-d² / (2 sigma²)) at distance d.
    Gaussian,
    /// Equal weights.
    Box,
}

impl BlurArgs {
    /// The blur along `axes` axes.
    fn filter(&self, axes: usize) -> Result<Blur> {
        let sigmas = self.sigma.map(|sigmas| sigmas.along("--sigma", axes)).transpose()?;
        let radii = self.radius.map(|radii| radii.along("--radius", axes)).transpose()?;
        let axis = |axis: usize| {
            let radius = radii.as_ref().map(|radii| radii[axis]);
            let default = radius.map_or(DEFAULT_SIGMA, |radius| radius as f64 / 3.0);
            let sigma = sigmas.as_ref().map_or(default, |sigmas| sigmas[axis]);
            match self.method {
                MethodArg::Gaussian => {
                    let radius = radius.unwrap_or_else(|| (self.truncate * sigma).ceil() as usize);
                    Taps::gaussian(sigma, radius)
                }
                MethodArg::Box => {
                    Taps::box_filter(radius.unwrap_or_else(|| self.box_radius(sigma)))
                }
            }
        };
        let mut blur = Blur {
            method: match self.method {
                MethodArg::Gaussian => Method::Gaussian,
                MethodArg::Box => Method::Box,
            },
            axes: [Taps::NONE; 3],
            iterations: self.iterations.into(),
            edge: self.edge,
            linear: self.linear,
        };
        (0..axes).for_each(|number| blur.axes[number] = axis(number));
        Ok(blur)
    }

    /// Radius of a box whose iterations together have the standard deviation `sigma`: n boxes of N taps have the
    /// variance n (N² - 1) / 12.
    fn box_radius(&self, sigma: f64) -> usize {
        let taps = (12.0 * sigma * sigma / f64::from(self.iterations) + 1.0).sqrt();
        ((taps - 1.0) / 2.0).round() as usize
    }
}
