//! The user's flags about the input volume.

use std::{fmt, str::FromStr};

use serde::Serialize;

use super::header::{Endian, StoredType};
use crate::data::volume::Dims;

/// The user's flags about the input volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Layout {
    /// Samples along x, y and z of a raw volume.
    pub dims: Option<Dims>,
    /// Type of the stored samples of a raw volume.
    pub dtype: Option<StoredType>,
    /// Byte order of a raw volume's samples; little-endian by default.
    pub endian: Option<Endian>,
    /// Bytes before the first sample of a raw volume.
    pub header_bytes: u64,
    /// Index of the volume in a file with several.
    pub volume: Option<usize>,
    /// Whether the pages of an image file are the slices of a volume.
    pub stack: bool,
    /// Whether the pages of an image file are images, even if the file states that they are slices.
    pub pages: bool,
    /// The series in a folder of DICOM files.
    pub series: Option<SeriesId>,
    /// Index of the channel of a Zarr image.
    pub channel: Option<usize>,
    /// Index of the time of a Zarr image.
    pub time: Option<usize>,
    /// Level of resolution of a Zarr image; 0 is the finest.
    pub level: Option<usize>,
}

impl Layout {
    /// Whether the flags say that the input is a volume.
    pub fn describes_volume(&self) -> bool {
        self.is_raw() || self.dtype.is_some() || self.volume.is_some() || self.stack
    }

    /// Whether the flags say that the input is a raw volume.
    pub fn is_raw(&self) -> bool {
        self.dims.is_some() || self.header_bytes > 0
    }
}

/// The user's choice of a series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum SeriesId {
    /// Series Number (0020,0011), which viewers show.
    Number(i64),
    /// Series Instance UID (0020,000E), or the beginning of one.
    Uid(String),
}

impl FromStr for SeriesId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_uid = text.contains('.') && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        match text.parse() {
            Ok(number) => Ok(Self::Number(number)),
            Err(_) if is_uid => Ok(Self::Uid(text.to_owned())),
            Err(_) => Err("expected a series number, or a UID such as 1.2.840.1".into()),
        }
    }
}

impl fmt::Display for SeriesId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Uid(uid) => uid.fmt(f),
        }
    }
}
