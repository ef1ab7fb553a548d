//! Runs a filter, or the steps of a chain, on the blocks of an input.

use std::{cell::Cell, ops::Range, slice, sync::Arc};

use super::{
    blocks::{BlockSource, Blocks, read_blocks, write_behind},
    cost::FilterCost,
    grid_source::HeldGrid,
    host::Host,
};
use crate::{
    data::{
        blocks::{Span, Split},
        description::Description,
        grid::{Grid, GridType, Shape},
        reader::Reader,
        samples::Samples,
    },
    kernels::{
        chain::Chain,
        filter::{Block, Consumer, Filter, Preparation, Ready},
    },
    util::error::{Error, Result},
};

/// The part of a result that this process computes, and its division into blocks.
#[derive(Clone, Debug)]
pub struct Division {
    /// Rows or slices of the result to compute.
    pub own: Range<usize>,
    /// Rows or slices of the input in a block.
    pub block: usize,
    /// Bytes of memory that blocks do not need.
    pub spare: u64,
}

impl Division {
    /// The same blocks for the rows or slices `own` of the result.
    pub fn for_own(&self, own: Range<usize>) -> Self {
        Self { own, ..self.clone() }
    }
}

/// Runs a filter on blocks of rows or slices. Passes each result to `write` with the index of its first row or slice.
/// `write` runs on another thread. The result is the same as for the whole input at once.
///
/// # Errors
/// When reading, the filter or `write` fails.
pub fn filter_blocks(
    source: &BlockSource<'_>,
    prepared: &Prepared,
    division: &Division,
    host: &dyn Host,
    mut write: impl FnMut(usize, Samples) -> Result<()> + Send,
) -> Result<()> {
    write_behind(
        |(first, result)| write(first, result),
        |write| {
            prepared.for_each(source, division, host, &mut |first, grid| {
                write((first, grid.samples)).map(|()| None)
            })
        },
    )
}

/// Function that takes the index of the first row or slice of a block of a result, and the block. It may return samples
/// whose memory is reused.
pub type Work<'a> = &'a mut dyn FnMut(usize, Grid) -> Result<Option<Samples>>;

/// A filter whose steps are prepared for an input.
#[derive(Debug)]
pub struct Prepared {
    /// The input, or the result of the first steps, if it is held in memory.
    held: Option<HeldGrid>,
    /// The steps that still have to run, on `held` or else on the input.
    chain: Chain,
    /// All steps.
    all: Vec<Arc<dyn Filter>>,
    /// Bytes of the tables of the prepared steps.
    tables: u64,
    /// The result of all steps.
    result: Description,
}

impl Prepared {
    /// Prepares `filter` for `source`. A step that depends on all samples of its input reads the result of the steps
    /// before it. That result stays in memory if there is enough to spare; otherwise, it is read or computed again.
    ///
    /// # Errors
    /// When reading or the filter fails.
    pub fn new(
        source: &BlockSource<'_>,
        filter: &Arc<dyn Filter>,
        division: &Division,
        host: &dyn Host,
    ) -> Result<Self> {
        let (steps, before) = match filter.steps() {
            [] => (slice::from_ref(filter), None),
            steps => (steps, Some(0)),
        };
        let none = Self::of(None, source.description.clone(), before);
        steps.iter().try_fold(none, |prepared, step| prepared.then(step, source, division, host))
    }

    /// A filter without steps. Its result is its input.
    fn of(held: Option<HeldGrid>, result: Description, before: Option<usize>) -> Self {
        let chain = Chain { before, ..Chain::default() };
        Self { held, chain, all: Vec::new(), tables: 0, result }
    }

    /// The filter with its prepared steps.
    pub fn filter(&self) -> Arc<dyn Filter> {
        match &self.all[..] {
            [step] => step.clone(),
            steps => Arc::new(Chain { steps: steps.to_vec(), before: Some(0) }),
        }
    }

    /// Description of the result of all steps.
    pub fn result(&self) -> &Description {
        &self.result
    }

    /// Prepares a step and adds it at the end.
    fn then(
        mut self,
        step: &Arc<dyn Filter>,
        source: &BlockSource<'_>,
        division: &Division,
        host: &dyn Host,
    ) -> Result<Self> {
        let input = self.result.clone();
        let own = input.grid;
        let all = division.for_own(0..own.shape.dims[source.axis]);
        let held_bytes = self.held.as_ref().map_or(0, HeldGrid::bytes);
        let is_held = self.held.is_some() && self.chain.steps.is_empty();
        let before = self.chain.before.map(|before| before + self.chain.steps.len());
        let bytes = own.bytes();
        let rest = division.spare.saturating_sub(held_bytes.saturating_add(self.tables));
        let holds = !is_held && bytes <= rest;
        let rest = if holds { rest - bytes } else { rest };
        let mut stored = Self::of(None, input.clone(), None);
        let has_read = Cell::new(true);
        let mut read = |consume: Consumer<'_>| {
            if stored.held.is_some() {
                return stored.for_each(source, &all, host, &mut |_, grid| {
                    consume(&grid).map(|()| Some(grid.samples))
                });
            }
            let mut whole = HeldGrid { shape: own.shape, alpha: source.alpha, parts: Vec::new() };
            let mut consume_and_hold = |grid: Grid| {
                consume(&grid)?;
                if !holds {
                    return Ok(Some(grid.samples));
                }
                whole.alpha = grid.alpha;
                whole.parts.push(grid.samples);
                Ok(None)
            };
            match self.chain.steps.is_empty() {
                true => self.for_each(source, &all, host, &mut |_, grid| consume_and_hold(grid)),
                // While one block is consumed, the next one is filtered.
                false => write_behind(
                    |grid| consume_and_hold(grid).map(drop),
                    |write| {
                        self.for_each(source, &all, host, &mut |_, grid| write(grid).map(|()| None))
                    },
                ),
            }?;
            stored.held = Some(whole).filter(|whole| !whole.parts.is_empty());
            Ok(())
        };
        let mut pass = |consume: Consumer<'_>| read(consume).inspect_err(|_| has_read.set(false));
        // Errors of reading already name the input.
        let failed = |error: Error| match has_read.get() {
            true => source.failed(&**step, error),
            false => error,
        };
        let held_before = step.cost(own).held;
        let (device, axis, workspace) = (host.device(), source.axis, host.workspace(rest));
        let preparation = Preparation { device, input: &input, axis, workspace, pass: &mut pass };
        let Ready { filter, result } = step.prepare(preparation).map_err(failed)?;
        let step = filter.map_or_else(|| step.clone(), Arc::from);
        self.tables += step.cost(own).held.saturating_sub(held_before);
        self.all.push(step.clone());
        self.result = step.describe(input)?;
        if let Some(samples) = result {
            let shape = self.result.grid.shape;
            self.held = Some(HeldGrid { shape, alpha: source.alpha, parts: vec![samples] });
            let before = before.map(|before| before + 1);
            self.chain = Chain { steps: Vec::new(), before };
            return Ok(self);
        }
        if stored.held.is_some() {
            self.held = stored.held;
            self.chain = Chain { steps: Vec::new(), before };
        }
        self.chain.steps.push(step);
        Ok(self)
    }

    /// Calls `work` with each block of the result.
    ///
    /// # Errors
    /// When reading, the filter or `work` fails.
    pub fn for_each(
        &self,
        source: &BlockSource<'_>,
        division: &Division,
        host: &dyn Host,
        work: Work<'_>,
    ) -> Result<()> {
        let Some(grid) = &self.held else {
            return run_blocks(source, &self.chain, division, host, work);
        };
        let axis = source.axis;
        let open = |first: usize| -> Result<Box<dyn Reader + '_>> {
            Ok(Box::new(grid.reader(axis, first)))
        };
        let (name, &HeldGrid { shape, alpha, .. }) = (source.name.clone(), grid);
        let input = GridType { shape, dtype: grid.parts[0].dtype() };
        let held = BlockSource { name, description: input.into(), axis, alpha, open: &open };
        let mut block = (division.block * held.length()).div_ceil(source.length().max(1));
        if division.block < source.length() {
            // The halo of these steps is smaller than that of all steps.
            let types = [input, self.result.grid];
            let max = FilterCost::new(&self.chain, types, axis, (0, 1)).max_block();
            block = block.min(max as usize);
        }
        run_blocks(&held, &self.chain, &Division { block, ..division.clone() }, host, work)
    }
}

/// Runs `chain` on blocks of `source`, and calls `work` with each block of the result.
fn run_blocks(
    source: &BlockSource<'_>,
    chain: &Chain,
    division: &Division,
    host: &dyn Host,
    work: Work<'_>,
) -> Result<()> {
    let (filter, own) = (chain.filter(), division.own.clone());
    let (axis, shape, len) = (source.axis, source.shape(), source.length());
    let result = chain.shapes(shape)[chain.steps.len()];
    let all = filter.reach(axis, &(0..result.dims[axis]), shape).input();
    let used = all.map_or(len, |all| all.len());
    let reach = filter.whole_reach(axis, shape);
    let (halo, wraps) = (reach.halo(), reach.wraps());
    let block = (division.block * result.dims[axis] / used.max(1)).max(1);
    let split = Split { len, block, halo: [halo; 2], wraps };
    let padded = |core| match filter.reach(axis, &core, shape).input() {
        Some(padded) => Span { core, padded, before: 0 },
        None => split.padded(core),
    };
    let blocks = Blocks { own, block, padded: &padded, wraps, overlaps: true, skipped: &|_| 0 };
    let title = if chain.steps.is_empty() { "read" } else { filter.name() };
    read_blocks(source, &blocks, title, host, |span, grid| {
        let (output, input) = (span.core.clone(), span.padded.clone());
        let block = Block { axis, shape, input, output };
        let is_resized = filter.reach(axis, &span.core, shape).input().is_some();
        let (Shape { mut dims, channels }, alpha) = (result, grid.alpha);
        let (filtered, done) = match filter.properties().is_identity {
            true => (Ok(grid.samples), None),
            false => (filter.run(host.device(), &grid, &block), Some(grid.samples)),
        };
        let mut samples = filtered.map_err(|error| source.failed(filter, error))?;
        if !is_resized {
            let row = samples.len() / span.padded.len().max(1);
            samples.keep(span.before * row..(span.before + span.core.len()) * row)?;
        }
        dims[axis] = span.core.len();
        let used = work(span.core.start, Grid { dims, channels, alpha, samples })?;
        Ok(done.or(used))
    })
}
