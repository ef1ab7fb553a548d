//! Samples on a regular grid of one to three dimensions: input and output of filters.

use super::{dtype::Dtype, samples::Samples};
use crate::util::error::{Error, Result};

/// An image (depth 1) or a volume in memory, with one to four interleaved channels.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Number of positions along x, y and z; an image has depth 1.
    pub dims: [usize; 3],
    /// Number of samples per position.
    pub channels: usize,
    /// Whether the last channel is alpha.
    pub alpha: Alpha,
    /// `dims[0] * dims[1] * dims[2] * channels` samples: channels fastest, then x, y and z.
    pub samples: Samples,
}

/// Kind of the alpha channel of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpha {
    /// There is no alpha channel, or colours are premultiplied by it.
    None,
    /// The last channel is alpha.
    Straight,
    /// The last channel is alpha, and a pixel of the image to which the grid belongs is not opaque.
    Translucent,
}

impl Grid {
    /// A volume of `dims[0] * dims[1] * dims[2]` samples.
    pub fn volume(dims: [usize; 3], samples: Samples) -> Self {
        Self { dims, channels: 1, alpha: Alpha::None, samples }
    }

    /// Whether the last channel is alpha.
    pub fn has_alpha(&self) -> bool {
        self.alpha != Alpha::None
    }

    /// The size and the type of the samples.
    pub fn grid_type(&self) -> GridType {
        GridType { shape: self.shape(), dtype: self.samples.dtype() }
    }

    /// The size and the type of the samples of a grid of one to four channels.
    pub fn checked_type(&self) -> Result<GridType> {
        let (shape, found) = (self.shape(), self.samples.len());
        let Shape { dims: [x, y, z], channels } = shape;
        match shape.samples() == found && (1..=4).contains(&channels) {
            true => Ok(self.grid_type()),
            false => Err(Error::bad_input(format_args!(
                "expected {x} x {y} x {z} x {channels} samples of 1 to 4 channels, found {found}"
            ))),
        }
    }

    /// The size in positions and channels.
    pub fn shape(&self) -> Shape {
        Shape { dims: self.dims, channels: self.channels }
    }
}

/// The size of a [`Grid`] and the type of its samples, known before a sample is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridType {
    /// Positions and channels.
    pub shape: Shape,
    /// Type of the samples.
    pub dtype: Dtype,
}

impl GridType {
    /// Bytes of all samples, or `u64::MAX` if there are more.
    pub fn bytes(self) -> u64 {
        let dims = self.shape.dims.iter().map(|&dim| dim as u64);
        let pixel = (self.shape.channels * self.dtype.size()) as u64;
        dims.fold(pixel, u64::saturating_mul)
    }
}

/// The size of a [`Grid`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of positions along x, y and z.
    pub dims: [usize; 3],
    /// Number of samples per position.
    pub channels: usize,
}

impl Shape {
    /// Number of samples.
    pub fn samples(&self) -> usize {
        self.dims.iter().product::<usize>() * self.channels
    }

    /// The grid as a three-dimensional array whose middle dimension is `axis`: `[outer, len, inner]`
    /// with neighbours along the axis `inner` samples apart.
    pub fn along(&self, axis: usize) -> [usize; 3] {
        let [x, y, z] = self.dims;
        match axis {
            0 => [y * z, x, self.channels],
            1 => [z, y, x * self.channels],
            _ => [1, z, x * y * self.channels],
        }
    }
}
