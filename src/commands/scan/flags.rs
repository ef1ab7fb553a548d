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
    engine::session::Session,
    io::{
        Sink, Source,
        array::ArrayFormat,
        file_roles::{INPUT, OUTPUT},
        image::has_image_name,
    },
    kernels::scan::{Axis, Op},
    util::error::{Error, Result},
};

/// Compute prefix sums of numbers or images.
///
/// Results have the type of the numbers. Integers wrap around on overflow. Sums of floats have the same bits on
/// every device and in every run. Each channel of an image becomes a summed-area table of u32, of u64 if the sums
/// may not fit, or of f64 for float images. With --axis, .npy arrays of two or three axes become tables, too.
/// Inputs may be longer than memory.
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
    /// File of numbers, or an image; - is standard input
    ///
    /// The default is standard input, if it is not a terminal.
    input: Option<Source>,

    /// File of results [default: - for standard output]
    #[arg(value_name = "OUTPUT", conflicts_with_all = ["output", "out_dir"])]
    results: Option<Target>,

    #[command(flatten)]
    output: OutputArgs,

    /// Exclude each number from its own result (the default)
    ///
    /// The first result is then --init.
    #[arg(long, conflicts_with = "inclusive")]
    exclusive: bool,

    /// Include each number in its own result
    #[arg(long)]
    inclusive: bool,

    /// Operation that combines the numbers
    #[arg(long, value_name = "OP", value_parser = choice_parser(&OPS), default_value = "sum")]
    op: Op,

    /// Value before the first number [default: 0 for sums, 1 for products]
    ///
    /// For minima, the default is the largest number or infinity; for maxima, the smallest.
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    init: Option<String>,

    /// Type of the numbers: u32 i32 f32 u64 i64 f64 [default: that of a .npy file, else u32]
    #[arg(long = "type", value_name = "TYPE", value_parser = dtype_parser(&Dtype::NUMBERS))]
    dtype: Option<Dtype>,

    /// Format of the numbers [default: by the extension, else text]
    ///
    /// .txt .csv .tsv .dat are text, .raw .bin are raw, .npy is npy. The extension of an output, if it names a
    /// format, has precedence.
    #[arg(long, value_parser = choice_parser(&ARRAY_FORMATS))]
    format: Option<ArrayFormat>,

    /// Begin a new scan wherever the key in this file changes
    ///
    /// The file has one key per number, of any type.
    #[arg(long, value_name = "KEYS", conflicts_with = "checked")]
    by_key: Option<Source>,

    /// Type of raw keys, or their size in bytes [default: that of the numbers]
    ///
    /// u8 to f64, or a number such as 12.
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "TYPE|N", requires = "by_key", add = values(KEY_TYPES))]
    key_type: Option<KeyType>,

    /// Fail if an integer overflows, and say where; runs on the CPU
    #[arg(long, hide_short_help = true)]
    checked: bool,

    /// Axis of the sums of an image or a table [default for images: both]
    ///
    /// A table is a .npy array of rows x columns or rows x columns x channels. Without --axis, it is scanned as one
    /// long line.
    #[arg(long, value_name = "AXIS", value_parser = choice_parser(&AXES), conflicts_with = "by_key")]
    axis: Option<Axis>,

    /// Page or frame of an image, counted from 1 [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    page: Option<u32>,

    #[command(flatten)]
    sharding: ShardArgs,

    /// With --shard, write the results instead of a part file
    ///
    /// FILE is what gpuproc merge has made from all part files.
    #[arg(
        long,
        value_name = "FILE",
        requires = "shard",
        help_heading = "Many files, many processes"
    )]
    carry: Option<Source>,
}

const OPS: [Choice<Op>; 4] = [
    ("sum", Op::Sum, "Sum; integers wrap around"),
    ("min", Op::Min, "Minimum; NaN if a number is NaN"),
    ("max", Op::Max, "Maximum; NaN if a number is NaN"),
    ("product", Op::Product, "Product; integers wrap around"),
];

const AXES: [Choice<Axis>; 3] = [
    ("x", Axis::X, "Along each row"),
    ("y", Axis::Y, "Down each column"),
    ("both", Axis::Both, "Both, which makes a summed-area table"),
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
            return fits.then_some(Self::Bytes(bytes)).ok_or_else(|| {
                format!("expected a type, or a number of bytes from 1 to {MAX_KEY}")
            });
        }
        let dtype = Dtype::parse_one_of(&Dtype::ALL, text)?;
        Ok(if dtype.is_float() { Self::Number(dtype) } else { Self::Bytes(dtype.size()) })
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
pub enum ScanJob {
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
    pub fn sharding(&self) -> Result<(ShardArgs, Option<&Source>)> {
        match self.sharding.resume && self.sharding.shard.is_none() {
            true => Err(Error::usage("--resume needs --shard")),
            false => Ok((self.sharding, self.carry.as_ref())),
        }
    }

    /// Validates the flags.
    pub fn job(&self, session: &Session) -> Result<ScanJob> {
        let source = input_or_pipe(self.input.as_ref())?;
        let is_image = self.format.is_none() && has_image_name(&source);
        let extension = is_image.then_some("npy");
        self.output.check_fields(self.results.as_ref(), &[])?;
        let planned = self.output.sink(&source, self.results.clone(), extension)?;
        session.check_files(|roles| {
            let flags = [("--by-key", &self.by_key), ("--carry", &self.carry)];
            roles.reads(INPUT, &source)?;
            flags.into_iter().try_for_each(|(flag, source)| {
                source.as_ref().map_or(Ok(()), |source| roles.reads(flag, source))
            })?;
            let sink = planned.as_ref().map_or(&Sink::Stdout, |planned| &planned.sink);
            roles.writes_result(OUTPUT, sink, Some(&source))
        })?;
        let (sink, axis) = (PlannedOutput::or_stdout(planned), self.axis);
        if is_image {
            self.check_table()?;
            let format = ArrayFormat::for_output(&sink, ArrayFormat::Npy, None)?;
            let input = TableInput::Image(source, self.dtype, self.page);
            return Ok(self.table(input, ArrayOutput::new(sink, format)?));
        }
        if self.page.is_some() {
            return Err(Error::usage("--page is for images; this input is an array"));
        }
        let format = ArrayFormat::for_input(&source, self.format)?;
        let output = match self.sharding.shard.is_some() && self.carry.is_none() {
            // The extension of a part file is not a format.
            true => ArrayFormat::Raw,
            false => ArrayFormat::for_output(&sink, format, self.format)?,
        };
        let output = ArrayOutput::new(sink, output)?;
        let input = ArrayInput { source, format, dtype: self.dtype };
        if axis.is_some() {
            self.check_table()?;
            return Ok(self.table(TableInput::Array(input), output));
        }
        let Self { op, inclusive, checked, .. } = *self;
        let (init, keys) = (self.init.clone(), self.keys()?);
        let resumes = self.sharding.resume;
        let line = Line { input, output, op, inclusive, init, keys, checked, resumes };
        Ok(ScanJob::Line(line))
    }

    fn table(&self, input: TableInput, output: ArrayOutput) -> ScanJob {
        let (axis, inclusive) = (self.axis.unwrap_or_default(), self.inclusive);
        ScanJob::Table(TableJob { input, output, axis, inclusive })
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
        let format = ArrayFormat::for_input(&source, None)?;
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
