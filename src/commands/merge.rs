//! `gpuproc merge`: joins the part files of all shards into the result that a single process writes.

use super::{
    flags::{FilesFromArgs, choice_parser},
    histogram::{self, FORMATS, Format},
    mesh, scan,
};
use crate::{
    engine::session::Session,
    io::{Sink, Source, part_file::open_all},
    util::error::{Error, Result},
};

/// Merge the part files of all shards into one result.
///
/// A part states its job: a part that is missing, duplicated, or of another job (another input, parameter or version)
/// is an error. Blurred volumes need no merge: their shards write one output together.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpuproc histogram skull_256x256x256_uint8.raw --shard 0/2 -o a.part
  gpuproc histogram skull_256x256x256_uint8.raw --shard 1/2 -o b.part
  gpuproc merge a.part b.part -o skull.json -o skull.png
  gpuproc mesh skull_256x256x256_uint8.raw 0.part --iso 80 --shard 0/2
  gpuproc mesh skull_256x256x256_uint8.raw 1.part --iso 80 --shard 1/2
  gpuproc merge 0.part 1.part -o skull.ply")]
pub struct Args {
    /// Parts of one job, in any order
    #[arg(required_unless_present = "files_from", value_name = "PART")]
    parts: Vec<Source>,

    /// Output file: for histograms .csv, .json, .png or .svg, also several; for surfaces
    /// .ply; for scans the file for --carry; - is standard output
    #[arg(short, long, value_name = "FILE", required = true)]
    output: Vec<Sink>,

    /// Format of outputs without an extension, such as standard output [default: csv]
    #[arg(long, value_name = "FORMAT", value_parser = choice_parser(&FORMATS))]
    format: Option<Format>,

    /// Join parts of inputs that differ in nothing but the time of their last modification, such as
    /// copies on several machines; checksums of up to 64 MiB of the inputs must agree
    #[arg(long)]
    any_time: bool,

    #[command(flatten)]
    list: FilesFromArgs,
}

/// Reads the parts, joins them and writes the result.
///
/// # Errors
/// When a part cannot be read or the result cannot be written, and when the parts do not belong to one job.
pub fn run(args: Args, session: &Session) -> Result<()> {
    let parts = args.list.inputs(args.parts, session)?;
    Sink::all_differ(&args.output)?;
    let parts = open_all(&parts, args.any_time, session.max_memory)?;
    let Some(first) = parts.first() else {
        return Err(Error::usage("there are no parts to merge"));
    };
    let command = first.identity.command.clone();
    let one = || match &args.output[..] {
        [output] => Ok(output),
        _ => Err(Error::usage(format_args!(
            "{} are joined to one output",
            if command == "scan" { "sums" } else { "surfaces" }
        ))),
    };
    match command.as_str() {
        "histogram" => histogram::merge(&parts, &args.output, args.format, session),
        "scan" => scan::merge(&parts, one()?, session),
        "mesh" => mesh::merge(&parts, one()?, session),
        other => Err(first.error(format_args!("this version cannot merge parts of `{other}`"))),
    }
}
