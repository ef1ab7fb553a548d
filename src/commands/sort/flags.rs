//! Flags of `gpuproc sort`, and their validation.

use crate::{
    commands::flags::{
        ARRAY_FORMATS, ArrayInput, ArrayOutput, Choice, OutputArgs, PlannedOutput, Target,
        choice_parser, dtype_parser, input_or_pipe,
    },
    data::dtype::Dtype,
    engine::session::Session,
    io::{
        Sink, Source,
        array::ArrayFormat,
        file_roles::{INPUT, OUTPUT},
    },
    util::error::{Error, Result},
};

/// Sort an array of numbers, optionally with a payload.
///
/// Equal numbers keep their order. Floats are in total order: -0 comes before +0, and NaN come last, also with
/// --descending. Everything is held in memory: five times the size of the numbers, or eight times with a payload.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  printf '3 1 2' | gpuproc sort                      prints 1 2 3, one per line
  printf '3 1 2' | gpuproc sort --argsort            prints 1 2 0
  gpuproc sort --type f32 --descending scores.raw best.raw
  gpuproc sort keys.npy sorted.npy --payload ids.npy --payload-output moved.npy")]
pub struct Args {
    /// File of numbers; - or nothing is standard input
    input: Option<Source>,

    /// File of sorted numbers [default: - for standard output]
    #[arg(value_name = "OUTPUT", conflicts_with_all = ["output", "out_dir"])]
    results: Option<Target>,

    #[command(flatten)]
    output: OutputArgs,

    /// Sort in descending order
    #[arg(long)]
    descending: bool,

    /// Write the original position of each number instead of the number
    ///
    /// Positions are counted from 0.
    #[arg(long, conflicts_with_all = ["payload", "payload_type", "payload_output"])]
    argsort: bool,

    /// Sort each row (x) or each column (y) of a table [default: as one long line]
    ///
    /// A table is a .npy array of rows x columns or rows x columns x channels. It keeps its shape.
    #[arg(long, value_name = "AXIS", value_parser = choice_parser(&AXES))]
    axis: Option<Axis>,

    /// File of values that move with the numbers, one per number
    #[arg(long, value_name = "FILE", requires = "payload_output")]
    payload: Option<Source>,

    /// Type of the values: u32 i32 f32 u64 i64 f64 [default: that of a .npy file, else u32]
    #[arg(long, value_name = "TYPE", requires = "payload", value_parser = dtype_parser(&Dtype::NUMBERS))]
    payload_type: Option<Dtype>,

    /// Output file for the values of --payload
    #[arg(long, value_name = "FILE", requires = "payload")]
    payload_output: Option<Sink>,

    /// Type of the numbers: u32 i32 f32 u64 i64 f64 [default: that of a .npy file, else u32]
    #[arg(long = "type", value_name = "TYPE", value_parser = dtype_parser(&Dtype::NUMBERS))]
    dtype: Option<Dtype>,

    /// Format of the numbers [default: by the extension, else text]
    ///
    /// .txt .csv .tsv .dat are text, .raw .bin are raw, .npy is npy. The extension of an output, if it names a
    /// format, has precedence.
    #[arg(long, value_parser = choice_parser(&ARRAY_FORMATS))]
    format: Option<ArrayFormat>,

    /// Refused by name
    #[arg(long, hide = true)]
    shard: Option<String>,
}

const AXES: [Choice<Axis>; 2] = [("x", Axis::X, "Each row"), ("y", Axis::Y, "Each column")];

/// The lines of an array that are sorted one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Rows.
    X,
    /// Columns.
    Y,
}

/// A validated job.
#[derive(Debug)]
pub struct SortJob {
    /// The lines that are sorted one by one; `None` where the whole array is one line.
    pub axis: Option<Axis>,
    pub keys: ArrayInput,
    pub output: ArrayOutput,
    pub descending: bool,
    pub payload: Payload,
}

/// Values that move with the keys.
#[derive(Debug)]
pub enum Payload {
    /// No values.
    None,
    /// The original positions of the keys, which are written instead of the keys (argsort).
    Positions,
    /// Values of an input file, which are written to an output file.
    File(ArrayInput, ArrayOutput),
}

impl Args {
    /// Validates the flags.
    pub fn job(&self, session: &Session) -> Result<SortJob> {
        if self.shard.is_some() {
            return Err(Error::usage(
                "a sort cannot be divided by --shard: the position of each number depends on all others",
            ));
        }
        let source = input_or_pipe(self.input.as_ref())?;
        self.output.check_fields(self.results.as_ref(), &[])?;
        let planned = self.output.sink(&source, self.results.clone(), None)?;
        session.check_files(|roles| {
            roles.reads(INPUT, &source)?;
            self.payload.as_ref().map_or(Ok(()), |values| roles.reads("--payload", values))?;
            let sink = planned.as_ref().map_or(&Sink::Stdout, |planned| &planned.sink);
            roles.writes_result(OUTPUT, sink, Some(&source))?;
            let moved = self.payload_output.as_ref();
            moved.map_or(Ok(()), |sink| {
                roles.writes_result("--payload-output", sink, self.payload.as_ref())
            })
        })?;
        let results = PlannedOutput::or_stdout(planned);
        let format = ArrayFormat::for_input(&source, self.format)?;
        let output = |sink: &Sink| -> Result<ArrayOutput> {
            ArrayOutput::new(sink.clone(), ArrayFormat::for_output(sink, format, self.format)?)
        };
        let payload = match (&self.payload, &self.payload_output) {
            (Some(values), Some(sink)) => {
                let format = ArrayFormat::for_input(values, self.format)?;
                let (source, dtype) = (values.clone(), self.payload_type);
                Payload::File(ArrayInput { source, format, dtype }, output(sink)?)
            }
            _ if self.argsort => Payload::Positions,
            _ => Payload::None,
        };
        let keys = ArrayInput { source, format, dtype: self.dtype };
        let (axis, descending) = (self.axis, self.descending);
        Ok(SortJob { axis, keys, output: output(&results)?, descending, payload })
    }
}
