//! Sorts each row or each column of an array separately (`--axis`).
//!
//! All numbers are sorted at once, together with their positions. Appending them to their lines in that order leaves
//! every line sorted:
//!
//! ```text
//! 5 2 9      sorted   1 2 3 5 7 9      rows   2 5 9
//! 7 1 3      row      1 0 1 0 1 0             1 3 7
//! ```

use super::flags::{Axis, SortJob};
use crate::util::{
    error::{Error, Result},
    memory,
};

/// The lines of an array of rows x columns, or rows x columns x channels.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    axis: Axis,
    columns: usize,
    channels: usize,
    /// Number of lines.
    count: usize,
}

impl Lines {
    /// The lines of an array of `shape` that `job` sorts; `None` if all numbers are one line, with a warning if the
    /// array has several axes.
    pub fn new(job: &SortJob, shape: Option<&[usize]>) -> Result<Option<Self>> {
        let source = &job.keys.source;
        match (job.axis, shape) {
            (None, Some(shape)) if shape.len() > 1 => {
                let text: Vec<String> = shape.iter().map(ToString::to_string).collect();
                let text = text.join("x");
                log::warn!(
                    "{source}: all {text} numbers are sorted together; to sort each row, use --axis x, or each column, --axis y"
                );
                Ok(None)
            }
            (None, _) => Ok(None),
            (Some(axis), Some(&[rows, columns, ref rest @ ..])) if rest.len() < 2 => {
                let channels = rest.first().copied().unwrap_or(1);
                let lines = if axis == Axis::X { rows } else { columns };
                let count = lines.saturating_mul(channels);
                Ok(Some(Self { axis, columns, channels, count }))
            }
            (Some(_), _) => Err(Error::usage(format_args!(
                "{source}: --axis is for .npy arrays of two or three axes"
            ))),
        }
    }

    /// The line of the number at `position`, and its index within that line.
    fn at(&self, position: u32) -> (usize, u32) {
        let (pixel, channel) =
            (position as usize / self.channels, position as usize % self.channels);
        let (row, column) = (pixel / self.columns, pixel % self.columns);
        match self.axis {
            Axis::X => (row * self.channels + channel, column as u32),
            Axis::Y => (column * self.channels + channel, row as u32),
        }
    }

    /// The index, within its line, of the number at `position`.
    pub fn within(&self, position: u32) -> u32 {
        self.at(position).1
    }

    /// Distributes `sorted` to the lines. `positions` are the original positions of its numbers, which determine their
    /// lines.
    pub fn arranged<T: bytemuck::Zeroable + Copy>(
        &self,
        positions: &[u32],
        sorted: &[T],
    ) -> Result<Vec<T>> {
        if sorted.is_empty() {
            // An empty array may have more lines than fit into memory.
            return Ok(Vec::new());
        }
        let mut next: Vec<usize> = memory::zeros(self.count)?;
        let mut arranged: Vec<T> = memory::zeros(sorted.len())?;
        for (&position, &number) in positions.iter().zip(sorted) {
            let line = self.at(position).0;
            let (start, channel) = (line / self.channels, line % self.channels);
            let pixel = match self.axis {
                Axis::X => start * self.columns + next[line],
                Axis::Y => next[line] * self.columns + start,
            };
            arranged[pixel * self.channels + channel] = number;
            next[line] += 1;
        }
        Ok(arranged)
    }
}
