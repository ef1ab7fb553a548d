//! The histogram of a JPEG picture, from its coefficients. On a GPU its pixels never exist elsewhere: coefficients that
//! are not 0 go there, counts come back.

use crate::{
    data::samples::Samples,
    device::Kernel,
    gpu::Context,
    jpeg::SparseCoefficients,
    kernels::{
        histogram::{Counts, Histogram, Pixels, count_made},
        jpeg::{Decode, Decoder},
    },
    util::error::Result,
};

/// Counts the pixels of a picture.
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
        match self.whole(context, picture)? {
            Some(counts) => Ok(counts),
            None => self.0.gpu(context, &pixels(picture, Decode.gpu(context, picture)?)),
        }
    }
}

impl JpegHistogram {
    /// All passes over a picture that the device takes in one piece, and whose rows have no padding there, which would
    /// be counted; nothing for others.
    fn whole(
        &self,
        context: &Context,
        picture: &SparseCoefficients,
    ) -> Result<Option<Vec<Counts>>> {
        let [width, height] = picture.frame.size;
        let channels = picture.frame.colour.channels();
        let Some(decoder) = Decoder::new(context, &picture.frame)? else { return Ok(None) };
        if decoder.pitch() != width {
            return Ok(None);
        }
        self.0.count_u8(channels, |components| {
            let coefficients = decoder.upload(picture)?;
            let pixels = (width * height) as u32;
            count_made(context, components, channels, pixels, |batch| {
                decoder.record(batch, &coefficients)
            })
        })
    }
}

fn pixels(picture: &SparseCoefficients, samples: Vec<u8>) -> Pixels {
    Pixels { samples: Samples::U8(samples), channels: picture.frame.colour.channels() }
}
