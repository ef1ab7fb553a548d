//! Text of numbers, separated by white space and commas.

use std::{io::Read, str::FromStr};

use super::layout::{LONGEST_GAP, TextLayout};
use crate::{
    data::dtype::{Dtype, Scalar},
    io::{Source, source::read_once},
    util::error::{Error, Hint, Result},
};

/// Parser that splits a text into numbers.
#[derive(Debug)]
pub struct TextParser {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    is_at_end: bool,
    line: u64,
    /// Whether the byte order mark has been skipped.
    has_begun: bool,
    /// Whether there is no number before the next separator: at the start, and after a comma. Then a comma is an error.
    needs_number: bool,
    /// Layout of the numbers of the last [`TextParser::read`].
    pub layout: TextLayout,
    /// Separators since the last number: up to [`LONGEST_GAP`] bytes, and one more if they are longer.
    gap: Vec<u8>,
    /// Replacement for a gap that is not kept: the first of newline, comma and blank that it contains.
    gap_replacement: u8,
    /// Whether separators had to be simplified, so that the layout is not that of the text.
    pub is_simplified: bool,
}

/// Maximum number of bytes of a number.
const MAX_TOKEN: usize = 1 << 16;

impl Default for TextParser {
    fn default() -> Self {
        Self {
            buffer: vec![0; 2 * MAX_TOKEN],
            start: 0,
            end: 0,
            is_at_end: false,
            line: 1,
            has_begun: false,
            needs_number: true,
            layout: TextLayout::default(),
            gap: Vec::new(),
            gap_replacement: b' ',
            is_simplified: false,
        }
    }
}

impl TextParser {
    /// Appends the next numbers of `input` to `values` until there are `max` of them, or the text ends.
    pub fn read<T: Scalar + FromStr>(
        &mut self,
        input: &mut impl Read,
        source: &Source,
        values: &mut Vec<T>,
        max: usize,
    ) -> Result<()> {
        self.layout = TextLayout::default();
        self.skip_mark(input, source)?;
        let before = values.len();
        loop {
            self.skip_separators(input, source)?;
            match values.len() > before {
                true => self.end_gap(),
                false => {
                    self.is_simplified |= self.gap.len() > LONGEST_GAP;
                    self.layout.lead.append(&mut self.gap);
                    self.gap_replacement = b' ';
                }
            }
            if self.start == self.end || values.len() == max {
                return Ok(());
            }
            let length = self.token(input, source)?;
            let token = &self.buffer[self.start..self.start + length];
            let number = std::str::from_utf8(token).ok().and_then(|text| text.parse().ok());
            let Some(number) = number else {
                return Err(invalid_number::<T>(source, self.line, token));
            };
            self.start += length;
            self.needs_number = false;
            values.push(number);
        }
    }

    /// Skips the byte order mark that some programs write before UTF-8.
    fn skip_mark(&mut self, input: &mut impl Read, source: &Source) -> Result<()> {
        const MARK: &[u8] = "\u{feff}".as_bytes();
        while !self.has_begun {
            let start = &self.buffer[..self.end];
            if start.starts_with(MARK) {
                self.start = MARK.len();
                self.layout.lead.extend(MARK);
            }
            self.has_begun = self.is_at_end || !MARK.starts_with(start) || start == MARK;
            if !self.has_begun {
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
                    b',' if std::mem::replace(&mut self.needs_number, true) => {
                        return Err(Error::bad_input(format_args!(
                            "{source}: line {}: expected a number before the comma",
                            self.line
                        )));
                    }
                    b',' if self.gap_replacement == b' ' => self.gap_replacement = found,
                    b',' => {}
                    b'\n' => {
                        self.line += 1;
                        self.gap_replacement = found;
                    }
                    byte if byte.is_ascii_whitespace() => {}
                    _ => return Ok(()),
                }
                if self.gap.len() <= LONGEST_GAP {
                    self.gap.push(found);
                }
                self.start += 1;
            }
            if self.is_at_end {
                return Ok(());
            }
            self.fill(input, source)?;
        }
    }

    /// Adds `gap` to the layout, or its replacement if it is too long or one of too many.
    fn end_gap(&mut self) {
        if self.gap.len() > LONGEST_GAP || !self.layout.push(&self.gap) {
            self.is_simplified = true;
            self.layout.push(&[self.gap_replacement]);
        }
        self.gap.clear();
        self.gap_replacement = b' ';
    }

    /// Length in bytes of the number at `start`. Reads on until the buffer holds all of it.
    fn token(&mut self, input: &mut impl Read, source: &Source) -> Result<usize> {
        let mut length = 0;
        loop {
            let rest = &self.buffer[self.start + length..self.end];
            let end = rest.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b',');
            if let Some(end) = end {
                return Ok(length + end);
            }
            length += rest.len();
            if self.is_at_end {
                return Ok(length);
            }
            if length > MAX_TOKEN {
                let token = &self.buffer[self.start..self.end];
                return Err(invalid_number::<u32>(source, self.line, token));
            }
            self.fill(input, source)?;
        }
    }

    fn fill(&mut self, input: &mut impl Read, source: &Source) -> Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let read = read_once(input, &mut self.buffer[self.end..]);
        let read = read.map_err(|error| Error::io("read", source.to_string(), error))?;
        self.end += read;
        self.is_at_end = read == 0;
        Ok(())
    }
}

fn invalid_number<T: Scalar>(source: &Source, line: u64, token: &[u8]) -> Error {
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
    let error = Error::bad_input(format_args!(
        "{source}: line {line}: `{shown}` is not a valid {}",
        T::DTYPE
    ));
    match fitting {
        Some(dtype) => error.with_hint(Hint::NumberType(dtype.name())),
        None => error,
    }
}
