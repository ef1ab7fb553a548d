//! `gpuproc blur`: Gaussian and box blur of images and volumes.

mod bands;

use std::{
    collections::BTreeSet,
    fmt, fs,
    io::{self, Write},
    path::{Component, PathBuf},
    str::FromStr,
    sync::mpsc::sync_channel,
    thread,
};

use clap::{Args as ClapArgs, ValueEnum};

use rayon::prelude::*;

use super::hints::line;
use crate::{
    commands::flags::VolumeArgs,
    data::image::Image,
    data::raster::Raster,
    data::samples::{Dtype, Samples},
    data::volume::Volume,
    error::{Error, Kind, Result},
    io::{
        Limits, Sink, Source,
        image::{Encoding, ImageFormat, losses, read_image, write_image},
        volume::{Endian, VolumeFile},
    },
    kernels::blur::{Blur, Edge, Method, Taps},
    memory,
    session::Session,
};

/// Blur images and volumes: exactly, at any sigma, with the same result on every device.
///
/// Depth and channels stay as they are, and alpha is premultiplied while blurring. The output's format
/// follows its extension. Raw volumes are blurred in three dimensions.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Input and output; with --out-dir, inputs only. - is standard input or output
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,

    /// Standard deviation in pixels, 0 to 500: one value, or one an axis, as 2,0.5 or 1,1,1.5. 0
    /// leaves an axis as it is [default: 2, or a third of --radius]
    #[arg(short, long, value_name = "S[,S..]", value_parser = parse_sigma)]
    sigma: Option<PerAxis<f64>>,

    /// Pixels on either side that count, 0 to 10000: one value, or one an axis [default: --truncate
    /// times sigma, rounded up; for a box, what makes its standard deviation sigma]
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

    /// What lies outside: clamp (aaa|abcd|ddd), reflect (cba|abcd|dcb), mirror (dcb|abcd|cba), wrap
    /// (bcd|abcd|abc), zero, or a number in units of the samples. scipy's and OpenCV's names are
    /// understood, too
    #[arg(short, long, value_name = "EDGE", default_value = "clamp", value_parser = parse_edge)]
    #[arg(allow_hyphen_values = true)]
    edge: Edge,

    /// Blur only these of r, g, b, a (or grey, a); the others stay as they are
    #[arg(long, value_name = "C[,C..]", value_delimiter = ',')]
    channels: Vec<Channel>,

    /// Blur light rather than stored values: 8- and 16-bit samples are decoded from the sRGB curve
    /// and encoded again; floats are light as they are
    #[arg(long)]
    linear: bool,

    /// Write each result into this folder, under its input's path
    #[arg(short, long, value_name = "DIR")]
    out_dir: Option<PathBuf>,

    /// Quality of JPEG output, 1 to 100; below 95 colour is stored at half the resolution
    #[arg(long, value_name = "Q", default_value_t = 90)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=100))]
    quality: u8,

    /// Effort for PNG output, 0 (none) to 9 (smallest file)
    #[arg(long, value_name = "LEVEL", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u8).range(..=9))]
    compression: u8,

    /// Fail rather than warn when the output's format cannot hold the input's depth, alpha, colour
    /// profile or EXIF
    #[arg(long)]
    strict: bool,

    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    volume: VolumeArgs,
}

const EXAMPLES: &str = "\
Examples:
  gpuproc blur photo.jpg soft.jpg --sigma 8
  gpuproc blur icon.png icon.png --radius 3 --edge reflect
  gpuproc blur scan.tif smooth.tif --method box --radius 20 --iterations 3
  gpuproc blur skull_256x256x256_uint8.raw smooth_256x256x256_uint8.raw --sigma 1,1,1.5
  gpuproc blur photos/*.jpg --out-dir soft --sigma 3 --quality 85
  curl -s https://example.org/a.png | gpuproc blur - a.png";

/// One value for all axes, or one each.
#[derive(Clone, Debug, PartialEq)]
struct PerAxis<T>(Vec<T>);

impl<T: Copy> PerAxis<T> {
    /// The values of `axes` axes; nothing when their number is another.
    fn get(&self, axes: usize) -> Option<Vec<T>> {
        match self.0[..] {
            [one] => Some(vec![one; axes]),
            _ if self.0.len() == axes => Some(self.0.clone()),
            _ => None,
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

const MAX_SIGMA: f64 = 500.0;
const MAX_RADIUS: usize = 10_000;

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
enum Channel {
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
    /// Its place in a pixel of `channels` samples.
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

/// Reads, blurs, writes.
///
/// # Errors
/// Those of reading, blurring and writing; [`Kind::Partial`] when some files of several fail.
pub fn run(args: &Args, session: &Session) -> Result<()> {
    let jobs = args.jobs()?;
    // Flags that make no sense, and formats that cannot be written, are told before any work.
    args.blur(2).or_else(|_| args.blur(3))?;
    for job in &jobs {
        if !job.is_volume {
            ImageFormat::of_output(&job.sink)?;
        }
    }
    if args.dry_run {
        return jobs.iter().try_for_each(|job| args.describe(job));
    }
    match &jobs[..] {
        [job] => match in_bands(args, session, job)? {
            true => Ok(()),
            false => {
                let computed = compute(args, session, job, read(args, session, job)?)?;
                write(args, session, job, computed)
            }
        },
        _ => run_all(args, session, &jobs),
    }
}

/// One input and where its result goes.
#[derive(Debug)]
struct Job {
    source: Source,
    sink: Sink,
    is_volume: bool,
}

/// What has been read, or is about to be written.
enum Picture {
    Image(Image),
    Volume(Volume),
    /// It went in bands, and has been written.
    Done,
}

/// Reads on one thread, computes on another and writes on a third, so that all have work. A file that
/// fails is told and left out.
fn run_all(args: &Args, session: &Session, jobs: &[Job]) -> Result<()> {
    type Stage<'a> = (&'a Job, Result<Picture>);
    // No stage runs ahead: three pictures are in memory at most.
    let (to_compute, read_ones) = sync_channel::<Stage<'_>>(0);
    let (to_write, computed_ones) = sync_channel::<Stage<'_>>(0);
    let mut bar = session.progress.bar("blur", jobs.len() as u64);
    let failed = thread::scope(|scope| {
        scope.spawn(move || {
            for job in jobs {
                let picture = match in_bands(args, session, job) {
                    Ok(false) => read(args, session, job),
                    done => done.map(|_| Picture::Done),
                };
                if to_compute.send((job, picture)).is_err() {
                    return;
                }
            }
        });
        scope.spawn(move || {
            for (job, picture) in read_ones {
                let computed = picture.and_then(|picture| compute(args, session, job, picture));
                if to_write.send((job, computed)).is_err() {
                    return;
                }
            }
        });
        let mut failed = 0;
        for (job, picture) in computed_ones {
            if let Err(error) = picture.and_then(|picture| write(args, session, job, picture)) {
                log::error!("error: {}", line(&error));
                failed += 1;
            }
            bar.advance(1);
        }
        failed
    });
    match failed {
        0 => Ok(()),
        _ => {
            Err(Error::new(Kind::Partial, format_args!("{failed} of {} files failed", jobs.len())))
        }
    }
}

/// Blurs an image in bands where it needs that; returns whether it did.
fn in_bands(args: &Args, session: &Session, job: &Job) -> Result<bool> {
    if job.is_volume {
        return Ok(false);
    }
    make_folder(args, job)?;
    bands::run(args, session, job, &args.blur(2)?)
}

fn read(args: &Args, session: &Session, job: &Job) -> Result<Picture> {
    if job.is_volume {
        let file = VolumeFile::describe(&job.source, &args.volume.layout())?;
        return file.read(args.limits(session), &session.timings).map(Picture::Volume);
    }
    let image = read_image(&job.source, args.limits(session), &session.timings)?;
    if let Some(losses) = losses(&image, ImageFormat::of_output(&job.sink)?) {
        let message = format!("{}: {losses} in this format", job.sink);
        if args.strict {
            return Err(Error::bad_input(message));
        }
        log::warn!("{message}");
    }
    Ok(Picture::Image(image))
}

fn compute(args: &Args, session: &Session, job: &Job, picture: Picture) -> Result<Picture> {
    let told = |error: Error| error.context(format_args!("cannot blur {}", job.source));
    Ok(match picture {
        Picture::Done => Picture::Done,
        Picture::Image(image) => {
            let blur = args.blur(2)?;
            Picture::Image(blur_image(args, session, &blur, image).map_err(told)?)
        }
        Picture::Volume(volume) => {
            let blur = args.blur(3)?;
            Picture::Volume(blur_volume(session, &blur, volume).map_err(told)?)
        }
    })
}

/// Makes the folder of the result inside of `--out-dir`.
fn make_folder(args: &Args, job: &Job) -> Result<()> {
    let (Some(folder), Sink::File(path)) = (&args.out_dir, &job.sink) else { return Ok(()) };
    let folder = path.parent().unwrap_or(folder);
    fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))
}

fn write(args: &Args, session: &Session, job: &Job, picture: Picture) -> Result<()> {
    make_folder(args, job)?;
    match picture {
        Picture::Done => Ok(()),
        Picture::Image(image) => {
            let encoding = Encoding { quality: args.quality, compression: args.compression };
            write_image(&image, &job.sink, &encoding, session.no_clobber, &session.timings)
        }
        Picture::Volume(mut volume) => session.timings.time("write", || {
            if args.volume.layout().endian == Endian::Big {
                volume.samples.swap_bytes();
            }
            job.sink.write_with(session.no_clobber, |output| {
                output.write_all(volume.samples.as_bytes())
            })
        }),
    }
}

impl Args {
    /// What one input may take: so many times as much is in memory while it is blurred, by measurement.
    fn limits(&self, session: &Session) -> Limits {
        let times = if self.linear { 10 } else { 6 };
        session.limits(if self.files.len() > 2 { times + 5 } else { times })
    }

    /// What is to be read and where it goes.
    fn jobs(&self) -> Result<Vec<Job>> {
        let Some(folder) = &self.out_dir else {
            let [input, output] = &self.files[..] else {
                return Err(Error::usage(
                    "give one input and one output, or inputs and --out-dir DIR",
                ));
            };
            let (Ok(source), Ok(sink)) = (input.parse(), output.parse());
            let is_volume = self.is_volume(&source);
            return Ok(vec![Job { source, sink, is_volume }]);
        };
        let mut taken = BTreeSet::new();
        self.files
            .iter()
            .map(|input| {
                let Ok(source) = input.parse::<Source>();
                let Some(path) = source.path() else {
                    return Err(Error::usage("with --out-dir, standard input has no name"));
                };
                // The tree is kept, but never left.
                let inside: PathBuf =
                    path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
                let target = folder.join(inside);
                if !taken.insert(target.clone()) {
                    let target = target.display();
                    return Err(Error::usage(format_args!("two inputs would become {target}")));
                }
                let is_volume = self.is_volume(&source);
                Ok(Job { source, sink: Sink::File(target), is_volume })
            })
            .collect()
    }

    /// Whether `source` is a raw volume: its name or a flag says so.
    fn is_volume(&self, source: &Source) -> bool {
        let name = source.path().map(|path| path.to_string_lossy().to_lowercase());
        let name = name.unwrap_or_default();
        name.ends_with(".raw") || name.ends_with(".raw.gz") || self.volume.layout().dims.is_some()
    }

    /// Tells what would become of a file.
    fn describe(&self, job: &Job) -> Result<()> {
        job.source.size()?;
        let axes = if job.is_volume { 3 } else { 2 };
        let blur = self.blur(axes)?;
        let each = |text: &dyn Fn(&Taps) -> String| {
            let texts: Vec<String> = blur.axes[..axes].iter().map(text).collect();
            texts.join(",")
        };
        let radius = each(&|axis| axis.radius.to_string());
        let how = match blur.method {
            Method::Gaussian => {
                format!("sigma {}, radius {radius}", each(&|axis| axis.sigma.to_string()))
            }
            Method::Box => format!("box of radius {radius}"),
        };
        let line = format!("{} -> {}: {how}\n", job.source, job.sink);
        let told = io::stdout().write_all(line.as_bytes());
        told.map_err(|error| Error::io("write", "standard output", error))
    }
}

impl Args {
    /// The blur of `axes` axes that the flags describe.
    fn blur(&self, axes: usize) -> Result<Blur> {
        let wrong = |flag: &str, count: usize| {
            Error::usage(format_args!(
                "{flag} has {count} values, but there are {axes} axes: give one or {axes}"
            ))
        };
        let sigmas = match &self.sigma {
            Some(sigmas) => Some(sigmas.get(axes).ok_or_else(|| wrong("--sigma", sigmas.0.len()))?),
            None => None,
        };
        let radii = match &self.radius {
            Some(radii) => Some(radii.get(axes).ok_or_else(|| wrong("--radius", radii.0.len()))?),
            None => None,
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
        for axis in 0..axes {
            let radius = radii.as_ref().map(|radii| radii[axis]);
            let default = radius.map_or(DEFAULT_SIGMA, |radius| radius as f64 / 3.0);
            let sigma = sigmas.as_ref().map_or(default, |sigmas| sigmas[axis]);
            blur.axes[axis] = match blur.method {
                Method::Gaussian => {
                    let reach = radius.unwrap_or_else(|| (self.truncate * sigma).ceil() as usize);
                    Taps::gaussian(sigma, reach)
                }
                Method::Box => Taps::box_filter(radius.unwrap_or_else(|| {
                    // n means of N samples have the variance n (N² - 1) / 12.
                    let taps = (12.0 * sigma * sigma / f64::from(self.iterations) + 1.0).sqrt();
                    ((taps - 1.0) / 2.0).round() as usize
                })),
            };
        }
        Ok(blur)
    }
}

const DEFAULT_SIGMA: f64 = 2.0;

fn blur_image(args: &Args, session: &Session, blur: &Blur, image: Image) -> Result<Image> {
    if image.is_linear && image.has_alpha() && matches!(blur.edge, Edge::Constant(v) if v != 0.0) {
        // Such surroundings are opaque, which only the kernel for colours beside alpha knows.
        let apart = image.to_straight(Dtype::F32)?;
        return blur_image(args, session, blur, apart)?.to_linear();
    }
    let Image { width, height, channels, samples, is_linear, metadata } = image;
    let kept = kept_channels(&args.channels, channels)?;
    // Light is multiplied with alpha as it comes.
    let alpha = matches!(channels, 2 | 4) && !is_linear;
    let raster = Raster { dims: [width, height, 1], channels, alpha, samples };
    let mut samples = session.device.run(blur, &raster)?;
    for channel in kept {
        copy_channel(&raster.samples, &mut samples, channel, channels);
    }
    Ok(Image { width, height, channels, samples, is_linear, metadata })
}

/// The channels that are not to be blurred.
fn kept_channels(wanted: &[Channel], channels: usize) -> Result<Vec<usize>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let mut blurred = vec![false; channels];
    for channel in wanted {
        let index = channel.index(channels).ok_or_else(|| {
            Error::usage(format_args!("--channels {channel}: the image has {channels} channels"))
        })?;
        blurred[index] = true;
    }
    Ok((0..channels).filter(|&channel| !blurred[channel]).collect())
}

fn copy_channel(from: &Samples, to: &mut Samples, channel: usize, channels: usize) {
    fn copy<T: Copy>(from: &[T], to: &mut [T], channel: usize, channels: usize) {
        let places = to.iter_mut().skip(channel).step_by(channels);
        places.zip(from.iter().skip(channel).step_by(channels)).for_each(|(to, &from)| *to = from);
    }
    match (from, to) {
        (Samples::U8(from), Samples::U8(to)) => copy(from, to, channel, channels),
        (Samples::U16(from), Samples::U16(to)) => copy(from, to, channel, channels),
        (Samples::F32(from), Samples::F32(to)) => copy(from, to, channel, channels),
        _ => unreachable!("a blur keeps the type"),
    }
}

fn blur_volume(session: &Session, blur: &Blur, volume: Volume) -> Result<Volume> {
    let dtype = volume.samples.dtype();
    if matches!(dtype, Dtype::U32 | Dtype::I32 | Dtype::F64) {
        log::warn!("{dtype} samples are blurred as f32, with 24 significant bits");
    }
    let mut blur = blur.clone();
    if let Edge::Constant(value) = &mut blur.edge {
        *value += match dtype {
            Dtype::I8 => 128.0,
            Dtype::I16 => 32768.0,
            _ => 0.0,
        };
    }
    let samples = to_blurrable(volume.samples)?;
    let raster = Raster { dims: volume.dims, channels: 1, alpha: false, samples };
    let blurred = session.device.run(&blur, &raster)?;
    Ok(Volume { dims: volume.dims, samples: from_blurrable(blurred, dtype)? })
}

/// Signed integers move up into unsigned ones, which a blur commutes with; what is wider becomes f32.
fn to_blurrable(samples: Samples) -> Result<Samples> {
    Ok(match samples {
        Samples::I8(v) => Samples::U8(memory::collect(v.par_iter().map(|&v| (v as u8) ^ 0x80))?),
        Samples::I16(v) => {
            Samples::U16(memory::collect(v.par_iter().map(|&v| (v as u16) ^ 0x8000))?)
        }
        Samples::U32(v) => Samples::F32(memory::collect(v.par_iter().map(|&v| v as f32))?),
        Samples::I32(v) => Samples::F32(memory::collect(v.par_iter().map(|&v| v as f32))?),
        Samples::F64(v) => Samples::F32(memory::collect(v.par_iter().map(|&v| v as f32))?),
        other => other,
    })
}

fn from_blurrable(samples: Samples, dtype: Dtype) -> Result<Samples> {
    Ok(match (samples, dtype) {
        (Samples::U8(v), Dtype::I8) => {
            Samples::I8(memory::collect(v.par_iter().map(|&v| (v ^ 0x80) as i8))?)
        }
        (Samples::U16(v), Dtype::I16) => {
            Samples::I16(memory::collect(v.par_iter().map(|&v| (v ^ 0x8000) as i16))?)
        }
        (Samples::F32(v), Dtype::U32) => {
            Samples::U32(memory::collect(v.par_iter().map(|v| v.round() as u32))?)
        }
        (Samples::F32(v), Dtype::I32) => {
            Samples::I32(memory::collect(v.par_iter().map(|v| v.round() as i32))?)
        }
        (Samples::F32(v), Dtype::F64) => {
            Samples::F64(memory::collect(v.par_iter().map(|&v| v.into()))?)
        }
        (other, _) => other,
    })
}
