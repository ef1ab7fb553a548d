//! Scan (prefix sum): each number is replaced by the sum of all numbers before it, or by their minimum, maximum or
//! product.
//!
//! The input is divided into blocks of 4,096 tiles of 4,096 numbers, and each block starts with the carry of the block
//! before. Sums and products of floats are evaluated in this order on every device, so that they are rounded in the
//! same way everywhere and in every run, however the input is divided.

mod cpu;
mod gpu;
mod op;
mod params;
mod segments;
mod table;

pub use gpu::{ScanBuffers, ScanSpec, lookback, variants};
pub use op::{Monoid, Op, Scannable};
pub use params::{Algorithm, BLOCK, Scan, Scanned};
pub use segments::{SegmentedScan, Segments};
pub use table::{Axis, Table, TableScan};

use self::op::for_op;
use crate::{
    device::{Device, Kernel},
    gpu::Context,
    util::{error::Result, memory},
};

/// The sums of integers on the CPU, widened while they are read.
pub fn widened_sums<S: Copy + Into<T> + Sync, T: Scannable>(
    input: &[S],
    inclusive: bool,
) -> Result<Vec<T>> {
    let mut sums = memory::zeros(input.len())?;
    cpu::scan_exact::<T::Sum, S>(input, &mut sums, inclusive, T::Sum::IDENTITY);
    Ok(sums)
}

impl<T: Scannable> TableScan<T> {
    /// The sums of `table`, on the CPU in the same memory.
    pub fn run_owned(&self, device: &Device, mut table: Table<T>) -> Result<Table<T>> {
        if device.context()?.is_some() {
            return device.run(self, &table);
        }
        cpu::sum_table(&mut table, self.axis, self.inclusive);
        Ok(table)
    }
}

impl<T: Scannable> Scan<T> {
    /// Scans serially on the CPU and detects overflow. The inner error is the index of the number at which an integer
    /// overflows.
    pub fn checked(&self, input: &[T]) -> Result<Result<Scanned<T>, usize>> {
        if matches!(self.op, Op::Min | Op::Max) {
            return self.cpu(input).map(Ok);
        }
        let mut sum = self.carry_in;
        let mut values = memory::room(input.len())?;
        for (index, &number) in input.iter().enumerate() {
            let before = sum;
            match T::checked(self.op, sum, number) {
                Some(joined) => sum = joined,
                None => return Ok(Err(index)),
            }
            values.push(if self.inclusive { sum } else { before });
        }
        Ok(Ok(Scanned { values, carry_out: sum }))
    }
}

impl<T: Scannable> Kernel for Scan<T> {
    type In = [T];
    type Out = Scanned<T>;
    const NAME: &'static str = "scan";

    fn cpu(&self, input: &[T]) -> Result<Scanned<T>> {
        let mut values = memory::zeros::<T>(input.len())?;
        let (inclusive, carry) = (self.inclusive, self.carry_in);
        let carry_out = for_op!(self.op, T, cpu::scan(input, &mut values, inclusive, carry));
        Ok(Scanned { values, carry_out })
    }

    fn gpu(&self, context: &Context, input: &[T]) -> Result<Scanned<T>> {
        if !ScanSpec::new(self).is_supported(context) {
            log::debug!("{} does not support {}: scanning on the CPU", context.info.name, T::DTYPE);
            return context.timings().time(Self::NAME, || self.cpu(input));
        }
        gpu::scan(self, context, input)
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
        // Rows of an empty table may have any length, so no buffer for a row is allocated.
        if input.values.is_empty() {
            return Ok(input.clone());
        }
        match gpu::table::fits(context, input) {
            Some(rows) => gpu::table::run(context, input, rows, self.axis, self.inclusive),
            None => {
                let pitch = input.width * input.channels;
                log::debug!("table of {} with rows of {pitch}: scanning on the CPU", T::DTYPE);
                context.timings().time(Self::NAME, || self.cpu(input))
            }
        }
    }
}
