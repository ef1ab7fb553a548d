//! Arrays of numbers: text, raw little-endian binary, and NumPy's `.npy`. They are read and written in parts,
//! so they may be longer than memory.

pub mod npy;
mod raw;
mod text;

use std::{
    fmt::Write as _,
    io::{self, Read, Write},
};

pub use raw::fill;
pub use text::Separator;

use self::{raw::Element, text::Tokens};
use super::{Sink, Source, sink::Output};
use crate::{
    data::{dtype::Dtype, number::Number},
    error::{Error, Hint, Kind, Result},
};

/// A file format of arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayFormat {
    /// Numbers separated by white space, commas or newlines.
    Text,
    /// Nothing but the numbers, little-endian.
    Raw,
    /// NumPy's array file.
    Npy,
}

impl ArrayFormat {
    /// The format that a lower-case extension stands for.
    fn by_extension(extension: &str) -> Option<Self> {
        match extension {
            "txt" | "csv" | "tsv" | "dat" | "text" => Some(Self::Text),
            "raw" | "bin" | "u32" | "i32" | "f32" | "u64" | "i64" | "f64" => Some(Self::Raw),
            "npy" => Some(Self::Npy),
            _ => None,
        }
    }

    /// The format of an input: `given`, else by its extension; text without one.
    ///
    /// # Errors
    /// [`Kind::Usage`] when the extension is not known.
    pub fn of_input(source: &Source, given: Option<Self>) -> Result<Self> {
        let extension = source.extension();
        let known = given.or_else(|| Self::by_extension(&extension));
        match known {
            Some(format) => Ok(format),
            None if extension.is_empty() => Ok(Self::Text),
            None => Err(unknown_extension(source, &extension)),
        }
    }

    /// The format of an output: by its extension; without one that of the input.
    ///
    /// # Errors
    /// [`Kind::Usage`] when the extension is not known.
    pub fn of_output(sink: &Sink, input: Self, given: Option<Self>) -> Result<Self> {
        let extension = sink.extension();
        match Self::by_extension(&extension) {
            Some(format) => Ok(format),
            None if extension.is_empty() || given.is_some() => Ok(input),
            None => Err(unknown_extension(sink, &extension)),
        }
    }
}

fn unknown_extension(name: &dyn std::fmt::Display, extension: &str) -> Error {
    Error::usage(format_args!("{name}: no array format is known by the extension `{extension}`"))
        .with_hint(Hint::ArrayFormat)
}

/// An array being read from its first number to its last.
pub struct ArrayReader {
    source: Source,
    input: Box<dyn Read + Send>,
    dtype: Dtype,
    shape: Option<Vec<usize>>,
    decoder: Decoder,
}

enum Decoder {
    Text(Box<Tokens>),
    /// Plain numbers, and how many of them are still to come where that is known.
    Binary {
        element: Element,
        left: Option<u64>,
    },
}

impl std::fmt::Debug for ArrayReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArrayReader").field("source", &self.source).finish_non_exhaustive()
    }
}

impl ArrayReader {
    /// Opens `source`. Its numbers are of type `dtype`, else of the type that a `.npy` file says, else u32. A
    /// `.npy` file in Fortran order is read at once and brought into C order, which takes `limit` bytes at most.
    ///
    /// # Errors
    /// [`Kind::Io`] when it cannot be read; [`Kind::BadInput`] when its header is broken, its length is
    /// no whole number of numbers, or it is too long to be reordered; [`Kind::Usage`] when its type is
    /// not `dtype`.
    pub fn open(
        source: &Source,
        format: ArrayFormat,
        dtype: Option<Dtype>,
        limit: u64,
    ) -> Result<Self> {
        let size = source.size()?;
        let mut input = source.open()?;
        let wanted = dtype;
        let dtype = wanted.unwrap_or(Dtype::U32);
        let (dtype, shape, decoder) = match format {
            ArrayFormat::Text => (dtype, None, Decoder::Text(Box::default())),
            ArrayFormat::Raw => {
                let width = dtype.size() as u64;
                if let Some(size) = size.filter(|size| !size.is_multiple_of(width)) {
                    return Err(not_whole(source, size, dtype));
                }
                let shape = size.map(|size| vec![(size / width) as usize]);
                // The length is fixed now, as outputs are told it: a file that shrinks later is an error.
                let left = size.map(|size| size / width);
                let decoder = Decoder::Binary { element: Element::little_endian(dtype), left };
                (dtype, shape, decoder)
            }
            ArrayFormat::Npy => {
                let header = npy::Header::read(&mut input).map_err(|error| match error.kind() {
                    io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                        Error::bad_input(format_args!("{source} is no .npy file that can be used"))
                            .caused_by(error)
                    }
                    _ => Error::io("read", source.to_string(), error),
                })?;
                let held = header.element.dtype();
                if let Some(wanted) = wanted.filter(|&wanted| wanted != held) {
                    return Err(Error::usage(format_args!(
                        "{source} holds {held}, which cannot be read as {wanted}"
                    )));
                }
                let left = Some(header.len);
                if header.fortran {
                    let bytes = header.len * header.element.size() as u64;
                    if bytes > limit / 2 {
                        return Err(Error::bad_input(format_args!(
                            "{source}: {bytes} bytes in Fortran order are read at once, and twice as \
                             many are more than the {limit} that may be used"
                        )));
                    }
                    let ordered = header.read_in_c_order(&mut input);
                    let ordered =
                        ordered.map_err(|error| Error::io("read", source.to_string(), error))?;
                    input = Box::new(io::Cursor::new(ordered));
                }
                (held, Some(header.shape), Decoder::Binary { element: header.element, left })
            }
        };
        Ok(Self { source: source.clone(), input, dtype, shape, decoder })
    }

    /// The numbers' type.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The numbers along each axis, the last axis fastest, where they are known.
    pub fn shape(&self) -> Option<&[usize]> {
        self.shape.as_deref()
    }

    /// The count of all numbers, where it is known.
    pub fn len(&self) -> Option<u64> {
        self.shape().map(|shape| shape.iter().map(|&n| n as u64).product())
    }

    /// The largest magnitude of the integers that are stored in so many bits; nothing for floats.
    pub fn largest(&self) -> Option<u64> {
        let bits = match self.decoder {
            _ if self.dtype.is_float() => return None,
            Decoder::Text(_) => 8 * self.dtype.size(),
            Decoder::Binary { element, .. } => 8 * element.size(),
        };
        let most = u64::MAX >> (u64::BITS as usize - bits);
        Some(if self.dtype.is_signed() { most / 2 + 1 } else { most })
    }

    /// Whether it is known that there is no number.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// Replaces `values` by the next numbers, `most` at most. At the end there are none.
    ///
    /// # Errors
    /// [`Kind::BadInput`] for a text that is no number of type `T`, with its line, and when the data end
    /// within a number or before all numbers; [`Kind::Io`] when reading fails.
    ///
    /// # Panics
    /// When `T` is not [`ArrayReader::dtype`].
    pub fn read<T: Number>(&mut self, values: &mut Vec<T>, most: usize) -> Result<()> {
        assert_eq!(T::DTYPE, self.dtype, "read what was opened");
        values.clear();
        match &mut self.decoder {
            Decoder::Text(tokens) => tokens.read(&mut self.input, &self.source, values, most),
            Decoder::Binary { element, left } => {
                let wanted = left.map_or(most, |left| left.min(most as u64) as usize);
                // Headers may claim any length, files may not.
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

    /// In a text, the separator behind each number of the last [`ArrayReader::read`].
    pub fn layout(&self) -> Option<&[Separator]> {
        match &self.decoder {
            Decoder::Text(tokens) => Some(&tokens.layout),
            Decoder::Binary { .. } => None,
        }
    }
}

fn not_whole(source: &Source, bytes: u64, dtype: Dtype) -> Error {
    Error::bad_input(format_args!(
        "{source}: {bytes} bytes are no whole number of {dtype}, which take {} each",
        dtype.size()
    ))
}

/// An array being written. Unless finished, no trace of it remains.
#[derive(Debug)]
pub struct ArrayWriter {
    name: String,
    output: Output,
    format: ArrayFormat,
    /// A `.npy` file of unknown length, whose header comes last: dtype, bytes so far, most bytes.
    kept: Option<(Dtype, Vec<u8>, u64)>,
    text: String,
    /// The separator between the last number and the next.
    between: Option<char>,
}

impl ArrayWriter {
    /// Opens `sink` for numbers of type `dtype`. A `.npy` file without a `shape` is kept in memory until its
    /// length is known, `limit` bytes at most.
    ///
    /// # Errors
    /// As [`Sink::create`].
    pub fn create(
        sink: &Sink,
        no_clobber: bool,
        format: ArrayFormat,
        dtype: Dtype,
        shape: Option<&[usize]>,
        limit: u64,
    ) -> Result<Self> {
        let mut writer = Self {
            name: sink.to_string(),
            output: sink.create(no_clobber)?,
            format,
            kept: None,
            text: String::new(),
            between: None,
        };
        match (format, shape) {
            (ArrayFormat::Npy, Some(shape)) => writer.raw(&npy::header(dtype, shape))?,
            (ArrayFormat::Npy, None) => writer.kept = Some((dtype, Vec::new(), limit)),
            _ => {}
        }
        Ok(writer)
    }

    /// Writes the next numbers. In a text, `layout` are the separators behind them: those of the text that was
    /// read, or newlines.
    ///
    /// # Errors
    /// [`Kind::Io`] when writing fails, [`Kind::BadInput`] when more must be kept than `limit`.
    pub fn write<T: Number>(&mut self, values: &[T], layout: Option<&[Separator]>) -> Result<()> {
        if self.format != ArrayFormat::Text {
            return match cfg!(target_endian = "little") {
                true => self.raw(bytemuck::cast_slice(values)),
                false => {
                    let mut bytes = bytemuck::cast_slice::<T, u8>(values).to_vec();
                    bytes.chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
                    self.raw(&bytes)
                }
            };
        }
        for (i, value) in values.iter().enumerate() {
            let behind = layout.map_or('\n', |layout| match layout[i] {
                Separator::Blank => ' ',
                Separator::Comma => ',',
                Separator::Newline => '\n',
            });
            self.text.extend(self.between.replace(behind));
            write!(self.text, "{value}").expect("text grows");
            if self.text.len() > 1 << 16 {
                self.flush_text()?;
            }
        }
        self.flush_text()
    }

    fn flush_text(&mut self) -> Result<()> {
        let text = std::mem::take(&mut self.text);
        self.raw(text.as_bytes())?;
        self.text = text;
        self.text.clear();
        Ok(())
    }

    fn raw(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some((_, kept, limit)) = &mut self.kept {
            let fits = (kept.len() + bytes.len()) as u64 <= *limit;
            if !fits || kept.try_reserve(bytes.len()).is_err() {
                return Err(Error::bad_input(format_args!(
                    "{}: a .npy file of an input whose length is not known is kept in memory, and \
                     takes more than the {limit} bytes allowed; write .raw",
                    self.name
                ))
                .with_hint(Hint::Memory));
            }
            kept.extend_from_slice(bytes);
            return Ok(());
        }
        self.output.write_all(bytes).map_err(|error| Error::io("write", &self.name, error))
    }

    /// Completes the output.
    ///
    /// # Errors
    /// [`Kind::Io`] when the last bytes or the rename fail; then there is no output.
    pub fn finish(mut self) -> Result<()> {
        if let Some((dtype, kept, _)) = self.kept.take() {
            self.raw(&npy::header(dtype, &[kept.len() / dtype.size()]))?;
            self.raw(&kept)?;
        }
        if self.between.is_some() {
            self.raw(b"\n")?;
        }
        self.output.commit()
    }
}
