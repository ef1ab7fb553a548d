//! The interface of all kinds of stores.

use std::fmt::Debug;

use crate::io::volume::header::BoxError;

/// Names of metadata files.
pub const METADATA: [&str; 3] = ["zarr.json", ".zarray", ".zgroup"];

/// A range of bytes of a file, without those past its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteRange {
    Whole,
    First(u64),
    Last(u64),
    /// Offset and number of bytes.
    At(u64, u64),
}

impl ByteRange {
    /// Offset and number of bytes in a file of `len` bytes.
    pub fn within(self, len: u64) -> (u64, u64) {
        let (from, bytes) = match self {
            Self::Whole => (0, len),
            Self::First(bytes) => (0, bytes),
            Self::Last(bytes) => (len.saturating_sub(bytes), bytes),
            Self::At(from, bytes) => (from.min(len), bytes),
        };
        (from, bytes.min(len - from))
    }
}

/// A kind of store: files by name.
pub trait FileStore: Debug + Send + Sync {
    /// Reads a part of a file, of at most `max` bytes; `None` if the file is missing. The memory of `spare` may be used for
    /// the result.
    fn get(
        &self,
        name: &str,
        part: ByteRange,
        max: u64,
        spare: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, BoxError>;

    /// Names of folders with metadata in the folder `name`; none if the store cannot list folders.
    fn stores_in(&self, name: &str) -> Vec<String>;

    /// Whether there is a file `name`.
    fn has(&self, _name: &str) -> bool {
        false
    }

    /// Calls `visit` with the name, within the folder `name`, of each file and folder in it and in `depth` levels of
    /// folders below it, until `visit` returns false. Returns whether all have been visited; false also if the store
    /// cannot list them.
    fn list(&self, _name: &str, _depth: usize, _visit: &mut dyn FnMut(&str) -> bool) -> bool {
        false
    }

    /// Whether the store is remote, so that many concurrent requests are faster.
    fn is_remote(&self) -> bool {
        false
    }
}

pub fn too_long(len: u64, max: u64) -> BoxError {
    format!("file is too long: {len} bytes; expected at most {max}").into()
}
