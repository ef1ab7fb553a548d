//! Filters that run one after another, each on the result of the one before.

use std::{ops::Range, sync::Arc};

use serde_json::{Value, json};

use super::{
    filter::{Block, Filter, apply},
    gpu_chain::{GpuChain, GpuInput, GpuOutput},
};
use crate::{
    data::{
        description::Description,
        dtype::Dtype,
        grid::{Alpha, Grid, GridType, Shape},
        samples::Samples,
    },
    device::Device,
    util::{error::Result, memory},
};

/// Filters that run one after another. Each gets the positions that the following ones depend on, so that only the ends
/// of the whole input are edges. The engine runs those that depend on all samples of their input
/// ([`Filter::prepared`], [`Filter::reduced`]).
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// The filters.
    pub steps: Vec<Arc<dyn Filter>>,
    /// Number of steps of the whole chain that run before these; `None` for a filter that is not part of a chain.
    pub before: Option<usize>,
}

impl Chain {
    /// The filter that does the same: the only step where it is not part of a chain, else the chain itself.
    pub fn filter(&self) -> &dyn Filter {
        match (&self.steps[..], self.before) {
            ([step], None) => &**step,
            _ => self,
        }
    }

    /// The number of the step at `index` in messages, which count the steps of the whole chain from 1.
    fn display_number(&self, index: usize) -> usize {
        self.before.unwrap_or(0) + index + 1
    }

    /// The results of `block` of the step at `index`.
    fn run_step(
        &self,
        device: &Device,
        index: usize,
        grid: &Grid,
        block: &Block,
    ) -> Result<Samples> {
        let step = &self.steps[index];
        let name = format!("step {}: {}", self.display_number(index), step.name());
        let run = || match step.is_identity() {
            true => grid.samples.copy(),
            false => step.run_block(device, grid, block),
        };
        device.time(&name, run).map_err(|error| error.context(&name))
    }

    /// Runs the steps from `index` on in one batch, as far as the GPU can run them. Returns how many it ran, at least two,
    /// and the result of the last one.
    fn run_on_gpu(
        &self,
        device: &Device,
        index: usize,
        grid: &Grid,
    ) -> Result<Option<(usize, Samples)>> {
        let steps = self.steps[index..].iter().map(|step| &**step).collect();
        let before = Some(self.before.unwrap_or(0) + index);
        let chain = GpuChain { steps, before, encoding: None };
        Ok(match chain.run(device, GpuInput::Samples(grid.shape(), &grid.samples))? {
            Some((count, GpuOutput::Samples(samples))) => Some((count, samples)),
            _ => None,
        })
    }

    /// Types of the input of each step, and of the result.
    fn types(&self, input: GridType) -> Result<Vec<GridType>> {
        let mut types = vec![input];
        for step in &self.steps {
            types.push(step.output(types[types.len() - 1])?);
        }
        Ok(types)
    }

    /// Sizes of the input of each step, and of the result. They do not depend on the type of the samples.
    pub fn shapes(&self, input: Shape) -> Vec<Shape> {
        let types = self.types(GridType { shape: input, dtype: Dtype::U8 });
        types.map_or(memory::filled(input, self.steps.len() + 1), |types| {
            types.iter().map(|own| own.shape).collect()
        })
    }

    /// Positions along `axis` of the input of each step, and of the result, on which the results at the positions
    /// `output` depend.
    fn ranges(&self, axis: usize, output: &Range<usize>, shapes: &[Shape]) -> Vec<Range<usize>> {
        let mut ranges = vec![output.clone()];
        for ((step, input), result) in self.steps.iter().zip(shapes).zip(&shapes[1..]).rev() {
            let wanted = &ranges[ranges.len() - 1];
            let (len, halo) = (input.dims[axis], step.halo(axis));
            ranges.push(match step.input_range(axis, wanted, *input) {
                Some(range) => range,
                // The engine reads all positions for a reduction, one block at a time.
                None if result.dims[axis] != len => len / 2..len / 2 + 1,
                None if step.wraps(axis) => 0..len,
                None => wanted.start.saturating_sub(halo)..(wanted.end + halo).min(len),
            });
        }
        ranges.reverse();
        ranges
    }
}

/// A result of size `shape` of a filter for `input`.
fn result(input: &Grid, Shape { dims, channels }: Shape, samples: Samples) -> Grid {
    let alpha = if channels == input.channels { input.alpha } else { Alpha::None };
    Grid { dims, channels, alpha, samples }
}

impl Filter for Chain {
    fn name(&self) -> &'static str {
        "process"
    }

    fn parameters(&self) -> Value {
        let steps = self.steps.iter().map(|step| json!({ step.name(): step.parameters() }));
        json!({ "steps": steps.collect::<Vec<_>>() })
    }

    fn summary(&self, axes: usize) -> String {
        let steps = self.steps.iter().map(|step| format!("{} {}", step.name(), step.summary(axes)));
        steps.collect::<Vec<_>>().join(", then ")
    }

    fn steps(&self) -> &[Arc<dyn Filter>] {
        &self.steps
    }

    fn is_identity(&self) -> bool {
        self.steps.iter().all(|step| step.is_identity())
    }

    fn describe(&self, input: Description) -> Result<Description> {
        self.steps.iter().try_fold(input, |own, step| step.describe(own))
    }

    fn makes_labels(&self) -> bool {
        self.steps.iter().any(|step| step.makes_labels())
    }

    fn shrunken(
        &self,
        size: [usize; 2],
        smaller: &[[usize; 2]],
    ) -> Option<(usize, Box<dyn Filter>)> {
        let (chosen, first) = self.steps.first()?.shrunken(size, smaller)?;
        let mut chain = self.clone();
        chain.steps[0] = Arc::from(first);
        Some((chosen, Box::new(chain)))
    }

    fn flat_axis(&self) -> Option<usize> {
        self.steps.iter().find_map(|step| step.flat_axis())
    }

    fn input_range(
        &self,
        axis: usize,
        output: &Range<usize>,
        shape: Shape,
    ) -> Option<Range<usize>> {
        self.ranges(axis, output, &self.shapes(shape)).into_iter().next()
    }

    fn held_bytes(&self, input: GridType) -> u64 {
        let types = self.types(input).unwrap_or_default();
        self.steps.iter().zip(types).map(|(step, own)| step.held_bytes(own)).sum()
    }

    /// The input of the chain, and what the step takes that takes most.
    fn working_bytes(&self, input: GridType) -> u64 {
        let types = self.types(input).unwrap_or_default();
        let samples = |own: GridType| own.bytes().max(1) as f64 / own.dtype.size() as f64;
        let bytes = self
            .steps
            .iter()
            .zip(types)
            .map(|(step, own)| step.working_bytes(own) as f64 * samples(own) / samples(input));
        input.dtype.size() as u64 + bytes.fold(0.0, f64::max).ceil() as u64
    }

    fn copies(&self) -> u64 {
        self.steps.iter().map(|step| step.copies()).max().unwrap_or(1)
    }

    fn run(&self, device: &Device, input: &Grid) -> Result<Samples> {
        let shapes = self.shapes(input.shape());
        let (mut index, mut last) = (0, None::<Grid>);
        while let Some(step) = self.steps.get(index) {
            let grid = last.as_ref().unwrap_or(input);
            let (count, next) = match self.run_on_gpu(device, index, grid)? {
                Some((count, samples)) => (count, result(grid, shapes[index + count], samples)),
                None => (1, apply(&**step, device, grid)?),
            };
            (index, last) = (index + count, Some(next));
        }
        last.map_or_else(|| input.samples.copy(), |last| Ok(last.samples))
    }

    fn run_block(&self, device: &Device, input: &Grid, block: &Block) -> Result<Samples> {
        let (axis, shapes) = (block.axis, self.shapes(block.shape));
        let ranges = self.ranges(axis, &block.output, &shapes);
        let (mut held, mut last) = (block.input.clone(), None::<Grid>);
        let mut index = 0;
        while let Some(step) = self.steps.get(index) {
            let (grid, shape) = (last.as_ref().unwrap_or(input), shapes[index]);
            let on_gpu = self.run_on_gpu(device, index, grid)?;
            let count = on_gpu.as_ref().map_or(1, |(count, _)| *count);
            let output = ranges[index + count].clone();
            let own = Block { axis, shape, input: held, output: output.clone() };
            let mut samples = match on_gpu {
                Some((_, samples)) => samples,
                None => self.run_step(device, index, grid, &own)?,
            };
            if step.input_range(axis, &output, shape).is_none() {
                let row = samples.len() / own.input.len().max(1);
                let first = output.start - own.input.start;
                samples.keep(first * row..(first + output.len()) * row)?;
            }
            index += count;
            let mut shape = shapes[index];
            shape.dims[axis] = output.len();
            (held, last) = (output, Some(result(grid, shape, samples)));
        }
        last.map_or_else(|| input.samples.copy(), |last| Ok(last.samples))
    }

    fn finish(&self) -> Result<()> {
        self.steps.iter().try_for_each(|step| step.finish())
    }

    fn finding(&self) -> Value {
        self.steps.iter().map(|step| step.finding()).collect()
    }

    fn warning(&self, findings: &[Value]) -> Option<String> {
        self.steps.iter().enumerate().find_map(|(index, step)| {
            let own = findings.iter().map(|all| all[index].clone());
            step.warning(&own.collect::<Vec<_>>())
        })
    }

    fn is_exact_for_u8(&self) -> bool {
        self.steps.iter().all(|step| step.is_exact_for_u8())
    }

    fn core_seconds_per_byte(&self) -> f64 {
        self.steps.iter().map(|step| step.core_seconds_per_byte()).sum()
    }
}
