//! Summed-area tables (Crow 1984): sums along rows, along columns, or both.

use std::marker::PhantomData;

/// Number of rows of a band. It is fixed, so that sums of floats do not depend on the number of threads. Bands on a GPU
/// are multiples of it, so that they start at offsets that bindings may have.
pub(super) const BAND_ROWS: usize = 64;

/// Direction of the sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Axis {
    /// Along each row.
    X,
    /// Down each column.
    Y,
    /// Both: a summed-area table.
    #[default]
    Both,
}

/// Numbers in rows from the top, channels interleaved.
#[derive(Clone, Debug, PartialEq)]
pub struct Table<T> {
    /// Pixels per row.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
    /// Numbers per pixel.
    pub channels: usize,
    /// `height * width * channels` numbers.
    pub values: Vec<T>,
}

/// The sums of a [`Table`], channel by channel. Integers wrap around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableScan<T> {
    /// Direction of the sums.
    pub axis: Axis,
    /// Whether each sum includes the row and column of its pixel.
    pub inclusive: bool,
    /// The type of numbers and sums.
    pub number: PhantomData<T>,
}

impl<T> TableScan<T> {
    /// Sums along `axis`.
    pub fn new(axis: Axis, inclusive: bool) -> Self {
        Self { axis, inclusive, number: PhantomData }
    }
}
