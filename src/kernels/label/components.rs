//! Connected components of a grid that is read block by block.
//!
//! The first pass finds the runs of each slice (a row of an image, a plane of a volume) and gives them provisional
//! numbers that depend on this slice only. Numbers of neighbouring runs are joined, within the slice and with the slice
//! before. At the end, the components are numbered in raster order. The second pass finds the same runs and provisional
//! numbers again, and looks up the final numbers. Nothing depends on how slices are divided into blocks.
//!
//! Only one band of slices at a time is in memory: `tables` keeps the trees of the bands before, on disk if need be.

use std::ops::Range;

use super::{
    forest::{Forest, check_count},
    runs::{self, Reach, Runs, Slices},
    tables::Tables,
};
use crate::{
    data::{
        dtype::{Dtype, Scalar},
        samples::Samples,
    },
    util::{
        error::Result,
        memory,
        parallel::Parallel,
        spill::{Spill, Workspace},
    },
};

/// What a component is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Which samples are neighbours.
    pub reach: Reach,
    /// Whether only neighbours with equal samples belong together. Samples that are 0 belong to no component.
    pub is_equal: bool,
    /// Minimum weight of a component. Lighter components become background. If it is 0, weights are not computed.
    pub min_weight: u64,
}

impl Rule {
    /// Maximum memory of labelling a row of `width` samples, in bytes, without samples and tables.
    pub fn max_row_bytes(self, width: usize) -> u64 {
        let runs = if self.is_equal { width } else { width.div_ceil(2) };
        runs::bytes(1, width, runs as u64, self.is_equal, self.min_weight > 0)
    }

    /// Whether labelling `keys`, rows of `width` samples, takes at most `limit` bytes, without samples and tables.
    pub fn fits(self, keys: &Samples, width: usize, limit: u64) -> bool {
        let rows = (keys.len() / width) as u64;
        if rows.saturating_mul(self.max_row_bytes(width)) <= limit {
            return true;
        }
        let step = rows_per_thread(keys.len() / width, width) * width;
        let counts = parts(0..keys.len(), step)
            .par_map(|samples| runs::max_count(keys, samples, width, self.is_equal));
        let runs = counts.into_iter().sum();
        runs::bytes(rows, width, runs, self.is_equal, self.min_weight > 0) <= limit
    }
}

/// Weight of the samples in a range of a block, for [`Rule::min_weight`].
pub type Weigh<'a> = &'a (dyn Fn(Range<usize>) -> u64 + Sync);

/// Slices that one thread labels.
#[derive(Debug)]
struct Slab {
    runs: Runs,
    /// Number of provisional numbers before each slice.
    firsts: Vec<u32>,
    forest: Forest,
    weights: Vec<u64>,
    /// Number of provisional numbers before this slab in its band, which is added to its own.
    base: u32,
}

impl Slab {
    /// Labels `samples` of a block. `joins` is set in the first pass.
    fn new(
        rule: Rule,
        keys: &Samples,
        samples: Range<usize>,
        slices: Slices,
        joins: bool,
    ) -> Result<Self> {
        let height = slices.height;
        let mut runs = Runs::of(keys, samples, slices, rule.is_equal)?;
        let (mut forest, mut firsts) = (Forest::default(), memory::room(runs.rows() / height + 1)?);
        for row in (0..runs.rows()).step_by(height) {
            firsts.push(forest.len() as u32);
            runs.number(row..runs.rows().min(row + height), rule.reach, &mut forest)?;
            if joins && row > 0 {
                let join = |a, b| forest.join(a, b);
                let (both, rows) = ([&runs; 2], [row - height, row]);
                Runs::touching_slices(both, rows, slices, rule.reach, join);
            }
        }
        Ok(Self { runs, firsts, forest, weights: Vec::new(), base: 0 })
    }

    /// Sets the weight of each provisional number. The slab begins at the sample `first` of its block.
    fn weigh(&mut self, first: usize, width: usize, weigh: Weigh<'_>) -> Result<()> {
        self.weights = memory::zeros(self.forest.len())?;
        for row in 0..self.runs.rows() {
            let first = first + row * width;
            self.runs.for_each_in_row(row, |start, end, number| {
                self.weights[number as usize] += weigh(first + start..first + end);
            });
        }
        Ok(())
    }

    /// Writes the final numbers to `result`, where other samples are 0.
    fn fill<T: Copy>(&self, labels: &[u32], width: usize, result: &mut [T], to: impl Fn(u32) -> T) {
        for (row, result) in result.chunks_mut(width).enumerate() {
            self.runs.for_each_in_row(row, |start, end, number| {
                result[start..end].fill(to(labels[(self.base + number) as usize]));
            });
        }
    }
}

/// Rows of `width` samples that a thread takes at a time, of `rows`.
fn rows_per_thread(rows: usize, width: usize) -> usize {
    /// Minimum number of samples.
    const MIN: usize = 1 << 16;
    let threads = rayon::current_num_threads();
    let parts = if threads == 1 { 1 } else { 4 * threads };
    rows.div_ceil(parts).max(MIN.div_ceil(width))
}

/// Divides `samples` into slabs.
fn slabs(samples: Range<usize>, slices: Slices) -> impl ExactSizeIterator<Item = Range<usize>> {
    let Slices { width, height, .. } = slices;
    let rows = rows_per_thread(samples.len() / width, width).next_multiple_of(height);
    parts(samples, rows * width)
}

/// Divides `samples` into parts of `step` samples.
fn parts(samples: Range<usize>, step: usize) -> impl ExactSizeIterator<Item = Range<usize>> {
    let Range { start, end } = samples;
    let part = move |number: usize| start + number * step..end.min(start + (number + 1) * step);
    (0..samples.len().div_ceil(step)).map(part)
}

/// Pairs of provisional numbers that belong together: of the last slice of `a`, and the first slice of `b`.
fn seam([a, b]: [&Runs; 2], slices: Slices, reach: Reach) -> Vec<[u32; 2]> {
    let mut pairs = Vec::new();
    let above = a.rows() - slices.height;
    Runs::touching_slices([a, b], [above, 0], slices, reach, |a, b| {
        memory::reserve(&mut pairs, 1).unwrap_or_else(memory::raise);
        pairs.push([a, b]);
    });
    pairs
}

impl Slices {
    /// The slices of a grid that is read in blocks: the rows of an image, or the planes of a volume.
    pub fn of([width, height, depth]: [usize; 3]) -> Self {
        let are_rows = depth == 1;
        Self { width, height: if are_rows { 1 } else { height }, are_rows }
    }

    /// The slices of a grid that is in memory: larger parts of an image, in which fewer provisional numbers occur.
    pub fn of_whole(dims: [usize; 3]) -> Self {
        match Self::of(dims) {
            planes @ Self { are_rows: false, .. } => planes,
            rows => Self { height: rows_per_thread(dims[1], dims[0]).min(dims[1]), ..rows },
        }
    }
}

/// How a grid is labelled.
#[derive(Clone, Copy, Debug)]
struct Plan {
    rule: Rule,
    slices: Slices,
    /// Maximum number of samples in a band.
    band: usize,
}

impl Plan {
    /// Divides `len` samples into bands of whole slices.
    fn bands(self, len: usize) -> impl Iterator<Item = Range<usize>> {
        let slice = self.slices.width * self.slices.height;
        parts(0..len, (self.band / slice).max(1).saturating_mul(slice))
    }
}

/// The slabs of a band and the trees of its provisional numbers.
#[derive(Debug, Default)]
struct Band {
    slabs: Vec<Slab>,
    /// The root of each class that is open at the start, and of each provisional number.
    roots: Vec<u32>,
    /// The weight of each root.
    weights: Vec<u64>,
    /// Number of classes that are open at the start.
    open: usize,
}

/// The first pass over a grid.
#[derive(Debug)]
pub struct Components {
    plan: Plan,
    tables: Tables,
    /// Number of provisional numbers before each slice.
    firsts: Spill<u32>,
    /// Number of provisional numbers.
    count: usize,
    /// The last band.
    last: Option<Band>,
}

impl Components {
    /// No slices so far. Tables that exceed `workspace` are kept on disk.
    pub fn new(rule: Rule, slices: Slices, workspace: Workspace) -> Self {
        let quarter = workspace.of(workspace.bytes / 4);
        let plan = Plan { rule, slices, band: usize::MAX };
        Self {
            plan,
            tables: Tables::new(quarter),
            firsts: Spill::new(quarter),
            count: 0,
            last: None,
        }
    }

    /// Divides blocks into bands whose runs take about `bytes`, if they are larger.
    pub fn limit_bands(&mut self, bytes: u64) {
        /// A shorter band would save no memory that matters.
        const MIN: usize = 1 << 17;
        let Plan { rule, slices: Slices { width, .. }, .. } = self.plan;
        let rows = bytes / rule.max_row_bytes(width);
        self.plan.band = usize::try_from(rows).unwrap_or(usize::MAX).saturating_mul(width).max(MIN);
    }

    /// Adds the next slices: foreground is where `keys` is not 0.
    pub fn add(&mut self, keys: &Samples, weigh: Weigh<'_>) -> Result<()> {
        self.plan.bands(keys.len()).try_for_each(|samples| self.add_band(keys, samples, weigh))
    }

    fn add_band(&mut self, keys: &Samples, samples: Range<usize>, weigh: Weigh<'_>) -> Result<()> {
        let Plan { rule, slices, .. } = self.plan;
        let (before, before_weights) = match self.last.take() {
            Some(band) => self.close(band).map(|(runs, weights)| (Some(runs), weights))?,
            None => (None, Vec::new()),
        };
        let open = self.tables.open();
        let new = slabs(samples, slices).par_map(|samples| {
            let mut slab = Slab::new(rule, keys, samples.clone(), slices, true)?;
            if rule.min_weight > 0 {
                slab.weigh(samples.start, slices.width, weigh)?;
            }
            Ok(slab)
        });
        let mut new = new.into_iter().collect::<Result<Vec<_>>>()?;
        let mut forest = Forest::of_single_numbers(open)?;
        let mut weights = before_weights;
        for slab in &mut new {
            slab.base = forest.append(&slab.forest)? - open as u32;
            slab.forest = Forest::default();
            memory::append(&mut weights, &mut slab.weights)?;
            check_count(self.count + forest.len())?;
            let base = self.count as u32 + slab.base;
            let mut firsts = std::mem::take(&mut slab.firsts);
            firsts.iter_mut().for_each(|first| *first += base);
            self.firsts.append(&firsts)?;
        }
        self.count += forest.len() - open;
        let node = |slab: &Slab| open as u32 + slab.base;
        let seams = before.as_ref().zip(new.first()).map(|(runs, slab)| (runs, 0, slab));
        let inner = new.windows(2).map(|pair| (&pair[0].runs, node(&pair[0]), &pair[1]));
        let seams: Vec<_> = seams.into_iter().chain(inner).collect();
        // Roots and the last pass need 8 of the bytes that `runs::bytes` counts for a run. Until then, these hold the
        // pairs of as many seams as threads: a quarter of a large band.
        for seams in seams.chunks(rayon::current_num_threads()) {
            let joined = seams.iter().par_map(|&(runs, first, slab)| {
                (seam([runs, &slab.runs], slices, rule.reach), first, node(slab))
            });
            for (pairs, first, second) in joined {
                pairs.into_iter().for_each(|[a, b]| forest.join(first + a, second + b));
            }
        }
        let roots = forest.into_roots([].into_iter());
        // A parent is smaller than its children.
        for number in (0..weights.len()).rev() {
            let root = roots[number] as usize;
            if root != number {
                weights[root] += weights[number];
            }
        }
        self.last = Some(Band { slabs: new, roots, weights, open });
        Ok(())
    }

    /// Moves the trees of a band to the tables. Returns the runs of its last slice, numbered by the classes that are open
    /// at its end, and the weights of these.
    fn close(&mut self, band: Band) -> Result<(Runs, Vec<u64>)> {
        let Band { slabs, roots, weights, open } = band;
        let last = slabs.last().expect("a band has slabs");
        let (mut runs, base) =
            (last.runs.last_rows(self.plan.slices.height)?, open as u32 + last.base);
        drop(slabs);
        runs.renumber(|number| roots[(base + number) as usize]);
        let mut classes = memory::copied(runs.numbers())?;
        classes.sort_unstable();
        classes.dedup();
        runs.renumber(|root| classes.binary_search(&root).expect("the root of a run") as u32);
        self.store(&roots, &weights, open, &classes)?;
        let weight = |&class: &u32| weights[class as usize];
        let weights = if weights.is_empty() { &[][..] } else { &classes };
        Ok((runs, memory::collected(weights.iter().map(weight))))
    }

    /// Stores the trees of a band at whose end the roots `classes` are open.
    fn store(
        &mut self,
        roots: &[u32],
        weights: &[u64],
        open: usize,
        classes: &[u32],
    ) -> Result<()> {
        let is_light = |&(root, &weight): &(usize, &u64)| {
            let is_root = roots[root] as usize == root;
            is_root && weight < self.plan.rule.min_weight
        };
        let light = weights.iter().enumerate().filter(is_light).map(|(root, _)| root as u32);
        let light = light.filter(|root| classes.binary_search(root).is_err());
        self.tables.add(roots, open, classes, light)
    }

    /// The numbers of all components.
    pub fn finish(mut self) -> Result<Labels> {
        let Band { slabs, roots, weights, open } = self.last.take().unwrap_or_default();
        self.store(&roots, &weights, open, &[])?;
        drop((roots, weights));
        let Self { plan, tables, firsts, .. } = self;
        let is_one = tables.bands() == 1;
        let (numbers, count) = tables.finish()?;
        Ok(Labels { plan, numbers, count, firsts, slabs: if is_one { slabs } else { Vec::new() } })
    }
}

/// The components of a grid.
#[derive(Debug)]
pub struct Labels {
    plan: Plan,
    /// The final number of each provisional number.
    numbers: Spill<u32>,
    /// Number of components.
    pub count: u32,
    /// Number of provisional numbers before each slice.
    firsts: Spill<u32>,
    /// All slabs, if the first pass had one band.
    slabs: Vec<Slab>,
}

impl Labels {
    /// The type that holds all numbers.
    pub fn dtype(&self) -> Dtype {
        if self.count <= u16::MAX.into() { Dtype::U16 } else { Dtype::U32 }
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        let runs = self.slabs.iter().map(|slab| slab.runs.bytes());
        self.numbers.bytes() + self.firsts.bytes() + runs.sum::<u64>()
    }

    /// The number of the component of each sample, 0 for background. `keys` are the slices from `first` on.
    pub fn fill(&self, keys: &Samples, first: usize) -> Result<Samples> {
        Ok(match self.dtype() {
            Dtype::U16 => self.written(keys, first, |number| number as u16)?.into(),
            _ => self.written(keys, first, |number| number)?.into(),
        })
    }

    /// 255 at the samples of components, 0 for background. `keys` are the slices from `first` on.
    pub fn mask(&self, keys: &Samples, first: usize) -> Result<Samples> {
        let mask = self.written(keys, first, |number| if number > 0 { 255u8 } else { 0 });
        mask.map(Samples::from)
    }

    fn written<T: Scalar>(
        &self,
        keys: &Samples,
        first: usize,
        to: impl Fn(u32) -> T + Sync,
    ) -> Result<Vec<T>> {
        let Plan { rule, slices: Slices { width, height, .. }, .. } = self.plan;
        let (slice, mut result) = (width * height, memory::zeros(keys.len())?);
        for samples in self.plan.bands(keys.len()) {
            let (mut found, mut count, mut start) = (Vec::new(), self.numbers.len(), 0);
            let own = &mut result[samples.clone()];
            if keys.len().div_ceil(slice) != self.firsts.len() || self.slabs.is_empty() {
                let at = first + samples.start / slice;
                start = self.firsts.read(at..at + 1)?[0] as usize;
                let slabs = slabs(samples, self.plan.slices)
                    .par_map(|samples| Slab::new(rule, keys, samples, self.plan.slices, false));
                found = slabs.into_iter().collect::<Result<Vec<_>>>()?;
                count = 0;
                for slab in &mut found {
                    slab.base = count as u32;
                    count += std::mem::take(&mut slab.forest).len();
                }
            }
            let slabs = if found.is_empty() { &self.slabs } else { &found };
            let (numbers, mut rest) = (self.numbers.read(start..start + count)?, own);
            let parts = slabs.iter().map(|slab| {
                let own = rest.split_off_mut(..slab.runs.rows() * width);
                (slab, own.expect("slabs cover a band"))
            });
            let parts: Vec<_> = parts.collect();
            parts.into_iter().par_each(|(slab, own)| slab.fill(&numbers, width, own, &to));
        }
        Ok(result)
    }
}
