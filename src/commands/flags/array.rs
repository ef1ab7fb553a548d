//! Inputs and outputs of commands that work on arrays of numbers.

use std::io::{IsTerminal, stdin};

use super::{choice::Choice, target::refuse_terminal};
use crate::{
    data::dtype::Dtype,
    engine::session::Session,
    io::{
        Limits, Sink, Source,
        array::{ArrayFormat, ArrayReader, ArrayWriter, Element},
    },
    util::error::{Error, Result},
};

/// The choices of `--format`.
pub const ARRAY_FORMATS: [Choice<ArrayFormat>; 3] = [
    ("text", ArrayFormat::Text, "Numbers separated by white space, commas or newlines"),
    ("raw", ArrayFormat::Raw, "Only the numbers, little-endian"),
    ("npy", ArrayFormat::Npy, "NumPy array"),
];

/// An array to read.
#[derive(Clone, Debug)]
pub struct ArrayInput {
    /// The file.
    pub source: Source,
    /// Its format.
    pub format: ArrayFormat,
    /// Type of the numbers, for formats that do not state it.
    pub dtype: Option<Dtype>,
}

impl ArrayInput {
    /// Opens the array. Reordering an array in Fortran order to C order takes memory, which `limits` bounds.
    ///
    /// # Errors
    /// Those of [`ArrayReader::open`].
    pub fn open(&self, limits: Limits) -> Result<ArrayReader> {
        ArrayReader::open(&self.source, self.format, self.dtype, limits)
    }
}

/// The named input, or else standard input.
///
/// # Errors
/// `Kind::Usage` when nothing is piped in.
pub fn input_or_pipe(input: Option<&Source>) -> Result<Source> {
    match input {
        Some(source) => Ok(source.clone()),
        None if stdin().is_terminal() => {
            Err(Error::usage("give a file of numbers, or pipe numbers in"))
        }
        None => Ok(Source::Stdin),
    }
}

/// An array to write.
#[derive(Clone, Debug)]
pub struct ArrayOutput {
    /// The file.
    pub sink: Sink,
    /// Its format.
    pub format: ArrayFormat,
}

impl ArrayOutput {
    /// An output to `sink`.
    ///
    /// # Errors
    /// `Kind::Usage` for a binary format on a terminal.
    pub fn new(sink: Sink, format: ArrayFormat) -> Result<Self> {
        if format != ArrayFormat::Text {
            refuse_terminal(&sink)?;
        }
        Ok(Self { sink, format })
    }

    /// Creates the output for numbers that are stored as `element`.
    ///
    /// # Errors
    /// Those of [`ArrayWriter::create`].
    pub fn create(
        &self,
        session: &Session,
        element: impl Into<Element>,
        shape: Option<&[usize]>,
    ) -> Result<ArrayWriter> {
        let (no_clobber, limit) = (session.no_clobber, session.max_memory);
        ArrayWriter::create(&self.sink, no_clobber, self.format, element, shape, limit)
    }
}
