//! What every image format provides, and what passes between a format and its callers.

use crate::{
    data::{
        dtype::Dtype,
        image::{Image, Orientation},
    },
    io::Limits,
};

/// An image format: one constant in one file.
pub struct Codec {
    /// File name extensions, in lower case.
    pub extensions: &'static [&'static str],
    /// Whether a file of this format may begin with these bytes.
    pub has_signature: fn(&[u8]) -> bool,
    /// What its files hold.
    pub holds: Holds,
    /// Decodes the bytes of a whole file.
    pub decode: fn(&[u8], Limits) -> Result<Decoded, BoxError>,
    /// Encodes an image of samples and channels that the format holds.
    pub encode: fn(&Image, &Encoding) -> Result<Vec<u8>, BoxError>,
}

/// What the files of a format hold.
#[derive(Clone, Copy, Debug)]
pub struct Holds {
    /// Sample types, by size.
    pub dtypes: &'static [Dtype],
    /// An alpha channel.
    pub alpha: bool,
    /// Linear samples, colours premultiplied with alpha ([`Image::is_linear`]).
    pub linear: bool,
    /// ICC profile and EXIF.
    pub metadata: bool,
}

impl Holds {
    /// The sample type that samples of type `dtype` are stored as: the same, else the largest that
    /// is no larger, else the smallest.
    pub fn nearest(&self, dtype: Dtype) -> Dtype {
        let narrower = self.dtypes.iter().rev().find(|held| held.size() <= dtype.size());
        match self.dtypes.contains(&dtype) {
            true => dtype,
            false => *narrower.unwrap_or(&self.dtypes[0]),
        }
    }
}

/// A decoded file.
#[derive(Debug)]
pub struct Decoded {
    /// The image with its metadata, in the orientation that it is stored in.
    pub image: Image,
    /// How it is brought upright.
    pub orientation: Orientation,
    /// What of the file the image does not have, in words.
    pub losses: Vec<String>,
    /// What of the picture is missing because the file is cut off or damaged, in words.
    pub damage: Option<String>,
}

/// How an image is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// JPEG quality, 1 to 100. Below 95 chroma is stored at half the resolution (4:2:0).
    pub quality: u8,
    /// PNG effort, 0 (none) to 9.
    pub compression: u8,
}

impl Default for Encoding {
    fn default() -> Self {
        Self { quality: 90, compression: 1 }
    }
}

/// Any error of a decoder or encoder.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
