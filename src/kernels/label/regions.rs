//! Sizes, boxes, centroids and intensities of labelled regions.

use std::ops::Range;

use crate::{data::samples::Samples, for_samples, util::memory};

/// The samples with one label.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// Number of samples.
    pub size: u64,
    /// Positions along each axis of the smallest box around the samples.
    pub bounds: [Range<usize>; 3],
    /// Sums of the positions along each axis.
    sums: [u64; 3],
    /// Sum of the intensities, in the order of the samples.
    total: f64,
    /// Minimum and maximum of the intensities; NaN if any is NaN.
    pub extremes: [f64; 2],
}

impl Region {
    /// The region without samples.
    pub const EMPTY: Self = Self {
        size: 0,
        bounds: [const { Range { start: usize::MAX, end: 0 } }; 3],
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
        for (bounds, own) in self.bounds.iter_mut().zip([x, y..y + 1, z..z + 1]) {
            *bounds = bounds.start.min(own.start)..bounds.end.max(own.end);
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

/// Adds labels to the regions 1, 2 and so on. The labels have the size `dims` and begin at `first` along `axis`, which is
/// y or z. `intensities` are samples at the same positions.
#[allow(clippy::cast_lossless, clippy::unnecessary_cast, reason = "one of the types is f64")]
pub fn add_labels(
    regions: &mut Vec<Region>,
    (labels, [width, height, _]): (&Samples, [usize; 3]),
    (axis, first): (usize, usize),
    intensities: Option<&Samples>,
) {
    for_samples!(labels, labels => for (row, labels) in labels.chunks(width).enumerate() {
        let mut at = [row % height, row / height];
        at[axis - 1] += first;
        let mut x = 0;
        for run in labels.chunk_by(|a, b| a == b) {
            let (own, label) = (x..x + run.len(), run[0] as usize);
            x = own.end;
            let Some(index) = label.checked_sub(1) else { continue };
            if index >= regions.len() {
                memory::reserve(regions, index + 1 - regions.len()).unwrap_or_else(memory::raise);
                regions.resize(index + 1, Region::EMPTY);
            }
            regions[index].add(own.clone(), at);
            if let Some(values) = intensities {
                let samples = row * width + own.start..row * width + own.end;
                for_samples!(values, values => {
                    regions[index].add_intensities(&values[samples], |value| value as f64);
                });
            }
        }
    });
}
