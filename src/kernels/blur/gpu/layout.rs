//! The layout of samples on the device.

use crate::{data::grid::Shape, kernels::blur::plan::Format};

/// A grid whose rows are padded to a multiple of sixteen positions, so that shaders read and write whole words of any
/// format.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub shape: Shape,
    /// Positions from one row to the next.
    pub pitch: usize,
}

impl Layout {
    pub fn new(shape: Shape) -> Self {
        Self { shape, pitch: shape.dims[0].next_multiple_of(16) }
    }

    /// The grid with its padding.
    pub fn padded(&self) -> Shape {
        let [_, y, z] = self.shape.dims;
        Shape { dims: [self.pitch, y, z], ..self.shape }
    }

    /// Samples of a row, without and with padding.
    pub fn rows(&self) -> [usize; 2] {
        [self.shape.dims[0], self.pitch].map(|positions| positions * self.shape.channels)
    }

    /// Size of a buffer in bytes: a multiple of 16, in units of which shaders may read.
    pub fn bytes(&self, format: Format) -> u64 {
        ((self.padded().samples() * format.size()) as u64).next_multiple_of(16)
    }
}
