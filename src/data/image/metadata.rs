//! Metadata of images.

use std::sync::Arc;

use crate::data::dtype::Dtype;

/// Metadata of an image: everything that its file holds besides the samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// The ICC profile: the colour space of the samples.
    pub icc: Option<Vec<u8>>,
    /// EXIF without orientation, beginning with its TIFF header.
    pub exif: Option<Vec<u8>>,
    /// XMP: the text of an XML packet (ISO 16684-1).
    pub xmp: Option<Vec<u8>>,
    /// IPTC data sets (IIM 4.2), without the container that a file puts around them.
    pub iptc: Option<Vec<u8>>,
    /// Pixels per unit of length.
    pub density: Option<Density>,
    /// Texts such as a description, author or comment.
    pub texts: Vec<Text>,
    /// Description of all pages of the file together.
    pub pages: Option<StackDescription>,
    /// Metadata that only one format can store.
    pub ancillary: Vec<AncillaryData>,
}

impl Metadata {
    /// Swaps the densities across and down if rows have become columns.
    pub fn swap_density(&mut self, is_transposed: bool) {
        if let Some(density) = self.density.as_mut().filter(|_| is_transposed) {
            density.pixels.reverse();
        }
    }
}

/// A text with its keyword.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Keyword: `Description`, `Author` (PNG, third edition, 11.3.3.1), or any other word.
    pub keyword: String,
    /// The text.
    pub text: String,
}

/// Description of all pages of a file together, as ImageJ and OME-TIFF writers store it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackDescription {
    /// The whole text.
    pub text: Arc<str>,
    /// Number of pages that the text describes.
    pub pages: usize,
    /// Sample type of the pages.
    pub dtype: Dtype,
    /// Whether the text also applies to a subset of the pages.
    pub is_divisible: bool,
    /// Warning for outputs that cannot store the text.
    pub loss: Option<&'static str>,
}

impl StackDescription {
    /// Whether the text applies to `count` pages of samples of type `dtype`.
    pub fn fits(&self, count: usize, dtype: Dtype) -> bool {
        self.is_divisible || (count, dtype) == (self.pages, self.dtype)
    }
}

/// Metadata that only one format can store, as the bytes in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AncillaryData {
    /// The format.
    pub format: &'static str,
    /// Name in that format.
    pub name: String,
    /// Its bytes in the file.
    pub bytes: Vec<u8>,
    /// Warning for outputs of other formats.
    pub loss: Option<&'static str>,
}

/// Pixel density: the number of pixels per unit of length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Density {
    /// Pixels per unit across and down; greater than 0.
    pub pixels: [f64; 2],
    /// The unit.
    pub unit: DensityUnit,
}

/// Unit of a pixel density.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DensityUnit {
    /// No length: the two numbers only give the aspect ratio of pixels.
    Aspect,
    /// An inch.
    Inch,
    /// A centimetre.
    Centimetre,
}

impl Density {
    /// A density; `None` unless both numbers are finite and greater than 0.
    pub fn new(pixels: [f64; 2], unit: DensityUnit) -> Option<Self> {
        pixels.iter().all(|v| v.is_finite() && *v > 0.0).then_some(Self { pixels, unit })
    }

    /// Whether pixels are square.
    pub fn is_square(&self) -> bool {
        self.pixels[0] == self.pixels[1]
    }

    /// Pixels across and down per `unit`; `None` if only one of the two units is a length.
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
