//! The arithmetic of JPEG: pixels from quantized DCT coefficients and back, with libjpeg's integer results on every
//! device. Huffman coding, which is serial, is part of the file format.

mod gpu;

pub use gpu::{Blocks, Decoder, Encoded, Encoder, variants};

use crate::{
    data::jpeg::{
        Coefficients, Frame, Quality, SparseCoefficients,
        forward::{Divisor, McuRow},
        inverse::Renderer,
    },
    device::Kernel,
    error::{Error, Result},
    gpu::Context,
    memory,
    parallel::Parallel,
};

/// Decodes coefficients to pixels: rows from the top, u8 samples, grey or RGB.
#[derive(Clone, Copy, Debug)]
pub struct Decode;

impl Kernel for Decode {
    type In = SparseCoefficients;
    type Out = Vec<u8>;
    const NAME: &'static str = "jpeg decode";

    fn cpu(&self, coefficients: &SparseCoefficients) -> Result<Vec<u8>> {
        let coefficients = &coefficients.to_dense()?;
        let frame = &coefficients.frame;
        let renderer = Renderer::new(frame).ok_or_else(fractional)?;
        let [width, height] = frame.size;
        let mut pixels = memory::zeros(width * height * frame.colour.channels())?;
        let bands = pixels.chunks_mut(renderer.band_bytes()).enumerate();
        bands.par_each(|(number, band)| renderer.render(coefficients, number, band));
        Ok(pixels)
    }

    fn gpu(&self, context: &Context, coefficients: &SparseCoefficients) -> Result<Vec<u8>> {
        gpu::decode(context, coefficients)
    }
}

fn fractional() -> Error {
    Error::bad_input("a component's resolution is no whole fraction of the picture's")
}

/// Result of a kernel that decodes a picture, changes its pixels and may encode it again.
#[derive(Debug, PartialEq)]
pub enum JpegOutput {
    /// Rows from the top, u8 samples, grey or RGB.
    Pixels(Vec<u8>),
    /// Coefficients of the encoded picture.
    Coefficients(SparseCoefficients),
}

/// Encodes pixels to coefficients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encode {
    frame: Frame,
}

impl Encode {
    /// Pictures of `size` pixels with 1 channel or 3. With `half_chroma`, chroma has half the resolution along both
    /// axes.
    ///
    /// # Errors
    /// [`Kind::BadInput`](crate::error::Kind::BadInput) for other numbers of channels and for empty pictures.
    pub fn new(
        size: [usize; 2],
        channels: usize,
        quality: Quality,
        half_chroma: bool,
    ) -> Result<Self> {
        if !matches!(channels, 1 | 3) || size.contains(&0) {
            return Err(Error::bad_input("JPEG holds grey and RGB pictures of at least one pixel"));
        }
        Ok(Self { frame: Frame::for_pixels(size, channels, quality, half_chroma) })
    }

    /// Size, colours and components of the coefficients.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The divisors of each component's coefficients.
    pub fn divisors(&self) -> Vec<Divisor> {
        self.frame.components.iter().map(|component| Divisor::new(&component.steps)).collect()
    }

    fn check(&self, pixels: &[u8]) -> Result<()> {
        let [width, height] = self.frame.size;
        match pixels.len() == width * height * self.frame.colour.channels() {
            true => Ok(()),
            false => Err(Error::bad_input("the pixels do not fill the picture")),
        }
    }
}

impl Kernel for Encode {
    /// Rows from the top, u8 samples, grey or RGB.
    type In = [u8];
    type Out = SparseCoefficients;
    const NAME: &'static str = "jpeg encode";

    fn cpu(&self, pixels: &[u8]) -> Result<SparseCoefficients> {
        self.check(pixels)?;
        let frame = &self.frame;
        let divisors = self.divisors();
        let [_, mcus] = frame.mcus();
        let mut rows: Vec<Vec<Vec<[i16; 64]>>> = vec![Vec::new(); mcus];
        rows.iter_mut().enumerate().par_fold(
            || McuRow::new(frame),
            |row, (number, components)| {
                let strides: Vec<usize> = (0..divisors.len()).map(|c| row.stride(c)).collect();
                let blocks = row.transform(frame, &divisors, pixels, number);
                let tight = |(c, blocks): (usize, &Vec<[i16; 64]>)| {
                    let [across, _] = frame.blocks(c);
                    let rows = blocks.chunks_exact(strides[c]);
                    rows.flat_map(|row| row[..across].iter().copied()).collect()
                };
                *components = blocks.iter().enumerate().map(tight).collect();
            },
        );
        let component = |c: usize| rows.iter().flat_map(|row| row[c].iter().copied()).collect();
        let blocks = (0..divisors.len()).map(component).collect();
        SparseCoefficients::of(&Coefficients { frame: frame.clone(), blocks })
    }

    fn gpu(&self, context: &Context, pixels: &[u8]) -> Result<SparseCoefficients> {
        self.check(pixels)?;
        gpu::encode(context, &self.frame, pixels)
    }
}
