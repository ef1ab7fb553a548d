//! Expressions of samples, such as `255 - a`, computed sample by sample in f64.

mod expression;
mod parse;

use std::{fmt, ops::Range, sync::Arc};

use serde_json::{Value, json};

use self::expression::{Expression, Operand};
pub use self::parse::name_len;
use super::{
    filter::{Block, Cost, Filter, Preparation, Properties, Ready},
    histogram::type_range,
};
use crate::{
    data::{
        description::{Description, Kind},
        dtype::Dtype,
        grid::{Grid, GridType, Shape},
        samples::Samples,
    },
    device::Device,
    util::error::{Error, Result},
};

/// Name of the input in expressions.
pub const INPUT: &str = "a";

/// A further input of an expression. Its samples have the positions of those of the first input.
pub trait FurtherInput: fmt::Debug + Send + Sync {
    /// Its name in expressions.
    fn name(&self) -> &str;

    /// Its file.
    fn source(&self) -> String;

    /// Size and type of its samples.
    ///
    /// # Errors
    /// When it cannot be read.
    fn grid_type(&self) -> Result<GridType>;

    /// Warns if its placement differs from that of `first`, the first input.
    ///
    /// # Errors
    /// When it cannot be read.
    fn check_placement(&self, first: &Description) -> Result<()>;

    /// Bytes in memory throughout.
    fn held_bytes(&self) -> u64;

    /// Samples, and the index of the first one at `positions` along `axis`.
    ///
    /// # Errors
    /// When it cannot be read.
    fn read(&self, axis: usize, positions: Range<usize>) -> Result<(Arc<Samples>, usize)>;
}

/// An expression that is computed for each sample. Alpha is kept.
///
/// Numbers are f64 throughout and converted once, to the type of the result. There is no GPU code: WGSL has no f64, and a
/// CPU computes most expressions faster than samples reach a GPU.
#[derive(Debug)]
pub struct Math {
    text: String,
    expression: Expression,
    dtype: Option<Dtype>,
    inputs: Vec<Arc<dyn FurtherInput>>,
}

impl Math {
    /// The expression `text`. Results have the type `dtype`, by default that of the samples. Then, comparisons and logical
    /// operations make a mask of u8 instead: 255 where they are true, else 0.
    ///
    /// # Errors
    /// When the expression is wrong: `Kind::Usage`, with the column.
    pub fn new(text: &str, dtype: Option<Dtype>) -> Result<Self> {
        Self::with_inputs(text, dtype, Vec::new())
    }

    /// As [`Math::new`], with further inputs.
    ///
    /// # Errors
    /// As [`Math::new`], and when the expression does not use one of `inputs`.
    pub fn with_inputs(
        text: &str,
        dtype: Option<Dtype>,
        inputs: Vec<Arc<dyn FurtherInput>>,
    ) -> Result<Self> {
        let further = inputs.iter().map(|input| input.name());
        let names: Vec<&str> = std::iter::once(INPUT).chain(further).collect();
        let expression = parse::parse(text, &names)?;
        for (at, name) in names.iter().enumerate().skip(1) {
            let what = if parse::is_reserved(name) || names[..at].contains(name) {
                "this name is taken"
            } else if !expression.uses(at) {
                "the expression does not use it"
            } else {
                continue;
            };
            return Err(Error::usage(format_args!("{name}={}: {what}", inputs[at - 1].source())));
        }
        Ok(Self { text: text.to_owned(), expression, dtype, inputs })
    }

    /// Whether results are a mask.
    pub fn makes_mask(&self) -> bool {
        self.dtype.is_none() && self.expression.is_logical()
    }

    /// The type of the result for samples of type `dtype`.
    fn result_type(&self, dtype: Dtype) -> Dtype {
        if self.makes_mask() { Dtype::U8 } else { self.dtype.unwrap_or(dtype) }
    }
}

/// The size in words.
fn size(Shape { dims: [x, y, z], channels }: Shape) -> String {
    let depth = if z > 1 { format!(" x {z}") } else { String::new() };
    let plural = if channels == 1 { "" } else { "s" };
    format!("{x} x {y}{depth} samples of {channels} channel{plural}")
}

/// The value of an opaque sample of alpha.
fn opaque(dtype: Dtype) -> f64 {
    type_range(dtype).map_or(1.0, |(_, max)| max)
}

impl Filter for Math {
    fn name(&self) -> &'static str {
        "math"
    }

    fn parameters(&self) -> Value {
        let name = |input: &Arc<dyn FurtherInput>| format!("{}={}", input.name(), input.source());
        let inputs: Vec<String> = self.inputs.iter().map(name).collect();
        json!({ "expression": self.text, "dtype": self.dtype, "inputs": inputs })
    }

    fn summary(&self, _axes: usize) -> String {
        self.text.clone()
    }

    fn properties(&self) -> Properties {
        Properties { needs_straight_alpha: true, ..Properties::default() }
    }

    fn describe(&self, input: Description) -> Result<Description> {
        let Shape { dims, channels } = input.grid.shape;
        for further in &self.inputs {
            let found = further.grid_type()?.shape;
            if found.dims != dims || ![1, channels].contains(&found.channels) {
                return Err(Error::usage(format_args!(
                    "{}: {}, expected {} as in the first input",
                    further.source(),
                    size(found),
                    size(input.grid.shape)
                )));
            }
        }
        let dtype = self.result_type(input.grid.dtype);
        let kind = if self.makes_mask() { Kind::Mask } else { Kind::Quantity };
        let result = input.of(kind).computed_as(dtype);
        Ok(Description {
            numbers: result.numbers.filter(|_| !self.expression.is_logical()),
            ..result
        })
    }

    fn cost(&self, input: GridType) -> Cost {
        let result = self.result_type(input.dtype).size();
        // The input, the result and its encoded form.
        let mut working = (input.dtype.size() + 2 * result) as u64;
        let mut held = self.expression.stack_bytes();
        for further in &self.inputs {
            working += further.grid_type().map_or(0, |own| own.dtype.size() as u64);
            held += further.held_bytes();
        }
        Cost { held, working, core_seconds: None, ..Cost::of(input) }
    }

    fn prepare(&self, Preparation { input, .. }: Preparation<'_>) -> Result<Ready> {
        self.inputs.iter().try_for_each(|further| further.check_placement(input))?;
        Ok(Ready::default())
    }

    fn run(&self, _device: &Device, input: &Grid, block: &Block) -> Result<Samples> {
        let (samples, channels) = (&input.samples, input.channels);
        let dtype = self.result_type(samples.dtype());
        let read = |further: &Arc<dyn FurtherInput>| {
            let repeat = channels / further.grid_type()?.shape.channels.max(1);
            further
                .read(block.axis, block.input.clone())
                .map(|(samples, first)| (samples, first, repeat))
        };
        let further = self.inputs.iter().map(read).collect::<Result<Vec<_>>>()?;
        let mut operands = vec![Operand { samples, first: 0, repeat: 1 }];
        for (samples, first, repeat) in &further {
            operands.push(Operand { samples, first: *first, repeat: *repeat });
        }
        let scale = opaque(dtype) / opaque(samples.dtype());
        let makes_mask = self.makes_mask();
        self.expression.evaluate(&operands, (dtype, samples.len()), |first, numbers| {
            if makes_mask {
                numbers.iter_mut().for_each(|number| *number *= 255.0);
            }
            if input.has_alpha() {
                let next = channels - 1 - first % channels;
                operands[0].replace(first, numbers, (next, channels), scale);
            }
        })
    }
}
