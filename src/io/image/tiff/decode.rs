//! TIFF files of kinds that the image crate does not read: floats of 16 and 32 bits, and grey with
//! alpha.

use std::io::Cursor;

use ::tiff::{
    ColorType,
    decoder::{Decoder, DecodingResult, Limits as TiffLimits},
    tags::{SampleFormat, Tag},
};

use crate::{
    data::{
        image::{Image, Metadata, Orientation},
        samples::Samples,
    },
    io::{
        Limits,
        image::{
            codec::{BoxError, Decoded},
            limits::check_size,
            metadata::capped_icc,
        },
    },
};

/// A file whose header is read.
pub struct TiffFile<'a> {
    decoder: Decoder<Cursor<&'a [u8]>>,
    width: usize,
    height: usize,
    /// 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA.
    channels: usize,
    /// Bytes of a sample in the file.
    size: usize,
}

impl<'a> TiffFile<'a> {
    /// Opens a file; nothing where it is broken or of another kind.
    pub fn open(bytes: &'a [u8]) -> Option<Self> {
        let mut decoder = Decoder::new(Cursor::new(bytes)).ok()?;
        let format = decoder.find_tag_unsigned_vec::<u16>(Tag::SampleFormat).ok()?;
        let format = format.and_then(|formats| SampleFormat::from_u16(*formats.first()?));
        let (bits, channels) = match decoder.colortype().ok()? {
            ColorType::Gray(bits) => (bits, 1),
            // A second sample is read as alpha, whatever ExtraSamples calls it.
            ColorType::Multiband { bit_depth, num_samples: 2 } => (bit_depth, 2),
            ColorType::RGB(bits) => (bits, 3),
            ColorType::RGBA(bits) => (bits, 4),
            _ => return None,
        };
        let known = match format.unwrap_or(SampleFormat::Uint) {
            SampleFormat::IEEEFP => matches!(bits, 16 | 32),
            SampleFormat::Uint => channels == 2 && matches!(bits, 8 | 16),
            _ => false,
        };
        let (width, height) = decoder.dimensions().ok()?;
        known.then_some(Self {
            decoder,
            width: width as usize,
            height: height as usize,
            channels,
            size: usize::from(bits) / 8,
        })
    }

    /// Decodes the file, except its EXIF.
    ///
    /// # Errors
    /// When the file is broken, or the image exceeds `limits`.
    pub fn decode(mut self, limits: Limits) -> Result<Decoded, BoxError> {
        let Self { width, height, channels, .. } = self;
        check_size(limits, [width, height], self.bytes())?;
        let mut losses = Vec::new();
        let icc = self.decoder.get_tag_u8_vec(Tag::IccProfile).ok();
        let metadata = Metadata { icc: capped_icc(icc, &mut losses), ..Metadata::default() };
        let orientation = self.decoder.find_tag_unsigned::<u8>(Tag::Orientation).ok().flatten();
        let orientation = orientation.and_then(Orientation::from_exif).unwrap_or_default();
        let samples = self.samples(limits.bytes)?;
        let image = Image { width, height, channels, samples, is_linear: false, metadata };
        Ok(Decoded { image, orientation, losses, damage: None })
    }

    /// Bytes that decoding takes.
    fn bytes(&self) -> u64 {
        let samples = (self.width as u64).saturating_mul(self.height as u64 * self.channels as u64);
        // f16 and u16 samples of 2 bytes: f16 is held as it is and as f32.
        samples.saturating_mul(if self.size == 2 { 6 } else { self.size as u64 })
    }

    fn samples(self, limit: u64) -> Result<Samples, BoxError> {
        let all = self.width * self.height * self.channels;
        let mut limits = TiffLimits::default();
        limits.decoding_buffer_size = all * self.size;
        limits.intermediate_buffer_size = usize::try_from(limit)?;
        limits.ifd_value_size = usize::try_from(limit)?;
        let mut decoder = self.decoder.with_limits(limits);
        let mut decoded = DecodingResult::U8(Vec::new());
        let planes = decoder.read_image_to_buffer(&mut decoded)?.planes;
        let samples = match decoded {
            DecodingResult::U8(values) => Samples::U8(interleaved(values, planes)),
            DecodingResult::U16(values) => Samples::U16(interleaved(values, planes)),
            DecodingResult::F16(values) => {
                let values = values.into_iter().map(f32::from).collect();
                Samples::F32(interleaved(values, planes))
            }
            DecodingResult::F32(values) => Samples::F32(interleaved(values, planes)),
            _ => return Err("its samples are of a type that is not known here".into()),
        };
        match samples.len() == all {
            true => Ok(samples),
            false => Err("there are too few samples".into()),
        }
    }
}

/// The samples of pixels one after the other, from one plane a channel.
fn interleaved<T: Copy>(values: Vec<T>, planes: usize) -> Vec<T> {
    if planes < 2 {
        return values;
    }
    let plane = values.len() / planes;
    (0..plane * planes).map(|i| values[i % planes * plane + i / planes]).collect()
}
