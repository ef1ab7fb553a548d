//! Scan (prefix sum): each number becomes the sum of all before it, or their minimum, maximum or product.
//!
//! Numbers are handled in blocks of 2^24, each 4,096 tiles of 4,096 numbers; a carry leads from block to
//! block. Sums and products of floats are joined in this one order on every device, so that their rounding
//! is the same everywhere and in every run, however long the input and in whatever stretches it comes.

mod cpu;
mod gpu;
mod op;
mod params;
mod segments;
mod table;

pub use gpu::{Arrays, CHAINED, LOOKBACK, Spec, variants};
pub use op::{Monoid, Op, Scannable};
pub use params::{Algorithm, BLOCK, Scan, Scanned};
pub use segments::{SegmentedScan, Segments};
pub use table::{Axis, Table, TableScan};

use self::op::for_op;
use crate::{
    device::Kernel,
    gpu::Context,
    util::{error::Result, memory},
};

impl<T: Scannable> Scan<T> {
    /// Scans on the CPU, one number after the other. If an integer overflows, the inner error is the place of the
    /// number with which it does, counted from 0.
    ///
    /// # Errors
    /// When the memory for the result is not there.
    pub fn checked(&self, input: &[T]) -> Result<Result<Scanned<T>, usize>> {
        let join: fn(T, T) -> Option<T> = match self.op {
            Op::Sum => T::checked_sum,
            Op::Product => T::checked_product,
            Op::Min | Op::Max => return self.cpu(input).map(Ok),
        };
        let mut sum = self.before;
        let mut values = memory::room(input.len())?;
        for (place, &number) in input.iter().enumerate() {
            let before = sum;
            match join(sum, number) {
                Some(joined) => sum = joined,
                None => return Ok(Err(place)),
            }
            values.push(if self.inclusive { sum } else { before });
        }
        Ok(Ok(Scanned { values, after: sum }))
    }
}

impl<T: Scannable> Kernel for Scan<T> {
    type In = [T];
    type Out = Scanned<T>;
    const NAME: &'static str = "scan";

    fn cpu(&self, input: &[T]) -> Result<Scanned<T>> {
        let mut values = memory::zeros::<T>(input.len())?;
        let (inclusive, before) = (self.inclusive, self.before);
        let after = for_op!(self.op, T, cpu::scan(input, &mut values, inclusive, before));
        Ok(Scanned { values, after })
    }

    fn gpu(&self, context: &Context, input: &[T]) -> Result<Scanned<T>> {
        if !Spec::of(self).runs_on(context) {
            log::debug!("{} cannot scan {}: the CPU does", context.info.name, T::DTYPE);
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
