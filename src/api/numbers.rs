//! Scans and sorts of numbers.

use super::{device::Device, sample::Number};
use crate::{
    kernels::{
        scan::{self, Axis, Op, Table, TableScan},
        sort::{self, Records},
    },
    util::{
        error::{Error, Result},
        memory,
    },
};

/// Prefix sums, or prefix minima, maxima or products.
///
/// ```
/// use gpuproc::{Device, Scan, ScanOp};
///
/// # fn main() -> gpuproc::Result<()> {
/// let sums = Scan::new(ScanOp::Sum).run(&Device::best(), &[3u32, 1, 4])?;
/// assert_eq!(sums, [3, 4, 8]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scan {
    op: Op,
    inclusive: bool,
}

impl Scan {
    /// An inclusive scan: each result includes the number at its index. Integers wrap around.
    pub fn new(op: Op) -> Self {
        Self { op, inclusive: true }
    }

    /// Excludes the number at its index from each result, so that the first result is the identity of the operation.
    #[must_use]
    pub fn exclusive(self) -> Self {
        Self { inclusive: false, ..self }
    }

    /// Scans `numbers`. Floats are added in the same order on every device.
    ///
    /// # Errors
    /// [`ErrorKind::Failure`](crate::ErrorKind::Failure) when memory is exhausted,
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) when the device fails.
    pub fn run<T: Number>(&self, device: &Device, numbers: &[T]) -> Result<Vec<T>> {
        let kernel = scan::Scan::new(self.op, self.inclusive);
        memory::catch(|| Ok(device.run(&kernel, numbers)?.values))
    }
}

/// Sums a table of rows of `width` numbers over all rows above and all columns to the left, including those of the
/// number: a summed-area table (Crow 1984). Integers wrap around.
///
/// ```
/// let sums = gpuproc::summed_area_table(&gpuproc::Device::best(), vec![1u32, 2, 3, 4], 2)?;
/// assert_eq!(sums, [1, 3, 4, 10]);
/// # Ok::<(), gpuproc::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when the numbers do not fill rows,
/// [`ErrorKind::Failure`](crate::ErrorKind::Failure) when memory is exhausted,
/// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) when the device fails.
pub fn summed_area_table<T: Number>(
    device: &Device,
    numbers: Vec<T>,
    width: usize,
) -> Result<Vec<T>> {
    let count = numbers.len();
    if width == 0 && count > 0 || width > 0 && !count.is_multiple_of(width) {
        return Err(Error::bad_input(format_args!("{count} numbers do not fill rows of {width}")));
    }
    let height = count.checked_div(width).unwrap_or(0);
    let table = Table { width, height, channels: 1, values: numbers };
    memory::catch(|| Ok(device.run(&TableScan::new(Axis::Both, true), &table)?.values))
}

/// A stable sort. Floats are in total order with NaN last: -infinity, ..., -0, +0, ..., +infinity.
///
/// ```
/// use gpuproc::{Device, Sort};
///
/// # fn main() -> gpuproc::Result<()> {
/// let device = Device::best();
/// assert_eq!(Sort::ascending().run(&device, vec![3i32, -1, 2])?, [-1, 2, 3]);
/// assert_eq!(Sort::descending().indices(&device, vec![3i32, -1, 2])?, [0, 2, 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sort {
    descending: bool,
}

impl Sort {
    /// The smallest number first.
    pub fn ascending() -> Self {
        Self { descending: false }
    }

    /// The largest number first.
    pub fn descending() -> Self {
        Self { descending: true }
    }

    /// Sorts `numbers`.
    ///
    /// # Errors
    /// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when there are more than 2^32 - 1 numbers,
    /// [`ErrorKind::Failure`](crate::ErrorKind::Failure) when memory is exhausted,
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) when the device fails.
    pub fn run<T: Number>(&self, device: &Device, numbers: Vec<T>) -> Result<Vec<T>> {
        Ok(self.sorted(device, Records { keys: numbers, payload: None })?.keys)
    }

    /// Returns the indices that sort `numbers` (argsort).
    ///
    /// # Errors
    /// As [`Sort::run`].
    pub fn indices<T: Number>(&self, device: &Device, numbers: Vec<T>) -> Result<Vec<u32>> {
        let payload = (0..=u32::MAX).take(numbers.len()).collect();
        let sorted = self.sorted(device, Records { keys: numbers, payload: Some(payload) })?;
        Ok(sorted.payload.unwrap_or_default())
    }

    fn sorted<T: Number>(&self, device: &Device, records: Records<T>) -> Result<Records<T>> {
        memory::catch(|| device.run(&sort::Sort::new(self.descending), &records))
    }
}
