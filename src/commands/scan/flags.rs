//! Flags of `gpuproc scan`, and their validation.

use std::str::FromStr;

use crate::{
    commands::{
        completions::values,
        flags::{
            ARRAY_FORMATS, ArrayInput, ArrayOutput, Choice, OutputArgs, PlannedOutput, ShardArgs,
            Target, choice_parser, dtype_parser, input_or_pipe,
        },
    },
    data::dtype::Dtype,
    io::{Source, array::ArrayFormat, image::has_image_name},
    kernels::scan::{Algorithm, Axis, Op},
    util::error::{Error, Result},
};

/// Compute prefix sums of numbers or images.
///
/// Instead of sums, running minima, maxima or products can be made. Results have the type of the numbers; integers wrap
/// around on overflow. Each channel of an image becomes a summed-area table of the stored values, of type u32, or u64
/// where the sums may not fit, or f64 for float images. With --axis, the same is done with .npy arrays of two or three axes. Inputs
/// may be longer than memory: they are read, scanned and written in blocks. Sums of floats are the same to the bit
/// on every device and in every run.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  printf '1 2 3' | gpuproc scan                      prints 0 1 3
  printf '1 2 3' | gpuproc scan --inclusive          prints 1 3 6
  gpuproc scan --op max --inclusive heights.csv highest.csv
  gpuproc scan --type f32 samples.raw sums.raw
  gpuproc scan --inclusive amounts.txt --by-key customers.txt
  gpuproc scan counts.npy -o offsets.npy
  gpuproc scan --inclusive photo.png table.npy       rows x columns x channels
  gpuproc scan --inclusive --axis y rows.npy sums.npy
  generate | gpuproc scan --format raw --type u64 - - | consume")]
pub struct Args {
    /// File of numbers; - is standard input, which is also the default if it is not a terminal
    input: Option<Source>,

    /// File of results [default: - for standard output]
    #[arg(value_name = "OUTPUT", conflicts_with_all = ["output", "out_dir"])]
    results: Option<Target>,

    #[command(flatten)]
    output: OutputArgs,

    /// Exclude each number from its own result; the first result is --init (default)
    #[arg(long, conflicts_with = "inclusive")]
    exclusive: bool,

    /// Include each number in its own result
    #[arg(long)]
    inclusive: bool,

    /// Operator that combines the numbers
    #[arg(long, value_name = "OP", value_parser = choice_parser(&OPS), default_value = "sum")]
    op: Op,

    /// Value before the first number [default: 0 for sums, 1 for products, the largest number
    /// or infinity for minima, the smallest for maxima]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    init: Option<String>,

    /// Type of the numbers: u32 i32 f32 u64 i64 f64 [default: what a .npy file says, else u32]
    #[arg(long = "type", value_name = "TYPE", value_parser = dtype_parser(&Dtype::NUMBERS))]
    dtype: Option<Dtype>,

    /// Format of the input, and of an output whose extension does not name one [default: by extension: .txt
    /// .csv .tsv .dat are text, .raw .bin are raw, .npy is npy; text without one]
    #[arg(long, value_parser = choice_parser(&ARRAY_FORMATS))]
    format: Option<ArrayFormat>,

    /// File of keys, as many as numbers and of any type: the scan begins anew wherever a key differs
    /// from the one before it
    #[arg(long, value_name = "KEYS", conflicts_with = "checked")]
    by_key: Option<Source>,

    /// Type of raw keys, u8 to f64, or the bytes of a key of any kind, as 12 [default: that of the numbers]
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "TYPE|N", requires = "by_key", add = values(KEY_TYPES))]
    key_type: Option<KeyType>,

    /// Fail where an integer overflows, and say at which number; runs on the CPU
    #[arg(long, hide_short_help = true)]
    checked: bool,

    /// Axis along which an image is summed [default: both], or a .npy array of rows x columns or rows x
    /// columns x channels [default: as one long line]
    #[arg(long, value_name = "AXIS", value_parser = choice_parser(&AXES), conflicts_with = "by_key")]
    axis: Option<Axis>,

    /// Page of an image, or frame of an animation; the first is 1 [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    page: Option<u32>,

    #[command(flatten)]
    share: ShardArgs,

    /// With --shard, write the results instead of a part: the file of carries that gpuproc merge has made from all
    /// parts
    #[arg(
        long,
        value_name = "FILE",
        requires = "shard",
        help_heading = "Many files, many processes"
    )]
    carry: Option<Source>,

    /// How a GPU scans
    #[arg(long, value_name = "ALGORITHM", value_parser = choice_parser(&ALGORITHMS))]
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
         subgroups needed",
    ),
    (
        "blelloch",
        Algorithm::Blelloch,
        "Blelloch's three passes, blocks of 512: reads and writes twice; for comparison. Sums of floats \
         are rounded differently",
    ),
];

/// Types of keys, for shell completion.
const KEY_TYPES: [&str; 10] = ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64"];

/// The type of a raw key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyType {
    /// A float, compared as a number: -0 equals 0, and NaN equals nothing.
    Number(Dtype),
    /// A key of this many bytes, compared byte by byte.
    Bytes(usize),
}

/// Maximum number of bytes in a key.
const MAX_KEY: usize = 1 << 16;

impl FromStr for KeyType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(bytes) = text.parse() {
            let fits = (1..=MAX_KEY).contains(&bytes);
            return fits
                .then_some(Self::Bytes(bytes))
                .ok_or_else(|| format!("a key has 1 to {MAX_KEY} bytes"));
        }
        let dtype = Dtype::one_of(&Dtype::ALL, text)?;
        Ok(match dtype.is_float() {
            true => Self::Number(dtype),
            false => Self::Bytes(dtype.size()),
        })
    }
}

/// The file of the keys.
#[derive(Debug)]
pub enum KeyInput {
    /// Numbers.
    Numbers(ArrayInput),
    /// A raw file of keys, and the bytes of one key.
    Bytes(Source, usize),
}

/// A validated job.
#[derive(Debug)]
pub enum Job {
    /// A scan of an array as one line.
    Line(Line),
    /// The sums of a table (an image or an array with axes).
    Table(TableJob),
}

/// A scan of an array as one line.
#[derive(Debug)]
pub struct Line {
    pub input: ArrayInput,
    pub output: ArrayOutput,
    pub op: Op,
    pub inclusive: bool,
    /// Initial value; `None` for the identity of the operation.
    pub init: Option<String>,
    /// Keys: a segment starts wherever a key differs from the previous key.
    pub keys: Option<KeyInput>,
    /// Whether an overflow is an error.
    pub checked: bool,
    pub algorithm: Algorithm,
    /// Whether a finished part file is kept.
    pub resumes: bool,
}

/// Sums of an image, or of an array of two or three axes.
#[derive(Debug)]
pub struct TableJob {
    pub input: TableInput,
    pub output: ArrayOutput,
    pub axis: Axis,
    pub inclusive: bool,
}

/// The input of a table of sums.
#[derive(Debug)]
pub enum TableInput {
    /// An image, the type of the sums (if `None`, the narrowest that holds them), and the page, counted from 1.
    Image(Source, Option<Dtype>, Option<u32>),
    /// An array.
    Array(ArrayInput),
}

impl Args {
    /// The shard, and the file of carries, which holds the value before each shard.
    ///
    /// # Errors
    /// When flags contradict each other.
    pub fn share(&self) -> Result<(ShardArgs, Option<&Source>)> {
        match self.share.resume && self.share.shard.is_none() {
            true => Err(Error::usage("--resume needs --shard")),
            false => Ok((self.share, self.carry.as_ref())),
        }
    }

    /// Validates the flags.
    ///
    /// # Errors
    /// When a format is unknown or flags contradict each other.
    pub fn job(&self) -> Result<Job> {
        let source = input_or_pipe(self.input.as_ref())?;
        let is_image = self.format.is_none() && has_image_name(&source);
        let extension = is_image.then_some("npy");
        self.output.check_fields(self.results.as_ref(), &[])?;
        let planned = self.output.sink(&source, self.results.clone(), extension)?;
        let (sink, axis) = (PlannedOutput::or_stdout(planned)?, self.axis);
        if is_image {
            self.check_table()?;
            let format = ArrayFormat::of_output(&sink, ArrayFormat::Npy, None)?;
            let input = TableInput::Image(source, self.dtype, self.page);
            return Ok(self.table(input, ArrayOutput::new(sink, format)?));
        }
        if self.page.is_some() {
            return Err(Error::usage("--page is for images"));
        }
        let format = ArrayFormat::of_input(&source, self.format)?;
        let output = match self.share.shard.is_some() && self.carry.is_none() {
            // The extension of a part file is not a format.
            true => ArrayFormat::Raw,
            false => ArrayFormat::of_output(&sink, format, self.format)?,
        };
        let output = ArrayOutput::new(sink, output)?;
        let input = ArrayInput { source, format, dtype: self.dtype };
        if axis.is_some() {
            self.check_table()?;
            return Ok(self.table(TableInput::Array(input), output));
        }
        let Self { op, inclusive, checked, algorithm, .. } = *self;
        let (init, keys) = (self.init.clone(), self.keys()?);
        let resumes = self.share.resume;
        let line = Line { input, output, op, inclusive, init, keys, checked, algorithm, resumes };
        Ok(Job::Line(line))
    }

    fn table(&self, input: TableInput, output: ArrayOutput) -> Job {
        let (axis, inclusive) = (self.axis.unwrap_or_default(), self.inclusive);
        Job::Table(TableJob { input, output, axis, inclusive })
    }

    fn check_table(&self) -> Result<()> {
        let asks_more = self.init.is_some() || self.by_key.is_some() || self.checked;
        match self.op == Op::Sum && !asks_more {
            true => Ok(()),
            false => Err(Error::usage(
                "summed-area tables support only --op sum, and not --init, --by-key or --checked",
            )),
        }
    }

    fn keys(&self) -> Result<Option<KeyInput>> {
        let Some(source) = self.by_key.clone() else {
            return Ok(None);
        };
        let format = ArrayFormat::of_input(&source, None)?;
        let dtype = match (format, self.key_type) {
            (ArrayFormat::Raw, Some(KeyType::Bytes(bytes))) => {
                return Ok(Some(KeyInput::Bytes(source, bytes)));
            }
            (ArrayFormat::Raw, Some(KeyType::Number(dtype))) => Some(dtype),
            (_, Some(_)) => {
                return Err(Error::usage(format_args!(
                    "{source}: --key-type is for raw keys; this file states its type"
                )));
            }
            // f64 holds every number of a shorter type exactly.
            (ArrayFormat::Text, None) => Some(Dtype::F64),
            (ArrayFormat::Raw, None) => self.dtype,
            (ArrayFormat::Npy, None) => None,
        };
        Ok(Some(KeyInput::Numbers(ArrayInput { source, format, dtype })))
    }
}
