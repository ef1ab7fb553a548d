//! `gpuproc merge`: joins the part files of all shards into the result that a single process writes.

use super::{
    flags::{FilesFromArgs, choice_parser},
    histogram::{self, FORMATS, Format},
    mesh, scan,
};
use crate::{
    engine::session::Session,
    io::{
        Sink, Source,
        file_roles::{INPUT, OUTPUT},
        part_file::open_all,
    },
    util::error::{Error, Result},
};

/// Merge the part files of all shards into one result.
///
/// A part file records its job. It is an error if a part file is missing, duplicated, or of another job (another
/// input, parameter or version). Shards of a blurred volume need no merge: they write one output together.
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
    /// Part files of one job, in any order
    #[arg(required_unless_present = "files_from", value_name = "PART")]
    parts: Vec<Source>,

    /// Output file; may be repeated; - is standard output
    ///
    /// For histograms .csv, .json, .png, .svg or .html; for surfaces .ply; for scans the file for --carry.
    #[arg(short, long, value_name = "FILE", required = true)]
    output: Vec<Sink>,

    /// Format of outputs without an extension, such as standard output [default: csv]
    #[arg(long, value_name = "FORMAT", value_parser = choice_parser(&FORMATS))]
    format: Option<Format>,

    /// Accept inputs that differ only in their modification times
    ///
    /// Such as copies on several machines. Checksums of up to 64 MiB of the inputs must agree.
    #[arg(long)]
    any_time: bool,

    #[command(flatten)]
    list: FilesFromArgs,
}

/// Reads the parts, joins them and writes the result.
pub fn run(args: Args, session: &Session) -> Result<()> {
    let parts = args.list.inputs(args.parts, session)?;
    session.check_files(|roles| {
        args.list.declare(roles)?;
        parts.iter().try_for_each(|part| roles.reads(INPUT, &part))?;
        args.output.iter().try_for_each(|sink| roles.writes(OUTPUT, sink))
    })?;
    let parts = open_all(&parts, args.any_time, session.max_memory)?;
    let Some(first) = parts.first() else {
        return Err(Error::usage("the list of parts is empty"));
    };
    let command = first.identity.command.clone();
    let one = || match &args.output[..] {
        [output] => Ok(output),
        _ => Err(Error::usage(format_args!(
            "{} are merged to one file: give one -o",
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
