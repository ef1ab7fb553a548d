//! Conversion between quantized DCT coefficients of JPEG and pixels on devices, with the integer results of libjpeg.
//! Huffman coding, which is serial, is in `crate::jpeg`.

mod gpu;

pub use gpu::{Blocks, Decoder, Encoded, Encoder, variants};

use std::borrow::Cow;

use crate::{
    device::Kernel,
    gpu::Context,
    jpeg::{SparseCoefficients, render::Renderer},
    util::{
        error::Result,
        memory::{self, raise},
        parallel::Parallel,
    },
};

/// Decodes coefficients to pixels: rows from the top, u8 samples, grey or RGB.
#[derive(Clone, Copy, Debug)]
pub struct Decode;

impl Kernel for Decode {
    type In = SparseCoefficients;
    type Out = Vec<u8>;
    const NAME: &'static str = "jpeg decode";

    fn cpu(&self, coefficients: &SparseCoefficients) -> Result<Vec<u8>> {
        let frame = &coefficients.frame;
        let renderer = Renderer::new(frame, 1)?;
        let mut pixels = memory::zeros(frame.pixel_bytes())?;
        let row = |c, y| Cow::Owned(coefficients.row(c, y).unwrap_or_else(raise));
        let bands = pixels.chunks_mut(renderer.band_bytes()).enumerate();
        bands.par_each(|(number, band)| renderer.render(row, number, band));
        Ok(pixels)
    }

    /// Pictures that do not fit on the device are decoded on the CPU.
    fn gpu(&self, context: &Context, coefficients: &SparseCoefficients) -> Result<Vec<u8>> {
        match Decoder::new(context, &coefficients.frame)? {
            Some(decoder) => decoder.decode(coefficients),
            None => self.cpu(coefficients),
        }
    }
}
