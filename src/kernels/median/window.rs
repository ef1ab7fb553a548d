//! Windows of a percentile filter.

use crate::data::grid::Shape;

/// The samples around a sample of which the filter takes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Radius along x, y and z.
    pub radius: [usize; 3],
    /// Number of samples that are sorted before the result.
    pub rank: usize,
}

impl Window {
    /// The window of these radii, and the sample of scipy's `percentile_filter`: number `floor(len * percentile / 100)`
    /// of the sorted samples, counted from 0; the last one for 100.
    pub fn new(radius: [usize; 3], percentile: f64) -> Self {
        let window = Self { radius, rank: 0 };
        let rank = (window.len() as f64 * percentile / 100.0) as usize;
        Self { rank: rank.min(window.len() - 1), ..window }
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.radius.iter().map(|radius| 2 * radius + 1).product()
    }

    /// Number of rows of samples.
    pub fn rows(&self) -> usize {
        self.len() / (2 * self.radius[0] + 1)
    }

    /// Numbers of the rows of a grid in the window around row `y` of slice `z`: those of each slice in turn. Beyond the
    /// ends, the nearest row is repeated.
    pub fn rows_around(&self, shape: Shape, y: usize, z: usize) -> impl Iterator<Item = usize> {
        let [_, ny, nz] = shape.dims;
        let [_, ry, rz] = self.radius;
        let along = |at: usize, radius: usize, len: usize| {
            (0..2 * radius + 1).map(move |i| (at + i).saturating_sub(radius).min(len - 1))
        };
        along(z, rz, nz).flat_map(move |z| along(y, ry, ny).map(move |y| z * ny + y))
    }
}
