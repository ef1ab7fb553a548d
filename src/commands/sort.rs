//! `gpuproc sort`: a stable radix sort.

use rayon::prelude::*;

use crate::{
    commands::flags::{ARRAY_FORMATS, dtype_of, one_of},
    data::dtype::{Dtype, Scalar},
    error::{Error, Result},
    for_number,
    io::{
        Sink, Source,
        array::{ArrayFormat, ArrayReader, ArrayWriter},
    },
    kernels::sort::{Records, Sort, Sortable, same_length},
    memory,
    session::Session,
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
  gpuproc sort keys.npy keys-sorted.npy --payload ids.npy --payload-output ids-sorted.npy
Keys, their payload and two copies of both are held in memory.")]
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

    /// File of values, one a number, that are moved along
    #[arg(long, value_name = "FILE", requires = "payload_output")]
    payload: Option<Source>,

    /// Type of the values: u32 i32 f32 u64 i64 f64 [default: what a .npy file says, else u32]
    #[arg(long, value_name = "TYPE", requires = "payload", value_parser = dtype_of(&Dtype::NUMBERS))]
    payload_type: Option<Dtype>,

    /// File for the values of --payload in the numbers' new order
    #[arg(long, value_name = "FILE", requires = "payload")]
    payload_output: Option<Sink>,

    /// Type of the numbers: u32 i32 f32 [default: what a .npy file says, else u32]
    #[arg(long = "type", value_name = "TYPE", value_parser = dtype_of(&Dtype::NUMBERS))]
    number: Option<Dtype>,

    /// Format of inputs, and of outputs whose extension tells none [default: by extension: .txt .csv
    /// .tsv .dat are text, .raw .bin are raw, .npy is npy; text without one]
    #[arg(long, value_parser = one_of(&ARRAY_FORMATS))]
    format: Option<ArrayFormat>,
}

/// Sorts the input.
///
/// # Errors
/// Those of reading, of the kernel, and of writing.
pub fn run(args: &Args, session: &Session) -> Result<()> {
    let format = ArrayFormat::of_input(&args.input, args.format)?;
    let reader = ArrayReader::open(&args.input, format, args.number, share(args, session))?;
    match reader.number() {
        Dtype::U32 => sort::<u32>(args, session, reader, format),
        Dtype::I32 => sort::<i32>(args, session, reader, format),
        Dtype::F32 => sort::<f32>(args, session, reader, format),
        wide => Err(Error::usage(format_args!(
            "{}: {wide} cannot be sorted; --type is u32, i32 or f32",
            args.input
        ))),
    }
}

/// What numbers may take: they, their copies while they are sorted, and the same of what goes with
/// them; by measurement.
fn share(args: &Args, session: &Session) -> u64 {
    let moved = args.payload.is_some() || args.argsort;
    session.max_memory / if moved { 8 } else { 5 }
}

fn sort<T: Sortable>(
    args: &Args,
    session: &Session,
    mut reader: ArrayReader,
    format: ArrayFormat,
) -> Result<()> {
    let create = |sink, number, len: usize| {
        let format = ArrayFormat::of_output(sink, format, args.format)?;
        let (no_clobber, limit) = (session.no_clobber, session.max_memory);
        ArrayWriter::create(sink, no_clobber, format, number, Some(&[len]), limit)
    };
    let share = share(args, session);
    let keys: Vec<T> = session.timings.time("read", || read_all(&mut reader, args, session))?;
    let len = keys.len();
    // A wrong path fails before the work.
    let number = if args.argsort { Dtype::U32 } else { T::DTYPE };
    let mut output = create(&args.output, number, len)?;
    let sort = Sort::<T>::new(args.descending);
    let places = || memory::collect((0..len).into_par_iter().map(|i| i as u32));

    let (Some(source), Some(sink)) = (&args.payload, &args.payload_output) else {
        let payload = args.argsort.then(places).transpose()?;
        let sorted = session.device.run(&sort, &Records { keys, payload })?;
        return session.timings.time("write", || {
            match sorted.payload {
                Some(places) => output.write(&places, None)?,
                None => output.write(&sorted.keys, None)?,
            }
            output.finish()
        });
    };
    let format = ArrayFormat::of_input(source, args.format)?;
    let mut reader = ArrayReader::open(source, format, args.payload_type, share)?;
    for_number!(reader.number(), P => {
        let mut payload_output = create(sink, P::DTYPE, len)?;
        let values: Vec<P> = session.timings.time("read", || reader.read_all(share))?;
        same_length(len, values.len())?;
        // The sort moves 32 bits with each key: those of the value, or its place.
        let narrow = P::DTYPE.size() == 4;
        let (bits, values) = match narrow {
            true => (bytemuck::allocation::cast_vec(values), Vec::new()),
            false => (places()?, values),
        };
        let sorted = session.device.run(&sort, &Records { keys, payload: Some(bits) })?;
        let bits = sorted.payload.unwrap_or_default();
        let moved: Vec<P> = match narrow {
            true => bytemuck::allocation::cast_vec(bits),
            false => memory::collect(bits.into_par_iter().map(|place| values[place as usize]))?,
        };
        session.timings.time("write", || {
            output.write(&sorted.keys, None)?;
            payload_output.write(&moved, None)?;
            payload_output.finish()?;
            output.finish()
        })
    })
}

/// All keys, or how much memory sorting them takes.
fn read_all<T: Sortable>(
    reader: &mut ArrayReader,
    args: &Args,
    session: &Session,
) -> Result<Vec<T>> {
    let (share, limit) = (share(args, session), session.max_memory);
    if let Some(len) = reader.len().filter(|len| len * size_of::<T>() as u64 > share) {
        let needed = len as u128 * size_of::<T>() as u128 * u128::from(limit / share.max(1));
        return Err(Error::bad_input(format_args!(
            "{}: sorting {len} {} takes {needed} bytes, and --max-memory allows {limit}",
            args.input,
            T::DTYPE
        )));
    }
    reader.read_all(share)
}
