//! Pages of image files: their decoders, encoders and timing.

use std::io::Write;

use super::{codec::Encoding, error::BoxError};
use crate::{
    data::{
        dtype::Dtype,
        image::{Image, Metadata, Orientation},
        samples::Samples,
    },
    util::error::Result,
};

/// A decoded page of a file, or the header of one, whose image has no samples yet.
#[derive(Clone, Debug)]
pub struct DecodedPage {
    /// The image with its metadata, in the orientation in which it is stored.
    pub image: Image,
    /// The rotation and mirroring that bring the image upright.
    pub orientation: Orientation,
    /// What of the file the image lacks, in words.
    pub losses: Vec<String>,
    /// What is missing of the picture because the file is cut off or damaged, in words.
    pub damage: Option<String>,
}

impl DecodedPage {
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

    /// The page with its samples.
    pub fn with_samples(mut self, samples: Samples) -> Self {
        self.image.samples = samples;
        self
    }
}

/// The pages of an opened file: pictures of a stack, or frames of an animation, each composed with the frames below it.
/// They are numbered from 0.
pub trait Pages {
    /// Number of pages, at least 1.
    fn count(&self) -> usize;

    /// Decodes page `page`. Pages are mostly requested in order, each once.
    fn decode(&mut self, page: usize) -> Result<DecodedPage, BoxError>;

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
    pub fn in_units(self, unit: u32, max: u32) -> u32 {
        let [numerator, denominator] = self.seconds.map(u64::from);
        let units = (numerator * u64::from(unit) + denominator / 2) / denominator.max(1);
        units.min(max.into()) as u32
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
pub const UNEQUAL_FRAMES: &str =
    "its pages differ in size or channels, and all frames of an animation are alike";

/// A file of several pages being written.
pub trait PageWriter {
    /// Writes the next page, whose samples and channels the format supports.
    fn page(&mut self, image: &Image) -> Result<(), BoxError>;

    /// Writes the end of the file, after the last page.
    fn finish(self: Box<Self>) -> Result<(), BoxError>;
}
