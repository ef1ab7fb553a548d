//! Greyscale morphology: erosion, dilation, and operations that consist of both.

mod cpu;
mod element;
mod gpu;

pub use element::{Element, ElementShape};
pub use gpu::variants;

use std::ops::Range;

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    filter::{Block, Filter, Properties, Reach},
    gpu_step::{GpuFilter, GpuLayout, GpuStepResult},
};
use crate::{
    data::{
        description::{Description, Kind},
        dtype::Dtype,
        grid::{Grid, GridType, Shape},
        samples::Samples,
    },
    device::{Device, Kernel},
    for_samples,
    gpu::Context,
    util::{
        error::{Error, Result},
        parallel::Parallel,
    },
};

/// An operation of greyscale morphology. Samples outside of the image or volume do not count, which is the same as
/// scipy's modes nearest, reflect and mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// The minimum of the neighbours.
    Erode,
    /// The maximum of the neighbours.
    Dilate,
    /// Erosion, then dilation: removes what is bright and smaller than the element.
    Open,
    /// Dilation, then erosion: removes what is dark and smaller than the element.
    Close,
    /// Dilation minus erosion.
    Gradient,
    /// The input minus its opening.
    TopHat,
    /// The closing minus the input.
    BlackHat,
}

/// An operation with a structuring element. Differences of integers are clamped to the range of their type. -0 is less
/// than +0, and NaN is greater than all numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Morph {
    operation: Operation,
    element: Element,
}

impl Morph {
    /// An operation with an element of this radius along x, y and z: 0 to 10,000 for a box, and 0 to 100 for others. For images,
    /// that along z is 0. A ball has one radius for all axes.
    pub fn new(operation: Operation, shape: ElementShape, radius: [usize; 3]) -> Self {
        Self { operation, element: Element { shape, radius } }
    }

    /// Runs the operation. `extrema(samples, are_max)` applies a sequence of erosions (`false`) and dilations (`true`).
    fn apply(
        &self,
        grid: &Grid,
        extrema: impl Fn(&Samples, &[bool]) -> Result<Samples>,
    ) -> Result<Samples> {
        let (Shape { dims: [x, y, z], channels }, found) = (grid.shape(), grid.samples.len());
        if grid.shape().samples() != found {
            return Err(Error::bad_input(format_args!(
                "expected {x} x {y} x {z} x {channels} samples, found {found}"
            )));
        }
        let input = &grid.samples;
        if input.is_empty() {
            return Ok(input.clone());
        }
        match self.operation {
            Operation::Gradient => {
                Ok(difference(extrema(input, &DILATE)?, &extrema(input, &ERODE)?, false))
            }
            Operation::TopHat => Ok(difference(extrema(input, &OPEN)?, input, true)),
            Operation::BlackHat => Ok(difference(extrema(input, &CLOSE)?, input, false)),
            _ => extrema(input, self.sequence().expect("others are differences")),
        }
    }

    /// The erosions (`false`) and dilations (`true`) of the operation, unless it is a difference.
    fn sequence(&self) -> Option<&'static [bool]> {
        match self.operation {
            Operation::Erode => Some(&ERODE),
            Operation::Dilate => Some(&DILATE),
            Operation::Open => Some(&OPEN),
            Operation::Close => Some(&CLOSE),
            Operation::Gradient | Operation::TopHat | Operation::BlackHat => None,
        }
    }

    /// Number of erosions and dilations one after the other.
    fn depth(&self) -> usize {
        match self.operation {
            Operation::Erode | Operation::Dilate | Operation::Gradient => 1,
            Operation::Open | Operation::Close | Operation::TopHat | Operation::BlackHat => 2,
        }
    }
}

// The sequence of each operation: `false` erodes (minimum), `true` dilates (maximum).
const ERODE: [bool; 1] = [false];
const DILATE: [bool; 1] = [true];
const OPEN: [bool; 2] = [false, true];
const CLOSE: [bool; 2] = [true, false];

/// Subtraction that stays in the range of the type.
trait Subtract: Copy {
    fn subtract(self, other: Self) -> Self;
}

macro_rules! subtract {
    ($($type:ident: |$a:ident, $b:ident| $difference:expr;)+) => {
        $(impl Subtract for $type {
            #[inline(always)]
            fn subtract(self, $b: Self) -> Self {
                let $a = self;
                $difference
            }
        })+
    };
}

subtract! {
    u8: |a, b| a.saturating_sub(b);
    i8: |a, b| a.saturating_sub(b);
    u16: |a, b| a.saturating_sub(b);
    i16: |a, b| a.saturating_sub(b);
    u32: |a, b| a.saturating_sub(b);
    i32: |a, b| a.saturating_sub(b);
    f32: |a, b| a - b;
    f64: |a, b| a - b;
}

/// `samples` minus `other`, of the same type; or `other` minus `samples`.
fn difference(mut samples: Samples, other: &Samples, is_reverse: bool) -> Samples {
    /// Samples that a thread takes at a time.
    const PIECE: usize = 1 << 16;
    for_samples!(&mut samples, samples => {
        let others = bytemuck::cast_slice(other.as_bytes()).chunks(PIECE);
        samples.chunks_mut(PIECE).zip(others).par_each(|(samples, others)| {
            for (sample, &other) in samples.iter_mut().zip(others) {
                *sample = match is_reverse {
                    true => Subtract::subtract(other, *sample),
                    false => Subtract::subtract(*sample, other),
                };
            }
        });
    });
    samples
}

impl Kernel for Morph {
    type In = Grid;
    type Out = Samples;
    const NAME: &'static str = "morph";

    fn cpu(&self, grid: &Grid) -> Result<Samples> {
        let shape = grid.shape();
        self.apply(grid, |samples, are_max| cpu::extrema(samples, shape, &self.element, are_max))
    }

    fn gpu(&self, context: &Context, grid: &Grid) -> Result<Samples> {
        let (shape, element) = (grid.shape(), &self.element);
        self.apply(grid, |samples, are_max| {
            match gpu::extrema(context, samples, shape, element, are_max)? {
                Some(result) => Ok(result),
                None => cpu::extrema(samples, shape, element, are_max),
            }
        })
    }
}

impl GpuFilter for Morph {
    fn prepare<'c>(&'c self, context: &'c Context, input: GpuLayout) -> GpuStepResult<'c> {
        match self.sequence() {
            Some(are_max) => gpu::prepare(context, input, &self.element, are_max),
            None => Ok(None),
        }
    }
}

impl Filter for Morph {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn parameters(&self) -> Value {
        let Element { shape, radius } = self.element;
        json!({ "operation": self.operation, "element": shape, "radius": radius })
    }

    fn reach(&self, axis: usize, _output: &Range<usize>, _shape: Shape) -> Reach {
        Reach::Halo(self.element.radius[axis] * self.depth())
    }

    fn properties(&self) -> Properties {
        let is_difference =
            matches!(self.operation, Operation::Gradient | Operation::TopHat | Operation::BlackHat);
        let is_identity = !is_difference && self.element.radius == [0; 3];
        Properties { is_identity, ..Properties::default() }
    }

    fn describe(&self, input: Description) -> Result<Description> {
        Ok(match self.operation {
            Operation::Gradient | Operation::TopHat | Operation::BlackHat => {
                input.of(Kind::Quantity)
            }
            _ => input,
        })
    }

    fn run(&self, device: &Device, input: &Grid, _block: &Block) -> Result<Samples> {
        device.run(self, input)
    }

    fn on_gpu(&self, input: GridType) -> Option<&dyn GpuFilter> {
        let is_supported = input.dtype != Dtype::F64 && self.sequence().is_some();
        (is_supported && !self.properties().is_identity).then_some(self)
    }
}
