//! What every image format provides, and the types that pass between a format and its callers.

use std::{borrow::Cow, io, path::Path, sync::Arc};

use serde::Serialize;

use super::{
    error::BoxError,
    metadata::MetadataBlock,
    pages::{DecodedPage, EncodePages, Pages},
    probe::Probe,
    rows::{ReadRows, WriteRows},
};
use crate::{
    data::{dtype::Dtype, image::Image},
    io::{Limits, Output, Source},
    util::error::Result,
};

/// An image format: one constant in one file.
pub struct Codec {
    /// The name of the format.
    pub name: &'static str,
    /// File name extensions in lower case, the usual one first.
    pub extensions: &'static [&'static str],
    /// Whether a file of this format may begin with these bytes.
    pub has_signature: fn(&[u8]) -> bool,
    /// What files of this format can hold.
    pub capabilities: Capabilities,
    /// How files are decoded.
    pub decode: Decode,
    /// Encodes an image whose samples and channels the format supports.
    pub encode: fn(&Image, &Encoding) -> Result<Vec<u8>, BoxError>,
    /// Begins a file of several pages; `None` if the format has no pages.
    pub encode_pages: Option<EncodePages>,
    /// Reads the header of a file, without decoding it; `None` if that takes no less time.
    pub probe: Option<ReadProbe>,
    /// An upper bound of the bytes of a decoded page, if it is not the number of bytes in the probe.
    pub max_decoded_bytes: Option<fn(&Path) -> Option<u64>>,
    /// How files are read and written by rows, if they can be.
    pub rows: Option<RowCodec>,
    /// Whether the pages of a file may be the slices of a volume, in the order and with the spacing that the file
    /// states.
    pub has_stacks: bool,
}

impl Codec {
    /// A format of single pages of 8 bits, with alpha and without metadata.
    pub const fn new(
        name: &'static str,
        extensions: &'static [&'static str],
        has_signature: fn(&[u8]) -> bool,
        decode: Decode,
        encode: fn(&Image, &Encoding) -> Result<Vec<u8>, BoxError>,
    ) -> Self {
        Self {
            name,
            extensions,
            has_signature,
            capabilities: Capabilities::PLAIN,
            decode,
            encode,
            encode_pages: None,
            probe: None,
            max_decoded_bytes: None,
            rows: None,
            has_stacks: false,
        }
    }
}

/// Reads the header of a file. The bytes of the file are given if they are in memory: then metadata behind the pixels
/// are read, too.
pub type ReadProbe = fn(&Path, Option<&[u8]>) -> Result<Probe, BoxError>;

/// Opens a file by rows; `None` if it is of another format, cannot be read by rows, or has a broken header.
pub type OpenRows = fn(&Source, Limits) -> Result<Option<Box<dyn ReadRows>>>;

/// Reading and writing of pictures by rows.
#[derive(Clone, Copy, Debug)]
pub struct RowCodec {
    /// Opens a file.
    pub open: OpenRows,
    /// Begins a file with the image that is given without samples, whose type the format holds.
    pub create: fn(&Image, &Encoding, Output) -> io::Result<Box<dyn WriteRows>>,
}

/// The pages of a file whose bytes live for `'a`.
type OpenedPages<'a> = Result<Box<dyn Pages + 'a>, BoxError>;

/// How the files of a format are decoded.
#[derive(Clone, Copy, Debug)]
pub enum Decode {
    /// One picture a file, from all its bytes.
    One(fn(&[u8], Limits) -> Result<DecodedPage, BoxError>),
    /// Any number of pages, from all bytes of a file.
    Pages(for<'a> fn(&'a [u8], Limits) -> OpenedPages<'a>),
    /// Any number of pages, from a file that is read at any offset and need not fit into memory.
    Seeking(for<'a> fn(Arc<dyn ReadAt + 'a>, Limits) -> OpenedPages<'a>),
}

/// Bytes that can be read at any offset, by several threads at once.
pub trait ReadAt: Send + Sync {
    /// Number of bytes.
    fn len(&self) -> u64;

    /// Reads `len` bytes from offset `at` on, or fewer at the end.
    fn read(&self, at: u64, len: u64) -> Result<Cow<'_, [u8]>, BoxError>;
}

/// What files of a format can hold.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
    /// Sample types, sorted by size.
    pub dtypes: &'static [Dtype],
    /// An alpha channel.
    pub alpha: bool,
    /// Samples are linear, and colours premultiplied with alpha ([`Image::is_linear`]).
    pub linear: bool,
    /// Any colours; otherwise a palette of 256 colours for each page, with pixels either opaque or transparent.
    pub true_colour: bool,
    /// How long each of several pages is shown.
    pub animation: bool,
    /// What the format holds of [`Metadata`](crate::data::image::Metadata).
    pub metadata: MetadataSupport,
}

/// What files of a format can hold beside samples.
#[derive(Clone, Copy, Debug)]
pub struct MetadataSupport {
    /// Blocks of bytes.
    pub blocks: &'static [MetadataBlock],
    /// The size of pixels (density).
    pub density: bool,
    /// TextSupport.
    pub texts: TextSupport,
    /// Metadata of all pages together, such as the distance between them.
    pub pages: bool,
    /// The name of the format whose [parts](crate::data::image::AncillaryData) it holds; empty for none.
    pub ancillary: &'static str,
}

/// The texts that files of a format can hold.
#[derive(Clone, Copy, Debug)]
pub enum TextSupport {
    /// None.
    None,
    /// TextSupport with these keywords; upper and lower case are the same, since ImageMagick writes small letters.
    Keywords(&'static [&'static str]),
    /// TextSupport whose keywords pass a test.
    Matching(fn(&str) -> bool),
}

impl TextSupport {
    /// A comment under any of its usual keywords.
    pub const COMMENT: Self = Self::Keywords(&["Comment", "Description"]);

    /// Whether texts with the keyword `keyword` are held.
    pub fn supports(self, keyword: &str) -> bool {
        match self {
            Self::None => false,
            Self::Keywords(keywords) => {
                keywords.iter().any(|own| own.eq_ignore_ascii_case(keyword))
            }
            Self::Matching(accepts) => accepts(keyword),
        }
    }
}

impl MetadataSupport {
    /// All blocks and the density.
    pub const ALL: Self = Self { blocks: &MetadataBlock::ALL, density: true, ..Self::NONE };
    /// Nothing.
    pub const NONE: Self =
        Self { blocks: &[], density: false, texts: TextSupport::None, pages: false, ancillary: "" };
}

impl Capabilities {
    /// Pictures of 8 bits with alpha, without metadata.
    pub const PLAIN: Self = Self {
        dtypes: &[Dtype::U8],
        alpha: true,
        linear: false,
        true_colour: true,
        animation: false,
        metadata: MetadataSupport::NONE,
    };

    /// The sample type in which samples of type `dtype` are stored: the same if it is supported, else the largest
    /// supported type that is no larger, else the smallest.
    pub fn nearest_dtype(&self, dtype: Dtype) -> Dtype {
        let narrower = self.dtypes.iter().rev().find(|held| held.size() <= dtype.size());
        match self.dtypes.contains(&dtype) {
            true => dtype,
            false => *narrower.unwrap_or(&self.dtypes[0]),
        }
    }
}

/// Parameters of encoders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Encoding {
    /// JPEG quality, 1 to 100. Below 95 chroma is stored at half the resolution (4:2:0).
    pub quality: u8,
    /// Whether JPEG files get optimal Huffman tables of their own, which makes them smaller but takes longer.
    pub optimized: bool,
    /// PNG effort, 0 (none) to 9.
    pub compression: u8,
}

impl Default for Encoding {
    fn default() -> Self {
        Self { quality: 90, optimized: false, compression: 1 }
    }
}
