//! Properties of an image file, read from its header.

use super::metadata::{MetadataBlock, display_name};
use crate::data::{
    dtype::Dtype,
    image::{Density, DensityUnit, Metadata, Text},
};

/// Properties of an image file, read from its header.
#[derive(Debug)]
pub struct Probe {
    /// The name of the format.
    pub format: &'static str,
    /// Stored width and height.
    pub size: [usize; 2],
    /// Stored sample type.
    pub dtype: String,
    /// Sample type of the decoded image: fewer bits than 8 or 16 are widened, and OpenEXR becomes f32.
    pub decoded: Dtype,
    /// Names of the channels, or their number.
    pub channels: String,
    /// Whether the image has colours.
    pub has_colour: bool,
    /// Whether the image has an alpha channel.
    pub has_alpha: bool,
    /// Number of pages, if the format can store several.
    pub pages: Option<usize>,
    /// Further content of the file: name, and size or value.
    pub metadata: Vec<(String, String)>,
    /// Bytes of the decoded samples of a page.
    pub bytes: u64,
    /// Whether the orientation swaps rows and columns.
    pub is_transposed: bool,
}

impl Probe {
    /// An image of 1 to 4 channels of type `dtype`, without metadata.
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
            is_transposed: false,
        }
    }

    /// Width and height of the decoded image.
    pub fn decoded_size(&self) -> [usize; 2] {
        let [width, height] = self.size;
        if self.is_transposed { [height, width] } else { [width, height] }
    }

    /// Adds the size of a block of metadata, if present and not added yet.
    pub fn add_block(&mut self, kind: MetadataBlock, block: Option<&[u8]>) {
        let name = kind.name().trim_start_matches("a ");
        if let Some(block) = block
            && self.metadata.iter().all(|(known, _)| known != name)
        {
            self.metadata.push((name.to_owned(), format!("{} bytes", block.len())));
        }
    }

    /// Adds texts, the density, and metadata that only this format can store.
    pub fn add_metadata(&mut self, metadata: &Metadata) {
        /// Number of characters of a text that are shown.
        const SHOWN: usize = 200;
        if let Some(density) = metadata.density {
            self.metadata.push(("pixels".into(), format_density(density)));
        }
        for Text { keyword, text } in &metadata.texts {
            let mut start: String = text.chars().take(SHOWN).collect();
            if start.len() < text.len() {
                start += &format!("... ({} bytes)", text.len());
            }
            self.metadata.push((display_name(keyword), start));
        }
        let stored = metadata.ancillary.iter().filter(|part| !part.bytes.is_empty());
        let parts = stored.map(|part| (display_name(&part.name), part.bytes.len()));
        self.metadata.extend(parts.map(|(name, len)| (name, format!("{len} bytes"))));
    }
}

/// Formats a density for `info`.
pub fn format_density(density: Density) -> String {
    let [across, down] = density.pixels.map(|pixels| (pixels * 1e4).round() / 1e4);
    match density.unit {
        DensityUnit::Inch => format!("{across} x {down} per inch"),
        DensityUnit::Centimetre => format!("{across} x {down} per cm"),
        DensityUnit::Aspect => format!("{across} across are as long as {down} down"),
    }
}
