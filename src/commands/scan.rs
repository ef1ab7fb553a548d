//! `gpuproc scan`: prefix sums, minima, maxima and products.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
};

use crate::{
    commands::flags::{ARRAY_FORMATS, dtype_of, one_of},
    data::{dtype::Dtype, image::Image, number::Number},
    error::{Error, Kind, Result},
    for_number, for_samples,
    io::{
        Sink, Source,
        array::{ArrayFormat, ArrayReader, ArrayWriter, Separator},
        image::read_image,
    },
    kernels::scan::{
        Algorithm, Axis, BLOCK, Grid, Op, Scan, Scannable, SegmentedScan, Segments, Table,
    },
    session::Session,
    timings::Timings,
};

/// Sum up an array: each number becomes the sum of all before it.
///
/// Instead of sums, running minima, maxima or products can be made. Results have the type of the
/// numbers; integers wrap around on overflow. Of an image, each channel becomes a summed-area table of
/// the stored values: u32, or u64 where the sums may not fit; f64 of float images; so does a .npy array
/// of two or three axes with --axis. Inputs may be longer than memory: they are read, scanned and written
/// in stretches. Sums of floats are the same to the bit on every device and in every run.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  printf '1 2 3' | gpuproc scan -                    prints 0 1 3
  printf '1 2 3' | gpuproc scan --inclusive -        prints 1 3 6
  gpuproc scan --op max --inclusive heights.csv highest.csv
  gpuproc scan --type f32 samples.raw sums.raw
  gpuproc scan --inclusive amounts.txt --by-key customers.txt
  gpuproc scan counts.npy offsets.npy
  gpuproc scan --inclusive photo.png table.npy       rows x columns x channels
  gpuproc scan --inclusive --axis y rows.npy sums.npy
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
    #[arg(long = "type", value_name = "TYPE", value_parser = dtype_of(&Dtype::NUMBERS))]
    number: Option<Dtype>,

    /// Format of the input, and of an output whose extension tells none [default: by extension: .txt
    /// .csv .tsv .dat are text, .raw .bin are raw, .npy is npy; text without one]
    #[arg(long, value_parser = one_of(&ARRAY_FORMATS))]
    format: Option<ArrayFormat>,

    /// File of keys, as many as numbers and of any type: the scan begins anew wherever a key differs
    /// from the one before it
    #[arg(long, value_name = "KEYS", conflicts_with = "checked")]
    by_key: Option<Source>,

    /// Fail where an integer overflows, and say at which number; runs on the CPU
    #[arg(long)]
    checked: bool,

    /// Which way an image is summed up [default: both], or a .npy array of rows x columns or rows x
    /// columns x channels [default: as one long line]
    #[arg(long, value_enum, conflicts_with = "by_key")]
    axis: Option<Axis>,

    /// How a GPU scans
    #[arg(long, value_enum, default_value_t, hide_short_help = true)]
    algorithm: Algorithm,
}

/// Scans the input.
///
/// # Errors
/// Those of reading, of the kernel, and of writing.
pub fn run(args: &Args, session: &Session) -> Result<()> {
    if is_image(&args.input) && args.format.is_none() {
        return image_table(args, session);
    }
    let format = ArrayFormat::of_input(&args.input, args.format)?;
    let output_format = ArrayFormat::of_output(&args.output, format, args.format)?;
    let reader = ArrayReader::open(&args.input, format, args.number, session.max_memory / 2)?;
    if let Some(axis) = args.axis {
        return array_table(args, axis, session, reader, output_format);
    }
    for_number!(reader.number(), T => stream::<T>(args, session, reader, output_format))
}

/// So many stretches are in memory: two read ahead, one scanned and its results, two to be written; the
/// rest is for buffers.
const IN_FLIGHT: u64 = 8;

/// Scans a stretch at a time, while the next is read and the last one written.
fn stream<T: Scannable>(
    args: &Args,
    session: &Session,
    reader: ArrayReader,
    format: ArrayFormat,
) -> Result<()> {
    let mut scan = Scan::<T>::new(args.op, args.inclusive);
    scan.algorithm = args.algorithm;
    if let Some(init) = &args.init {
        scan.before = init.parse().map_err(|error: T::Err| {
            Error::usage(format_args!("--init {init} is no {}: {error}", T::DTYPE))
        })?;
    }
    let (no_clobber, limit) = (session.no_clobber, session.max_memory);
    let shape = reader.shape();
    let writer = ArrayWriter::create(&args.output, no_clobber, format, T::DTYPE, shape, limit)?;
    let mut bar = session.progress.bar("scan", reader.len().unwrap_or(0));
    // Floats do not overflow: they become infinite.
    let checked = args.checked && !T::DTYPE.is_float();
    if checked {
        log::debug!("--checked scans on the CPU");
    }
    let start = scan.before;
    let mut keys = args.by_key.as_ref().map(|source| Keys::open(source, args)).transpose()?;
    let stretch =
        (limit / (IN_FLIGHT * size_of::<T>() as u64)).clamp(1 << 10, BLOCK as u64) as usize;
    let ordered = T::DTYPE.is_float() && matches!(args.op, Op::Sum | Op::Product);
    let stretches = read_ahead::<T>(reader, stretch, session.timings.clone());
    let (to_write, writing) = write_behind(writer, session.timings.clone());
    let mut done = 0;
    let mut scan_all = || loop {
        let (numbers, layout) = stretches.recv().map_err(|_| crashed("reads"))??;
        let starts = keys.as_mut().map(|keys| keys.starts(numbers.len())).transpose()?;
        let len = numbers.len() as u64;
        if len == 0 {
            return Ok(());
        }
        if ordered && done > 0 && stretch < BLOCK {
            let needed = IN_FLIGHT * (BLOCK * size_of::<T>()) as u64;
            return Err(Error::bad_input(format_args!(
                "{}: {} of {} join in blocks of {BLOCK}, which take {needed} bytes, and --max-memory \
                 allows {limit}",
                args.input,
                if args.op == Op::Sum { "sums" } else { "products" },
                T::DTYPE
            )));
        }
        let scanned = if let Some(starts) = starts {
            session.device.run(&SegmentedScan { scan, start }, &Segments { numbers, starts })?
        } else if checked {
            let checked = session.timings.time("scan", || scan.checked(&numbers));
            checked.map_err(|place| overflow(args, T::DTYPE, done + place as u64))?
        } else {
            session.device.run(&scan, &numbers[..])?
        };
        done += len;
        scan.before = scanned.after;
        if to_write.send((scanned.values, layout)).is_err() {
            // Writing failed: its error is waiting below.
            return Ok(());
        }
        bar.advance(len);
    };
    let scanned: Result<()> = scan_all();
    drop(to_write);
    let writer = writing.join().map_err(|_| crashed("writes"))?;
    scanned?;
    let writer = writer?;
    session.timings.time("write", || writer.finish())
}

/// Numbers, and what stands behind each in a text.
type Stretch<T> = (Vec<T>, Option<Vec<Separator>>);

/// The stretches of an array, read on a thread of their own; the last one is empty, or an error. Nobody
/// waits for the thread: when something else fails, it may be waiting for more input.
fn read_ahead<T: Number>(
    mut reader: ArrayReader,
    stretch: usize,
    timings: Arc<Timings>,
) -> Receiver<Result<Stretch<T>>> {
    let (sender, stretches) = sync_channel(1);
    thread::spawn(move || {
        loop {
            let mut numbers = Vec::new();
            let read = timings.time("read", || reader.read(&mut numbers, stretch));
            let last = read.is_err() || numbers.is_empty();
            let stretch = read.map(|()| (numbers, reader.layout().map(<[_]>::to_vec)));
            if sender.send(stretch).is_err() || last {
                return;
            }
        }
    });
    stretches
}

/// Writes the stretches that are sent, on a thread that hands the writer back when there are no more.
fn write_behind<T: Number>(
    mut writer: ArrayWriter,
    timings: Arc<Timings>,
) -> (SyncSender<Stretch<T>>, JoinHandle<Result<ArrayWriter>>) {
    let (sender, stretches) = sync_channel::<Stretch<T>>(1);
    let writing = thread::spawn(move || {
        for (values, layout) in stretches {
            timings.time("write", || writer.write(&values, layout.as_deref()))?;
        }
        Ok(writer)
    });
    (sender, writing)
}

fn crashed(what: &str) -> Error {
    Error::new(Kind::Failure, format_args!("the thread that {what} crashed"))
}

/// The keys of `--by-key`, seen as where they change.
struct Keys {
    /// Reads so many keys and tells which differ from the one before; of none, whether all are read.
    changes: Box<dyn FnMut(usize) -> Result<Vec<bool>>>,
    name: String,
}

impl Keys {
    fn open(source: &Source, args: &Args) -> Result<Self> {
        let format = ArrayFormat::of_input(source, None)?;
        // A text says nothing of its type; 64-bit floats hold all shorter numbers.
        let number = (format == ArrayFormat::Text).then_some(Dtype::F64).or(match format {
            ArrayFormat::Raw => args.number,
            _ => None,
        });
        let mut reader = ArrayReader::open(source, format, number, u64::MAX)?;
        let changes: Box<dyn FnMut(usize) -> Result<Vec<bool>>> = for_number!(reader.number(), K => {
            let mut last: Option<K> = None;
            let mut keys = Vec::<K>::new();
            Box::new(move |len| {
                reader.read(&mut keys, len)?;
                let change = |&key: &K| last.replace(key) != Some(key);
                Ok(keys.iter().map(change).collect())
            })
        });
        Ok(Self { changes, name: source.to_string() })
    }

    /// Where segments begin among the next `len` numbers; 0 is the end, where no key may be left.
    fn starts(&mut self, len: usize) -> Result<Vec<bool>> {
        let wrong = |less| {
            Err(Error::bad_input(format_args!("{}: there are {less} keys than numbers", self.name)))
        };
        let starts = (self.changes)(len.max(1))?;
        match starts.len() {
            more if more > len => wrong("more"),
            less if less < len => wrong("fewer"),
            _ => Ok(starts),
        }
    }
}

fn is_image(source: &Source) -> bool {
    let extension = source.extension();
    image::ImageFormat::from_extension(extension).is_some_and(|format| format.can_read())
}

/// How many numbers a table's last sum along `axis` has.
fn added(axis: Axis, width: usize, height: usize) -> u64 {
    match axis {
        Axis::X => width as u64,
        Axis::Y => height as u64,
        Axis::Both => width as u64 * height as u64,
    }
}

fn only_sums(args: &Args) -> Result<()> {
    if args.op != Op::Sum || args.init.is_some() || args.checked {
        return Err(Error::usage("tables are of sums only, without --init and --checked"));
    }
    Ok(())
}

/// The summed-area table of an image.
fn image_table(args: &Args, session: &Session) -> Result<()> {
    only_sums(args)?;
    let axis = args.axis.unwrap_or_default();
    let format = ArrayFormat::of_output(&args.output, ArrayFormat::Npy, None)?;
    let picture = read_image(&args.input, session.limits(2), &session.timings)?;
    let Image { width, height, channels, .. } = picture;
    let fits = |most: u64| added(axis, width, height).saturating_mul(most) <= u32::MAX.into();
    let number = args.number.unwrap_or(match picture.samples.dtype() {
        Dtype::U8 if fits(255) => Dtype::U32,
        Dtype::U16 if fits(65_535) => Dtype::U32,
        Dtype::U8 | Dtype::U16 => Dtype::U64,
        _ => Dtype::F64,
    });
    let mut shape = vec![height, width, channels];
    if channels == 1 {
        shape.pop();
    }
    // The picture, its numbers and their sums.
    let samples = &picture.samples;
    let bytes = (samples.as_bytes().len() + samples.len() * 2 * number.size()) as u64;
    if bytes > session.max_memory {
        return Err(Error::bad_input(format_args!(
            "{}: a table of {width} x {height} x {channels} {number} takes {bytes} bytes, more than the {} \
             that --max-memory allows",
            args.input, session.max_memory
        )));
    }
    for_number!(number, T => {
        // Of f64 samples, which the expression is for as well, that is no conversion.
        #[allow(clippy::useless_conversion)]
        let values = for_samples!(&picture.samples, values => {
            values.iter().map(|&value| T::from_f64(value.into())).collect()
        });
        write_table::<T>(args, axis, session, format, &shape, values)
    })
}

/// The summed-area table of an array of rows x columns, perhaps x channels.
fn array_table(
    args: &Args,
    axis: Axis,
    session: &Session,
    mut reader: ArrayReader,
    format: ArrayFormat,
) -> Result<()> {
    only_sums(args)?;
    let shape = match reader.shape() {
        Some(shape @ ([_, _] | [_, _, _])) => shape.to_vec(),
        _ => {
            return Err(Error::usage(format_args!(
                "{}: --axis is for images and for .npy arrays of two or three axes",
                args.input
            )));
        }
    };
    let limit = session.max_memory / 4;
    let added = added(axis, shape[1], shape[0]);
    let number = reader.number();
    let fits = reader.largest().is_none_or(|largest| {
        let most = if number.is_signed() { i32::MAX as u64 } else { u32::MAX.into() };
        largest.saturating_mul(added) <= most
    });
    match number {
        Dtype::U32 if !fits => {
            let narrow: Vec<u32> = reader.read_all(limit)?;
            let values = narrow.into_iter().map(u64::from).collect();
            write_table(args, axis, session, format, &shape, values)
        }
        Dtype::I32 if !fits => {
            let narrow: Vec<i32> = reader.read_all(limit)?;
            let values = narrow.into_iter().map(i64::from).collect();
            write_table(args, axis, session, format, &shape, values)
        }
        _ => for_number!(number, T => {
            let values = reader.read_all::<T>(limit)?;
            write_table(args, axis, session, format, &shape, values)
        }),
    }
}

fn write_table<T: Scannable>(
    args: &Args,
    axis: Axis,
    session: &Session,
    format: ArrayFormat,
    shape: &[usize],
    values: Vec<T>,
) -> Result<()> {
    let (height, width) = (shape[0], shape[1]);
    let channels = shape.get(2).copied().unwrap_or(1);
    let limit = session.max_memory;
    let mut writer = ArrayWriter::create(
        &args.output,
        session.no_clobber,
        format,
        T::DTYPE,
        Some(shape),
        limit,
    )?;
    let grid = Grid { width, height, channels, values };
    let sums = session.device.run(&Table::<T>::new(axis, args.inclusive), &grid)?;
    session.timings.time("write", || {
        // In a text, a row is a line.
        let mut row = vec![Separator::Blank; width * channels];
        if let Some(last) = row.last_mut() {
            *last = Separator::Newline;
        }
        for values in sums.values.chunks(row.len().max(1)) {
            writer.write(values, Some(&row))?;
        }
        writer.finish()
    })
}

fn overflow(args: &Args, number: Dtype, place: u64) -> Error {
    let wider = match number {
        Dtype::U32 => "; try --type u64",
        Dtype::I32 => "; try --type i64",
        _ => "",
    };
    Error::bad_input(format_args!(
        "{}: the {} overflow {number} at number {place}, counted from 0{wider}",
        args.input, args.op
    ))
}
