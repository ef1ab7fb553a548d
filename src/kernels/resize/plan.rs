//! A resampling of a block as a list of passes, each along one axis.

use std::ops::Range;

use super::weights::{AxisFilter, FRACTION, Interpolation, Weights};
use crate::{
    data::{dtype::Dtype, grid::Shape},
    kernels::filter::Block,
    util::error::Result,
};

/// Number of weights that are computed at once. Tables of more would take more memory than the samples of a long axis
/// with few samples at each position.
pub const TABLE: usize = 1 << 18;
/// Bytes of a weight, as a float and as an integer.
pub const WEIGHT_BYTES: u64 = 12;

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
    /// The weights along the axis.
    pub filter: AxisFilter,
    /// Positions along the axis that are in memory.
    pub input: Range<usize>,
    /// Positions of the results.
    pub output: Range<usize>,
    /// Samples before and after the pass.
    pub formats: [Format; 2],
    /// Minimum and maximum of a result, if these are integers.
    pub range: [i32; 2],
    /// Whether sums of integers fit 32 bits.
    pub is_narrow: bool,
    /// Bits of the fraction of integer weights.
    pub weight_fraction: u32,
}

impl Pass {
    /// Bits of a sum of integers below the last bit of the result.
    pub fn shift(&self) -> u32 {
        self.weight_fraction + self.formats[0].fraction - self.formats[1].fraction
    }

    /// Size after the pass.
    pub fn result(&self) -> Shape {
        let mut dims = self.shape.dims;
        dims[self.axis] = self.output.len();
        Shape { dims, ..self.shape }
    }

    /// The samples that results `part` of this pass depend on, both counted from the first one.
    pub fn window(&self, part: &Range<usize>) -> Range<usize> {
        let position = |at: usize| self.filter.window(self.output.start + at);
        if part.is_empty() {
            return 0..0;
        }
        let [first, last] = [position(part.start), position(part.end - 1)];
        first.start - self.input.start..last.end - self.input.start
    }

    /// The weights of results `part`, counted from the first one.
    pub fn weights(&self, part: Range<usize>, is_padded: bool) -> Result<Weights> {
        let output = self.output.start + part.start..self.output.start + part.end;
        Weights::new(self.filter, output, &self.input, is_padded)
    }
}

/// The part of a resized grid that is the result: the centre.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Number of positions of the resized grid along x, y and z.
    pub resized: [usize; 3],
    /// Number of positions of the result.
    pub dims: [usize; 3],
}

impl Window {
    /// The first position of the result.
    pub fn first(&self, axis: usize) -> usize {
        (self.resized[axis] - self.dims[axis]) / 2
    }

    /// Whether the samples along `axis` change, for an input of size `from`.
    pub fn changes(&self, axis: usize, from: [usize; 3]) -> bool {
        self.resized[axis] != from[axis] || self.dims[axis] != from[axis]
    }

    /// Positions of the resized grid, for the positions `output` of the result.
    pub fn positions(&self, axis: usize, output: &Range<usize>) -> Range<usize> {
        let first = self.first(axis);
        output.start + first..output.end + first
    }
}

/// The passes that make `block` of the result `window` of working samples of type `dtype`.
///
/// Only the last pass clamps its results, so that all types and any order of the axes give the same result: the sums of
/// magnitudes of the weights of a result are below 1.58, and integers between passes have signs and a fraction. Their
/// magnitude is at most 1.74 times that of the samples after two passes, and 2.45 times before the last pass clamps.
pub fn passes(
    filter: Interpolation,
    (dtype, channels): (Dtype, usize),
    window: Window,
    block: &Block,
) -> Vec<Pass> {
    let from = block.shape.dims;
    let mut shape = Shape { dims: from, channels };
    shape.dims[block.axis] = block.input.len();
    let Window { resized, dims } = window;
    let axes: Vec<usize> = (0..3).filter(|&axis| window.changes(axis, from)).collect();
    let stored = Format { dtype, fraction: 0 };
    let (between, max) = match dtype {
        Dtype::U8 => (Format { dtype: Dtype::I16, fraction: 4 }, 255),
        Dtype::U16 => (Format { dtype: Dtype::I32, fraction: 8 }, 65_535),
        // Colours of 8 bits times alpha, with 8 fraction bits.
        Dtype::U32 => (Format { dtype: Dtype::I32, fraction: 0 }, (255 * 255) << 8),
        _ => (stored, 0),
    };
    let mut before = stored;
    let mut passes = Vec::new();
    for (number, &axis) in axes.iter().enumerate() {
        let is_last = number + 1 == axes.len();
        let after = if is_last { stored } else { between };
        let is_divided = axis == block.axis;
        let input = if is_divided { block.input.clone() } else { 0..from[axis] };
        let output = if is_divided { &block.output } else { &(0..dims[axis]) };
        let output = window.positions(axis, output);
        // An axis that is only cut keeps its samples.
        let is_cut = from[axis] == resized[axis];
        let filter = if is_cut { Interpolation::Nearest } else { filter };
        let pass = Pass {
            shape,
            axis,
            filter: AxisFilter::new(filter, from[axis], resized[axis]),
            input,
            output,
            formats: [before, after],
            range: if is_last { [0, max] } else { [i32::MIN, i32::MAX] },
            is_narrow: dtype == Dtype::U8,
            // The sums of the third pass take one more bit.
            weight_fraction: FRACTION - u32::from(number == 2),
        };
        shape = pass.result();
        before = after;
        passes.push(pass);
    }
    passes
}
