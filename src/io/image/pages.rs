//! Pages of image files: their decoders, encoders and timing.

use std::io::Write;

use serde::Serialize;

use super::error::BoxError;
use crate::{
    data::{
        dtype::Dtype,
        image::{Image, Metadata, Orientation},
        samples::Samples,
    },
    jpeg::SparseCoefficients,
    util::error::Result,
};

/// A decoded page of a file, or its header: an image without samples.
#[derive(Clone, Debug)]
pub struct DecodedPage {
    /// The image with its metadata, in the orientation in which it is stored.
    pub image: Image,
    /// Orientation in which the image is stored.
    pub orientation: Orientation,
    /// Warnings about content of the file that was not read.
    pub losses: Vec<String>,
    /// Warning about missing parts of the image, if the file is truncated or damaged.
    pub damage: Option<String>,
}

/// An image as samples, or as the coefficients of a JPEG file.
#[derive(Debug)]
pub struct Picture {
    /// The image. If there are coefficients, it has no samples.
    pub image: Image,
    /// The coefficients, if the image is JPEG that is not decoded or already encoded.
    pub coefficients: Option<SparseCoefficients>,
}

impl From<Image> for Picture {
    fn from(image: Image) -> Self {
        Self { image, coefficients: None }
    }
}

impl DecodedPage {
    /// Header of a page whose samples are of type `dtype`.
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

    /// Width and height of the upright image.
    pub fn upright_size(&self) -> [usize; 2] {
        self.orientation.size(self.size())
    }

    /// Zeroed memory for the samples.
    pub fn zeros(&self) -> Result<Samples> {
        let Image { width, height, channels, samples, .. } = &self.image;
        Samples::zeros(samples.dtype(), width * height * channels)
    }

    /// The page with its samples.
    pub fn with_samples(mut self, samples: Samples) -> Self {
        self.image.samples = samples;
        self
    }
}

/// Chooses one of smaller sizes of an image, the smallest first, for the size of the upright image; `None` for all of it.
pub type Shrink<'a> = &'a dyn Fn([usize; 2], &[[usize; 2]]) -> Option<usize>;

/// Pages of an opened file: slices of a stack, or frames of an animation, each composed with the frames below it. They
/// are numbered from 0.
pub trait Pages {
    /// Number of pages, at least 1.
    fn count(&self) -> usize;

    /// Decodes page `page`. Pages are usually requested in order.
    fn decode(&mut self, page: usize) -> Result<DecodedPage, BoxError>;

    /// Bytes of the decoded samples of page `page`; `None` if they are only known after decoding. Files of several
    /// pages always know them.
    fn sample_bytes(&self, page: usize) -> Option<u64>;

    /// Timing of an animation; `None` for other files.
    fn animation(&self) -> Option<&Animation> {
        None
    }

    /// Lets `choose` choose a smaller copy of the only page, which is then decoded instead.
    fn shrink(&mut self, _choose: Shrink<'_>) {}

    /// The header of a page, if it is known before the page is decoded and may differ from those of others.
    fn header(&self, _page: usize) -> Option<DecodedPage> {
        None
    }

    /// Whether the file states that its pages are slices of a volume.
    fn are_slices(&self) -> bool {
        false
    }
}

/// The only page of a file, decoded by a function.
pub struct OnePage<F>(pub F);

impl<F: Fn() -> Result<DecodedPage, BoxError>> Pages for OnePage<F> {
    fn count(&self) -> usize {
        1
    }

    fn decode(&mut self, _: usize) -> Result<DecodedPage, BoxError> {
        (self.0)()
    }

    fn sample_bytes(&self, _: usize) -> Option<u64> {
        None
    }
}

/// The timing of an animation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Animation {
    /// Number of plays; 0 means forever.
    pub plays: u32,
    /// Duration of each frame.
    pub delays: Vec<Delay>,
}

/// Duration of `seconds[0] / seconds[1]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Numerator and denominator, which is not 0.
    pub seconds: [u32; 2],
}

impl Delay {
    /// A tenth of a second, as viewers assume it if a file states no duration.
    pub const DEFAULT: Self = Self { seconds: [1, 10] };

    /// Duration in units of `1 / unit` seconds, rounded, and at most `max`.
    pub fn in_units(self, unit: u32, max: u32) -> u32 {
        let [numerator, denominator] = self.seconds.map(u64::from);
        let units = (numerator * u64::from(unit) + denominator / 2) / denominator.max(1);
        units.min(max.into()) as u32
    }
}

/// Properties of a file of several pages, known before the first page is written.
#[derive(Clone, Debug)]
pub struct Series {
    /// Number of pages.
    pub count: usize,
    /// Approximate bytes of all samples: enough to choose between TIFF and BigTIFF.
    pub sample_bytes: u64,
    /// Timing of an animation. `None` for other pages; an encoder of animations then uses defaults.
    pub animation: Option<Animation>,
}

impl Series {
    /// Number of plays, 0 for forever, and a function from the number of a page to its duration.
    pub fn timing(&self) -> (u32, impl Fn(usize) -> Delay) {
        let (plays, delays) = match &self.animation {
            Some(Animation { plays, delays }) => (*plays, delays.clone()),
            None => (0, Vec::new()),
        };
        (plays, move |page| delays.get(page).copied().unwrap_or(Delay::DEFAULT))
    }
}

/// Creates a file of several pages on an output that is written in order, without seeks.
pub type EncodePages =
    for<'a> fn(&'a mut dyn Write, Series, &Encoding) -> Result<Box<dyn PageWriter + 'a>, BoxError>;

pub const UNEQUAL_FRAMES: &str =
    "its pages differ in size or channels; frames of an animation must not";

/// A file of several pages being written.
pub trait PageWriter {
    /// Writes the next page. The format supports its samples and channels.
    fn page(&mut self, image: &Image) -> Result<(), BoxError>;

    /// Writes the end of the file, after the last page.
    fn finish(self: Box<Self>) -> Result<(), BoxError>;
}

/// Parameters of encoders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Encoding {
    /// Quality of JPEG and of lossy WebP, 1 to 100. `None` is 90 for JPEG, and lossless for WebP.
    pub quality: Option<u8>,
    /// Whether JPEG files get optimal Huffman tables, which make them smaller but take longer.
    pub optimized: bool,
    /// PNG effort, 0 (none) to 9.
    pub compression: u8,
}

impl Encoding {
    /// JPEG quality, 1 to 100. Below 95 chroma is stored at half the resolution (4:2:0).
    pub fn jpeg_quality(&self) -> u8 {
        self.quality.unwrap_or(90)
    }
}

impl Default for Encoding {
    fn default() -> Self {
        Self { quality: None, optimized: false, compression: 1 }
    }
}
