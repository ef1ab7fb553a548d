//! What every image format provides, and what passes between a format and its callers.

use std::io::{Read, Seek, Write};

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
    /// Decodes files.
    pub decode: Decode,
    /// Encodes an image of samples and channels that the format holds.
    pub encode: fn(&Image, &Encoding) -> Result<Vec<u8>, BoxError>,
    /// Begins a file of several pages, where the format has them.
    pub encode_pages: Option<EncodePages>,
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
    /// Any number of pages, from a file that is read here and there and need not fit into memory.
    Seeking(for<'a> fn(Box<dyn ReadSeek + 'a>, Limits) -> Opened<'a>),
}

/// A file that can be read anywhere.
pub trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// The pages of an opened file: pictures of a stack, or frames of an animation as they are seen, each with those below
/// it. They are numbered from 0.
pub trait Pages {
    /// How many there are: 1 or more.
    fn count(&self) -> usize;

    /// Decodes page `page`. Pages are mostly asked for in their order, each once.
    ///
    /// # Errors
    /// When the file is broken, or the page exceeds the limits.
    fn decode(&mut self, page: usize) -> Result<Decoded, BoxError>;

    /// Bytes of the samples of page `page` once decoded; nothing where that is known only then. A file of several
    /// pages knows.
    fn sample_bytes(&self, page: usize) -> Option<u64>;

    /// How the pages are shown in time; nothing where they are no animation.
    fn animation(&self) -> Option<&Animation> {
        None
    }
}

/// The picture of a file that holds one.
#[derive(Debug)]
pub struct OnePage<'a> {
    /// The file.
    pub bytes: &'a [u8],
    /// What it may take.
    pub limits: Limits,
    /// Decodes it.
    pub decode: fn(&[u8], Limits) -> Result<Decoded, BoxError>,
}

impl Pages for OnePage<'_> {
    fn count(&self) -> usize {
        1
    }

    fn decode(&mut self, _: usize) -> Result<Decoded, BoxError> {
        (self.decode)(self.bytes, self.limits)
    }

    fn sample_bytes(&self, _: usize) -> Option<u64> {
        None
    }
}

/// How the frames of an animation are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Animation {
    /// How often all frames are shown; 0 for ever.
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
    /// A tenth of a second, which viewers take where nothing else is said.
    pub const DEFAULT: Self = Self { seconds: [1, 10] };

    /// In units of `1 / unit` seconds, rounded, at most `most`.
    pub fn in_units(self, unit: u32, most: u32) -> u32 {
        let [numerator, denominator] = self.seconds.map(u64::from);
        let units = (numerator * u64::from(unit) + denominator / 2) / denominator.max(1);
        units.min(most.into()) as u32
    }
}

/// What is known of a file of several pages before the first is written.
#[derive(Clone, Debug)]
pub struct Series {
    /// How many pages will come.
    pub count: usize,
    /// Bytes of all their samples, about: enough to choose between TIFF and BigTIFF.
    pub sample_bytes: u64,
    /// How they are shown in time, with a delay a page. Where an animation is written of pages that are none, it is
    /// the encoder's choice.
    pub animation: Option<Animation>,
}

impl Series {
    /// How often all pages are shown, 0 for ever; and how long each is.
    pub fn timing(&self) -> (u32, impl Fn(usize) -> Delay) {
        let (plays, delays) = match &self.animation {
            Some(Animation { plays, delays }) => (*plays, delays.clone()),
            None => (0, Vec::new()),
        };
        (plays, move |page| delays.get(page).copied().unwrap_or(Delay::DEFAULT))
    }
}

/// Begins a file of several pages on an output that is written from its first byte to its last.
pub type EncodePages =
    for<'a> fn(&'a mut dyn Write, Series, &Encoding) -> Result<Box<dyn PageWriter + 'a>, BoxError>;

/// What an encoder says to pages that it cannot put into one file.
pub const UNEQUAL_PAGES: &str =
    "its pages differ in size or channels, and all frames of an animation are alike";

/// A file of several pages being written.
pub trait PageWriter {
    /// Writes the next page, of samples and channels that the format holds.
    ///
    /// # Errors
    /// Those of writing, and when the page does not go with those before it.
    fn page(&mut self, image: &Image) -> Result<(), BoxError>;

    /// Writes the end, once all pages are there.
    ///
    /// # Errors
    /// Those of writing.
    fn finish(self: Box<Self>) -> Result<(), BoxError>;
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
    /// Any colours; otherwise 256 a page, and pixels are opaque or not there.
    pub true_colour: bool,
    /// How long each of several pages is shown.
    pub animation: bool,
    /// What else of [`Metadata`](crate::data::image::Metadata).
    pub metadata: Beside,
}

/// What files of a format hold beside samples.
#[derive(Clone, Copy, Debug)]
pub struct Beside {
    /// ICC profiles.
    pub icc: bool,
    /// EXIF.
    pub exif: bool,
    /// XMP.
    pub xmp: bool,
    /// IPTC's data sets.
    pub iptc: bool,
    /// How large pixels are.
    pub density: bool,
    /// Texts.
    pub texts: Texts,
    /// What is said of all pages together.
    pub pages: bool,
    /// The format whose [parts](crate::data::image::Part) they are.
    pub parts: &'static str,
}

/// Which texts the files of a format hold.
#[derive(Clone, Copy, Debug)]
pub enum Texts {
    /// None.
    None,
    /// Those of these keywords, in capitals or not: ImageMagick writes small letters.
    Of(&'static [&'static str]),
    /// All.
    Any,
}

impl Texts {
    /// A comment, whatever it is called.
    pub const COMMENT: Self = Self::Of(&["Comment", "Description"]);

    /// Whether those of `keyword` are held.
    pub fn hold(self, keyword: &str) -> bool {
        match self {
            Self::None => false,
            Self::Of(keywords) => keywords.iter().any(|own| own.eq_ignore_ascii_case(keyword)),
            Self::Any => true,
        }
    }
}

impl Beside {
    /// Profiles, metadata and the density.
    pub const ALL: Self =
        Self { icc: true, exif: true, xmp: true, iptc: true, density: true, ..Self::NONE };
    /// Nothing.
    pub const NONE: Self = Self {
        icc: false,
        exif: false,
        xmp: false,
        iptc: false,
        density: false,
        texts: Texts::None,
        pages: false,
        parts: "",
    };
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
    /// Whether JPEG files get Huffman tables of their own, which make them smaller and take longer.
    pub optimized: bool,
    /// PNG effort, 0 (none) to 9.
    pub compression: u8,
}

impl Default for Encoding {
    fn default() -> Self {
        Self { quality: 90, optimized: false, compression: 1 }
    }
}

/// Any error of a decoder or encoder.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
