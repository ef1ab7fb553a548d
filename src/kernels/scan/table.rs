//! Summed-area tables (Crow 1984): sums along the rows of an image, down its columns, or both.

use std::marker::PhantomData;

use super::{Scannable, cpu, gpu};
use crate::{
    device::Kernel,
    gpu::Context,
    util::{error::Result, memory},
};

/// Rows of a band that are summed in order: a fixed number, so that sums of floats do not depend on threads. Bands on a
/// GPU are multiples of it, so that each begins at an offset that bindings may have.
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
    /// Pixels a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Numbers a pixel.
    pub channels: usize,
    /// `height * width * channels` numbers.
    pub values: Vec<T>,
}

/// The sums of a [`Table`], channel by channel. Integers wrap around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableScan<T> {
    /// Direction of the sums.
    pub axis: Axis,
    /// Whether a sum includes the pixel's own row and column.
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

impl<T: Scannable> Kernel for TableScan<T> {
    type In = Table<T>;
    type Out = Table<T>;
    const NAME: &'static str = "table";

    fn cpu(&self, input: &Table<T>) -> Result<Table<T>> {
        let mut table = Table { values: memory::copied(&input.values)?, ..*input };
        cpu::sum_table(&mut table, self.axis, self.inclusive);
        Ok(table)
    }

    fn gpu(&self, context: &Context, input: &Table<T>) -> Result<Table<T>> {
        // Rows of an empty table may be of any length: nothing as long is allocated.
        if input.values.is_empty() {
            return Ok(input.clone());
        }
        match gpu::table::fits(context, input) {
            Some(rows) => gpu::table::run(context, input, rows, self.axis, self.inclusive),
            None => {
                let pitch = input.width * input.channels;
                let what = format_args!("tables of {} with rows of {pitch}", T::DTYPE);
                log::debug!("{what} are made on the CPU");
                context.timings().time(Self::NAME, || self.cpu(input))
            }
        }
    }
}
