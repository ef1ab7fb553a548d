//! Reads arrays a part at a time, from any format.

use std::{
    io::{self, Cursor, Read},
    ops::Range,
};

use super::{
    ArrayFormat, Layout, Separator,
    npy::{Header, read_in_c_order},
    raw::Element,
    text::Tokens,
};
use crate::{
    data::{dtype::Dtype, number::Number},
    io::{Limits, Source, losses},
    util::error::{Error, Hint, Kind, Result},
};

/// An array being read from its first number to its last.
pub struct ArrayReader {
    source: Source,
    input: Box<dyn Read + Send>,
    dtype: Dtype,
    shape: Option<Vec<usize>>,
    decoder: Decoder,
    /// Offset of the first number of a binary file in C order.
    begin: Option<u64>,
    /// Whether data behind the last number are an error, not a warning.
    strict: bool,
}

enum Decoder {
    Text(Box<Tokens>),
    /// Binary numbers.
    Binary {
        element: Element,
        /// Count of the numbers that follow, where it is known.
        left: Option<u64>,
        /// Whether to check for data behind the last number.
        looks_behind: bool,
    },
}

impl std::fmt::Debug for ArrayReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArrayReader").field("source", &self.source).finish_non_exhaustive()
    }
}

impl ArrayReader {
    /// Opens `source`. Numbers are of type `wanted`, else of the type in the header of a `.npy` file, else u32. A
    /// `.npy` file in Fortran order is read at once and reordered to C order, within the memory of `limits`. Data
    /// behind the last number of a `.npy` file are reported once that number is read.
    ///
    /// # Errors
    /// [`Kind::Io`] when `source` cannot be read; [`Kind::BadInput`] when its header is broken, its length is no
    /// multiple of a number's size, or it is too long to be reordered; [`Kind::Usage`] when its type is not `wanted`.
    pub fn open(
        source: &Source,
        format: ArrayFormat,
        wanted: Option<Dtype>,
        limits: impl Into<Limits>,
    ) -> Result<Self> {
        let limits = limits.into();
        let size = source.size()?;
        let mut input = source.open()?;
        let dtype = wanted.unwrap_or(Dtype::U32);
        let mut begin = None;
        let (dtype, shape, decoder) = match format {
            ArrayFormat::Text => (dtype, None, Decoder::Text(Box::default())),
            ArrayFormat::Raw => {
                let width = dtype.size() as u64;
                if let Some(size) = size.filter(|size| !size.is_multiple_of(width)) {
                    return Err(not_whole(source, size, dtype));
                }
                let shape = size.map(|size| vec![(size / width) as usize]);
                // Outputs are created for the length of the file now. A file that shrinks meanwhile is an error.
                let left = size.map(|size| size / width);
                begin = Some(0);
                let element = Element::little_endian(dtype);
                let decoder = Decoder::Binary { element, left, looks_behind: false };
                (dtype, shape, decoder)
            }
            ArrayFormat::Npy => {
                let header = npy_header(source, &mut input, wanted)?;
                begin = (!header.fortran).then_some(header.begin);
                let (dtype, left) = (header.element.dtype(), Some(header.len));
                if header.fortran {
                    let ordered = in_c_order(source, &mut input, &header, limits.bytes)?;
                    tell_surplus(source, &mut input, limits.strict)?;
                    input = Box::new(ordered);
                }
                let looks_behind = !header.fortran;
                let decoder = Decoder::Binary { element: header.element, left, looks_behind };
                (dtype, Some(header.shape), decoder)
            }
        };
        let strict = limits.strict;
        Ok(Self { source: source.clone(), input, dtype, shape, decoder, begin, strict })
    }

    /// Restricts reading to the numbers `part`, counted from 0.
    ///
    /// # Errors
    /// [`Kind::Io`] when that fails, [`Kind::BadInput`] where the offsets of numbers are unknown: in a text, in Fortran
    /// order, or in a pipe.
    pub fn take_part(&mut self, part: Range<u64>) -> Result<()> {
        let len = self.len();
        let Decoder::Binary { element, left, looks_behind } = &mut self.decoder else {
            return Err(Error::bad_input(format_args!(
                "{}: numbers in a text have no places",
                self.source
            )));
        };
        let (Some(begin), Some(len)) = (self.begin, len) else {
            return Err(Error::bad_input(format_args!(
                "{}: numbers in Fortran order, or of unknown length, have no places",
                self.source
            )));
        };
        self.input = self.source.open_at(begin + part.start * element.size() as u64)?;
        *left = Some(part.end - part.start);
        *looks_behind &= part.end == len;
        Ok(())
    }

    /// The type of the numbers.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Count of numbers along each axis, the last axis fastest, where it is known.
    pub fn shape(&self) -> Option<&[usize]> {
        self.shape.as_deref()
    }

    /// Count of all numbers, where it is known.
    pub fn len(&self) -> Option<u64> {
        self.shape().map(|shape| shape.iter().map(|&n| n as u64).product())
    }

    /// The largest magnitude that the stored integer type can have; `None` for floats.
    pub fn largest(&self) -> Option<u64> {
        let bits = match self.decoder {
            _ if self.dtype.is_float() => return None,
            Decoder::Text(_) => 8 * self.dtype.size(),
            Decoder::Binary { element, .. } => 8 * element.size(),
        };
        let most = u64::MAX >> (u64::BITS as usize - bits);
        Some(if self.dtype.is_signed() { most / 2 + 1 } else { most })
    }

    /// Whether the array is known to be empty.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// Replaces `values` with the next numbers, `most` at most. At the end there are none.
    ///
    /// # Errors
    /// [`Kind::BadInput`] for a text that is no number of type `T`, and when the data end within a number or too early;
    /// [`Kind::Io`] when reading fails.
    ///
    /// # Panics
    /// When `T` is not [`ArrayReader::dtype`].
    pub fn read<T: Number>(&mut self, values: &mut Vec<T>, most: usize) -> Result<()> {
        assert_eq!(T::DTYPE, self.dtype, "read what was opened");
        values.clear();
        match &mut self.decoder {
            Decoder::Text(tokens) => {
                let was_simplified = tokens.is_simplified;
                tokens.read(&mut self.input, &self.source, values, most)?;
                match tokens.is_simplified && !was_simplified {
                    true => losses::report(&self.source, SIMPLIFIED, self.strict),
                    false => Ok(()),
                }
            }
            Decoder::Binary { element, left, looks_behind } => {
                let wanted = left.map_or(most, |left| left.min(most as u64) as usize);
                // The header may claim any length. Memory is allocated at once only for numbers that the file can hold.
                let file = self.source.size().ok().flatten().unwrap_or(0) / element.size() as u64;
                let there = wanted.min(file as usize);
                let bytes = element.read(&mut self.input, values, wanted, there);
                let bytes = bytes.map_err(|error| match error.kind() {
                    io::ErrorKind::OutOfMemory => {
                        Error::new(Kind::Failure, format_args!("no memory for {}", self.source))
                    }
                    _ => Error::io("read", self.source.to_string(), error),
                })?;
                if bytes % element.size() != 0 {
                    return Err(not_whole(&self.source, bytes as u64, T::DTYPE));
                }
                if let Some(left) = left {
                    if values.len() < wanted {
                        return Err(Error::bad_input(format_args!(
                            "{}: the data end {} numbers early",
                            self.source,
                            *left - values.len() as u64
                        )));
                    }
                    *left -= wanted as u64;
                    if *left == 0 && std::mem::take(looks_behind) {
                        tell_surplus(&self.source, &mut self.input, self.strict)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Reads all numbers, at most `limit` bytes of them.
    ///
    /// # Errors
    /// As [`ArrayReader::read`], and [`Kind::BadInput`] when there are more than `limit` bytes.
    pub fn read_all<T: Number>(&mut self, limit: u64) -> Result<Vec<T>> {
        let most = usize::try_from(limit).unwrap_or(usize::MAX) / size_of::<T>();
        let too_large = Error::bad_input(format_args!(
            "{}: its numbers take more than the {limit} bytes allowed",
            self.source
        ))
        .with_hint(Hint::Memory);
        if self.len().is_some_and(|len| len > most as u64) {
            return Err(too_large);
        }
        let mut all = Vec::new();
        self.read(&mut all, most)?;
        let mut more = Vec::<T>::new();
        if all.len() == most {
            self.read(&mut more, 1)?;
        }
        if more.is_empty() { Ok(all) } else { Err(too_large) }
    }

    /// Of a text, the separator after each number of the last [`ArrayReader::read`].
    pub fn layout(&self) -> Option<&[Separator]> {
        match &self.decoder {
            Decoder::Text(tokens) => Some(&tokens.layout.after),
            Decoder::Binary { .. } => None,
        }
    }

    /// Takes the layout of the numbers of the last [`ArrayReader::read`] of a text.
    pub fn take_layout(&mut self) -> Option<Layout> {
        match &mut self.decoder {
            Decoder::Text(tokens) => Some(std::mem::take(&mut tokens.layout)),
            Decoder::Binary { .. } => None,
        }
    }
}

/// The loss of separators that are too long, or too many different ones.
const SIMPLIFIED: &str =
    "its layout is not kept: some of the blanks between its numbers are left out";

/// Reports data behind the last number, if there are any.
fn tell_surplus(source: &Source, input: &mut impl Read, strict: bool) -> Result<()> {
    let mut surplus = Vec::new();
    let read = input.take(1).read_to_end(&mut surplus);
    match read.map_err(|error| Error::io("read", source.to_string(), error))? {
        0 => Ok(()),
        _ => losses::report(source, "what lies behind its last number is left out", strict),
    }
}

fn not_whole(source: &Source, bytes: u64, dtype: Dtype) -> Error {
    Error::bad_input(format_args!(
        "{source}: {bytes} bytes are no whole number of {dtype}, which take {} each",
        dtype.size()
    ))
}

/// Reads the header of a `.npy` file, whose numbers must be of type `wanted` if that is given.
fn npy_header(source: &Source, input: &mut impl Read, wanted: Option<Dtype>) -> Result<Header> {
    let header = Header::read(input).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            Error::bad_input(format_args!("{source} is no .npy file that can be used"))
                .caused_by(error)
        }
        _ => Error::io("read", source.to_string(), error),
    })?;
    let held = header.element.dtype();
    match wanted {
        Some(wanted) if wanted != held => Err(Error::usage(format_args!(
            "{source} holds {held}, which cannot be read as {wanted}"
        ))),
        _ => Ok(header),
    }
}

/// Reads the numbers of a `.npy` file in Fortran order, and reorders them to C order.
fn in_c_order(
    source: &Source,
    mut input: impl Read,
    header: &Header,
    limit: u64,
) -> Result<Cursor<Vec<u8>>> {
    let bytes = header.len * header.element.size() as u64;
    if bytes > limit / 2 {
        return Err(Error::bad_input(format_args!(
            "{source}: {bytes} bytes in Fortran order are read at once, and twice as many are more \
             than the {limit} that may be used"
        )));
    }
    let ordered = read_in_c_order(&mut input, &header.shape, header.element.size());
    ordered.map(Cursor::new).map_err(|error| Error::io("read", source.to_string(), error))
}
