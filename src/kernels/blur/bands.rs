//! An image larger than memory, blurred in bands of rows: each with as many rows above and below as
//! the blur reaches, so that the result does not depend on where the bands begin.

use std::ops::Range;

use super::{Blur, Edge};
use crate::{
    data::{dtype::Dtype, raster::Raster, samples::Samples},
    error::{Error, Result},
};

/// The image that is blurred in bands.
#[derive(Clone, Debug)]
pub struct Bands {
    /// The blur.
    pub blur: Blur,
    /// Pixels a row, and rows.
    pub dims: [usize; 2],
    /// Samples a pixel.
    pub channels: usize,
    /// Whether the last channel is alpha.
    pub alpha: bool,
    /// Whether any pixel of the image is not opaque.
    pub transparent: bool,
}

impl Bands {
    /// Whether a band depends on rows nearby only. With [`Edge::Wrap`] the first and the last band depend on each
    /// other.
    pub fn is_possible(&self) -> bool {
        !(self.blur.edge == Edge::Wrap && self.blur.halo(1) > 0)
    }

    /// The rows that the results in `band` depend on.
    pub fn window(&self, band: Range<usize>) -> Range<usize> {
        let reach = self.blur.halo(1);
        band.start.saturating_sub(reach)..(band.end + reach).min(self.dims[1])
    }

    /// The blurred rows `band`. `samples` are the rows of their [window](Self::window) as bytes of type `dtype`; `run`
    /// blurs a raster.
    ///
    /// # Errors
    /// Those of `run`, and where bands are not possible.
    pub fn blur(
        &self,
        band: Range<usize>,
        samples: &[u8],
        dtype: Dtype,
        run: impl FnOnce(&Blur, &Raster) -> Result<Samples>,
    ) -> Result<Samples> {
        if !self.is_possible() {
            return Err(Error::bad_input("opposite edges that meet need the whole image at once"));
        }
        let [width, height] = self.dims;
        let row = width * self.channels;
        let window = self.window(band.clone());
        // The kernel premultiplies, and so rounds differently, if any pixel of its input is transparent. If one is
        // anywhere in the image, each window gets a row of transparent pixels that no result of the band depends on.
        let whole = window.len() == height;
        let (above, below) = match self.alpha && self.transparent && !whole {
            true => (usize::from(window.end == height), usize::from(window.end < height)),
            false => (0, 0),
        };
        let mut raster = Raster {
            dims: [width, above + window.len() + below, 1],
            channels: self.channels,
            alpha: self.alpha,
            samples: Samples::zeros(dtype, row * (above + window.len() + below))?,
        };
        let bytes = row * dtype.size();
        raster.samples.as_bytes_mut()[above * bytes..][..window.len() * bytes]
            .copy_from_slice(samples);
        let blurred = run(&self.blur, &raster)?;
        let first = above + band.start - window.start;
        Ok(blurred.part(first * row..(first + band.len()) * row))
    }
}
