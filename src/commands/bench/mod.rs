//! `gpuproc bench`: every algorithm on this device, baselines included.

mod chart;
mod figure;
mod input;

use std::{
    io::Write,
    time::{Duration, Instant},
};

use self::figure::{Figure, Report};
use super::hints::line;
use crate::{
    commands::flags::VolumeArgs,
    error::{Error, Kind, Result},
    gpu::Context,
    io::{Sink, Source},
    kernels::{
        self,
        case::{Case, Sweep},
        copy,
    },
    session::Session,
    timings::Clock,
};

/// Measure every algorithm on the chosen device, baselines included.
///
/// Data stay on the device; a run's time is the sum of its passes by GPU timestamps (by the wall clock
/// on the CPU and where a device has no timestamps). Half of the runs lie within the bounds shown. GB/s
/// count the least bytes that any algorithm must move, input and output once each, and the next column
/// compares that with a plain copy on the same device. A star marks what is kept for comparison; where
/// a time was published for it, that is shown, too.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpuproc bench --device cpu
  gpuproc bench scan histogram --full --check
  gpuproc bench blur --sweep -o radius.png          time against radius, as lines
  gpuproc bench --input photo.jpg -o photo.csv      blurs and histograms of a photograph
  gpuproc bench mesh --input skull_256x256x256_uint8.raw -o iso.png
  gpuproc bench scan sort --input numbers.npy")]
pub struct Args {
    /// Families to measure: blur, histogram, scan, sort, mesh, copy, or all
    #[arg(value_name = "FAMILY", default_value = "all")]
    families: Vec<String>,

    /// Large problems, for a real GPU: 8192x8192 images, 2^28 numbers, 1024^3 voxels
    #[arg(long)]
    full: bool,

    /// Measure on this file: an image for blur and histogram, a raw volume for mesh (isovalues 30 to
    /// 110) and histogram, numbers (.npy, .txt) for scan and sort; may be given several times
    #[arg(long, value_name = "FILE", conflicts_with_all = ["full", "sweep"])]
    input: Vec<Source>,

    /// Follow one number instead: the time against the radius for blur (isovalues of a volume are
    /// followed with --input)
    #[arg(long)]
    sweep: bool,

    /// Compare each algorithm's result with a reference before it is timed, and fail where it differs
    #[arg(long)]
    check: bool,

    /// Only cases whose algorithm or problem contains this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,

    /// Runs that count
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeats: u32,

    /// Runs before those, which do not; there are more where they take less than 0.3 s
    #[arg(long, value_name = "N", default_value_t = 3)]
    warmup: u32,

    /// Also write the figures to FILE, as its extension says: .csv, .json, or .png and .svg for a
    /// picture; may be given several times
    #[arg(short, long, value_name = "FILE")]
    output: Vec<Sink>,

    #[command(flatten)]
    volume: VolumeArgs,
}

/// Measures, prints a table, writes the files.
///
/// # Errors
/// [`Kind::Usage`] for an unknown family or file type, the device's errors, and [`Kind::Partial`] when
/// a case failed or its checked result is wrong.
pub fn run(args: &Args, session: &Session) -> Result<()> {
    for sink in &args.output {
        if !matches!(sink.extension().as_str(), "csv" | "json" | "png" | "svg") {
            return Err(Error::usage(format_args!(
                "{sink}: figures are written as .csv, .json, .png or .svg"
            )));
        }
    }
    let cases = chosen(args, session)?;
    session.timings.want_passes();
    let context = session.device.context()?;
    let copy_speed = copy_speed(args, session, context)?;
    let device = session.device.name().unwrap_or_default();
    print(&format!(
        "device {device}, {} runs after {}, a copy moves {copy_speed:.1} GB/s",
        args.repeats, args.warmup
    ))?;
    let wide = cases.iter().map(|(_, case)| case.problem.chars().count()).max().unwrap_or(0);
    print(&Figure::heads(wide))?;
    let mut figures: Vec<Figure> = Vec::new();
    let mut failed = 0;
    for (point, case) in cases.iter().filter(|(_, case)| case.on_cpu || context.is_some()) {
        match measure(case, args, session, context) {
            Ok((clock, times)) => {
                let figure = Figure {
                    along: point.map(|(along, _)| along),
                    at: point.map(|(_, at)| at),
                    ..Figure::new(case, clock, &times, copy_speed)
                };
                print(&figure.row(wide))?;
                figures.push(figure);
            }
            Err(error) => {
                failed += 1;
                log::error!("error: {case:?}: {}", line(&error));
            }
        }
    }
    tell_growth(&figures)?;
    if !figures.is_empty() {
        let report = Report {
            device,
            version: env!("CARGO_PKG_VERSION"),
            copy_gb_per_s: copy_speed,
            warmup: args.warmup,
            checked: args.check,
            figures: &figures,
        };
        args.output.iter().try_for_each(|sink| write(sink, &report, session))?;
    }
    match failed {
        0 => Ok(()),
        _ => {
            let all = failed + figures.len();
            Err(Error::new(Kind::Partial, format_args!("{failed} of {all} cases failed")))
        }
    }
}

/// What a sweep's case is followed along, and where on it the case lies.
type Point = (&'static str, f64);

/// The cases that the flags ask for, those of sweeps with their places.
fn chosen(args: &Args, session: &Session) -> Result<Vec<(Option<Point>, Case)>> {
    const FAMILIES: [&str; 7] = ["blur", "histogram", "scan", "sort", "mesh", "copy", "all"];
    if let Some(name) = args.families.iter().find(|name| !FAMILIES.contains(&name.as_str())) {
        let all = FAMILIES.join(", ");
        return Err(Error::usage(format_args!("there is no family `{name}`, only {all}")));
    }
    let wanted = |family: &str| args.families.iter().any(|name| name == "all" || name == family);
    let (mut cases, mut sweeps) = (Vec::new(), Vec::new());
    for source in &args.input {
        let (more, along) = input::cases(source, &args.families, &args.volume.layout(), session)?;
        cases.extend(more);
        sweeps.extend(along);
    }
    if args.sweep {
        sweeps.extend(kernels::sweeps(args.full));
        if !sweeps.iter().any(|sweep| sweep.points.iter().any(|(_, case)| wanted(case.family))) {
            return Err(Error::usage(
                "--sweep: only blur has one; mesh follows isovalues with --input VOLUME",
            ));
        }
    } else if args.input.is_empty() {
        cases.extend(kernels::cases(args.full));
    }
    let alone = cases.into_iter().map(|case| (None, case));
    let along = sweeps.into_iter().flat_map(|Sweep { along, points }| {
        points.into_iter().map(move |(at, case)| (Some((along, at)), case))
    });
    let chosen: Vec<_> = alone
        .chain(along)
        .filter(|(_, case)| wanted(case.family))
        .filter(|(_, case)| {
            case.algorithm.contains(&args.only) || case.problem.contains(&args.only)
        })
        .collect();
    match chosen.is_empty() {
        true => Err(Error::usage(format_args!(
            "no case contains `{}`; without --only all are measured",
            args.only
        ))),
        false => Ok(chosen),
    }
}

/// GB/s of a copy that is larger than the caches, read and written bytes both counted.
fn copy_speed(args: &Args, session: &Session, context: Option<&Context>) -> Result<f64> {
    let hardware = context.is_some_and(Context::is_hardware);
    let bytes = if args.full || hardware { 1 << 30 } else { 64 << 20 };
    let case = copy::case(context.map_or(bytes, |context| bytes.min(context.max_binding() & !15)));
    let (clock, times) = measure(&case, args, session, context)?;
    Ok(Figure::new(&case, clock, &times, 1.0).gb_per_s)
}

/// GPUs lower their clocks while they wait, and need about this long to raise them again.
const WARM: Duration = Duration::from_millis(300);

/// The time of each run that counts, and what measured it.
fn measure(
    case: &Case,
    args: &Args,
    session: &Session,
    context: Option<&Context>,
) -> Result<(Clock, Vec<Duration>)> {
    let mut prepared = (case.prepare)(context)?;
    if args.check {
        (prepared.run)()?;
        (prepared.check)()?;
    }
    let start = Instant::now();
    let mut runs = 0;
    while runs < args.warmup || start.elapsed() < WARM {
        (prepared.run)()?;
        runs += 1;
    }
    session.timings.drain();
    let mut clock = Clock::Gpu;
    let mut times = Vec::new();
    for _ in 0..args.repeats {
        let start = Instant::now();
        (prepared.run)()?;
        let wall = start.elapsed();
        let samples = session.timings.drain();
        let passes: Duration =
            samples.iter().filter(|s| s.clock == Clock::Gpu).map(|s| s.duration).sum();
        if passes.is_zero() {
            clock = Clock::Wall;
        }
        times.push(if clock == Clock::Gpu { passes } else { wall });
    }
    Ok((clock, times))
}

/// Says of each algorithm of a wide sweep how its time grows.
fn tell_growth(figures: &[Figure]) -> Result<()> {
    let along: Vec<&Figure> = figures.iter().filter(|figure| figure.along.is_some()).collect();
    for (name, _) in chart::series(&along) {
        if let Some((algorithm, power)) = name.split_once(" ~ x^") {
            print(&format!("{algorithm}: the time grows with the power {power} in the end"))?;
        }
    }
    Ok(())
}

fn print(line: &str) -> Result<()> {
    let told = writeln!(std::io::stdout(), "{line}");
    told.map_err(|error| Error::io("write", "standard output", error))
}

fn write(sink: &Sink, report: &Report<'_>, session: &Session) -> Result<()> {
    let bytes = match sink.extension().as_str() {
        "json" => report.json()?,
        "csv" => figure::csv(report.figures)?,
        _ => return chart::draw(report).write(sink, session.no_clobber, &session.timings),
    };
    sink.write_with(session.no_clobber, |output| output.write_all(&bytes))
}
