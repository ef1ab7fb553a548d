//! Samples on a regular raster of one to three dimensions: what blur reads and makes.

use super::samples::Samples;

/// An image (depth 1) or a volume in memory, with one to four interleaved channels.
#[derive(Clone, Debug, PartialEq)]
pub struct Raster {
    /// Positions along x, y and z; an image has depth 1.
    pub dims: [usize; 3],
    /// Samples a position.
    pub channels: usize,
    /// Whether the last channel is alpha.
    pub alpha: bool,
    /// `dims[0] * dims[1] * dims[2] * channels` samples: channels fastest, then x, y and z.
    pub samples: Samples,
}

impl Raster {
    /// The raster's size.
    pub fn shape(&self) -> Shape {
        Shape { dims: self.dims, channels: self.channels }
    }
}

/// The size of a [`Raster`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Positions along x, y and z.
    pub dims: [usize; 3],
    /// Samples a position.
    pub channels: usize,
}

impl Shape {
    /// Samples in all.
    pub fn samples(&self) -> usize {
        self.dims.iter().product::<usize>() * self.channels
    }

    /// The raster as a three-dimensional array whose middle dimension is `axis`: `[outer, len, inner]`
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
