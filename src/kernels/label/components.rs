//! Connected components of a grid that is read block by block.
//!
//! The first pass finds the runs of each slice (a row of an image, a plane of a volume) and gives them provisional
//! numbers that depend on this slice only. Numbers of neighbouring runs are joined, within the slice and with the slice
//! before. At the end, the components are numbered in raster order. The second pass finds the same runs and provisional
//! numbers again, and looks up the final numbers. Nothing depends on how slices are divided into blocks.

use std::ops::Range;

use super::{
    forest::Forest,
    runs::{Reach, Runs, Slices},
};
use crate::{
    data::{
        dtype::{Dtype, Scalar},
        samples::Samples,
    },
    util::{error::Result, memory, parallel::Parallel},
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
    /// What is added to provisional numbers of this slab.
    base: u32,
}

impl Slab {
    /// Labels `samples` of a block. `joins` is set in the first pass.
    fn new(
        rule: Rule,
        (keys, samples): (&Samples, Range<usize>),
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
                runs.touching_slices(row - height, (&runs, row), (slices, rule.reach), join);
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

    /// Pairs of provisional numbers that belong together: of the last slice of `self`, and the first slice of `next`.
    fn seam(&self, next: &Self, slices: Slices, reach: Reach) -> Vec<[u32; 2]> {
        let mut pairs = Vec::new();
        let above = self.runs.rows() - slices.height;
        self.runs.touching_slices(above, (&next.runs, 0), (slices, reach), |a, b| {
            pairs.push([self.base + a, next.base + b]);
        });
        pairs
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

/// The samples of each slab of a block of `len` samples.
fn slabs(len: usize, slices: Slices) -> impl ExactSizeIterator<Item = Range<usize>> {
    let Slices { width, height, .. } = slices;
    let rows = rows_per_thread(len / width, width).next_multiple_of(height);
    let step = rows * width;
    (0..len.div_ceil(step)).map(move |slab| slab * step..len.min((slab + 1) * step))
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

/// The first pass over a grid.
#[derive(Debug)]
pub struct Components {
    rule: Rule,
    slices: Slices,
    forest: Forest,
    weights: Vec<u64>,
    /// Number of provisional numbers before each slice.
    firsts: Vec<u32>,
    /// The slabs of the last block.
    slabs: Vec<Slab>,
    blocks: usize,
}

impl Components {
    /// No slices so far.
    pub fn new(rule: Rule, slices: Slices) -> Self {
        let (forest, weights, firsts, slabs) = Default::default();
        Self { rule, slices, forest, weights, firsts, slabs, blocks: 0 }
    }

    /// Adds the next slices: foreground is where `keys` is not 0.
    ///
    /// # Errors
    /// If there is not enough memory, or there are too many components.
    pub fn add(&mut self, keys: &Samples, weigh: Weigh<'_>) -> Result<()> {
        let &mut Self { rule, slices, .. } = self;
        let new = slabs(keys.len(), slices).par_map(|samples| {
            let mut slab = Slab::new(rule, (keys, samples.clone()), slices, true)?;
            if rule.min_weight > 0 {
                slab.weigh(samples.start, slices.width, weigh)?;
            }
            Ok(slab)
        });
        let mut new = new.into_iter().collect::<Result<Vec<_>>>()?;
        for slab in &mut new {
            slab.base = self.forest.append(&slab.forest)?;
            slab.forest = Forest::default();
            memory::append(&mut self.weights, &mut slab.weights)?;
            let base = slab.base;
            self.firsts.extend(slab.firsts.iter().map(|first| base + first));
        }
        let all: Vec<&Slab> = self.slabs.last().into_iter().chain(&new).collect();
        let seams = all.windows(2).par_map(|pair| pair[0].seam(pair[1], slices, rule.reach));
        for [a, b] in seams.into_iter().flatten() {
            self.forest.join(a, b);
        }
        self.slabs = new;
        self.blocks += 1;
        Ok(())
    }

    /// The numbers of all components.
    pub fn finish(self) -> Labels {
        let Self { rule, slices, forest, weights, firsts, slabs, blocks } = self;
        let (numbers, count) = forest.into_labels(weights, rule.min_weight);
        let slabs = if blocks == 1 { slabs } else { Vec::new() };
        Labels { rule, slices, numbers, count, firsts, slabs }
    }
}

/// The components of a grid.
#[derive(Debug)]
pub struct Labels {
    rule: Rule,
    slices: Slices,
    /// The final number of each provisional number.
    numbers: Vec<u32>,
    /// Number of components.
    pub count: u32,
    /// Number of provisional numbers before each slice.
    firsts: Vec<u32>,
    /// All slabs, if the first pass had one block.
    slabs: Vec<Slab>,
}

impl Labels {
    /// The type that holds all numbers.
    pub fn dtype(&self) -> Dtype {
        if self.count <= u16::MAX.into() { Dtype::U16 } else { Dtype::U32 }
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        4 * (self.numbers.len() + self.firsts.len()) as u64
    }

    /// The number of the component of each sample, 0 for background. `keys` are the slices from `first` on.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn fill(&self, keys: &Samples, first: usize) -> Result<Samples> {
        let slice = self.slices.width * self.slices.height;
        let mut found = Vec::new();
        if keys.len().div_ceil(slice) != self.firsts.len() || self.slabs.is_empty() {
            let slabs = slabs(keys.len(), self.slices).par_map(|samples| {
                let first = first + samples.start / slice;
                let slab = Slab::new(self.rule, (keys, samples), self.slices, false)?;
                Ok(Slab { base: self.firsts[first], ..slab })
            });
            found = slabs.into_iter().collect::<Result<_>>()?;
        }
        let slabs = if found.is_empty() { &self.slabs } else { &found };
        Ok(match self.dtype() {
            Dtype::U16 => self.written(slabs, keys.len(), |number| number as u16)?.into(),
            _ => self.written(slabs, keys.len(), |number| number)?.into(),
        })
    }

    fn written<T: Scalar>(
        &self,
        slabs: &[Slab],
        len: usize,
        to: impl Fn(u32) -> T + Sync,
    ) -> Result<Vec<T>> {
        let width = self.slices.width;
        let mut result = memory::zeros(len)?;
        let mut rest = &mut result[..];
        let parts = slabs.iter().map(|slab| {
            let own = rest.split_off_mut(..slab.runs.rows() * width).expect("slabs cover a block");
            (slab, own)
        });
        let parts: Vec<_> = parts.collect();
        parts.into_iter().par_each(|(slab, own)| slab.fill(&self.numbers, width, own, &to));
        Ok(result)
    }
}
