//! The flags of `gpuproc blur`, and the plan that they make: jobs, and settings that all jobs share.

use std::{ffi::OsString, fmt, mem::take, str::FromStr};

use clap::ValueEnum;

use crate::{
    batch::check_all,
    commands::{
        completions::values,
        flags::{
            IMAGE_FORMATS, ListArgs, OutputArgs, Outputs, PageRange, Planned, ShardArgs, Share,
            Target, VolumeArgs, one_of, refuse_picture,
        },
    },
    data::volume::Dims,
    error::{Error, Result},
    io::{
        Sink, Source, Sources,
        image::{Encoding, ImageFormat},
        volume::{
            Layout, PyramidOptions, VolumeFormat, are_many, has_volume_name, is_zarr,
            is_zarr_output,
        },
    },
    kernels::blur::{Blur, Edge, MAX_RADIUS, MAX_SIGMA, Method, Taps},
};

/// Blur images and volumes, exactly, at any sigma.
///
/// The result is the same on every device. Depth and channels stay as they are, and alpha is premultiplied while
/// blurring. The output's format follows its extension. Volumes (NIfTI, NRRD, MetaImage, MRC, DICOM, OME-Zarr, .npy,
/// raw, folders of slices) are blurred in three dimensions.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Input and output; with -o, inputs only. - is standard input or output
    #[arg(required_unless_present = "files_from", value_name = "FILE")]
    files: Vec<OsString>,

    /// Standard deviation in pixels, 0 to 500: one value, or one for each axis, as 2,0.5 or 1,1,1.5. 0 leaves an axis
    /// as it is [default: 2, or a third of --radius]
    #[arg(short, long, value_name = "S[,S..]", value_parser = parse_sigma)]
    sigma: Option<PerAxis<f64>>,

    /// Radius in pixels, 0 to 10000: one value, or one for each axis [default: --truncate times sigma, rounded up; for
    /// a box, the one that gives it the standard deviation sigma]
    #[arg(short, long, value_name = "R[,R..]", value_parser = parse_radius)]
    radius: Option<PerAxis<usize>>,

    /// Where the Gaussian is cut off, in standard deviations
    #[arg(long, value_name = "T", default_value_t = 3.0, value_parser = parse_truncate)]
    truncate: f64,

    /// How neighbours are weighed
    #[arg(short, long, value_enum, default_value = "gaussian")]
    method: MethodArg,

    /// How often to blur, 1 to 10
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=10))]
    iterations: u8,

    /// Samples outside of the image: clamp (aaa|abcd|ddd), reflect (cba|abcd|dcb), mirror (dcb|abcd|cba), wrap
    /// (bcd|abcd|abc), zero, or a number in units of the samples. The names of scipy and OpenCV are understood, too
    #[arg(short, long, value_name = "EDGE", default_value = "clamp", value_parser = parse_edge)]
    #[arg(allow_hyphen_values = true, add = values(EDGES))]
    edge: Edge,

    /// Blur only these of r, g, b, a (or grey, a); the others stay as they are
    #[arg(long, value_name = "C[,C..]", value_delimiter = ',')]
    channels: Vec<Channel>,

    /// Blur linear light rather than stored values: 8- and 16-bit samples are decoded from the sRGB
    /// curve and encoded again; floats are taken as linear
    #[arg(long)]
    linear: bool,

    #[command(flatten)]
    output: OutputArgs,

    /// Quality of JPEG output, 1 to 100; below 95 colour is stored at half the resolution
    #[arg(long, value_name = "Q", default_value_t = 90)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=100))]
    quality: u8,

    /// Give JPEG output Huffman tables of its own: the same pixels in a smaller file, which takes longer
    #[arg(long)]
    optimize: bool,

    /// Effort for PNG output, 0 (none) to 9 (smallest file)
    #[arg(long, value_name = "LEVEL", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u8).range(..=9))]
    compression: u8,

    /// Format of image outputs, also as --to jpeg [default: by the extension; on standard output that of the input]
    #[arg(long, alias = "to", value_name = "FORMAT", value_parser = one_of(&IMAGE_FORMATS))]
    format: Option<ImageFormat>,

    /// Pages of images, or frames of animations, to take: 3, or 2..5 with both ends, or 2..; the first
    /// is 1 [default: all where the output's format holds several (TIFF, GIF, animated PNG and WebP)]
    #[arg(long, value_name = "N|A..B")]
    page: Option<PageRange>,

    /// Levels of a Zarr output: each half as long as the one before [default: until no axis is longer than
    /// 256]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=32))]
    levels: Option<u8>,

    /// Samples of a Zarr output's chunks along x, y and z [default: those of the input, else 128x128x64]
    #[arg(long, value_name = "XxYxZ")]
    chunks: Option<Dims>,

    /// Version of a Zarr output: 2 (OME-Zarr 0.4) or 3 (0.5) [default: that of the input, else 3]
    #[arg(long, value_name = "2|3", value_parser = clap::value_parser!(u8).range(2..=3))]
    zarr_version: Option<u8>,

    /// Chunks in a file of a Zarr output along x and y: a shard of Zarr 3 [default: 1, or 8 of more than 65,536 chunks]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    file_chunks: Option<u8>,

    /// Write a page for web browsers that shows the picture before and after, with a slider between: -o page.html
    #[arg(long)]
    compare: bool,

    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    list: ListArgs,

    #[command(flatten)]
    share: ShardArgs,

    #[command(flatten)]
    volume: VolumeArgs,
}

const EXAMPLES: &str = "\
Examples:
  gpuproc blur photo.jpg -o soft.jpg --sigma 8
  gpuproc blur icon.png icon.png --radius 3 --edge reflect
  gpuproc blur scan.tif smooth.tif --method box --radius 20 --iterations 3
  gpuproc blur skull_256x256x256_uint8.raw -o soft/ --sigma 1,1,1.5
  gpuproc blur head.nii.gz smooth.nii.gz --sigma 1.5
  gpuproc blur slices/ smooth.nrrd --sigma 1.5    a folder is one volume
  gpuproc blur photos/*.jpg -o soft/ --sigma 3 --quality 85
  gpuproc blur photos/*.jpg -o 'soft/{stem}-blur.{ext}' --to webp
  gpuproc blur walk.gif soft.webp --page 2..4
  gpuproc blur photo.jpg --compare -o compare.html --sigma 8
  curl -s https://example.org/a.png | gpuproc blur - a.png
  gpuproc blur photo.png - --format jpeg > soft.jpg";

const DEFAULT_SIGMA: f64 = 2.0;

/// The names of edges that shells complete.
const EDGES: [&str; 5] = ["clamp", "reflect", "mirror", "wrap", "zero"];

/// One value for all axes, or one for each axis.
#[derive(Clone, Debug, PartialEq)]
struct PerAxis<T>(Vec<T>);

impl<T: Copy> PerAxis<T> {
    /// The values of `axes` axes. Fails, naming `flag`, when there are neither one nor `axes` values.
    fn expand(&self, axes: usize, flag: &str) -> Result<Vec<T>> {
        match self.0[..] {
            [one] => Ok(vec![one; axes]),
            _ if self.0.len() == axes => Ok(self.0.clone()),
            _ => Err(Error::usage(format_args!(
                "{flag} has {} values, but there are {axes} axes: give one or {axes}",
                self.0.len()
            ))),
        }
    }
}

fn per_axis<T: FromStr>(text: &str, valid: impl Fn(&T) -> bool) -> Option<PerAxis<T>> {
    let values: Option<Vec<T>> =
        text.split(',').map(|part| part.trim().parse().ok().filter(&valid)).collect();
    values.filter(|values| values.len() <= 3).map(PerAxis)
}

fn parse_sigma(text: &str) -> Result<PerAxis<f64>, String> {
    per_axis(text, |sigma| (0.0..=MAX_SIGMA).contains(sigma))
        .ok_or_else(|| format!("`{text}` is not one to three numbers from 0 to {MAX_SIGMA}"))
}

fn parse_radius(text: &str) -> Result<PerAxis<usize>, String> {
    per_axis(text, |&radius| radius <= MAX_RADIUS)
        .ok_or_else(|| format!("`{text}` is not one to three whole numbers from 0 to {MAX_RADIUS}"))
}

fn parse_truncate(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value| (0.1..=20.0).contains(value));
    value.ok_or_else(|| format!("`{text}` is not a number from 0.1 to 20"))
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
                return Err(format!(
                    "`{text}` is none of clamp, reflect, mirror, wrap, zero, and no number"
                ));
            }
        },
    })
}

/// The extension of the output for a folder or a pattern of slices called `name`. A dot in `name` does not begin an
/// extension: `a.b` becomes `a.b.nrrd`.
fn slices_extension(name: &str) -> String {
    match name.rsplit_once('.') {
        Some((stem, rest)) if !stem.is_empty() => format!("{rest}.nrrd"),
        _ => "nrrd".into(),
    }
}

/// How neighbours are weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MethodArg {
    /// By exp(-d² / (2 sigma²)).
    Gaussian,
    /// All alike.
    Box,
}

/// A channel of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Channel {
    #[value(alias = "red")]
    R,
    #[value(alias = "green")]
    G,
    #[value(alias = "blue")]
    B,
    #[value(alias = "gray")]
    Grey,
    #[value(alias = "alpha")]
    A,
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::R => "r",
            Self::G => "g",
            Self::B => "b",
            Self::Grey => "grey",
            Self::A => "a",
        })
    }
}

impl Channel {
    /// Index of the channel in a pixel of `channels` samples.
    fn index(self, channels: usize) -> Option<usize> {
        match (self, channels) {
            (Self::Grey, 1 | 2) | (Self::R, 3 | 4) => Some(0),
            (Self::G, 3 | 4) => Some(1),
            (Self::B, 3 | 4) => Some(2),
            (Self::A, 2 | 4) => Some(channels - 1),
            _ => None,
        }
    }
}

/// The work that the flags describe.
#[derive(Debug)]
pub struct Plan {
    pub sources: Sources,
    pub jobs: Jobs,
    pub settings: Settings,
    /// Which shard of the work is done, and whether finished work is skipped.
    pub share: Share,
    /// Whether to describe the jobs instead of doing them.
    pub dry_run: bool,
}

/// Makes the job of each input.
#[derive(Debug)]
pub struct Jobs {
    flags: Args,
    outputs: Outputs,
}

impl Jobs {
    /// The job of the input `source`.
    ///
    /// # Errors
    /// When flags contradict the input, and when the format of its output is unknown.
    pub fn of(&self, source: Source) -> Result<Job> {
        let extension = self.flags.extension(&source);
        self.flags.job(self.outputs.of(source, extension.as_deref())?)
    }
}

/// One input, its output and its blur.
#[derive(Debug)]
pub struct Job {
    pub source: Source,
    pub sink: Sink,
    pub blur: Blur,
    /// How to read a volume; `None` for an image, of which a batch may have many.
    pub volume: Option<Box<Layout>>,
    /// Whether the output is a page that shows the picture before and after.
    pub compares: bool,
    /// Format of the output image; `None` for that of the input.
    pub format: Option<ImageFormat>,
    /// Whether the folder of the output is created.
    makes_folder: bool,
    /// How a Zarr output is written.
    pub pyramid: PyramidOptions,
}

impl Job {
    /// Creates the folder of the output, if that is asked for.
    ///
    /// # Errors
    /// When the folder cannot be created.
    pub fn make_folder(&self) -> Result<()> {
        if self.makes_folder { Planned::make_folder(&self.sink) } else { Ok(()) }
    }

    /// The memory at the peak, in multiples of the bytes of the samples, as measured.
    pub fn copies(&self) -> u64 {
        if self.blur.linear { 10 } else { 6 }
    }
}

/// Settings that all jobs share.
#[derive(Debug)]
pub struct Settings {
    /// Channels to blur; if empty, all.
    channels: Vec<Channel>,
    /// How images are encoded.
    pub encoding: Encoding,
    /// Pages to take; `None` for all that the output can hold.
    pub pages: Option<PageRange>,
    /// Whether the job is a batch of files, even if of a single one.
    makes_many: bool,
}

impl Settings {
    /// Whether the job is a batch of files, even if of a single one: inputs from a list, or outputs in a folder.
    pub fn makes_many(&self) -> bool {
        self.makes_many
    }

    /// Whether all channels are blurred.
    pub fn blurs_all_channels(&self) -> bool {
        self.channels.is_empty()
    }

    /// The indices of the channels, out of `channels`, that are not blurred.
    ///
    /// # Errors
    /// When a channel that is to be blurred does not exist.
    pub fn kept_channels(&self, channels: usize) -> Result<Vec<usize>> {
        if self.channels.is_empty() {
            return Ok(Vec::new());
        }
        let mut blurred = vec![false; channels];
        for channel in &self.channels {
            let index = channel.index(channels).ok_or_else(|| {
                let own = ["grey", "grey and a", "r, g and b", "r, g, b and a"][channels - 1];
                Error::usage(format_args!("--channels {channel}: the image has only {own}"))
            })?;
            blurred[index] = true;
        }
        Ok((0..channels).filter(|&channel| !blurred[channel]).collect())
    }
}

impl Args {
    /// Validates the flags.
    ///
    /// # Errors
    /// When flags contradict each other or the inputs, and when the format of an output is unknown.
    pub fn plan(mut self) -> Result<Plan> {
        let (mut sources, outputs) = self.files()?;
        let settings = Settings {
            channels: self.channels.clone(),
            encoding: Encoding {
                quality: self.quality,
                optimized: self.optimize,
                compression: self.compression,
            },
            pages: self.page,
            makes_many: self.list.files_from.is_some() || outputs.is_for_each(),
        };
        let (share, dry_run) = (self.share.share(), self.dry_run);
        let jobs = Jobs { flags: self, outputs };
        // Jobs are made anew when they run. What is wrong with any of them is told before the first one runs.
        check_all(&sources, |source| jobs.of(source).map(drop))?;
        if settings.makes_many {
            sources = share.files(sources.iter()).collect();
        }
        Ok(Plan { sources, jobs, settings, share, dry_run })
    }

    /// The inputs, which are taken out of the flags, and where their results go.
    fn files(&mut self) -> Result<(Sources, Outputs)> {
        let mut files = self.list.with(take(&mut self.files))?;
        let mut output = None;
        if !self.output.is_given() {
            if files.len() != 2 || self.list.files_from.is_some() {
                return Err(Error::usage(match files.len() {
                    1 => "name an output: -o FILE, or -o DIR/",
                    _ => "give one input and one output, or inputs and -o DIR/",
                }));
            }
            output = files.pop().map(Target::from);
        }
        let sources = files.into_iter().map(Source::from).collect();
        let outputs = self.output.plan(&sources, output, |source| Ok(self.extension(source)))?;
        Ok((sources, outputs.expect("an output is named")))
    }

    /// The extension of the output for `source` where it differs from that of the input.
    fn extension(&self, source: &Source) -> Option<String> {
        if let Some(format) = self.format {
            return Some(format.extension().to_owned());
        }
        let path = source.path().filter(|path| are_many(source) && !is_zarr(path))?;
        // The slices in a folder become one file.
        Some(slices_extension(&path.file_name().unwrap_or_default().to_string_lossy()))
    }

    fn job(&self, Planned { source, sink, makes_folder }: Planned) -> Result<Job> {
        let layout = self.volume.layout();
        let is_volume = has_volume_name(&source)
            || layout.dims.is_some()
            || layout.volume.is_some()
            || layout.stack
            // A pipe has no name: it is a volume if the format of the output holds volumes but no images.
            || source.path().is_none()
                && matches!(sink, Sink::File(_))
                && VolumeFormat::of_output(&sink).is_ok()
                && ImageFormat::of_output(&sink).is_err();
        if is_volume && (self.page.is_some() || !self.channels.is_empty()) {
            return Err(Error::usage(format_args!(
                "{source}: --page and --channels are for pictures; this is a volume"
            )));
        }
        if !is_volume {
            refuse_picture(&source, &layout)?;
        }
        let compares = self.compare || sink.extension() == "html" && !is_volume;
        if compares && (is_volume || sink.extension() != "html" || self.format.is_some()) {
            return Err(Error::usage(format_args!(
                "{source}: --compare makes a page of a picture: name an output that ends with .html"
            )));
        }
        let format = match (is_volume, self.format, &sink) {
            _ if compares => None,
            (true, Some(_), _) => {
                return Err(Error::usage(format_args!(
                    "{source}: --format is for images; a volume's format follows the output's extension"
                )));
            }
            (true, None, sink) if is_zarr_output(sink) => None,
            (true, None, _) => {
                VolumeFormat::of_output(&sink)?;
                None
            }
            (false, None, Sink::Stdout) => None,
            (false, None, _) => Some(ImageFormat::of_output(&sink)?),
            (false, format, _) => format,
        };
        let blur = self.blur(if is_volume { 3 } else { 2 })?;
        let volume = is_volume.then(|| Box::new(layout));
        let pyramid = PyramidOptions {
            levels: self.levels.map(usize::from),
            chunk: self.chunks,
            version: self.zarr_version,
            file_chunks: self.file_chunks.map(usize::from),
        };
        let asks = pyramid != PyramidOptions::default();
        if asks && !(is_volume && is_zarr_output(&sink)) {
            return Err(Error::usage(format_args!(
                "{sink}: --levels, --chunks, --file-chunks and --zarr-version are for Zarr, whose name ends with .zarr"
            )));
        }
        Ok(Job { source, sink, blur, volume, compares, format, makes_folder, pyramid })
    }

    /// The blur along `axes` axes that the flags describe.
    fn blur(&self, axes: usize) -> Result<Blur> {
        let sigmas =
            self.sigma.as_ref().map(|sigmas| sigmas.expand(axes, "--sigma")).transpose()?;
        let radii = self.radius.as_ref().map(|radii| radii.expand(axes, "--radius")).transpose()?;
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

    /// The radius with which all iterations of a box together have the standard deviation `sigma`: n boxes
    /// of N taps have the variance n (N² - 1) / 12.
    fn box_radius(&self, sigma: f64) -> usize {
        let taps = (12.0 * sigma * sigma / f64::from(self.iterations) + 1.0).sqrt();
        ((taps - 1.0) / 2.0).round() as usize
    }
}
