//! The file formats of arrays, and the extensions that name them.

use serde::Serialize;

use crate::{
    io::{Sink, Source},
    util::error::{Error, Hint, Result},
};

/// A file format of arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ArrayFormat {
    /// Numbers separated by white space, commas or newlines.
    Text,
    /// Little-endian numbers without a header.
    Raw,
    /// NumPy's array file.
    Npy,
}

impl ArrayFormat {
    fn from_extension(extension: &str) -> Option<Self> {
        match extension {
            "txt" | "csv" | "tsv" | "dat" | "text" => Some(Self::Text),
            "raw" | "bin" | "u32" | "i32" | "f32" | "u64" | "i64" | "f64" => Some(Self::Raw),
            "npy" => Some(Self::Npy),
            _ => None,
        }
    }

    /// The format of an input: `given`, else that of its extension, else text if it has none.
    pub fn for_input(source: &Source, given: Option<Self>) -> Result<Self> {
        let extension = source.extension();
        match given.or_else(|| Self::from_extension(&extension)) {
            Some(format) => Ok(format),
            None if extension.is_empty() => Ok(Self::Text),
            None => Err(unknown_extension(source, &extension)),
        }
    }

    /// The format of an output: that of its extension. Without an extension, or if the user has `given` the input's
    /// format, it is `input`, the format of the input.
    pub fn for_output(sink: &Sink, input: Self, given: Option<Self>) -> Result<Self> {
        let extension = sink.extension();
        match Self::from_extension(&extension) {
            Some(format) => Ok(format),
            None if extension.is_empty() || given.is_some() => Ok(input),
            None => Err(unknown_extension(sink, &extension)),
        }
    }
}

fn unknown_extension(name: &dyn std::fmt::Display, extension: &str) -> Error {
    Error::usage(format_args!(
        "{name}: cannot infer the array format from the extension `{extension}`"
    ))
    .with_hint(Hint::ArrayFormat)
}
