//! A resampling of a block as a list of passes, each along one axis.

use super::weights::{FRACTION, Interpolation, Weights};
use crate::{
    data::{dtype::Dtype, grid::Shape},
    kernels::filter::Block,
};

/// The samples between two passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Type in memory.
    pub dtype: Dtype,
    /// Bits of the fraction of integers.
    pub fraction: u32,
}

/// A pass along one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    /// Size before the pass.
    pub shape: Shape,
    /// The axis.
    pub axis: usize,
    /// The weights.
    pub weights: Weights,
    /// Samples before and after the pass.
    pub formats: [Format; 2],
    /// Maximum of a result, if these are integers.
    pub max: u32,
}

impl Pass {
    /// Bits of a sum of integers below the last bit of the result.
    pub fn shift(&self) -> u32 {
        FRACTION + self.formats[0].fraction - self.formats[1].fraction
    }

    /// Size after the pass.
    pub fn output(&self) -> Shape {
        let mut dims = self.shape.dims;
        dims[self.axis] = self.weights.windows.len();
        Shape { dims, ..self.shape }
    }
}

/// Largest value of working samples of type `dtype`.
fn max_value(dtype: Dtype) -> u32 {
    match dtype {
        Dtype::U8 => 255,
        Dtype::U16 => 65_535,
        // Colours of 8 bits times alpha, with 8 fraction bits.
        _ => (255 * 255) << 8,
    }
}

/// The passes that make `block` of a result of size `dims` of working samples of type `dtype`. Between passes, integers
/// have fraction bits, and like Pillow's they stay within the range of the samples.
pub fn passes(
    filter: Interpolation,
    (dtype, channels): (Dtype, usize),
    dims: [usize; 3],
    block: &Block,
) -> Vec<Pass> {
    let from = block.shape.dims;
    let mut shape = Shape { dims: from, channels };
    shape.dims[block.axis] = block.input.len();
    let axes: Vec<usize> = (0..3).filter(|&axis| from[axis] != dims[axis]).collect();
    let stored = Format { dtype, fraction: 0 };
    let between = match dtype {
        Dtype::U8 => Format { dtype: Dtype::U16, fraction: 4 },
        Dtype::U16 => Format { dtype: Dtype::U32, fraction: 8 },
        _ => stored,
    };
    let mut before = stored;
    let mut passes = Vec::new();
    for (number, &axis) in axes.iter().enumerate() {
        let after = if number + 1 == axes.len() { stored } else { between };
        let lengths = [from[axis], dims[axis]];
        let weights = match axis == block.axis {
            true => Weights::new(filter, lengths, block.output.clone()).shifted(block.input.start),
            false => Weights::new(filter, lengths, 0..dims[axis]),
        };
        let max = max_value(dtype) << after.fraction;
        let pass = Pass { shape, axis, weights, formats: [before, after], max };
        shape = pass.output();
        before = after;
        passes.push(pass);
    }
    passes
}
