//! The flags of `gpuproc bench`.

use clap::builder::PossibleValuesParser;

use super::{case::Case, measure::Effort};
use crate::{
    commands::flags::VolumeArgs,
    engine::session::Session,
    io::{
        Sink, Source,
        file_roles::{INPUT, OUTPUT},
    },
    util::error::{Error, Result},
};

/// Measure the speed of blurs, histograms, scans, sorts and meshes.
///
/// Data stay on the device. The time of a run is the sum of its passes by GPU timestamps; on the CPU, and on
/// devices without timestamps, it is the wall clock. Half of the runs lie within the bounds shown. GB/s count the
/// bytes of the input and the output, and the next column compares them with a plain copy on the same device. A
/// star marks published algorithms, which are measured last, on GPUs only.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpuproc bench --device cpu
  gpuproc bench scan histogram --full
  gpuproc bench mesh --input skull_256x256x256_uint8.raw -o skull.csv")]
pub struct Args {
    /// Families to measure
    ///
    /// copy is a copy on the device, transfer a copy to the device and back.
    #[arg(value_name = "FAMILY", default_value = "all", value_parser = PossibleValuesParser::new(FAMILIES))]
    families: Vec<String>,

    /// Measure large problems, for a real GPU
    ///
    /// 8192x8192 images, 2^28 numbers, 1024^3 voxels.
    #[arg(long)]
    pub full: bool,

    /// Mesh this volume at isovalues from 30 to 110; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "full")]
    pub input: Vec<Source>,

    /// Compare each result of a GPU with that of the CPU first
    ///
    /// A difference is an error.
    #[arg(long)]
    check: bool,

    /// Measure only cases whose algorithm or problem contains this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub only: String,

    /// Number of measured runs [default: 20, or as many as begin within 1.5 s]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeats: Option<u32>,

    /// Warm-up runs that are not measured (at least 0.3 s) [default: 3, or as many as begin within 0.5 s]
    #[arg(long, value_name = "N")]
    warmup: Option<u32>,

    /// Also write the figures to this .csv or .json file; may be repeated
    #[arg(short, long, value_name = "FILE")]
    pub output: Vec<Sink>,

    #[command(flatten)]
    pub volume: VolumeArgs,
}

/// The families that can be measured.
const FAMILIES: [&str; 8] =
    ["all", "blur", "histogram", "scan", "sort", "mesh", "copy", "transfer"];

impl Args {
    /// Refuses outputs that are the same file or have an unknown format.
    pub fn check_outputs(&self, session: &Session) -> Result<()> {
        let is_known = |sink: &&Sink| matches!(sink.extension().as_str(), "csv" | "json");
        match self.output.iter().find(|sink| !is_known(sink)) {
            Some(sink) => {
                Err(Error::usage(format_args!("{sink}: results are written as .csv or .json")))
            }
            None => session.check_files(|roles| {
                self.input.iter().try_for_each(|input| roles.reads(INPUT, input))?;
                self.output.iter().try_for_each(|sink| roles.writes(OUTPUT, sink))
            }),
        }
    }

    pub fn effort(&self) -> Effort {
        Effort { check: self.check, repeats: self.repeats, warmup: self.warmup }
    }

    pub fn wants_case(&self, case: &Case) -> bool {
        let is_named = case.algorithm.contains(&self.only) || case.problem.contains(&self.only);
        let is_of_family = self.families.iter().any(|name| name == "all" || name == case.family);
        is_named && is_of_family
    }
}
