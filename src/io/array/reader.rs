//! Reads arrays block by block, from any format.

use std::{
    io::{self, Cursor, Read},
    ops::Range,
};

use super::{
    ArrayFormat, TextLayout,
    npy::{Header, read_in_c_order},
    raw::Element,
    text::TextParser,
};
use crate::{
    data::{dtype::Dtype, number::Number},
    io::{Limits, Source, losses},
    util::error::{Error, Kind, Result},
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
    /// Whether data after the last number are an error, not a warning.
    strict: bool,
}

enum Decoder {
    Text(Box<TextParser>),
    Binary {
        element: Element,
        /// Count of the numbers that follow, if known.
        left: Option<u64>,
        /// Whether to check for data after the last number.
        checks_end: bool,
    },
}

impl std::fmt::Debug for ArrayReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArrayReader").field("source", &self.source).finish_non_exhaustive()
    }
}

impl ArrayReader {
    /// Opens `source`. The numbers have the type `wanted`, else the type in the header of a `.npy` file, else u32. A `.npy`
    /// file in Fortran order is read at once and reordered to C order, within the memory of `limits`. Data after the last
    /// number of a `.npy` file are reported when that number is read.
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
                let element = Element::from(dtype);
                let decoder = Decoder::Binary { element, left, checks_end: false };
                (dtype, shape, decoder)
            }
            ArrayFormat::Npy => {
                let header = npy_header(source, &mut input, wanted)?;
                begin = (!header.fortran).then_some(header.begin);
                let (dtype, left) = (header.element.dtype(), Some(header.len));
                if header.fortran {
                    let ordered = in_c_order(source, &mut input, &header, limits)?;
                    report_surplus(source, &mut input, limits.strict)?;
                    input = Box::new(ordered);
                }
                let checks_end = !header.fortran;
                let decoder = Decoder::Binary { element: header.element, left, checks_end };
                (dtype, Some(header.shape), decoder)
            }
        };
        let strict = limits.strict;
        Ok(Self { source: source.clone(), input, dtype, shape, decoder, begin, strict })
    }

    /// Restricts reading to the numbers `range`, counted from 0. Refuses arrays in which the offsets of numbers are
    /// unknown: in a text, in Fortran order, or in a pipe.
    pub fn restrict(&mut self, range: Range<u64>) -> Result<()> {
        let len = self.count();
        let Decoder::Binary { element, left, checks_end } = &mut self.decoder else {
            return Err(Error::bad_input(format_args!(
                "{}: a text file cannot be divided into shards: convert it to .npy or .raw",
                self.source
            )));
        };
        let (Some(begin), Some(len)) = (self.begin, len) else {
            return Err(Error::bad_input(format_args!(
                "{}: an array in Fortran order, or from a pipe, cannot be divided into shards; store it in C order in a file",
                self.source
            )));
        };
        self.input = self.source.open_at(begin + range.start * element.size() as u64)?;
        *left = Some(range.end - range.start);
        *checks_end &= range.end == len;
        Ok(())
    }

    /// The type of the numbers.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The type of the numbers in the file, which may be narrower; f32 for 16-bit floats.
    pub fn element(&self) -> Element {
        match self.decoder {
            Decoder::Binary { element, .. } if !element.is_f16 => element,
            _ => self.dtype.into(),
        }
    }

    /// Count of numbers along each axis, the last axis fastest, if known.
    pub fn shape(&self) -> Option<&[usize]> {
        self.shape.as_deref()
    }

    /// Count of all numbers, if known.
    pub fn count(&self) -> Option<u64> {
        self.shape().map(|shape| shape.iter().map(|&n| n as u64).product())
    }

    /// Maximum magnitude of the stored integer type; `None` for floats.
    pub fn max_magnitude(&self) -> Option<u64> {
        let bits = match self.decoder {
            _ if self.dtype.is_float() => return None,
            Decoder::Text(_) => 8 * self.dtype.size(),
            Decoder::Binary { element, .. } => 8 * element.size(),
        };
        let max = u64::MAX >> (u64::BITS as usize - bits);
        Some(if self.dtype.is_signed() { max / 2 + 1 } else { max })
    }

    /// Replaces `values` with the next numbers, at most `max`. It is empty at the end of the array.
    ///
    /// # Panics
    /// When `T` is not [`ArrayReader::dtype`].
    pub fn read<T: Number>(&mut self, values: &mut Vec<T>, max: usize) -> Result<()> {
        assert_eq!(T::DTYPE, self.dtype, "read what was opened");
        values.clear();
        match &mut self.decoder {
            Decoder::Text(tokens) => {
                let was_simplified = tokens.is_simplified;
                tokens.read(&mut self.input, &self.source, values, max)?;
                match tokens.is_simplified && !was_simplified {
                    true => losses::report(&self.source, SIMPLIFIED, self.strict),
                    false => Ok(()),
                }
            }
            Decoder::Binary { element, left, checks_end } => {
                let wanted = left.map_or(max, |left| left.min(max as u64) as usize);
                // The header may claim any length. Memory is allocated at once only for numbers that the file can hold.
                let file = self.source.size().ok().flatten().unwrap_or(0) / element.size() as u64;
                let expected = wanted.min(file as usize);
                let bytes = element.read(&mut self.input, values, wanted, expected);
                let bytes = bytes.map_err(|error| match error.kind() {
                    io::ErrorKind::OutOfMemory => {
                        Error::new(Kind::Failure, format_args!("{}: out of memory", self.source))
                    }
                    _ => Error::io("read", self.source.to_string(), error),
                })?;
                if bytes % element.size() != 0 {
                    return Err(not_whole(&self.source, bytes as u64, T::DTYPE));
                }
                if let Some(left) = left {
                    if values.len() < wanted {
                        return Err(Error::bad_input(format_args!(
                            "{}: truncated: {} numbers are missing",
                            self.source,
                            *left - values.len() as u64
                        )));
                    }
                    *left -= wanted as u64;
                    if *left == 0 && std::mem::take(checks_end) {
                        report_surplus(&self.source, &mut self.input, self.strict)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Reads all numbers, within the memory of `limits`.
    pub fn read_all<T: Number>(&mut self, limits: Limits) -> Result<Vec<T>> {
        let (size, count) = (size_of::<T>(), self.count());
        let max = usize::try_from(limits.bytes()).unwrap_or(usize::MAX) / size;
        let min_bytes = count.unwrap_or(max as u64 + 1).saturating_mul(size as u64);
        let what = format!("{}: processing the numbers", self.source);
        if count.is_some_and(|len| len > max as u64) {
            return Err(limits.exceeded(what, min_bytes));
        }
        let mut all = Vec::new();
        self.read(&mut all, max)?;
        let mut more = Vec::<T>::new();
        if all.len() == max {
            self.read(&mut more, 1)?;
        }
        if more.is_empty() { Ok(all) } else { Err(limits.exceeded(what, min_bytes)) }
    }

    /// Takes the layout of the numbers of the last [`ArrayReader::read`] of a text.
    pub fn take_layout(&mut self) -> Option<TextLayout> {
        match &mut self.decoder {
            Decoder::Text(tokens) => Some(std::mem::take(&mut tokens.layout)),
            Decoder::Binary { .. } => None,
        }
    }
}

/// Loss of separators that are too long, or too many different ones.
const SIMPLIFIED: &str = "layout is not kept: some blanks between numbers are dropped";

/// Reports data after the last number, if there are any.
fn report_surplus(source: &Source, input: &mut impl Read, strict: bool) -> Result<()> {
    let mut surplus = Vec::new();
    let read = input.take(1).read_to_end(&mut surplus);
    match read.map_err(|error| Error::io("read", source.to_string(), error))? {
        0 => Ok(()),
        _ => losses::report(source, "data after the last number are ignored", strict),
    }
}

fn not_whole(source: &Source, bytes: u64, dtype: Dtype) -> Error {
    Error::bad_input(format_args!(
        "{source}: file has {bytes} bytes, expected a multiple of {}, the size of {dtype}",
        dtype.size()
    ))
}

/// Reads the header of a `.npy` file, whose numbers must be of type `wanted` if that is given.
fn npy_header(source: &Source, input: &mut impl Read, wanted: Option<Dtype>) -> Result<Header> {
    let header = Header::read(input).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            Error::bad_input(format_args!("{source}: invalid .npy file")).caused_by(error)
        }
        _ => Error::io("read", source.to_string(), error),
    })?;
    let stored = header.element.dtype();
    match wanted {
        Some(wanted) if wanted != stored => Err(Error::usage(format_args!(
            "{source}: the file contains {stored} numbers, but {wanted} is requested"
        ))),
        _ => Ok(header),
    }
}

/// Reads the numbers of a `.npy` file in Fortran order, and reorders them to C order.
fn in_c_order(
    source: &Source,
    mut input: impl Read,
    header: &Header,
    limits: Limits,
) -> Result<Cursor<Vec<u8>>> {
    let bytes = header.len * header.element.size() as u64;
    if bytes > limits.bytes() / 2 {
        let what = format_args!("{source}: an array in Fortran order, which is reordered,");
        return Err(limits.exceeded(what, bytes.saturating_mul(2)));
    }
    let ordered = read_in_c_order(&mut input, &header.shape, header.element.size());
    ordered.map(Cursor::new).map_err(|error| Error::io("read", source.to_string(), error))
}
