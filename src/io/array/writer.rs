//! Writes arrays a part at a time, in any format.

use std::io::Write;

use super::{ArrayFormat, Layout, npy};
use crate::{
    data::{dtype::Dtype, number::Number},
    io::{Sink, sink::Output},
    util::error::{Error, Hint, Result},
};

/// Most characters of a float that is written without an exponent: 2^64 has 20 digits.
const LONGEST: usize = 21;

/// An array being written. Unless finished, no trace of it remains.
#[derive(Debug)]
pub struct ArrayWriter {
    name: String,
    output: Output,
    format: ArrayFormat,
    /// A `.npy` file of unknown length, kept until its header can be written: type, bytes so far, most bytes.
    kept: Option<(Dtype, Vec<u8>, u64)>,
    text: Vec<u8>,
    /// The separator within rows of a text.
    within: u8,
}

impl ArrayWriter {
    /// Opens `sink` for numbers of type `dtype`. A `.npy` file without a `shape` is kept in memory until its length is
    /// known, `limit` bytes at most.
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
            text: Vec::new(),
            within: if sink.extension() == "csv" { b',' } else { b' ' },
        };
        match (format, shape) {
            (ArrayFormat::Npy, Some(shape)) => writer.raw(&npy::header(dtype, shape))?,
            (ArrayFormat::Npy, None) => writer.kept = Some((dtype, Vec::new(), limit)),
            _ => {}
        }
        Ok(writer)
    }

    /// Writes the next numbers. In a text, they are laid out as those of `layout`, which are as many; without one, each
    /// is a line.
    ///
    /// # Errors
    /// [`Kind::Io`](crate::util::error::Kind::Io) when writing fails, [`Kind::BadInput`](crate::util::error::Kind::BadInput) when
    /// more than `limit` bytes must be kept.
    pub fn write<T: Number>(&mut self, values: &[T], layout: Option<&Layout>) -> Result<()> {
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
        match cfg!(target_endian = "little") {
            true => self.raw(bytemuck::cast_slice(values)),
            false => {
                let mut bytes = bytemuck::cast_slice::<T, u8>(values).to_vec();
                bytes.chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
                self.raw(&bytes)
            }
        }
    }

    /// Writes numbers as text, each followed by the bytes `after` it.
    fn text<'a, T: Number>(
        &mut self,
        values: &[T],
        after: impl Fn(usize) -> &'a [u8],
    ) -> Result<()> {
        for (i, value) in values.iter().enumerate() {
            let start = self.text.len();
            write!(self.text, "{value}").expect("text grows");
            // A float far from 1 is shorter with an exponent.
            if T::DTYPE.is_float() && self.text.len() - start > LONGEST {
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
    ///
    /// # Errors
    /// As [`ArrayWriter::write`].
    pub fn write_rows<T: Number>(&mut self, values: &[T], rows: usize) -> Result<()> {
        // With no rows, the length of a row is unknown.
        let length = values.len() / rows.max(1);
        if self.format != ArrayFormat::Text || length <= 1 {
            return self.write(values, None);
        }
        let within = [self.within];
        self.text(values, |i| if (i + 1) % length == 0 { b"\n" } else { &within })
    }

    fn flush_text(&mut self) -> Result<()> {
        let text = std::mem::take(&mut self.text);
        self.raw(&text)?;
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
    /// [`Kind::Io`](crate::util::error::Kind::Io) when the last bytes or the rename fail; then there is no output.
    pub fn finish(mut self) -> Result<()> {
        if let Some((dtype, kept, _)) = self.kept.take() {
            self.raw(&npy::header(dtype, &[kept.len() / dtype.size()]))?;
            self.raw(&kept)?;
        }
        self.output.commit()
    }
}
