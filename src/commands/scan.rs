//! `gpuproc scan`: prefix sums, minima, maxima and products.

use crate::{
    cli::Session,
    error::{Error, Result},
    for_number,
    io::{
        Sink, Source,
        array::{ArrayReader, ArrayWriter, Format},
    },
    kernels::scan::{Algorithm, BLOCK, Op, Scan, Scannable},
    number::NumberType,
};

/// Sum up an array: each number becomes the sum of all before it.
///
/// Instead of sums, running minima, maxima or products can be made. Results have the type of the
/// numbers; integers wrap around on overflow. Inputs may be longer than memory: they are read, scanned
/// and written in stretches. Sums of floats are the same to the bit on every device and in every run.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  printf '1 2 3' | gpuproc scan -                    prints 0 1 3
  printf '1 2 3' | gpuproc scan --inclusive -        prints 1 3 6
  gpuproc scan --op max --inclusive heights.csv highest.csv
  gpuproc scan --type f32 samples.raw sums.raw
  gpuproc scan counts.npy offsets.npy
  generate | gpuproc scan --format raw --type u64 - - | consume")]
pub struct Args {
    /// File of numbers, or - for standard input
    input: Source,

    /// File of results, or - for standard output
    #[arg(default_value = "-")]
    output: Sink,

    /// A result leaves out the number at its own place; the first is --init (the default)
    #[arg(long, conflicts_with = "inclusive")]
    exclusive: bool,

    /// A result includes the number at its own place
    #[arg(long)]
    inclusive: bool,

    /// What numbers are joined with
    #[arg(long, value_enum, default_value_t)]
    op: Op,

    /// What comes before the first number [default: 0 for sums, 1 for products, the largest number
    /// or infinity for minima, the smallest for maxima]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    init: Option<String>,

    /// Type of the numbers: u32 i32 f32 u64 i64 f64 [default: what a .npy file says, else u32]
    #[arg(long = "type", value_name = "TYPE")]
    number: Option<NumberType>,

    /// Format of the input, and of an output whose extension tells none [default: by extension: .txt
    /// .csv .tsv .dat are text, .raw .bin are raw, .npy is npy; text without one]
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// How a GPU scans
    #[arg(long, value_enum, default_value_t, hide_short_help = true)]
    algorithm: Algorithm,
}

/// Scans the input.
///
/// # Errors
/// Those of reading, of the kernel, and of writing.
pub fn run(args: &Args, session: &Session) -> Result<()> {
    let format = Format::of_input(&args.input, args.format)?;
    let output_format = Format::of_output(&args.output, format, args.format)?;
    let reader = ArrayReader::open(&args.input, format, args.number)?;
    for_number!(reader.number(), T => stream::<T>(args, session, reader, output_format))
}

fn stream<T: Scannable>(
    args: &Args,
    session: &Session,
    mut reader: ArrayReader,
    format: Format,
) -> Result<()> {
    let mut scan = Scan::<T>::new(args.op, args.inclusive);
    scan.algorithm = args.algorithm;
    if let Some(init) = &args.init {
        scan.before = init.parse().map_err(|error: T::Err| {
            Error::usage(format_args!("--init {init} is no {}: {error}", T::TYPE))
        })?;
    }
    let (no_clobber, limit) = (session.no_clobber, session.max_memory);
    let shape = reader.shape();
    let mut writer =
        ArrayWriter::create(&args.output, no_clobber, format, T::TYPE, shape, limit)?;
    let mut bar = session.progress.bar("scan", reader.len().unwrap_or(0));
    let mut numbers = Vec::new();
    loop {
        session.timings.time("read", || reader.read(&mut numbers, BLOCK))?;
        if numbers.is_empty() {
            return session.timings.time("write", || writer.finish());
        }
        let scanned = session.device.run(&scan, &numbers[..])?;
        scan.before = scanned.after;
        session.timings.time("write", || writer.write(&scanned.values, reader.layout()))?;
        bar.advance(numbers.len() as u64);
    }
}
