//! Filters that run one after another, each on the result of the one before.

use std::{ops::Range, sync::Arc};

use serde_json::{Value, json};

use super::{
    filter::{Block, Cost, Filter, Properties, Reach, apply as apply_one},
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
    util::{error::Result, memory, spill::Workspace},
};

/// Filters that run one after another. Each also computes the halo that the following ones need, so that only the ends
/// of the whole input are edges. To run a chain on blocks, the caller first [prepares](Filter::prepare) the filters
/// that depend on all samples of their input.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// The filters.
    pub steps: Vec<Arc<dyn Filter>>,
    /// Number of steps of the whole chain that run before these; `None` for a filter that is not part of a chain.
    pub before: Option<usize>,
}

impl Chain {
    /// The filter to run: the only step if it is not part of a chain, else the chain itself.
    pub fn filter(&self) -> &dyn Filter {
        match (&self.steps[..], self.before) {
            ([step], None) => &**step,
            _ => self,
        }
    }

    /// The number of the step at `index` in messages. They count the steps of the whole chain from 1.
    fn display_number(&self, index: usize) -> usize {
        self.before.unwrap_or(0) + index + 1
    }

    /// Runs the step at `index` on `grid` to compute `block`.
    fn run_step(
        &self,
        device: &Device,
        index: usize,
        grid: &Grid,
        block: &Block,
    ) -> Result<Samples> {
        let step = &self.steps[index];
        let name = format!("step {}: {}", self.display_number(index), step.name());
        let run = || {
            if step.properties().is_identity {
                grid.samples.copy()
            } else {
                step.run(device, grid, block)
            }
        };
        device.time(&name, run).map_err(|error| error.context(&name))
    }

    /// Runs the steps from `index` on in one batch, as far as the GPU can run them. Returns their number and the result
    /// of the last one; `None` if they are fewer than two.
    fn run_on_gpu(
        &self,
        device: &Device,
        steps: Range<usize>,
        grid: &Grid,
    ) -> Result<Option<(usize, Samples)>> {
        let before = Some(self.before.unwrap_or(0) + steps.start);
        let steps = self.steps[steps].iter().map(|step| &**step).collect();
        let chain = GpuChain { steps, before, encoding: None };
        Ok(match chain.run(device, GpuInput::Samples(grid.shape(), &grid.samples))? {
            Some((count, GpuOutput::Samples(samples))) => Some((count, samples)),
            _ => None,
        })
    }

    /// The result for a whole grid in memory.
    pub fn apply(&self, device: &Device, input: &Grid) -> Result<Grid> {
        let (mut index, mut last) = (0, None::<Grid>);
        let shapes = self.shapes(input.shape());
        while let Some(step) = self.steps.get(index) {
            let grid = last.as_ref().unwrap_or(input);
            let (count, next) = match self.run_on_gpu(device, index..self.steps.len(), grid)? {
                Some((count, samples)) => (count, result(grid, shapes[index + count], samples)),
                None => (1, apply_one(&**step, device, Workspace::UNLIMITED, grid)?),
            };
            (index, last) = (index + count, Some(next));
        }
        last.map_or_else(|| Ok(Grid { samples: input.samples.copy()?, ..*input }), Ok)
    }

    /// The types of the inputs of all steps, and of the result.
    fn types(&self, input: GridType) -> Result<Vec<GridType>> {
        let mut types = vec![input];
        for step in &self.steps {
            types.push(step.output(types[types.len() - 1])?);
        }
        Ok(types)
    }

    /// The sizes of the inputs of all steps, and of the result. They do not depend on the type of the samples.
    pub fn shapes(&self, input: Shape) -> Vec<Shape> {
        let types = self.types(GridType { shape: input, dtype: Dtype::U8 });
        types.map_or(memory::filled(input, self.steps.len() + 1), |types| {
            types.iter().map(|own| own.shape).collect()
        })
    }

    /// For the results at the positions `output` along `axis`: the positions of the input of each step that they depend
    /// on, and at the end `output` itself.
    fn ranges(&self, axis: usize, output: &Range<usize>, shapes: &[Shape]) -> Vec<Range<usize>> {
        let mut ranges = vec![output.clone()];
        for ((step, input), result) in self.steps.iter().zip(shapes).zip(&shapes[1..]).rev() {
            let wanted = &ranges[ranges.len() - 1];
            let (len, reach) = (input.dims[axis], step.reach(axis, wanted, *input));
            let (wraps, halo) = (reach.wraps(), reach.halo());
            ranges.push(match reach.input() {
                Some(range) => range,
                // A reduction reads all positions when it is prepared, one block at a time.
                None if result.dims[axis] != len => len / 2..len / 2 + 1,
                None if wraps => 0..len,
                None => wanted.start.saturating_sub(halo)..(wanted.end + halo).min(len),
            });
        }
        ranges.reverse();
        ranges
    }
}

/// The grid of a result of size `shape`. It has the alpha of `input` if it has the same number of channels.
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

    fn properties(&self) -> Properties {
        let all = || self.steps.iter().map(|step| step.properties());
        Properties {
            is_identity: all().all(|own| own.is_identity),
            // The input of each step is converted when it runs.
            needs_straight_alpha: false,
            makes_labels: all().any(|own| own.makes_labels),
            has_tables: all().any(|own| own.has_tables),
            varies_for_u8: all().any(|own| own.varies_for_u8),
        }
    }

    fn describe(&self, input: Description) -> Result<Description> {
        self.steps.iter().try_fold(input, |own, step| step.describe(own))
    }

    fn placed(&self, input: &Description) -> Result<Option<Box<dyn Filter>>> {
        let (mut own, mut chain) = (input.clone(), self.clone());
        let mut is_changed = false;
        for step in &mut chain.steps {
            if let Some(placed) = step.placed(&own)? {
                (*step, is_changed) = (placed.into(), true);
            }
            own = step.describe(own)?;
        }
        Ok(is_changed.then(|| chain.into()))
    }

    fn reach(&self, axis: usize, output: &Range<usize>, shape: Shape) -> Reach {
        Reach::Input(self.ranges(axis, output, &self.shapes(shape)).remove(0))
    }

    /// Working memory is the input of the chain plus the maximum over the steps. Time and the memory held throughout
    /// are sums over the steps.
    fn cost(&self, input: GridType) -> Cost {
        let samples = |own: GridType| own.bytes().max(1) as f64 / own.dtype.size() as f64;
        let (mut own, mut working, mut seconds) = (input, 0.0f64, None);
        let mut all = Cost { held: 0, working: 0, copies: 1, core_seconds: None };
        for step in &self.steps {
            let cost = step.cost(own);
            all.held += cost.held;
            all.copies = all.copies.max(cost.copies);
            working = working.max(cost.working as f64 * samples(own) / samples(input));
            seconds = cost.core_seconds.map(|more| seconds.unwrap_or(0.0) + more).or(seconds);
            // One grey sample may lack channels that the step needs.
            own = step.output(own).unwrap_or(own);
        }
        all.working = input.dtype.size() as u64 + working.ceil() as u64;
        Cost { core_seconds: seconds, ..all }
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

    fn run(&self, device: &Device, input: &Grid, block: &Block) -> Result<Samples> {
        let (axis, shapes) = (block.axis, self.shapes(block.shape));
        let ranges = self.ranges(axis, &block.output, &shapes);
        let (mut held, mut last) = (block.input.clone(), None::<Grid>);
        let mut index = 0;
        while let Some(step) = self.steps.get(index) {
            let (grid, shape) = (last.as_ref().unwrap_or(input), shapes[index]);
            // Beside its range, a step would find facts about samples that are not results.
            let finds = |at: &usize| ranges[*at] != held && !self.steps[*at].finding().is_null();
            let end = (index + 1..self.steps.len()).find(finds).unwrap_or(self.steps.len());
            let on_gpu = self.run_on_gpu(device, index..end, grid)?;
            let count = on_gpu.as_ref().map_or(1, |(count, _)| *count);
            let output = ranges[index + count].clone();
            let own = Block { axis, shape, input: held, output: output.clone() };
            let mut samples = match on_gpu {
                Some((_, samples)) => samples,
                None => self.run_step(device, index, grid, &own)?,
            };
            if step.reach(axis, &output, shape).input().is_none() {
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

    fn distorts(&self, shape: Shape) -> bool {
        self.steps.iter().zip(self.shapes(shape)).any(|(step, shape)| step.distorts(shape))
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
}

/// The result of `filter`, which may be a chain, for a whole grid in memory.
pub fn apply(filter: &dyn Filter, device: &Device, input: &Grid) -> Result<Grid> {
    match filter.steps() {
        [] => apply_one(filter, device, Workspace::UNLIMITED, input),
        steps => Chain { steps: steps.to_vec(), before: Some(0) }.apply(device, input),
    }
}
