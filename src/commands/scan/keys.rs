//! Keys that divide numbers into segments (`--by-key`).

use std::io::{BufReader, Read};

use super::flags::KeyInput;
use crate::{
    commands::flags::ArrayInput,
    for_number,
    io::{Limits, Source},
    util::error::{Error, Result},
};

/// Reads up to this many keys, and returns for each whether it differs from the previous key.
type Changes = Box<dyn FnMut(usize) -> Result<Vec<bool>>>;

/// A file of keys, reduced to the positions where the key changes.
pub struct Keys {
    changes: Changes,
    name: String,
}

impl Keys {
    /// Opens the file of keys.
    pub fn open(input: &KeyInput, strict: bool) -> Result<Self> {
        match input {
            KeyInput::Numbers(input) => Self::open_numbers(input, strict),
            KeyInput::Bytes(source, bytes) => Self::open_raw(source, *bytes),
        }
    }

    /// Opens a raw file of keys of `width` bytes each.
    fn open_raw(source: &Source, width: usize) -> Result<Self> {
        let (mut input, name) = (BufReader::new(source.open()?), source.to_string());
        let mut last: Option<Vec<u8>> = None;
        let file = name.clone();
        let changes: Changes = Box::new(move |len| {
            let mut starts = Vec::new();
            while starts.len() < len {
                let mut key = Vec::with_capacity(width);
                let read = (&mut input).take(width as u64).read_to_end(&mut key);
                match read.map_err(|error| Error::io("read", &file, error))? {
                    0 => break,
                    read if read < width => {
                        return Err(Error::bad_input(format_args!(
                            "{file}: length is not a multiple of the {width} bytes of a key"
                        )));
                    }
                    _ => {
                        starts.push(last.as_ref() != Some(&key));
                        last = Some(key);
                    }
                }
            }
            Ok(starts)
        });
        Ok(Self { changes, name })
    }

    fn open_numbers(input: &ArrayInput, strict: bool) -> Result<Self> {
        let mut reader = input.open(Limits { strict, ..Limits::from(u64::MAX) })?;
        let changes: Changes = for_number!(reader.dtype(), K => {
            let mut last: Option<K> = None;
            let mut keys = Vec::<K>::new();
            Box::new(move |len| {
                reader.read(&mut keys, len)?;
                let change = |&key: &K| last.replace(key) != Some(key);
                Ok(keys.iter().map(change).collect())
            })
        });
        Ok(Self { changes, name: input.source.to_string() })
    }

    /// Returns for each of the next `len` numbers whether it starts a segment. A `len` of 0, at the end of the numbers,
    /// checks that no key is left. There must be as many keys as numbers.
    pub fn starts(&mut self, len: usize) -> Result<Vec<bool>> {
        let wrong = |less| {
            Err(Error::bad_input(format_args!(
                "{}: there are {less} keys than numbers; expected one for each",
                self.name
            )))
        };
        let starts = (self.changes)(len.max(1))?;
        match starts.len() {
            more if more > len => wrong("more"),
            less if less < len => wrong("fewer"),
            _ => Ok(starts),
        }
    }
}
