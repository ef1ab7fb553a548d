//! What a file says of its image besides the samples.

use std::sync::Arc;

use crate::data::dtype::Dtype;

/// What a file says of its image besides the samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// The ICC profile: the colour space of the samples.
    pub icc: Option<Vec<u8>>,
    /// EXIF without orientation, beginning with its TIFF header.
    pub exif: Option<Vec<u8>>,
    /// XMP: the text of an XML packet (ISO 16684-1).
    pub xmp: Option<Vec<u8>>,
    /// IPTC's data sets (IIM 4.2), without what files put around them.
    pub iptc: Option<Vec<u8>>,
    /// How large pixels are.
    pub density: Option<Density>,
    /// TextSupport about the picture.
    pub texts: Vec<Text>,
    /// What a file of several pages says of all of them together.
    pub pages: Option<StackDescription>,
    /// What only files of one format hold.
    pub ancillary: Vec<AncillaryData>,
}

/// A text about a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// What it is: `Description`, `Author` (PNG, third edition, 11.3.3.1), or any other word.
    pub keyword: String,
    /// The text.
    pub text: String,
}

/// A text that a program wrote about all pages of a file together, such as ImageJ's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackDescription {
    /// The whole text.
    pub text: Arc<str>,
    /// How many pages it describes.
    pub pages: usize,
    /// The type of their samples.
    pub dtype: Dtype,
    /// Whether it still holds for some of the pages; otherwise only for all of them together.
    pub is_divisible: bool,
    /// What is lost without it, for a warning.
    pub loss: Option<&'static str>,
}

impl StackDescription {
    /// Whether it holds for `count` pages of samples of type `dtype`.
    pub fn fits(&self, count: usize, dtype: Dtype) -> bool {
        self.is_divisible || (count, dtype) == (self.pages, self.dtype)
    }
}

/// A piece of a file that only its format knows, with the bytes that the file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AncillaryData {
    /// The format.
    pub format: &'static str,
    /// Its name in the format.
    pub name: String,
    /// Its bytes in the file.
    pub bytes: Vec<u8>,
    /// What is lost without it, for a warning.
    pub loss: Option<&'static str>,
}

/// How many pixels there are along a unit of length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Density {
    /// Pixels across and down along one unit; more than 0.
    pub pixels: [f64; 2],
    /// The unit.
    pub unit: DensityUnit,
}

/// The length along which pixels are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DensityUnit {
    /// No length: the two numbers give only the aspect ratio of pixels.
    Aspect,
    /// An inch.
    Inch,
    /// A centimetre.
    Centimetre,
}

impl Density {
    /// A density of finite numbers above 0.
    pub fn new(pixels: [f64; 2], unit: DensityUnit) -> Option<Self> {
        pixels.iter().all(|v| v.is_finite() && *v > 0.0).then_some(Self { pixels, unit })
    }

    /// Whether pixels are as wide as high.
    pub fn is_square(&self) -> bool {
        self.pixels[0] == self.pixels[1]
    }

    /// Pixels across and down per `unit`; `None` where only one of the two units is a length.
    pub fn per(self, unit: DensityUnit) -> Option<[f64; 2]> {
        const CENTIMETRES: f64 = 2.54;
        match (self.unit, unit) {
            (DensityUnit::Inch, DensityUnit::Centimetre) => {
                Some(self.pixels.map(|pixels| pixels / CENTIMETRES))
            }
            (DensityUnit::Centimetre, DensityUnit::Inch) => {
                Some(self.pixels.map(|pixels| pixels * CENTIMETRES))
            }
            (own, unit) => (own == unit).then_some(self.pixels),
        }
    }
}
