//! Grids in memory that are read as rows or slices.

use std::slice;

use crate::{
    data::{
        grid::{Alpha, Grid, Shape},
        reader::Reader,
        samples::Samples,
    },
    util::error::Result,
};

/// A grid in memory, divided into parts along the outermost axis.
#[derive(Debug)]
pub struct HeldGrid {
    /// The size of the grid.
    pub shape: Shape,
    /// Alpha channel of the grid.
    pub alpha: Alpha,
    /// The samples of each part.
    pub parts: Vec<Samples>,
}

impl HeldGrid {
    /// Reads the rows or slices (along `axis`) from `next` on.
    pub fn reader(&self, axis: usize, next: usize) -> GridReader<'_> {
        GridReader { shape: self.shape, parts: &self.parts, axis, next, spare: None }
    }

    /// Bytes of all samples.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.as_bytes().len() as u64).sum()
    }
}

/// Reads the rows or slices of a grid.
#[derive(Debug)]
pub struct GridReader<'a> {
    shape: Shape,
    parts: &'a [Samples],
    axis: usize,
    next: usize,
    /// Samples that the caller has given back. Their memory is reused.
    spare: Option<Samples>,
}

impl<'a> GridReader<'a> {
    /// Reads the rows or slices of `grid` (along `axis`) from `next` on.
    pub fn new(grid: &'a Grid, axis: usize, next: usize) -> Self {
        let parts = slice::from_ref(&grid.samples);
        Self { shape: grid.shape(), parts, axis, next, spare: None }
    }
}

impl Reader for GridReader<'_> {
    fn read_after(&mut self, before: Option<&Samples>, count: usize) -> Result<Samples> {
        let Self { shape, parts, .. } = *self;
        let (dtype, row) = (parts[0].dtype(), shape.samples() / shape.dims[self.axis].max(1));
        let mut read = Samples::extended(before, count * row, dtype, self.spare.take())?;
        let mut new = &mut read.as_bytes_mut()[before.map_or(0, |held| held.as_bytes().len())..];
        let mut skipped = self.next * row * dtype.size();
        for part in parts.iter().map(Samples::as_bytes) {
            let from = &part[skipped.min(part.len())..];
            skipped -= part.len() - from.len();
            let to = new.split_off_mut(..from.len().min(new.len())).expect("it is not longer");
            to.copy_from_slice(&from[..to.len()]);
        }
        self.next += count;
        Ok(read)
    }

    fn reuse(&mut self, done: Samples) {
        self.spare = Some(done).filter(|done| done.dtype() == self.parts[0].dtype());
    }
}
