//! What every image format provides, and the types that pass between a format and its callers.

use std::{
    borrow::Cow,
    io::{self, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
};

use serde::Serialize;

use super::{
    metadata::Block,
    probe::Probe,
    rows::{ReadRows, RowsInfo, WriteRows},
};
use crate::{
    data::{
        dtype::Dtype,
        image::{Image, Metadata, Orientation},
        samples::Samples,
    },
    io::{Limits, Output, Source},
    util::{error::Result, memory},
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
    pub holds: Holds,
    /// How files are decoded.
    pub decode: Decode,
    /// Encodes an image whose samples and channels the format supports.
    pub encode: fn(&Image, &Encoding) -> Result<Vec<u8>, BoxError>,
    /// Begins a file of several pages; `None` if the format has no pages.
    pub encode_pages: Option<EncodePages>,
    /// Reads the header of a file, without decoding it; `None` if that takes no less time.
    pub probe: Option<ReadProbe>,
    /// An upper bound of the bytes of a decoded page, if it is not the number of bytes in the probe.
    pub most_bytes: Option<fn(&Path) -> Option<u64>>,
    /// How files are read and written by rows, if they can be.
    pub rows: Option<ByRows>,
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
            holds: Holds::PLAIN,
            decode,
            encode,
            encode_pages: None,
            probe: None,
            most_bytes: None,
            rows: None,
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
pub struct ByRows {
    /// Opens a file.
    pub open: OpenRows,
    /// Begins a file with the image that is given without samples, whose type the format holds.
    pub create: fn(&Image, &Encoding, Output) -> io::Result<Box<dyn WriteRows>>,
}

/// The pages of a file whose bytes live for `'a`.
type Opened<'a> = Result<Box<dyn Pages + 'a>, BoxError>;

/// How the files of a format are decoded.
#[derive(Clone, Copy, Debug)]
pub enum Decode {
    /// One picture a file, from all its bytes.
    One(fn(&[u8], Limits) -> Result<Decoded, BoxError>),
    /// Any number of pages, from all bytes of a file.
    Pages(for<'a> fn(&'a [u8], Limits) -> Opened<'a>),
    /// Any number of pages, from a file that is read at any offset and need not fit into memory.
    Seeking(for<'a> fn(Arc<dyn Bytes + 'a>, Limits) -> Opened<'a>),
}

/// Bytes that can be read at any offset, by several threads at once.
pub trait Bytes: Send + Sync {
    /// Number of bytes.
    fn len(&self) -> u64;

    /// Reads `len` bytes from offset `at` on, or fewer at the end.
    fn read(&self, at: u64, len: u64) -> Result<Cow<'_, [u8]>, BoxError>;
}

/// The pages of an opened file: pictures of a stack, or frames of an animation, each composed with the frames below it.
/// They are numbered from 0.
pub trait Pages {
    /// Number of pages, at least 1.
    fn count(&self) -> usize;

    /// Decodes page `page`. Pages are mostly requested in order, each once.
    fn decode(&mut self, page: usize) -> Result<Decoded, BoxError>;

    /// Bytes of the decoded samples of page `page`; `None` if only decoding tells. It is always known for a file of
    /// several pages.
    fn sample_bytes(&self, page: usize) -> Option<u64>;

    /// How often and how long the pages are shown; `None` if they are no animation.
    fn animation(&self) -> Option<&Animation> {
        None
    }
}

/// The only picture of a file, and the function that decodes it.
pub struct OnePage<F>(pub F);

impl<F: Fn() -> Result<Decoded, BoxError>> Pages for OnePage<F> {
    fn count(&self) -> usize {
        1
    }

    fn decode(&mut self, _: usize) -> Result<Decoded, BoxError> {
        (self.0)()
    }

    fn sample_bytes(&self, _: usize) -> Option<u64> {
        None
    }
}

/// The timing of an animation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Animation {
    /// How often all frames are shown, 0 for ever.
    pub plays: u32,
    /// How long each frame is shown.
    pub delays: Vec<Delay>,
}

/// A time: `seconds[0] / seconds[1]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Numerator and denominator, which is not 0.
    pub seconds: [u32; 2],
}

impl Delay {
    /// A tenth of a second, which viewers use if a file states no time.
    pub const DEFAULT: Self = Self { seconds: [1, 10] };

    /// The time in units of `1 / unit` seconds, rounded, and at most `most`.
    pub fn in_units(self, unit: u32, most: u32) -> u32 {
        let [numerator, denominator] = self.seconds.map(u64::from);
        let units = (numerator * u64::from(unit) + denominator / 2) / denominator.max(1);
        units.min(most.into()) as u32
    }
}

/// What is known of a file of several pages before its first page is written.
#[derive(Clone, Debug)]
pub struct Series {
    /// Number of pages to come.
    pub count: usize,
    /// Approximate bytes of all samples: enough to choose between TIFF and BigTIFF.
    pub sample_bytes: u64,
    /// How often the pages are shown, and how long each. `None` if they are no animation; an encoder of animations then
    /// uses defaults.
    pub animation: Option<Animation>,
}

impl Series {
    /// How often all pages are shown, 0 for ever; and a function from a page's number to the time that it is shown.
    pub fn timing(&self) -> (u32, impl Fn(usize) -> Delay) {
        let (plays, delays) = match &self.animation {
            Some(Animation { plays, delays }) => (*plays, delays.clone()),
            None => (0, Vec::new()),
        };
        (plays, move |page| delays.get(page).copied().unwrap_or(Delay::DEFAULT))
    }
}

/// Begins a file of several pages on an output that is written in order, without seeks.
pub type EncodePages =
    for<'a> fn(&'a mut dyn Write, Series, &Encoding) -> Result<Box<dyn PageWriter + 'a>, BoxError>;

/// Error message for pages that cannot be frames of one animation.
pub const UNEQUAL_PAGES: &str =
    "its pages differ in size or channels, and all frames of an animation are alike";

/// A file of several pages being written.
pub trait PageWriter {
    /// Writes the next page, whose samples and channels the format supports.
    fn page(&mut self, image: &Image) -> Result<(), BoxError>;

    /// Writes the end of the file, after the last page.
    fn finish(self: Box<Self>) -> Result<(), BoxError>;
}

/// What files of a format can hold.
#[derive(Clone, Copy, Debug)]
pub struct Holds {
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
    pub blocks: &'static [Block],
    /// The size of pixels (density).
    pub density: bool,
    /// Texts.
    pub texts: Texts,
    /// Metadata of all pages together, such as the distance between them.
    pub pages: bool,
    /// The name of the format whose [parts](crate::data::image::Part) it holds; empty for none.
    pub parts: &'static str,
}

/// The texts that files of a format can hold.
#[derive(Clone, Copy, Debug)]
pub enum Texts {
    /// None.
    None,
    /// Texts with these keywords; upper and lower case are the same, since ImageMagick writes small letters.
    Of(&'static [&'static str]),
    /// Texts whose keywords pass a test.
    If(fn(&str) -> bool),
}

impl Texts {
    /// A comment under any of its usual keywords.
    pub const COMMENT: Self = Self::Of(&["Comment", "Description"]);

    /// Whether texts with the keyword `keyword` are held.
    pub fn hold(self, keyword: &str) -> bool {
        match self {
            Self::None => false,
            Self::Of(keywords) => keywords.iter().any(|own| own.eq_ignore_ascii_case(keyword)),
            Self::If(is_held) => is_held(keyword),
        }
    }
}

impl MetadataSupport {
    /// All blocks and the density.
    pub const ALL: Self = Self { blocks: &Block::ALL, density: true, ..Self::NONE };
    /// Nothing.
    pub const NONE: Self =
        Self { blocks: &[], density: false, texts: Texts::None, pages: false, parts: "" };
}

impl Holds {
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
    pub fn nearest(&self, dtype: Dtype) -> Dtype {
        let narrower = self.dtypes.iter().rev().find(|held| held.size() <= dtype.size());
        match self.dtypes.contains(&dtype) {
            true => dtype,
            false => *narrower.unwrap_or(&self.dtypes[0]),
        }
    }
}

/// A decoded page of a file, or the header of one, whose image has no samples yet.
#[derive(Debug)]
pub struct Decoded {
    /// The image with its metadata, in the orientation in which it is stored.
    pub image: Image,
    /// The rotation and mirroring that bring the image upright.
    pub orientation: Orientation,
    /// What of the file the image lacks, in words.
    pub losses: Vec<String>,
    /// What is missing of the picture because the file is cut off or damaged, in words.
    pub damage: Option<String>,
}

impl Decoded {
    /// The header of a page whose samples are of type `dtype`.
    pub fn header(
        [width, height]: [usize; 2],
        channels: usize,
        dtype: Dtype,
        metadata: Metadata,
        orientation: Orientation,
        losses: Vec<String>,
    ) -> Result<Self> {
        let samples = Samples::zeros(dtype, 0)?;
        let image = Image { width, height, channels, samples, is_linear: false, metadata };
        Ok(Self { image, orientation, losses, damage: None })
    }

    /// Width and height.
    pub fn size(&self) -> [usize; 2] {
        [self.image.width, self.image.height]
    }

    /// Memory for the samples.
    pub fn zeros(&self) -> Result<Samples> {
        let Image { width, height, channels, samples, .. } = &self.image;
        Samples::zeros(samples.dtype(), width * height * channels)
    }

    /// The header for a reader of rows that holds `held_bytes` in memory. The file has `pages` pages, and lies in memory
    /// if it `is_held_whole`.
    pub fn by_rows(self, pages: usize, held_bytes: u64, is_held_whole: bool) -> RowsInfo {
        let Self { image, orientation, losses, .. } = self;
        RowsInfo {
            width: image.width,
            height: image.height,
            channels: image.channels,
            dtype: image.samples.dtype(),
            metadata: image.metadata,
            is_upright: orientation == Orientation::default(),
            pages,
            held_bytes,
            is_held_whole,
            losses,
        }
    }

    /// The page with its samples.
    pub fn with(mut self, samples: Samples) -> Self {
        self.image.samples = samples;
        self
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

/// Error message for a file on which a decoder panics.
pub const CRASHED: &str = "it is damaged, and its decoder failed on the damage";

/// Runs `decode` and turns a panic into an error: decoders panic on some broken files.
pub fn caught<T>(decode: impl FnOnce() -> Result<T, BoxError>) -> Result<T, BoxError> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|panic| {
        Err(match memory::raised(panic) {
            Ok(error) => error.into(),
            Err(_) => CRASHED.into(),
        })
    })
}

/// Any error of a decoder or encoder.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
