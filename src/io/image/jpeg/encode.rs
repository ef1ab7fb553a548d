//! Encodes bands of rows side by side and joins them with restart markers (ITU-T T.81, E.1.4).

use jpeg_encoder::{ChromaSubsamplingMethod, ColorType, Encoder, EncodingError, SamplingFactor};
use rayon::prelude::*;

use crate::data::image::Metadata;

/// How a picture is encoded.
#[derive(Clone, Copy, Debug)]
pub struct Jpeg<'a> {
    /// Pixels a row.
    pub width: u16,
    /// Rows.
    pub height: u16,
    /// 1 grey, 3 RGB.
    pub channels: usize,
    /// 1 to 100.
    pub quality: u8,
    /// Whether chroma is stored at half the resolution, in both directions.
    pub half_chroma: bool,
    /// ICC profile and EXIF.
    pub metadata: &'a Metadata,
}

/// Pixels of a band, about.
const BAND: usize = 1 << 19;

impl Jpeg<'_> {
    /// Encodes `pixels`: rows from the top, 8-bit samples.
    ///
    /// # Errors
    /// When a side is 0 or the profile too large.
    pub fn encode(&self, pixels: &[u8]) -> Result<Vec<u8>, EncodingError> {
        let unit = if self.half_chroma && self.channels == 3 { 16 } else { 8 };
        let across = usize::from(self.width).div_ceil(unit).max(1);
        // A restart interval has at most 65,535 units.
        let down = (BAND / (across * unit * unit)).clamp(1, usize::from(u16::MAX) / across);
        let row = usize::from(self.width) * self.channels;
        if usize::from(self.height) <= down * unit || row == 0 {
            return self.part(pixels, self.height, None);
        }
        let interval = (across * down) as u16;
        let parts: Vec<Vec<u8>> = pixels
            .par_chunks(down * unit * row)
            .map(|band| self.part(band, (band.len() / row) as u16, Some(interval)))
            .collect::<Result<_, _>>()?;
        let mut whole = parts[0][..parts[0].len() - MARKER].to_vec();
        let height = find(&whole, FRAME) + 5;
        whole[height..height + 2].copy_from_slice(&self.height.to_be_bytes());
        for (number, part) in parts[1..].iter().enumerate() {
            let scan = find(part, SCAN);
            let header = usize::from(u16::from_be_bytes([part[scan + 2], part[scan + 3]]));
            whole.extend([0xff, 0xd0 + (number % 8) as u8]);
            whole.extend(&part[scan + MARKER + header..part.len() - MARKER]);
        }
        whole.extend(&parts[0][parts[0].len() - MARKER..]);
        Ok(whole)
    }

    /// A picture of its own of `height` rows.
    fn part(
        &self,
        pixels: &[u8],
        height: u16,
        interval: Option<u16>,
    ) -> Result<Vec<u8>, EncodingError> {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, self.quality);
        encoder.set_sampling_factor(match self.half_chroma {
            true => SamplingFactor::F_2_2,
            false => SamplingFactor::F_1_1,
        });
        encoder.set_chroma_subsampling_method(ChromaSubsamplingMethod::Average);
        encoder.set_restart_interval(interval.unwrap_or(0));
        if let Some(icc) = &self.metadata.icc {
            encoder.add_icc_profile(icc)?;
        }
        if let Some(exif) = &self.metadata.exif {
            encoder.add_exif_metadata(exif)?;
        }
        let colour = if self.channels == 1 { ColorType::Luma } else { ColorType::Rgb };
        encoder.encode(pixels, self.width, height, colour)?;
        Ok(bytes)
    }
}

const FRAME: u8 = 0xc0;
const SCAN: u8 = 0xda;
/// Bytes of a marker.
const MARKER: usize = 2;

/// Where the segment `wanted` begins in the header that the encoder wrote.
fn find(header: &[u8], wanted: u8) -> usize {
    let mut at = MARKER;
    while header[at + 1] != wanted {
        at += MARKER + usize::from(u16::from_be_bytes([header[at + 2], header[at + 3]]));
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_decode_to_what_one_piece_does() {
        let metadata = Metadata { icc: Some(b"profile".into()), exif: Some(b"MM\0*".into()) };
        for (channels, half_chroma) in [(1, false), (3, false), (3, true)] {
            let (width, height) = (1003u16, 1301u16);
            let pixels: Vec<u8> = (0..usize::from(width) * usize::from(height) * channels)
                .map(|i| ((i / 5) ^ (i >> 11)) as u8)
                .collect();
            let metadata = &metadata;
            let jpeg = Jpeg { width, height, channels, quality: 90, half_chroma, metadata };
            let bands = jpeg.encode(&pixels).unwrap();
            let one = jpeg.part(&pixels, height, None).unwrap();
            let restarts = |bytes: &[u8]| bytes.windows(2).any(|pair| pair == [0xff, 0xd0]);
            assert!(restarts(&bands) && !restarts(&one));
            let decoded = |bytes: &[u8]| image::load_from_memory(bytes).unwrap();
            assert!(decoded(&bands) == decoded(&one), "{channels} {half_chroma}");
        }
    }
}
