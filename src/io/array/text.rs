//! Numbers as text, separated by white space and commas.

use std::{
    io::{self, Read},
    str::FromStr,
};

use super::layout::{LONGEST_GAP, Layout};
use crate::{
    data::dtype::{Dtype, Scalar},
    io::Source,
    util::error::{Error, Hint, Result},
};

/// Splits a text into numbers.
#[derive(Debug)]
pub struct Tokens {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    line: u64,
    /// Whether the byte order mark has been skipped.
    began: bool,
    /// Whether no number stands before the next separator: at the start, and after a comma. Then a comma is an error.
    comma: bool,
    /// Layout of the numbers of the last [`Tokens::read`].
    pub layout: Layout,
    /// Separators since the last number: [`LONGEST_GAP`] bytes at most, and one more if they are longer.
    gap: Vec<u8>,
    /// Replacement for a gap that is not kept: a newline, a comma or a blank, whichever it contains, in this order.
    strongest: u8,
    /// Whether separators had to be simplified, so that the layout is not that of the text.
    pub is_simplified: bool,
}

/// Most bytes of a number.
const LONGEST: usize = 1 << 16;

impl Default for Tokens {
    fn default() -> Self {
        Self {
            buffer: vec![0; 2 * LONGEST],
            start: 0,
            end: 0,
            ended: false,
            line: 1,
            began: false,
            comma: true,
            layout: Layout::default(),
            gap: Vec::new(),
            strongest: b' ',
            is_simplified: false,
        }
    }
}

impl Tokens {
    /// Appends the next numbers of `input` to `values` until these hold `most` numbers, or the text ends.
    ///
    /// # Errors
    /// [`Kind::BadInput`](crate::util::error::Kind::BadInput) for a text that is no number of type `T`,
    /// [`Kind::Io`](crate::util::error::Kind::Io) when reading fails.
    pub fn read<T: Scalar + FromStr>(
        &mut self,
        input: &mut impl Read,
        source: &Source,
        values: &mut Vec<T>,
        most: usize,
    ) -> Result<()> {
        self.layout = Layout::default();
        self.skip_mark(input, source)?;
        let before = values.len();
        loop {
            self.skip_separators(input, source)?;
            match values.len() > before {
                true => self.end_gap(),
                false => {
                    self.is_simplified |= self.gap.len() > LONGEST_GAP;
                    self.layout.lead.append(&mut self.gap);
                    self.strongest = b' ';
                }
            }
            if self.start == self.end || values.len() == most {
                return Ok(());
            }
            let length = self.token(input, source)?;
            let token = &self.buffer[self.start..self.start + length];
            let number = std::str::from_utf8(token).ok().and_then(|text| text.parse().ok());
            let Some(number) = number else {
                return Err(no_number::<T>(source, self.line, token));
            };
            self.start += length;
            self.comma = false;
            values.push(number);
        }
    }

    /// Skips the byte order mark that some programs write before UTF-8.
    fn skip_mark(&mut self, input: &mut impl Read, source: &Source) -> Result<()> {
        const MARK: &[u8] = "\u{feff}".as_bytes();
        while !self.began {
            let start = &self.buffer[..self.end];
            if start.starts_with(MARK) {
                self.start = MARK.len();
                self.layout.lead.extend(MARK);
            }
            self.began = self.ended || !MARK.starts_with(start) || start == MARK;
            if !self.began {
                self.fill(input, source)?;
            }
        }
        Ok(())
    }

    /// Skips separators up to the next number or the end, and keeps them in `gap`.
    fn skip_separators(&mut self, input: &mut impl Read, source: &Source) -> Result<()> {
        loop {
            while self.start < self.end {
                let found = self.buffer[self.start];
                match found {
                    b',' if std::mem::replace(&mut self.comma, true) => {
                        return Err(Error::bad_input(format_args!(
                            "{source}: line {}: no number stands before a comma",
                            self.line
                        )));
                    }
                    b',' if self.strongest == b' ' => self.strongest = found,
                    b',' => {}
                    b'\n' => {
                        self.line += 1;
                        self.strongest = found;
                    }
                    byte if byte.is_ascii_whitespace() => {}
                    _ => return Ok(()),
                }
                if self.gap.len() <= LONGEST_GAP {
                    self.gap.push(found);
                }
                self.start += 1;
            }
            if self.ended {
                return Ok(());
            }
            self.fill(input, source)?;
        }
    }

    /// Adds `gap` to the layout, or the strongest of its separators if it is too long or one of too many.
    fn end_gap(&mut self) {
        if self.gap.len() > LONGEST_GAP || !self.layout.push(&self.gap) {
            self.is_simplified = true;
            self.layout.push(&[self.strongest]);
        }
        self.gap.clear();
        self.strongest = b' ';
    }

    /// The length in bytes of the number at `start`; the buffer then holds all of it.
    fn token(&mut self, input: &mut impl Read, source: &Source) -> Result<usize> {
        let mut length = 0;
        loop {
            let rest = &self.buffer[self.start + length..self.end];
            let end = rest.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b',');
            if let Some(end) = end {
                return Ok(length + end);
            }
            length += rest.len();
            if self.ended {
                return Ok(length);
            }
            if length > LONGEST {
                let token = &self.buffer[self.start..self.end];
                return Err(no_number::<u32>(source, self.line, token));
            }
            self.fill(input, source)?;
        }
    }

    fn fill(&mut self, input: &mut impl Read, source: &Source) -> Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let read = loop {
            match input.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let read = read.map_err(|error| Error::io("read", source.to_string(), error))?;
        self.end += read;
        self.ended = read == 0;
        Ok(())
    }
}

fn no_number<T: Scalar>(source: &Source, line: u64, token: &[u8]) -> Error {
    let text = String::from_utf8_lossy(token);
    let fitting = match (text.parse::<i64>(), text.parse::<u64>(), text.parse::<f64>()) {
        (Ok(value), ..) if i32::try_from(value).is_ok() => Some(Dtype::I32),
        (Ok(_), ..) => Some(Dtype::I64),
        (_, Ok(_), _) => Some(Dtype::U64),
        (.., Ok(_)) => Some(Dtype::F32),
        _ => None,
    };
    let mut shown: String = text.chars().take(40).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    let error =
        Error::bad_input(format_args!("{source}: line {line}: `{shown}` is no {}", T::DTYPE));
    match fitting {
        Some(dtype) => error.with_hint(Hint::NumberType(dtype.name())),
        None => error,
    }
}
