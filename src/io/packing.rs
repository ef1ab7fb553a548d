//! Compression of whole files: `head.nii.gz`.

use std::{ffi::OsStr, io::Read, path::Path};

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;

/// A compression of whole files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    Gzip,
    /// Read only.
    Bzip2,
}

impl Packing {
    /// The compression of a file that begins with `first`.
    pub fn from_signature(first: &[u8]) -> Option<Self> {
        match first {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            // The level, then the start of a block or the end of an empty file.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31 | 0x17, ..] => Some(Self::Bzip2),
            _ => None,
        }
    }

    /// The decompressed bytes of `input`, also of several files that follow each other.
    pub fn unpack(self, input: impl Read + Send + 'static) -> Box<dyn Read + Send> {
        match self {
            Self::Gzip => Box::new(MultiGzDecoder::new(input)),
            Self::Bzip2 => Box::new(MultiBzDecoder::new(input)),
        }
    }
}

/// The extension of a file name without `.gz` or `.bz2`, in lower case, and the compression that these state.
pub fn packed_extension(path: Option<&Path>) -> (String, Option<Packing>) {
    let lower = |name: Option<&OsStr>| {
        name.map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
    };
    let inner = || lower(path.and_then(Path::file_stem).map(Path::new).and_then(Path::extension));
    match lower(path.and_then(Path::extension)).as_str() {
        "gz" => (inner(), Some(Packing::Gzip)),
        "bz2" => (inner(), Some(Packing::Bzip2)),
        plain => (plain.to_owned(), None),
    }
}
