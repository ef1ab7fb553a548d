//! The flags of `gpuproc scan`, and the job that they make.

use crate::{
    commands::flags::{ARRAY_FORMATS, Choice, dtype_of, one_of},
    data::dtype::Dtype,
    error::{Error, Result},
    io::{Sink, Source, array::ArrayFormat},
    kernels::scan::{Algorithm, Axis, Op},
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
    #[arg(long, value_name = "OP", value_parser = one_of(&OPS), default_value = "sum")]
    op: Op,

    /// What comes before the first number [default: 0 for sums, 1 for products, the largest number
    /// or infinity for minima, the smallest for maxima]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    init: Option<String>,

    /// Type of the numbers: u32 i32 f32 u64 i64 f64 [default: what a .npy file says, else u32]
    #[arg(long = "type", value_name = "TYPE", value_parser = dtype_of(&Dtype::NUMBERS))]
    dtype: Option<Dtype>,

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
    #[arg(long, value_name = "AXIS", value_parser = one_of(&AXES), conflicts_with = "by_key")]
    axis: Option<Axis>,

    /// How a GPU scans
    #[arg(long, value_name = "ALGORITHM", value_parser = one_of(&ALGORITHMS))]
    #[arg(default_value = "auto", hide_short_help = true)]
    algorithm: Algorithm,
}

const OPS: [Choice<Op>; 4] = [
    ("sum", Op::Sum, "Their sum; integers wrap around"),
    ("min", Op::Min, "The smallest; NaN when there is one among them"),
    ("max", Op::Max, "The largest; NaN when there is one among them"),
    ("product", Op::Product, "Their product; integers wrap around"),
];

const AXES: [Choice<Axis>; 3] = [
    ("x", Axis::X, "Along each row"),
    ("y", Axis::Y, "Down each column"),
    ("both", Axis::Both, "Both: a summed-area table"),
];

const ALGORITHMS: [Choice<Algorithm>; 4] = [
    ("auto", Algorithm::Auto, "What is fastest on the device"),
    (
        "reduce",
        Algorithm::Reduce,
        "Reduce, then scan: three passes, reads twice and writes once; on any device",
    ),
    (
        "lookback",
        Algorithm::Lookback,
        "Chained scan with decoupled look-back: one pass, reads once and writes once; 32-bit numbers, \
         no sums or products of floats, subgroups needed",
    ),
    (
        "blelloch",
        Algorithm::Blelloch,
        "Blelloch's three passes, blocks of 512: reads and writes twice; for comparison. Sums of floats \
         are rounded differently",
    ),
];

/// What the flags ask for.
#[derive(Debug)]
pub enum Job {
    /// The scan of numbers in one line.
    Line(Line),
    /// The sums of a table.
    Table(TableJob),
}

/// A scan of numbers in one line.
#[derive(Debug)]
pub struct Line {
    pub input: Source,
    pub output: Sink,
    pub formats: Formats,
    /// The numbers' type where the file says none.
    pub dtype: Option<Dtype>,
    pub op: Op,
    pub inclusive: bool,
    /// What comes before the first number, instead of the operation's identity.
    pub init: Option<String>,
    /// Keys that begin a segment wherever one differs from the one before it.
    pub keys: Option<Source>,
    /// Whether an overflow is an error.
    pub checked: bool,
    pub algorithm: Algorithm,
}

/// Sums of an image, or of an array of two or three axes.
#[derive(Debug)]
pub struct TableJob {
    pub input: Source,
    pub output: Sink,
    pub formats: Formats,
    /// The sums' type, instead of one that holds them all.
    pub dtype: Option<Dtype>,
    pub axis: Axis,
    pub inclusive: bool,
}

/// The formats of input and output.
#[derive(Clone, Copy, Debug)]
pub struct Formats {
    /// Nothing for an image.
    pub input: Option<ArrayFormat>,
    pub output: ArrayFormat,
}

impl Args {
    /// The job.
    ///
    /// # Errors
    /// [`Kind::Usage`](crate::error::Kind::Usage) when a format is unknown or flags contradict each other.
    pub fn job(&self) -> Result<Job> {
        let (input, output) = (self.input.clone(), self.output.clone());
        let is_image = self.format.is_none() && is_image(&self.input);
        let formats = match is_image {
            true => Formats {
                input: None,
                output: ArrayFormat::of_output(&output, ArrayFormat::Npy, None)?,
            },
            false => {
                let format = ArrayFormat::of_input(&input, self.format)?;
                let output = ArrayFormat::of_output(&output, format, self.format)?;
                Formats { input: Some(format), output }
            }
        };
        let Self { dtype, op, inclusive, checked, algorithm, .. } = *self;
        if !is_image && self.axis.is_none() {
            let (init, keys) = (self.init.clone(), self.by_key.clone());
            return Ok(Job::Line(Line {
                input,
                output,
                formats,
                dtype,
                op,
                inclusive,
                init,
                keys,
                checked,
                algorithm,
            }));
        }
        if op != Op::Sum || self.init.is_some() || checked {
            return Err(Error::usage("tables are of sums only, without --init and --checked"));
        }
        let axis = self.axis.unwrap_or_default();
        Ok(Job::Table(TableJob { input, output, formats, dtype, axis, inclusive }))
    }
}

fn is_image(source: &Source) -> bool {
    let extension = source.extension();
    image::ImageFormat::from_extension(extension).is_some_and(|format| format.can_read())
}
