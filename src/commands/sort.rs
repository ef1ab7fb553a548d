//! `gpuproc sort`: a stable radix sort.

use crate::{
    cli::Session,
    error::{Error, Result},
    io::{
        Sink, Source,
        array::{ArrayReader, ArrayWriter, Format},
    },
    kernels::sort::{Records, Sort, Sortable},
    number::NumberType,
};

/// Sort an array of numbers, perhaps with a value for each.
///
/// Equal numbers keep their order. Floats are in total order, -0 before +0; NaN come last, also with
/// --descending.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  printf '3 1 2' | gpuproc sort -                    prints 1 2 3, one a line
  printf '3 1 2' | gpuproc sort --argsort -          prints 1 2 0: where they were
  gpuproc sort --type f32 --descending scores.raw best.raw
  gpuproc sort keys.npy keys-sorted.npy --payload ids.npy --payload-output ids-sorted.npy")]
pub struct Args {
    /// File of numbers, or - for standard input
    input: Source,

    /// File of sorted numbers, or - for standard output
    #[arg(default_value = "-")]
    output: Sink,

    /// Largest first
    #[arg(long)]
    descending: bool,

    /// Write where each number was, counted from 0, instead of the numbers
    #[arg(long, conflicts_with = "payload")]
    argsort: bool,

    /// File of u32 values, one a number, that are moved along
    #[arg(long, value_name = "FILE", requires = "payload_output")]
    payload: Option<Source>,

    /// File for the values of --payload in the numbers' new order
    #[arg(long, value_name = "FILE", requires = "payload")]
    payload_output: Option<Sink>,

    /// Type of the numbers: u32 i32 f32 [default: what a .npy file says, else u32]
    #[arg(long = "type", value_name = "TYPE")]
    number: Option<NumberType>,

    /// Format of inputs, and of outputs whose extension tells none [default: by extension: .txt .csv
    /// .tsv .dat are text, .raw .bin are raw, .npy is npy; text without one]
    #[arg(long, value_enum)]
    format: Option<Format>,
}

/// Sorts the input.
///
/// # Errors
/// Those of reading, of the kernel, and of writing.
pub fn run(args: &Args, session: &Session) -> Result<()> {
    let format = Format::of_input(&args.input, args.format)?;
    let reader = ArrayReader::open(&args.input, format, args.number)?;
    match reader.number() {
        NumberType::U32 => sort::<u32>(args, session, reader, format),
        NumberType::I32 => sort::<i32>(args, session, reader, format),
        NumberType::F32 => sort::<f32>(args, session, reader, format),
        wide => Err(Error::usage(format_args!(
            "{}: {wide} cannot be sorted; --type is u32, i32 or f32",
            args.input
        ))),
    }
}

fn sort<T: Sortable>(
    args: &Args,
    session: &Session,
    mut reader: ArrayReader,
    format: Format,
) -> Result<()> {
    let (no_clobber, limit) = (session.no_clobber, session.max_memory);
    let create = |sink, number, len: usize| {
        let format = Format::of_output(sink, format, args.format)?;
        ArrayWriter::create(sink, no_clobber, format, number, Some(&[len]), limit)
    };
    // Keys, their copies while they are sorted, and the same of what goes with them, by measurement.
    let share = limit / if args.payload.is_some() || args.argsort { 8 } else { 5 };
    let keys: Vec<T> = session.timings.time("read", || reader.read_all(share))?;
    let len = keys.len();
    let payload = match &args.payload {
        Some(source) => {
            let format = Format::of_input(source, args.format)?;
            let mut reader = ArrayReader::open(source, format, Some(NumberType::U32))?;
            Some(session.timings.time("read", || reader.read_all(share))?)
        }
        None => args.argsort.then(|| (0..len as u32).collect()),
    };
    // A wrong path fails before the work.
    let number = if args.argsort { NumberType::U32 } else { T::TYPE };
    let mut output = create(&args.output, number, len)?;
    let payload_output = args.payload_output.as_ref();
    let payload_output =
        payload_output.map(|sink| create(sink, NumberType::U32, len)).transpose()?;

    let records = Records { keys, payload };
    let sorted = session.device.run(&Sort::<T>::new(args.descending), &records)?;
    session.timings.time("write", || {
        let payload = sorted.payload.unwrap_or_default();
        match args.argsort {
            true => output.write(&payload, None)?,
            false => output.write(&sorted.keys, None)?,
        }
        if let Some(mut payload_output) = payload_output {
            payload_output.write(&payload, None)?;
            payload_output.finish()?;
        }
        output.finish()
    })
}
