//! `gpuproc bench`: every algorithm on this device, baselines included.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use serde::Serialize;

use crate::{
    bench::Case,
    cli::Session,
    error::{Error, Kind, Result},
    gpu::Context,
    io::Sink,
    kernels::{self, copy},
    timings::Clock,
};

/// Measure every algorithm on the chosen device, baselines included.
///
/// Data are synthetic and stay on the device; a run's time is the sum of its passes by GPU timestamps
/// (by the wall clock on the CPU and where a device has no timestamps). GB/s count the least bytes that
/// any algorithm must move, input and output once each, and the last column compares that with a plain
/// copy on the same device.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpuproc bench --device cpu
  gpuproc bench scan histogram --full --check
  gpuproc bench blur -o blur.csv -o blur.json")]
pub struct Args {
    /// Families to measure: blur, histogram, scan, sort, mesh, copy, or all
    #[arg(value_name = "FAMILY", default_value = "all")]
    families: Vec<String>,

    /// Large problems, for a real GPU: 8192x8192 images, 2^28 numbers, 1024^3 voxels
    #[arg(long)]
    full: bool,

    /// Compare each algorithm's result with the reference, and fail where it differs
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

    /// Also write the figures to FILE, as its extension says: .csv or .json
    #[arg(short, long, value_name = "FILE")]
    output: Vec<Sink>,
}

/// One measured case. Times are in milliseconds.
#[derive(Debug, Serialize)]
struct Figure {
    family: &'static str,
    algorithm: &'static str,
    problem: String,
    baseline: bool,
    clock: Clock,
    median_ms: f64,
    min_ms: f64,
    max_ms: f64,
    gb_per_s: f64,
    /// Bandwidth over that of a copy.
    of_copy: f64,
}

/// Measures, prints a table, writes the files.
///
/// # Errors
/// [`Kind::Usage`] for an unknown family or file type, the device's errors, and
/// [`Kind::Failure`] when a checked result is wrong.
pub fn run(args: &Args, session: &Session) -> Result<()> {
    for sink in &args.output {
        if !matches!(sink.extension().as_str(), "csv" | "json") {
            return Err(Error::usage(format_args!("{sink}: figures are written as .csv or .json")));
        }
    }
    let cases = chosen(args)?;
    session.timings.want_passes();
    let context = session.device.context()?;
    let copy_speed = copy_speed(args, session, context)?;
    print(&format!(
        "device {}, {} runs after {}, a copy moves {copy_speed:.1} GB/s",
        session.device.name().unwrap_or_default(),
        args.repeats,
        args.warmup
    ))?;
    print(&format!(
        "{:<10} {:<22} {:<34} {:>10} {:>10} {:>10} {:>8} {:>7}",
        "family", "algorithm", "problem", "median ms", "min", "max", "GB/s", "of copy"
    ))?;
    let mut figures = Vec::new();
    let mut failed = 0;
    for case in cases.iter().filter(|case| case.on_cpu || context.is_some()) {
        match measure(case, args, session, context) {
            Ok((clock, times)) => {
                let figure = figure(case, clock, &times, copy_speed);
                print(&figure.row())?;
                figures.push(figure);
            }
            Err(error) => {
                failed += 1;
                log::error!("error: {case:?}: {}", error.one_line());
            }
        }
    }
    args.output.iter().try_for_each(|sink| write(sink, &figures, session))?;
    match failed {
        0 => Ok(()),
        _ => Err(Error::new(Kind::Partial, format_args!("{failed} of {} cases failed", cases.len()))),
    }
}

fn print(line: &str) -> Result<()> {
    let told = writeln!(std::io::stdout(), "{line}");
    told.map_err(|error| Error::io("write", "standard output", error))
}

fn chosen(args: &Args) -> Result<Vec<Case>> {
    let all = kernels::cases(args.full);
    for family in args.families.iter().filter(|name| *name != "all") {
        if !all.iter().any(|case| case.family == family) {
            return Err(Error::usage(format_args!(
                "`{family}` is none of blur, histogram, scan, sort, mesh, copy, all"
            )));
        }
    }
    let wanted = |case: &Case| {
        args.families.iter().any(|name| name == "all" || name == case.family)
            && (case.algorithm.contains(&args.only) || case.problem.contains(&args.only))
    };
    Ok(all.into_iter().filter(wanted).collect())
}

/// GB/s of a copy that is larger than the caches, read and written bytes both counted.
fn copy_speed(args: &Args, session: &Session, context: Option<&Context>) -> Result<f64> {
    let bytes = if args.full { 1 << 30 } else { 64 << 20 };
    let case = copy::case(context.map_or(bytes, |context| bytes.min(context.max_binding() & !15)));
    let (clock, times) = measure(&case, args, session, context)?;
    Ok(figure(&case, clock, &times, 1.0).gb_per_s)
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
    if args.check {
        (prepared.check)()?;
    }
    Ok((clock, times))
}

fn figure(case: &Case, clock: Clock, times: &[Duration], copy_speed: f64) -> Figure {
    let mut ms: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
    ms.sort_by(f64::total_cmp);
    let middle = ms.len() / 2;
    let median_ms =
        if ms.len() % 2 == 1 { ms[middle] } else { (ms[middle - 1] + ms[middle]) / 2.0 };
    let gb_per_s = case.bytes as f64 / 1e6 / median_ms;
    Figure {
        family: case.family,
        algorithm: case.algorithm,
        problem: case.problem.clone(),
        baseline: case.baseline,
        clock,
        median_ms,
        min_ms: ms[0],
        max_ms: ms[ms.len() - 1],
        gb_per_s,
        of_copy: gb_per_s / copy_speed,
    }
}

impl Figure {
    fn row(&self) -> String {
        let Self { family, algorithm, problem, median_ms, min_ms, max_ms, .. } = self;
        let algorithm = match self.baseline {
            true => format!("{algorithm} *"),
            false => (*algorithm).to_owned(),
        };
        format!(
            "{family:<10} {algorithm:<22} {problem:<34} {median_ms:>10.4} {min_ms:>10.4} \
             {max_ms:>10.4} {:>8.1} {:>5.1} %",
            self.gb_per_s,
            self.of_copy * 100.0
        )
    }
}

fn write(sink: &Sink, figures: &[Figure], session: &Session) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| {
        Error::new(Kind::Failure, format_args!("cannot encode {sink}: {error}"))
    };
    let bytes = match sink.extension().as_str() {
        "json" => serde_json::to_vec_pretty(figures).map_err(|error| failed(&error))?,
        _ => {
            let mut writer = csv::Writer::from_writer(Vec::new());
            for figure in figures {
                writer.serialize(figure).map_err(|error| failed(&error))?;
            }
            writer.into_inner().map_err(|error| failed(&error))?
        }
    };
    sink.write_with(session.no_clobber, |output| output.write_all(&bytes))
}
