//! Histogram of a JPEG image from its coefficients. On a GPU, only coefficients other than 0 and counts cross the bus.

use crate::{
    data::samples::Samples,
    device::Kernel,
    gpu::Context,
    jpeg::SparseCoefficients,
    kernels::{
        histogram::{Counts, Histogram, Pixels, count_on_device},
        jpeg::{Decode, Decoder},
    },
    util::error::Result,
};

/// Counts the pixels of a JPEG image.
#[derive(Clone, Debug)]
pub struct JpegHistogram(pub Histogram);

impl Kernel for JpegHistogram {
    type In = SparseCoefficients;
    type Out = Vec<Counts>;
    const NAME: &'static str = "histogram";

    fn cpu(&self, picture: &SparseCoefficients) -> Result<Vec<Counts>> {
        self.0.cpu(&pixels(picture, Decode.cpu(picture)?))
    }

    fn gpu(&self, context: &Context, picture: &SparseCoefficients) -> Result<Vec<Counts>> {
        match self.on_device(context, picture)? {
            Some(counts) => Ok(counts),
            None => self.0.gpu(context, &pixels(picture, Decode.gpu(context, picture)?)),
        }
    }
}

impl JpegHistogram {
    /// Counts the pixels of an image that fits on the device as a whole; returns `None` for others, and for images
    /// whose rows are padded there, since padding would be counted.
    fn on_device(
        &self,
        context: &Context,
        picture: &SparseCoefficients,
    ) -> Result<Option<Vec<Counts>>> {
        let [width, height] = picture.frame.size;
        let channels = picture.frame.colour.channels();
        let Some(decoder) = Decoder::new(context, &picture.frame)? else { return Ok(None) };
        if decoder.pixels().pitch != width {
            return Ok(None);
        }
        self.0.count_u8(channels, |components| {
            let coefficients = decoder.upload(picture)?;
            let pixels = (width * height) as u32;
            count_on_device(context, components, channels, pixels, |batch| {
                decoder.record(batch, &coefficients)
            })
        })
    }
}

fn pixels(picture: &SparseCoefficients, samples: Vec<u8>) -> Pixels {
    Pixels { samples: Samples::U8(samples), channels: picture.frame.colour.channels() }
}
