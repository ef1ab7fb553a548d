//! The scans on a GPU: the list of routes, and numbers in memory, stretch by stretch, through one of them.

mod arrays;
mod blelloch;
mod lookback;
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
pub use arrays::Arrays;
pub use lookback::{CHAINED, LOOKBACK};
pub use spec::Spec;

/// The routes in the order in which they are tried where [`Algorithm::Auto`] leaves the choice to the device.
const ROUTES: [Route; 3] = [
    // One pass: each number is read once and written once.
    Route {
        algorithm: Algorithm::Lookback,
        pays: lookback::pays,
        carry_places: lookback::carry_places,
        record: lookback::record,
    },
    // Three passes: each number is read twice and written once. Any numbers on any device.
    Route {
        algorithm: Algorithm::Reduce,
        pays: |_, _| true,
        carry_places: |_, _, _| 2,
        record: reduce::record,
    },
    // A baseline, taken only when asked for: each number is read twice and written twice.
    Route {
        algorithm: Algorithm::Blelloch,
        pays: |_, _| false,
        carry_places: |_, _, _| 2,
        record: blelloch::record,
    },
];

/// A way to scan numbers. The file of each has its shader's name.
struct Route {
    algorithm: Algorithm,
    /// Whether it runs on the device and is faster there than the routes after it.
    pays: fn(&Spec, &Context) -> bool,
    /// How many numbers the carry buffer has, for a scan of the given count of numbers.
    carry_places: fn(&Spec, &Context, usize) -> usize,
    record: fn(&Spec, &Context, &mut Batch<'_>, Arrays<'_>) -> Result<()>,
}

/// All specialisations of the scans' shaders.
pub fn variants() -> Vec<Shader> {
    let mut variants = vec![table::TABLE.clone()];
    for dtype in Dtype::NUMBERS {
        for op in Op::ALL {
            let spec = Spec { dtype, op, inclusive: false, algorithm: Algorithm::Auto };
            let shaders = [&reduce::REDUCE, &segments::SEGMENTS, &blelloch::BLELLOCH];
            variants.extend(shaders.map(|shader| spec.specialise(shader)));
            variants.extend(lookback::shader(&spec).map(|shader| spec.specialise(shader)));
        }
    }
    variants
}

impl Spec {
    fn route(&self, context: &Context) -> &'static Route {
        let is_taken = |route: &&Route| match self.algorithm {
            Algorithm::Auto => (route.pays)(self, context),
            asked => route.algorithm == asked,
        };
        ROUTES.iter().find(is_taken).expect("reduce-then-scan runs anywhere")
    }

    /// The algorithm on `context`.
    pub fn choose(&self, context: &Context) -> Algorithm {
        self.route(context).algorithm
    }

    /// Whether the look-back can run on `context`.
    pub fn can_look_back(&self, context: &Context) -> bool {
        lookback::runs_on(self, context)
    }

    /// Numbers in the carry buffer of [`Spec::record`] for `len` numbers.
    pub fn carry_places(&self, context: &Context, len: usize) -> usize {
        (self.route(context).carry_places)(self, context, len)
    }

    /// Records the scan of `arrays`.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when there is no memory, the driver refuses a shader,
    /// or the device cannot run the algorithm that was asked for.
    pub fn record(
        &self,
        context: &Context,
        batch: &mut Batch<'_>,
        arrays: Arrays<'_>,
    ) -> Result<()> {
        (self.route(context).record)(self, context, batch, arrays)
    }

    /// Records [`Algorithm::Lookback`], on software too, with `shader`: [`LOOKBACK`] or [`CHAINED`] with other constants,
    /// for tests.
    ///
    /// # Errors
    /// As [`Spec::record`].
    pub fn record_lookback(
        &self,
        context: &Context,
        batch: &mut Batch<'_>,
        arrays: Arrays<'_>,
        shader: &Shader,
    ) -> Result<()> {
        lookback::record_with(self, context, batch, arrays, shader)
    }
}

/// Numbers on the device at a time: 256 MiB of 32-bit numbers, and as much for the results.
const STRETCH: usize = 4 * BLOCK;

/// Scans `input`.
///
/// # Errors
/// As [`Spec::record`].
pub fn scan<T: Scannable>(scan: &Scan<T>, context: &Context, input: &[T]) -> Result<Scanned<T>> {
    let spec = Spec::of(scan);
    let places = spec.carry_places(context, input.len().min(STRETCH));
    let carry = vec![scan.before; places];
    in_stretches(context, input, &carry, |batch, _, arrays| {
        spec.record(context, batch, arrays)?;
        Ok(spec.carry_places(context, arrays.len) - 1)
    })
}

/// Scans `input` in segments, each after `start`; `begins` marks their first numbers.
///
/// # Errors
/// As [`Spec::record`].
pub fn scan_segments<T: Scannable>(
    scan: &Scan<T>,
    context: &Context,
    input: &[T],
    begins: &[bool],
    start: T,
) -> Result<Scanned<T>> {
    let carry = [scan.before, scan.before, start];
    in_stretches(context, input, &carry, |batch, first, arrays| {
        let begins = &begins[first..][..arrays.len];
        segments::record(&Spec::of(scan), context, batch, arrays, begins)?;
        Ok(1)
    })
}

/// Scans `input` stretch by stretch. `carry` is the first content of the carry buffer. `record` gets the place of a
/// stretch's first number, and returns where in the carry buffer the carry after the stretch will be.
fn in_stretches<T: Scannable>(
    context: &Context,
    input: &[T],
    carry: &[T],
    record: impl Fn(&mut Batch<'_>, usize, Arrays<'_>) -> Result<usize>,
) -> Result<Scanned<T>> {
    let bytes = (input.len().min(STRETCH).next_multiple_of(4) * size_of::<T>()) as u64;
    let source = context.allocate("scan source", bytes)?;
    let result = context.allocate("scan result", bytes)?;
    let mut after = carry[0];
    let carry = context.upload("carry", carry)?;
    let mut values = memory::room(input.len())?;
    for (number, numbers) in input.chunks(STRETCH).enumerate() {
        context.write(&source, 0, numbers)?;
        context.write(&carry, 0, &[after])?;
        let mut batch = context.batch();
        let arrays = Arrays { source: &source, result: &result, len: numbers.len(), carry: &carry };
        let last = record(&mut batch, number * STRETCH, arrays)?;
        batch.run()?;
        context.read_with(&result, 0..size_of_val(numbers) as u64, |bytes| {
            values.extend_from_slice(bytemuck::cast_slice(bytes));
            Ok(())
        })?;
        after = context.read::<T>(&carry, last + 1)?[last];
    }
    Ok(Scanned { values, after })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::scan::params::TILE;

    #[test]
    fn both_twins_have_the_same_tiles() {
        assert_eq!(4 * reduce::REDUCE.constant("TILE_QUADS") as usize, TILE);
        // Parts are whole tiles of every route.
        assert_eq!(TILE % blelloch::BLELLOCH.constant("BLOCK") as usize, 0);
    }
}
