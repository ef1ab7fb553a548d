//! Images in memory.

use std::marker::PhantomData;

use super::{
    raster::{Raster, gathered, sealed::Stored},
    sample::Sample,
};
use crate::{
    data::grid::{Alpha, Grid},
    util::error::{Error, Result},
};

/// The channels of a pixel, in order. Alpha is straight: colours are not multiplied by alpha.
///
/// ```
/// use gpuproc::Channels;
///
/// assert_eq!((Channels::Rgba.count(), Channels::Rgb.has_alpha()), (4, false));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Channels {
    /// One sample.
    Gray,
    /// Grey and alpha.
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
///
/// ```
/// use gpuproc::{Channels, Image};
///
/// # fn main() -> gpuproc::Result<()> {
/// let image = Image::new(2, 1, Channels::Rgb, vec![255u8, 0, 0, 0, 0, 255])?;
/// assert_eq!((image.width(), image.height(), image.channels()), (2, 1, Channels::Rgb));
/// assert_eq!(image.into_samples().len(), 6);
/// # Ok(())
/// # }
/// ```
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

    /// Copies an image from `samples` in another memory layout. `strides` are the distances, in samples, between
    /// neighbouring channels, pixels of a row, and rows. A stride of 0 repeats samples. A negative stride reads its axis
    /// backwards: `samples` then starts at the lowest address, not at the first pixel.
    ///
    /// ```
    /// use gpuproc::{Channels, Image};
    ///
    /// # fn main() -> gpuproc::Result<()> {
    /// // Planes of red, green and blue, each with two rows of two pixels.
    /// let planes = [1u8, 2, 3, 4, 11, 12, 13, 14, 21, 22, 23, 24];
    /// let image = Image::from_strided(2, 2, Channels::Rgb, &planes, [4, 1, 2])?;
    /// assert_eq!(image.samples()[..6], [1, 11, 21, 2, 12, 22]);
    /// // The last row first.
    /// let flipped = Image::from_strided(2, 2, Channels::Gray, &planes[..4], [1, 1, -2])?;
    /// assert_eq!(flipped.samples(), [3, 4, 1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when `samples` end before the last one,
    /// [`ErrorKind::Failure`](crate::ErrorKind::Failure) when memory is exhausted.
    pub fn from_strided(
        width: usize,
        height: usize,
        channels: Channels,
        samples: &[T],
        strides: [isize; 3],
    ) -> Result<Self> {
        let sizes = [channels.count(), width, height];
        Self::new(width, height, channels, gathered(samples, sizes, strides)?)
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
