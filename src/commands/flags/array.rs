//! What the flags say of arrays.

use std::io::{IsTerminal, stdin};

use super::choice::Choice;
use crate::{
    data::dtype::Dtype,
    error::{Error, Result},
    io::{
        Limits, Sink, Source,
        array::{ArrayFormat, ArrayReader, ArrayWriter},
    },
    session::Session,
};

/// The choices of `--format`.
pub const ARRAY_FORMATS: [Choice<ArrayFormat>; 3] = [
    ("text", ArrayFormat::Text, "Numbers separated by white space, commas or newlines"),
    ("raw", ArrayFormat::Raw, "Nothing but the numbers, little-endian"),
    ("npy", ArrayFormat::Npy, "NumPy's array file"),
];

/// An array to be read.
#[derive(Clone, Debug)]
pub struct ArrayInput {
    /// Where it is.
    pub source: Source,
    /// How it is written down.
    pub format: ArrayFormat,
    /// The numbers' type, where a file does not say it.
    pub dtype: Option<Dtype>,
}

impl ArrayInput {
    /// Opens it. Bringing it into C order may take the bytes of `limits`.
    ///
    /// # Errors
    /// Those of [`ArrayReader::open`].
    pub fn open(&self, limits: Limits) -> Result<ArrayReader> {
        ArrayReader::open(&self.source, self.format, self.dtype, limits)
    }
}

/// The input that is named, or else standard input.
///
/// # Errors
/// [`Kind::Usage`](crate::error::Kind::Usage) when nothing is piped in.
pub fn input_or_pipe(input: Option<&Source>) -> Result<Source> {
    match input {
        Some(source) => Ok(source.clone()),
        None if stdin().is_terminal() => {
            Err(Error::usage("give a file of numbers, or pipe numbers in"))
        }
        None => Ok(Source::Stdin),
    }
}

/// Where an array is written, and how.
#[derive(Clone, Debug)]
pub struct ArrayOutput {
    /// Where it goes.
    pub sink: Sink,
    /// How it is written down.
    pub format: ArrayFormat,
}

impl ArrayOutput {
    /// Creates it for numbers of type `dtype`.
    ///
    /// # Errors
    /// Those of [`ArrayWriter::create`].
    pub fn create(
        &self,
        session: &Session,
        dtype: Dtype,
        shape: Option<&[usize]>,
    ) -> Result<ArrayWriter> {
        let (no_clobber, limit) = (session.no_clobber, session.max_memory);
        ArrayWriter::create(&self.sink, no_clobber, self.format, dtype, shape, limit)
    }
}
