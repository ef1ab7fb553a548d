//! Windows of a percentile filter, and the parts of a grid that are filtered one by one.

use std::ops::Range;

use crate::{
    data::grid::Shape,
    kernels::ordered_keys::Value,
    util::{error::Result, memory, parallel::Parallel, simd::vectorize},
};

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
        let rank = (window.size() as f64 * percentile / 100.0) as usize;
        Self { rank: rank.min(window.size() - 1), ..window }
    }

    /// Number of samples along x, y and z.
    pub fn dims(&self) -> [usize; 3] {
        self.radius.map(|radius| 2 * radius + 1)
    }

    /// Number of samples.
    pub fn size(&self) -> usize {
        self.dims().iter().product()
    }

    /// Calls `compute` with parts of at most `dims` positions, and the target, of which it computes these.
    pub(super) fn in_parts<T: Value>(
        &self,
        source: &[T],
        shape: Shape,
        dims: [usize; 3],
        compute: impl Fn(&Part<'_, T>, &mut [T]) + Sync,
    ) -> Result<Vec<T>> {
        let ([nx, ny, nz], mut target) = (shape.dims, memory::zeros(source.len())?);
        // Threads compute rows of an image, or slices of a volume.
        let rows = if nz == 1 { dims[1] } else { dims[2] * ny };
        let chunks = target.chunks_mut(rows * nx * shape.channels).enumerate();
        chunks.par_each(|(chunk, target)| {
            let first = chunk * rows;
            let last = first + target.len() / (nx * shape.channels);
            let (y, z) = if nz == 1 { (first..last, 0..1) } else { (0..ny, first / ny..last / ny) };
            for start in y.clone().step_by(dims[1]) {
                let y = start..(start + dims[1]).min(y.end);
                for start in (0..nx).step_by(dims[0]) {
                    let spans = [start..(start + dims[0]).min(nx), y.clone(), z.clone()];
                    let part = Part { source, shape, window: self, spans, first };
                    vectorize(
                        #[inline(always)]
                        || compute(&part, target),
                    );
                }
            }
        });
        Ok(target)
    }
}

/// A box of results that are computed together.
pub struct Part<'a, T> {
    source: &'a [T],
    pub shape: Shape,
    pub window: &'a Window,
    /// Positions along x, y and z.
    pub spans: [Range<usize>; 3],
    /// Number of the row with which the target starts.
    first: usize,
}

impl<'a, T: Value> Part<'a, T> {
    /// Number of results in a row.
    pub fn width(&self) -> usize {
        self.spans[0].len() * self.shape.channels
    }

    /// The row of the source that is row number `y` of slice number `z` of the window around row 0 of slice 0. Beyond
    /// the ends, it is the nearest row.
    #[inline(always)]
    pub fn row(&self, y: usize, z: usize) -> &'a [T] {
        let ([nx, ny, nz], [_, ry, rz]) = (self.shape.dims, self.window.radius);
        let row = z.saturating_sub(rz).min(nz - 1) * ny + y.saturating_sub(ry).min(ny - 1);
        let width = nx * self.shape.channels;
        &self.source[row * width..][..width]
    }

    /// The rows of the window around row `y` of slice `z`.
    #[inline(always)]
    pub fn rows(&self, y: usize, z: usize) -> impl Iterator<Item = &'a [T]> {
        let [_, ny, nz] = self.window.dims();
        (0..ny * nz).map(move |row| self.row(y + row % ny, z + row / ny))
    }

    /// Row `y` of slice `z` of the results in this part.
    #[inline(always)]
    pub fn target<'b>(&self, target: &'b mut [T], y: usize, z: usize) -> &'b mut [T] {
        let Shape { dims: [nx, ny, _], channels } = self.shape;
        let start = ((z * ny + y - self.first) * nx + self.spans[0].start) * channels;
        &mut target[start..][..self.width()]
    }

    /// The samples of a row around the results, and where they start in a line with those beyond its ends.
    #[inline(always)]
    pub fn inside(&self) -> (Range<usize>, usize) {
        let Shape { dims: [nx, ..], channels } = self.shape;
        let (radius, Range { start, end }) = (self.window.radius[0], self.spans[0].clone());
        let from = start.saturating_sub(radius);
        (from * channels..(end + radius).min(nx) * channels, (from + radius - start) * channels)
    }

    /// Completes a line that has the samples [`inside`](Part::inside) by those beyond the ends of the row.
    #[inline(always)]
    pub fn pad<K: Copy>(&self, line: &mut [K]) {
        let ((inside, start), channels) = (self.inside(), self.shape.channels);
        for at in (0..start).rev() {
            line[at] = line[at + channels];
        }
        let len = self.width() + 2 * self.window.radius[0] * channels;
        for at in start + inside.len()..len {
            line[at] = line[at - channels];
        }
    }

    /// Copies the keys of a row, and those beyond its ends, to `line`.
    #[inline(always)]
    pub fn copy_keys(&self, row: &[T], line: &mut [T::Key]) {
        let (inside, start) = self.inside();
        for (key, value) in line[start..].iter_mut().zip(&row[inside]) {
            *key = value.key();
        }
        self.pad(line);
    }
}
