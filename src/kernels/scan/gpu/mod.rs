//! The scans on a GPU: the list of routes, and the scan of numbers in memory, chunk by chunk.

mod arrays;
mod blelloch;
pub mod lookback;
mod reduce;
pub(super) mod segments;
mod spec;
pub(super) mod table;

use super::{
    op::{Op, Scannable},
    params::{Algorithm, BLOCK, Scan, Scanned},
};
use crate::{
    data::dtype::Dtype,
    gpu::{Batch, Context, Shader},
    util::{error::Result, memory},
};
pub use arrays::ScanBuffers;
pub use spec::ScanSpec;

/// The routes, in the order in which [`Algorithm::Auto`] tries them.
const ROUTES: [Route; 3] = [
    // One pass: each number is read once and written once.
    Route {
        algorithm: Algorithm::Lookback,
        is_preferred: lookback::is_preferred,
        carry_len: lookback::carry_len,
        record: lookback::record,
    },
    // Three passes: each number is read twice and written once. Works for all types on all devices.
    Route {
        algorithm: Algorithm::Reduce,
        is_preferred: |_, _| true,
        carry_len: |_, _, _| 2,
        record: reduce::record,
    },
    // A baseline, used only on request: each number is read twice and written twice.
    Route {
        algorithm: Algorithm::Blelloch,
        is_preferred: |_, _| false,
        carry_len: |_, _, _| 2,
        record: blelloch::record,
    },
];

/// An algorithm on a GPU. The file of each has the name of its shader.
struct Route {
    algorithm: Algorithm,
    /// Whether the device supports it, and it is faster there than the routes after it.
    is_preferred: fn(&ScanSpec, &Context) -> bool,
    /// Length of the carry buffer for a scan of the given count of numbers.
    carry_len: fn(&ScanSpec, &Context, usize) -> usize,
    record: fn(&ScanSpec, &Context, &mut Batch<'_>, ScanBuffers<'_>) -> Result<()>,
}

/// All specialisations of the shaders of scans.
pub fn variants() -> Vec<Shader> {
    let mut variants = vec![table::TABLE.clone()];
    for dtype in Dtype::NUMBERS {
        for op in Op::ALL {
            let spec = ScanSpec { dtype, op, inclusive: false, algorithm: Algorithm::Auto };
            let shaders = [&reduce::REDUCE, &segments::SEGMENTS, &blelloch::BLELLOCH];
            variants.extend(shaders.map(|shader| spec.specialise(shader)));
            variants.extend(lookback::shader(&spec).map(|shader| spec.specialise(shader)));
        }
    }
    variants
}

impl ScanSpec {
    fn route(&self, context: &Context) -> &'static Route {
        let is_taken = |route: &&Route| match self.algorithm {
            Algorithm::Auto => (route.is_preferred)(self, context),
            asked => route.algorithm == asked,
        };
        ROUTES.iter().find(is_taken).expect("reduce-then-scan runs anywhere")
    }

    /// The algorithm that is used on `context`.
    pub fn choose(&self, context: &Context) -> Algorithm {
        self.route(context).algorithm
    }

    /// Length of the carry buffer of [`ScanSpec::record`] for `len` numbers.
    pub fn carry_len(&self, context: &Context, len: usize) -> usize {
        (self.route(context).carry_len)(self, context, len)
    }

    /// Records the scan of `arrays`. Fails if the device does not support the requested algorithm.
    pub fn record(
        &self,
        context: &Context,
        batch: &mut Batch<'_>,
        arrays: ScanBuffers<'_>,
    ) -> Result<()> {
        (self.route(context).record)(self, context, batch, arrays)
    }
}

/// Maximum number of numbers on the device at a time: 256 MiB of 32-bit numbers, and as much for the results.
const CHUNK: usize = 4 * BLOCK;

/// Scans `input`.
pub fn scan<T: Scannable>(scan: &Scan<T>, context: &Context, input: &[T]) -> Result<Scanned<T>> {
    let spec = ScanSpec::new(scan);
    let carry = memory::filled(scan.carry_in, spec.carry_len(context, input.len().min(CHUNK)));
    scan_chunks(context, input, &carry, |batch, _, arrays| {
        spec.record(context, batch, arrays)?;
        Ok(spec.carry_len(context, arrays.len) - 1)
    })
}

/// Scans `input` in segments, each after `start`. `starts` marks their first numbers.
pub fn scan_segments<T: Scannable>(
    scan: &Scan<T>,
    context: &Context,
    input: &[T],
    starts: &[bool],
    start: T,
) -> Result<Scanned<T>> {
    let carry = [scan.carry_in, scan.carry_in, start];
    scan_chunks(context, input, &carry, |batch, first, arrays| {
        let starts = &starts[first..][..arrays.len];
        segments::record(&ScanSpec::new(scan), context, batch, arrays, starts)?;
        Ok(1)
    })
}

/// Scans `input` chunk by chunk. `carry` is the initial content of the carry buffer. `record` gets the index of the
/// first number of a chunk, and returns the index in the carry buffer of the carry after the chunk.
fn scan_chunks<T: Scannable>(
    context: &Context,
    input: &[T],
    carry: &[T],
    record: impl Fn(&mut Batch<'_>, usize, ScanBuffers<'_>) -> Result<usize>,
) -> Result<Scanned<T>> {
    let bytes = (input.len().min(CHUNK).next_multiple_of(4) * size_of::<T>()) as u64;
    let source = context.allocate("scan source", bytes)?;
    let result = context.allocate("scan result", bytes)?;
    let mut carry_out = carry[0];
    let carry = context.upload("carry", carry)?;
    let mut values = memory::room(input.len())?;
    for (number, numbers) in input.chunks(CHUNK).enumerate() {
        context.write(&source, 0, numbers)?;
        context.write(&carry, 0, &[carry_out])?;
        let mut batch = context.batch();
        let arrays =
            ScanBuffers { source: &source, result: &result, len: numbers.len(), carry: &carry };
        let last = record(&mut batch, number * CHUNK, arrays)?;
        batch.run()?;
        context.read_with(&result, 0..size_of_val(numbers) as u64, |bytes| {
            values.extend_from_slice(bytemuck::cast_slice(bytes));
            Ok(())
        })?;
        carry_out = context.read::<T>(&carry, last + 1)?[last];
    }
    Ok(Scanned { values, carry_out })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::scan::params::TILE;

    #[test]
    fn cpu_and_gpu_have_the_same_tiles() {
        assert_eq!(4 * reduce::REDUCE.constant("TILE_QUADS") as usize, TILE);
        // Bound ranges are whole tiles of every route.
        assert_eq!(TILE % blelloch::BLELLOCH.constant("BLOCK") as usize, 0);
    }
}
