//! What the header of an image file tells.

use super::metadata::{MetadataBlock, display_name};
use crate::data::{
    dtype::Dtype,
    image::{Density, DensityUnit, Metadata, Text},
};

/// What the header of an image file tells.
#[derive(Debug)]
pub struct Probe {
    /// The name of the format.
    pub format: &'static str,
    /// Width and height as stored.
    pub size: [usize; 2],
    /// The type of a sample as stored.
    pub dtype: String,
    /// The type of a sample of the decoded picture: fewer bits than 8 or 16 are widened, and OpenEXR becomes f32.
    pub decoded: Dtype,
    /// The names of the channels, or how many there are.
    pub channels: String,
    /// Whether the picture has colours.
    pub has_colour: bool,
    /// Whether the picture has an alpha channel.
    pub has_alpha: bool,
    /// Number of pages, if the format may hold several.
    pub pages: Option<usize>,
    /// Further contents of the file: name, and size or value.
    pub metadata: Vec<(String, String)>,
    /// Bytes of the decoded samples of a page.
    pub bytes: u64,
    /// Whether EXIF says that rows are columns.
    pub is_turned: bool,
}

impl Probe {
    /// A picture of 1 to 4 channels of type `dtype`, without metadata.
    pub fn new(format: &'static str, size: [usize; 2], channels: usize, dtype: Dtype) -> Self {
        const CHANNELS: [&str; 4] =
            ["grey", "grey, alpha", "red, green, blue", "red, green, blue, alpha"];
        let samples = size.iter().fold(channels as u64, |n, &side| n.saturating_mul(side as u64));
        Self {
            format,
            size,
            dtype: dtype.to_string(),
            decoded: dtype,
            channels: CHANNELS[channels - 1].to_owned(),
            has_colour: channels > 2,
            has_alpha: matches!(channels, 2 | 4),
            pages: None,
            metadata: Vec::new(),
            bytes: samples.saturating_mul(dtype.size() as u64),
            is_turned: false,
        }
    }

    /// The size of the decoded picture.
    pub fn decoded_size(&self) -> [usize; 2] {
        let [width, height] = self.size;
        if self.is_turned { [height, width] } else { [width, height] }
    }

    /// Adds a block of metadata and its size, if it is there and not known already.
    pub fn add_block(&mut self, kind: MetadataBlock, block: Option<&[u8]>) {
        let name = kind.name().trim_start_matches("a ");
        if let Some(block) = block
            && self.metadata.iter().all(|(known, _)| known != name)
        {
            self.metadata.push((name.to_owned(), format!("{} bytes", block.len())));
        }
    }

    /// Adds texts, the density, and parts that only this format holds.
    pub fn add_metadata(&mut self, metadata: &Metadata) {
        /// Number of characters of a text that are shown.
        const SHOWN: usize = 200;
        if let Some(density) = metadata.density {
            self.metadata.push(("pixels".into(), in_words(density)));
        }
        for Text { keyword, text } in &metadata.texts {
            let mut start: String = text.chars().take(SHOWN).collect();
            if start.len() < text.len() {
                start += &format!("... ({} bytes)", text.len());
            }
            self.metadata.push((display_name(keyword), start));
        }
        let held = metadata.ancillary.iter().filter(|part| !part.bytes.is_empty());
        let parts = held.map(|part| (display_name(&part.name), part.bytes.len()));
        self.metadata.extend(parts.map(|(name, len)| (name, format!("{len} bytes"))));
    }
}

/// A density in words.
pub fn in_words(density: Density) -> String {
    let [across, down] = density.pixels.map(|pixels| (pixels * 1e4).round() / 1e4);
    match density.unit {
        DensityUnit::Inch => format!("{across} x {down} per inch"),
        DensityUnit::Centimetre => format!("{across} x {down} per cm"),
        DensityUnit::Aspect => format!("{across} across are as long as {down} down"),
    }
}
