//! Sizes, boxes, centroids and intensities of labelled regions.

use std::{
    collections::{HashMap, hash_map::Entry},
    io,
    ops::Range,
};

use crate::{
    data::samples::Samples,
    for_samples,
    util::{
        error::{Error, Result},
        memory,
        spill::{Spill, Workspace},
    },
};

/// The samples with one label.
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Region {
    /// Number of samples.
    pub size: u64,
    /// First position along each axis.
    pub start: [u64; 3],
    /// Position after the last one along each axis.
    pub end: [u64; 3],
    /// Sums of the positions along each axis.
    sums: [u64; 3],
    /// Sum of the intensities, in the order of the samples.
    total: f64,
    /// Minimum and maximum of the intensities; NaN if any is NaN.
    pub extremes: [f64; 2],
}

impl Region {
    /// The region without samples.
    const EMPTY: Self = Self {
        size: 0,
        start: [u64::MAX; 3],
        end: [0; 3],
        sums: [0; 3],
        total: 0.0,
        extremes: [f64::INFINITY, f64::NEG_INFINITY],
    };

    /// Mean position of the samples along each axis.
    pub fn centroid(&self) -> [f64; 3] {
        self.sums.map(|sum| sum as f64 / self.size as f64)
    }

    /// Mean of the intensities.
    pub fn mean(&self) -> f64 {
        self.total / self.size as f64
    }

    /// Adds the samples at the positions `x` of a row.
    fn add(&mut self, x: Range<usize>, [y, z]: [usize; 2]) {
        let count = x.len() as u64;
        self.size += count;
        self.sums[0] += (x.start + x.end - 1) as u64 * count / 2;
        self.sums[1] += y as u64 * count;
        self.sums[2] += z as u64 * count;
        for (axis, own) in [x, y..y + 1, z..z + 1].into_iter().enumerate() {
            self.start[axis] = self.start[axis].min(own.start as u64);
            self.end[axis] = self.end[axis].max(own.end as u64);
        }
    }

    fn add_intensities<T: Copy>(&mut self, values: &[T], number: impl Fn(T) -> f64) {
        for value in values.iter().map(|&value| number(value)) {
            self.total += value;
            let [low, high] = &mut self.extremes;
            if value < *low || value.is_nan() {
                *low = value;
            }
            if value > *high || value.is_nan() {
                *high = value;
            }
        }
    }
}

/// The regions 1, 2 and so on of a grid whose labels are added in order, numbered by their first samples.
#[derive(Debug)]
pub struct Regions {
    /// Regions that may continue in the next slice.
    open: HashMap<u32, Region>,
    /// All other regions, by label from 1 on.
    done: Spill<Region>,
    /// Number of regions so far.
    count: u32,
    /// Number of open regions at which a search for ended ones begins.
    limit: usize,
    /// Maximum number of open regions in memory.
    max_open: usize,
}

/// Minimum number of open regions to search for ended ones.
const MIN_SEARCHED: usize = 1 << 14;

impl Regions {
    /// No regions so far. What exceeds `workspace` is kept on disk.
    pub fn new(workspace: Workspace) -> Self {
        /// Bytes of an open region while the map grows: the old and the new map are in memory.
        const OPEN_BYTES: u64 = 4 * size_of::<Region>() as u64;
        let half = workspace.of(workspace.bytes / 2);
        let max_open = ((half.bytes / OPEN_BYTES) as usize).max(MIN_SEARCHED / 4);
        let limit = MIN_SEARCHED.min(max_open);
        Self { open: HashMap::new(), done: Spill::new(half), count: 0, limit, max_open }
    }

    /// Adds the labels with the indices `range`, of a block whose slices have the size `[width, height]`. They begin at
    /// `first` along `axis`, which is y or z. `intensities` are samples at the same positions.
    #[allow(clippy::cast_lossless, clippy::unnecessary_cast, reason = "one of the types is f64")]
    pub fn add(
        &mut self,
        labels: &Samples,
        range: Range<usize>,
        [width, height]: [usize; 2],
        axis: usize,
        first: usize,
        intensities: Option<&Samples>,
    ) -> Result<()> {
        for_samples!(labels, labels => for (row, labels) in labels[range].chunks(width).enumerate() {
            let mut at = if axis == 1 { [row, 0] } else { [row % height, row / height] };
            at[axis - 1] += first;
            let mut x = 0;
            for run in labels.chunk_by(|a, b| a == b) {
                let (own, label) = (x..x + run.len(), run[0] as u32);
                x = own.end;
                if label == 0 {
                    continue;
                }
                let region = self.region(label)?;
                region.add(own.clone(), at);
                if let Some(values) = intensities {
                    let samples = row * width + own.start..row * width + own.end;
                    for_samples!(values, values => {
                        region.add_intensities(&values[samples], |value| value as f64);
                    });
                }
            }
            if self.open.len() > self.limit {
                self.close(axis, at[axis - 1] as u64)?;
            }
        });
        Ok(())
    }

    /// The region with this label.
    fn region(&mut self, label: u32) -> Result<&mut Region> {
        Ok(match self.open.entry(label) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) if label > self.count => {
                self.count = label;
                entry.insert(Region::EMPTY)
            }
            Entry::Vacant(entry) => {
                let index = label as usize - 1;
                entry.insert(self.done.read(index..index + 1)?[0])
            }
        })
    }

    /// Moves regions without samples from `position - 1` on to `done`, or all regions if too many are left.
    fn close(&mut self, axis: usize, position: u64) -> Result<()> {
        let has_ended = |region: &Region| region.end[axis] < position;
        let mut ended = self.open.values().filter(|region| has_ended(region)).count();
        let are_many = self.open.len() - ended > self.max_open / 2;
        if are_many {
            ended = self.open.len();
        }
        let mut labels = memory::room(ended)?;
        let all = self.open.iter().filter(|(_, region)| are_many || has_ended(region));
        labels.extend(all.map(|(&label, _)| label));
        labels.sort_unstable();
        for neighbours in labels.chunk_by(|a, b| a + 1 == *b) {
            for labels in neighbours.chunks(ROWS) {
                let regions = labels.iter().flat_map(|label| self.open.remove(label));
                self.done.write(labels[0] as usize - 1, &regions.collect::<Vec<_>>())?;
            }
        }
        self.limit = (2 * self.open.len()).max(MIN_SEARCHED).min(self.max_open);
        Ok(())
    }

    /// Calls `each` with the label of each region and the region, in order.
    pub fn for_each(
        mut self,
        mut each: impl FnMut(usize, &Region) -> io::Result<()>,
    ) -> io::Result<()> {
        let failed = |error: Error| io::Error::other(error.one_line());
        self.close(1, u64::MAX).map_err(failed)?;
        for first in (0..self.done.len()).step_by(ROWS) {
            let regions = self.done.read(first..self.done.len().min(first + ROWS));
            let regions = regions.map_err(failed)?;
            let mut labels = first + 1..;
            regions.iter().zip(&mut labels).try_for_each(|(region, label)| each(label, region))?;
        }
        Ok(())
    }
}

/// Regions that are read or written at a time.
const ROWS: usize = 1 << 10;
