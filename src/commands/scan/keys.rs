//! The keys of segments.

use super::flags::Line;
use crate::{
    data::dtype::Dtype,
    error::{Error, Result},
    for_number,
    io::array::{ArrayFormat, ArrayReader},
};

/// Reads so many keys, or fewer where they end, and returns which differ from the one before.
type Changes = Box<dyn FnMut(usize) -> Result<Vec<bool>>>;

/// A file of keys, read for the places where they change.
pub struct Keys {
    changes: Changes,
    name: String,
}

impl Keys {
    /// Opens the keys of `line`, if it has any.
    ///
    /// # Errors
    /// Those of reading.
    pub fn of(line: &Line) -> Result<Option<Self>> {
        let Some(source) = &line.keys else { return Ok(None) };
        let format = ArrayFormat::of_input(source, None)?;
        let dtype = match format {
            // 64-bit floats hold all shorter numbers.
            ArrayFormat::Text => Some(Dtype::F64),
            ArrayFormat::Raw => line.dtype,
            ArrayFormat::Npy => None,
        };
        let mut reader = ArrayReader::open(source, format, dtype, u64::MAX)?;
        let changes: Changes = for_number!(reader.number(), K => {
            let mut last: Option<K> = None;
            let mut keys = Vec::<K>::new();
            Box::new(move |len| {
                reader.read(&mut keys, len)?;
                let change = |&key: &K| last.replace(key) != Some(key);
                Ok(keys.iter().map(change).collect())
            })
        });
        Ok(Some(Self { changes, name: source.to_string() }))
    }

    /// Where segments begin among the next `len` numbers. None is the end, where no key may be left.
    ///
    /// # Errors
    /// Those of reading, and when there are more or fewer keys than numbers.
    pub fn starts(&mut self, len: usize) -> Result<Vec<bool>> {
        let wrong = |less| {
            Err(Error::bad_input(format_args!("{}: there are {less} keys than numbers", self.name)))
        };
        let starts = (self.changes)(len.max(1))?;
        match starts.len() {
            more if more > len => wrong("more"),
            less if less < len => wrong("fewer"),
            _ => Ok(starts),
        }
    }
}
