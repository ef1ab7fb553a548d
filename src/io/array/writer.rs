//! Writes arrays block by block, in any format.

use std::io::Write;

use super::{ArrayFormat, TextLayout, npy, raw::Element};
use crate::{
    data::number::Number,
    io::{Sink, sink::Output},
    util::{
        error::{Error, Result},
        memory,
    },
};

/// Maximum number of characters of a float without an exponent: 2^64 has 20 digits.
const MAX_PLAIN_FLOAT: usize = 21;

/// An array being written. Unless finished, no trace of it remains.
#[derive(Debug)]
pub struct ArrayWriter {
    name: String,
    output: Output,
    format: ArrayFormat,
    /// The type of the numbers in the file.
    element: Element,
    /// A `.npy` file of unknown length, buffered until its header can be written: bytes so far, maximum bytes.
    buffered: Option<(Vec<u8>, u64)>,
    text: Vec<u8>,
    /// The separator within the rows of a text.
    separator: u8,
}

impl ArrayWriter {
    /// Opens `sink` for numbers that are stored as `element`; integers may be wider in memory. A `.npy` file without a
    /// `shape` is buffered until its length is known, up to `limit` bytes.
    pub fn create(
        sink: &Sink,
        no_clobber: bool,
        format: ArrayFormat,
        element: impl Into<Element>,
        shape: Option<&[usize]>,
        limit: u64,
    ) -> Result<Self> {
        let element = element.into();
        let mut writer = Self {
            name: sink.to_string(),
            output: sink.create(no_clobber)?,
            format,
            element,
            buffered: None,
            text: Vec::new(),
            separator: if sink.extension() == "csv" { b',' } else { b' ' },
        };
        match (format, shape) {
            (ArrayFormat::Npy, Some(shape)) => writer.raw(&npy::header(element, shape))?,
            (ArrayFormat::Npy, None) => writer.buffered = Some((Vec::new(), limit)),
            _ => {}
        }
        Ok(writer)
    }

    /// Writes the next numbers. A text gets the separators of `layout`, one for each number; without a layout, each
    /// number is a line. At most `limit` bytes may be buffered.
    pub fn write<T: Number>(&mut self, values: &[T], layout: Option<&TextLayout>) -> Result<()> {
        match layout {
            _ if self.format != ArrayFormat::Text => self.binary(values),
            None => self.text(values, |_| b"\n"),
            Some(layout) => {
                self.text.extend(&layout.lead);
                self.text(values, |i| layout.text(layout.after[i]))
            }
        }
    }

    fn binary<T: Number>(&mut self, values: &[T]) -> Result<()> {
        let (bytes, size) = (bytemuck::cast_slice::<T, u8>(values), self.element.size());
        if size == size_of::<T>() {
            return self.raw(bytes);
        }
        // The least significant bytes come first.
        let narrow = bytes.chunks_exact(size_of::<T>()).flat_map(|number| &number[..size]);
        self.raw(&narrow.copied().collect::<Vec<u8>>())
    }

    /// Writes numbers as text, each followed by the bytes that `after` returns for its index.
    fn text<'a, T: Number>(
        &mut self,
        values: &[T],
        after: impl Fn(usize) -> &'a [u8],
    ) -> Result<()> {
        for (i, value) in values.iter().enumerate() {
            let start = self.text.len();
            write!(self.text, "{value}").expect("text grows");
            // A float far from 1 is shorter with an exponent.
            if T::DTYPE.is_float() && self.text.len() - start > MAX_PLAIN_FLOAT {
                self.text.truncate(start);
                write!(self.text, "{value:e}").expect("text grows");
            }
            self.text.extend_from_slice(after(i));
            if self.text.len() > 1 << 16 {
                self.flush_text()?;
            }
        }
        self.flush_text()
    }

    /// Writes the numbers of `rows` rows. In a text, each row is a line.
    pub fn write_rows<T: Number>(&mut self, values: &[T], rows: usize) -> Result<()> {
        // With no rows, the length of a row is unknown.
        let length = values.len() / rows.max(1);
        if self.format != ArrayFormat::Text || length <= 1 {
            return self.write(values, None);
        }
        let separator = [self.separator];
        self.text(values, |i| if (i + 1) % length == 0 { b"\n" } else { &separator })
    }

    fn flush_text(&mut self) -> Result<()> {
        let text = std::mem::take(&mut self.text);
        self.raw(&text)?;
        self.text = text;
        self.text.clear();
        Ok(())
    }

    fn raw(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some((buffered, limit)) = &mut self.buffered {
            let fits = (buffered.len() + bytes.len()) as u64 <= *limit;
            if !fits || buffered.try_reserve(bytes.len()).is_err() {
                let what = "a .npy output of unknown length (unlike .raw, it is buffered)";
                let needed = (buffered.len() + bytes.len()) as u64;
                return Err(memory::exceeds_limit(
                    format_args!("{}: {what}", self.name),
                    needed,
                    *limit,
                ));
            }
            buffered.extend_from_slice(bytes);
            return Ok(());
        }
        self.output.write_all(bytes).map_err(|error| Error::io("write", &self.name, error))
    }

    /// Completes the output. After an error, there is no output.
    pub fn finish(mut self) -> Result<()> {
        if let Some((buffered, _)) = self.buffered.take() {
            self.raw(&npy::header(self.element, &[buffered.len() / self.element.size()]))?;
            self.raw(&buffered)?;
        }
        self.output.commit()
    }
}
