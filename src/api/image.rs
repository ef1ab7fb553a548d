//! Images in memory.

use std::marker::PhantomData;

use super::{
    raster::{Raster, sealed::Stored},
    sample::Sample,
};
use crate::{
    data::grid::{Alpha, Grid},
    util::error::{Error, Result},
};

/// The channels of a pixel, in order. Alpha is straight: colours are not multiplied by alpha.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Channels {
    /// One sample.
    Gray,
    /// Gray and alpha.
    GrayAlpha,
    /// Red, green and blue.
    Rgb,
    /// Red, green, blue and alpha.
    Rgba,
}

impl Channels {
    /// The number of samples in a pixel.
    pub fn count(self) -> usize {
        match self {
            Self::Gray => 1,
            Self::GrayAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba => 4,
        }
    }

    /// Whether the last sample is alpha.
    pub fn has_alpha(self) -> bool {
        matches!(self, Self::GrayAlpha | Self::Rgba)
    }
}

/// An image in memory. 8 and 16 bits without a sign are black to white, floats 0 to 1. Rows lie from
/// top to bottom, pixels from left to right, channels interleaved.
#[derive(Clone, Debug, PartialEq)]
pub struct Image<T> {
    grid: Grid,
    sample: PhantomData<T>,
}

impl<T: Sample> Image<T> {
    /// Creates an image of `width * height * channels.count()` samples.
    ///
    /// # Errors
    /// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when the number of samples differs from that.
    pub fn new(width: usize, height: usize, channels: Channels, samples: Vec<T>) -> Result<Self> {
        let (count, found) = (channels.count(), samples.len());
        let expected = width.checked_mul(height).and_then(|n| n.checked_mul(count));
        if expected != Some(found) {
            return Err(Error::bad_input(format_args!(
                "expected {width} x {height} x {count} samples ({channels:?}), found {found}"
            )));
        }
        let grid = Grid {
            dims: [width, height, 1],
            channels: count,
            alpha: if channels.has_alpha() { Alpha::Straight } else { Alpha::None },
            samples: T::store(samples),
        };
        Ok(Self { grid, sample: PhantomData })
    }

    /// Width in pixels.
    pub fn width(&self) -> usize {
        self.grid.dims[0]
    }

    /// Height in pixels.
    pub fn height(&self) -> usize {
        self.grid.dims[1]
    }

    /// The channels of a pixel.
    pub fn channels(&self) -> Channels {
        match self.grid.channels {
            1 => Channels::Gray,
            2 => Channels::GrayAlpha,
            3 => Channels::Rgb,
            _ => Channels::Rgba,
        }
    }

    /// All samples.
    pub fn samples(&self) -> &[T] {
        T::read(&self.grid.samples)
    }

    /// Converts the image into its samples, without a copy.
    pub fn into_samples(self) -> Vec<T> {
        T::take(self.grid.samples)
    }
}

impl<T: Sample> Raster for Image<T> {
    type Sample = T;
    type Of<U: Sample> = Image<U>;
}

impl<T: Sample> Stored for Image<T> {
    const AXES: usize = 2;

    fn grid(&self) -> &Grid {
        &self.grid
    }

    fn from_grid(grid: Grid) -> Self {
        Self { grid, sample: PhantomData }
    }
}
