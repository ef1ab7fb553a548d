//! Interface of an image format: its capabilities, decoder and encoder.

use std::{borrow::Cow, io, sync::Arc};

use super::{
    error::BoxError,
    metadata::MetadataBlock,
    pages::{DecodedPage, EncodePages, Encoding, Pages},
    probe::Probe,
    rows::{ReadRows, WriteRows},
};
use crate::{
    data::{dtype::Dtype, image::Image},
    io::{Limits, Output, RegularFile, Source},
    util::error::Result,
};

/// An image format.
pub struct Codec {
    pub name: &'static str,
    /// File name extensions in lower case, the usual one first.
    pub extensions: &'static [&'static str],
    /// Whether these first bytes of a file have the signature of the format.
    pub has_signature: fn(&[u8]) -> bool,
    /// Samples and metadata that the format can store.
    pub capabilities: Capabilities,
    pub decode: Decode,
    /// Whether the format can be written.
    pub can_write: bool,
    /// Encodes an image whose samples and channels the format supports.
    pub encode: fn(&Image, &Encoding) -> Result<Vec<u8>, BoxError>,
    /// Creates a file of several pages; `None` if the format has only one page.
    pub encode_pages: Option<EncodePages>,
    /// Reads the header of a file without decoding; `None` if that is not faster.
    pub probe: Option<ReadProbe>,
    /// Upper bound of the bytes of a decoded page, if the probe does not state it.
    pub max_decoded_bytes: Option<fn(&RegularFile) -> Option<u64>>,
    /// Reading and writing by rows, if the format supports it.
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
            can_write: true,
            encode,
            encode_pages: None,
            probe: None,
            max_decoded_bytes: None,
            rows: None,
            has_stacks: false,
        }
    }
}

/// Reads the header of a file. If the bytes of the file are in memory, they are passed, and metadata after the pixels
/// are read, too.
pub type ReadProbe = fn(&RegularFile, Option<&[u8]>) -> Result<Probe, BoxError>;

/// Opens a file of the format by rows; `None` for files that cannot be read by rows, and broken headers.
pub type OpenRows = fn(&Source, &RegularFile, Limits) -> Result<Option<Box<dyn ReadRows>>>;

#[derive(Clone, Copy, Debug)]
pub struct RowCodec {
    pub open: OpenRows,
    /// Creates a file for an image that is given without samples, and whose type the format can store.
    pub create: fn(&Image, &Encoding, Output) -> io::Result<Box<dyn WriteRows>>,
}

type OpenedPages<'a> = Result<Box<dyn Pages + 'a>, BoxError>;

/// Decoder of a format.
#[derive(Clone, Copy, Debug)]
pub enum Decode {
    /// One image per file, from all bytes.
    One(fn(&[u8], Limits) -> Result<DecodedPage, BoxError>),
    /// Any number of pages, from all bytes.
    Pages(for<'a> fn(&'a [u8], Limits) -> OpenedPages<'a>),
    /// Any number of pages, from a file that is read at offsets and may be larger than the memory.
    Seeking(for<'a> fn(Arc<dyn ReadAt + 'a>, Limits) -> OpenedPages<'a>),
}

/// Bytes that can be read at any offset, by several threads at once.
pub trait ReadAt: Send + Sync {
    fn len(&self) -> u64;

    /// Reads `len` bytes from offset `at`, or fewer at the end.
    fn read(&self, at: u64, len: u64) -> Result<Cow<'_, [u8]>, BoxError>;
}

/// Samples and metadata that a format can store.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
    /// Sample types, sorted by size.
    pub dtypes: &'static [Dtype],
    pub has_alpha: bool,
    /// Whether grey images are stored as such, not as RGB.
    pub has_grey: bool,
    /// Whether samples are linear light with premultiplied alpha ([`Image::is_linear`]).
    pub is_linear: bool,
    /// Whether pages are not limited to a palette of 256 colours, and to pixels that are either opaque or transparent.
    pub has_true_color: bool,
    /// Whether pages have a duration.
    pub has_durations: bool,
    pub metadata: MetadataSupport,
}

/// Metadata that a format can store.
#[derive(Clone, Copy, Debug)]
pub struct MetadataSupport {
    /// Blocks of bytes.
    pub blocks: &'static [MetadataBlock],
    pub has_density: bool,
    pub texts: TextSupport,
    /// Whether EXIF is stored as tags of the page, not as a block.
    pub has_exif_tags: bool,
    /// Descriptions of all pages together, such as their spacing.
    pub has_stack_text: bool,
    /// Name of the format whose [`AncillaryData`](crate::data::image::AncillaryData) it can store, or empty.
    pub ancillary: &'static str,
}

/// Texts that a format can store.
#[derive(Clone, Copy, Debug)]
pub enum TextSupport {
    None,
    /// Texts with these keywords in upper or lower case: ImageMagick writes lower case.
    Keywords(&'static [&'static str]),
    /// Texts whose keywords pass a test.
    Matching(fn(&str) -> bool),
}

impl TextSupport {
    /// A comment under any of its usual keywords.
    pub const COMMENT: Self = Self::Keywords(&["Comment", "Description"]);

    /// Whether texts with this keyword can be stored.
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
    pub const ALL: Self = Self { blocks: &MetadataBlock::ALL, has_density: true, ..Self::NONE };
    pub const NONE: Self = Self {
        blocks: &[],
        has_density: false,
        texts: TextSupport::None,
        has_exif_tags: false,
        has_stack_text: false,
        ancillary: "",
    };
}

impl Capabilities {
    /// Images of 8 bits with alpha, without metadata.
    pub const PLAIN: Self = Self {
        dtypes: &[Dtype::U8],
        has_alpha: true,
        has_grey: true,
        is_linear: false,
        has_true_color: true,
        has_durations: false,
        metadata: MetadataSupport::NONE,
    };

    /// Channels that are stored of an image with `channels` channels.
    pub fn stored_channels(&self, channels: usize) -> usize {
        let channels = if self.has_grey { channels } else { channels.max(3) };
        if self.has_alpha { channels } else { channels.div_ceil(2) * 2 - 1 }
    }

    /// Type in which samples of type `dtype` are stored: the same if it is supported, else the largest supported type
    /// that is not larger, else the smallest.
    pub fn nearest_dtype(&self, dtype: Dtype) -> Dtype {
        let narrower = self.dtypes.iter().rev().find(|held| held.size() <= dtype.size());
        if self.dtypes.contains(&dtype) { dtype } else { *narrower.unwrap_or(&self.dtypes[0]) }
    }
}
