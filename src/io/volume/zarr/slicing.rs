//! An array as volumes of slices.

use std::sync::Arc;

use super::array::Array;

/// An array as volumes of slices: its x, y and z axes, and positions along its other axes.
#[derive(Debug)]
pub struct Slicing {
    pub array: Arc<Array>,
    /// The axes of the array that are x, y and z.
    pub axes: [Option<usize>; 3],
    /// The axes that count volumes, the slowest first.
    pub others: Vec<usize>,
    /// The index along each axis: the user's choice of channel and time, else 0.
    pub at: Vec<usize>,
}

impl Slicing {
    /// Samples along x, y and z.
    pub fn dims(&self) -> [usize; 3] {
        self.axes.map(|axis| axis.map_or(1, |axis| self.array.shape[axis]))
    }

    /// Samples of a chunk along x, y and z.
    pub fn chunk(&self) -> [usize; 3] {
        self.axes.map(|axis| axis.map_or(1, |axis| self.array.chunk[axis]))
    }

    /// Samples of a file along x, y and z.
    pub fn file_size(&self) -> [usize; 3] {
        self.axes.map(|axis| axis.map_or(1, |axis| self.array.file[axis]))
    }

    /// Number of files along an axis of the array.
    pub fn files_along(&self, axis: usize) -> usize {
        self.array.shape[axis].div_ceil(self.array.file[axis])
    }

    /// The index of a volume along each axis; 0 along x, y and z.
    pub fn position(&self, volume: usize) -> Vec<usize> {
        let (mut position, mut rest) = (self.at.clone(), volume);
        for &axis in self.others.iter().rev() {
            position[axis] = rest % self.array.shape[axis];
            rest /= self.array.shape[axis];
        }
        position
    }

    /// Strides along x, y and z within a chunk, in samples.
    pub fn strides(&self) -> [usize; 3] {
        let Array { chunk, order, .. } = &*self.array;
        self.axes.map(|axis| {
            let faster = order.iter().rev().take_while(|&&other| Some(other) != axis);
            faster.map(|&other| chunk[other]).product()
        })
    }

    /// The position in the grid of chunks, along each axis of the array, of the chunk at `at` (x, y, z) of the volume at
    /// `position`.
    fn grid(&self, at: [usize; 3], position: &[usize]) -> Vec<usize> {
        let mut grid: Vec<usize> =
            position.iter().zip(&self.array.chunk).map(|(at, len)| at / len).collect();
        for (axis, at) in self.axes.iter().zip(at) {
            if let Some(axis) = axis {
                grid[*axis] = at;
            }
        }
        grid
    }

    /// The name of the file that holds a chunk, and the position of the chunk in the grid within that file.
    pub fn file(&self, at: [usize; 3], position: &[usize]) -> (String, Vec<usize>) {
        let (grid, per_file) = (self.grid(at, position), self.array.chunks_per_file());
        let file: Vec<usize> = grid.iter().zip(&per_file).map(|(at, count)| at / count).collect();
        let inner = grid.iter().zip(&per_file).map(|(at, count)| at % count).collect();
        (self.array.key(&file), inner)
    }

    /// The offset in samples, within its chunk, of the first sample of `position` along the axes other than x, y and z.
    pub fn first_in_chunk(&self, position: &[usize]) -> usize {
        let Array { chunk, order, .. } = &*self.array;
        let (mut stride, mut first) = (1, 0);
        for &axis in order.iter().rev() {
            if !self.axes.contains(&Some(axis)) {
                first += position[axis] % chunk[axis] * stride;
            }
            stride *= chunk[axis];
        }
        first
    }
}
