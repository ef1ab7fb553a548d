//! The flags of `gpuproc bench`, and the plan that they make.

use super::measure::Effort;
use crate::{
    commands::{completions::values, flags::VolumeArgs},
    error::{Error, Result},
    io::{Sink, Source, volume::Layout},
    kernels::case::Case,
};

/// Measure every algorithm on the chosen device, baselines included.
///
/// Data stay on the device; a run's time is the sum of its passes by GPU timestamps (by the wall clock
/// on the CPU and where a device has no timestamps). Half of the runs lie within the bounds shown. GB/s
/// count the least bytes that any algorithm must move, input and output once each, and the next column
/// compares that with a plain copy on the same device. A star marks what is kept for comparison; it is
/// measured last. What a device cannot run is skipped.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpuproc bench --device cpu
  gpuproc bench scan histogram --full --check
  gpuproc bench process --full                      whole commands
  gpuproc bench blur --sweep -o radius.png          time against radius
  gpuproc bench --input photo.jpg -o photo.csv      blurs and histograms
  gpuproc bench mesh --input skull_256x256x256_uint8.raw -o iso.png
  gpuproc bench scan sort --input numbers.npy")]
pub struct Args {
    /// Families to measure: blur, histogram, scan, sort, mesh, copy (on the device), transfer (to it and back), all of
    /// these, or process (whole commands, with vips, magick, gm and djpeg beside them where they are installed)
    #[arg(value_name = "FAMILY", default_value = "all", add = values(FAMILIES))]
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

    /// Runs that count [default: 20, or as many as begin within 1.5 s]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeats: Option<u32>,

    /// Runs before those, which do not; there are more where they take less than 0.3 s [default: 3, or
    /// as many as begin within 0.5 s]
    #[arg(long, value_name = "N")]
    warmup: Option<u32>,

    /// Also write the figures to FILE, as its extension says: .csv, .json, or .png and .svg for a
    /// picture; may be given several times
    #[arg(short, long, value_name = "FILE")]
    output: Vec<Sink>,

    #[command(flatten)]
    volume: VolumeArgs,
}

/// The families that can be measured.
const FAMILIES: [&str; 9] =
    ["blur", "histogram", "scan", "sort", "mesh", "copy", "transfer", "process", "all"];

/// The measurement that the flags describe.
#[derive(Debug)]
pub struct Plan {
    pub wanted: Wanted,
    /// Whether problems are large.
    pub full: bool,
    /// Whether to vary one parameter.
    pub sweep: bool,
    /// Files to measure on; if empty, generated problems.
    pub inputs: Vec<Source>,
    /// How to read raw volumes.
    pub layout: Layout,
    pub effort: Effort,
    pub outputs: Vec<Sink>,
}

/// The cases that are wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    families: Vec<String>,
    /// A text that the algorithm or the problem must contain.
    pub only: String,
}

impl Wanted {
    pub fn family(&self, family: &str) -> bool {
        self.families.iter().any(|name| name == "all" || name == family)
    }

    /// Whether whole commands are wanted. `all` does not include them, since they run other programs.
    pub fn has_processes(&self) -> bool {
        self.families.iter().any(|name| name == "process")
    }

    /// Whether all named families are among `some`.
    pub fn only_families(&self, some: &[&str]) -> bool {
        self.families.iter().all(|name| some.contains(&name.as_str()))
    }

    pub fn case(&self, case: &Case) -> bool {
        let named = case.algorithm.contains(&self.only) || case.problem.contains(&self.only);
        named && self.family(case.family)
    }
}

impl Args {
    /// Validates the flags.
    ///
    /// # Errors
    /// When a family is unknown, two outputs are the same file, or the format of an output is unknown.
    pub fn plan(&self) -> Result<Plan> {
        let known =
            |sink: &&Sink| matches!(sink.extension().as_str(), "csv" | "json" | "png" | "svg");
        if let Some(sink) = self.output.iter().find(|sink| !known(sink)) {
            return Err(Error::usage(format_args!(
                "{sink}: figures are written as .csv, .json, .png or .svg"
            )));
        }
        if let Some(name) = self.families.iter().find(|name| !FAMILIES.contains(&name.as_str())) {
            let all = FAMILIES.join(", ");
            return Err(Error::usage(format_args!("there is no family `{name}`, only {all}")));
        }
        Sink::all_differ(&self.output)?;
        let Self { check, repeats, warmup, .. } = *self;
        Ok(Plan {
            wanted: Wanted { families: self.families.clone(), only: self.only.clone() },
            full: self.full,
            sweep: self.sweep,
            inputs: self.input.clone(),
            layout: self.volume.layout(),
            effort: Effort { check, repeats, warmup },
            outputs: self.output.clone(),
        })
    }
}
