//! Reduce-then-scan in three passes: reads twice, writes once. Runs on any device.

use super::{Arrays, Part, Spec};
use crate::{
    gpu::{Batch, Buffer, Context, Pass, Shader},
    kernels::scan::TILE,
    shader, shader_struct,
    util::error::Result,
};

shader_struct! {
    /// The part of the arrays that a pass works on.
    struct Slice { len: u32, first_tile: u32, tiles: u32, inclusive: u32 }
}

pub(super) const IN_RANGE: &str = "quads are read and written below slice.len / 4, which the host keeps within the bound \
     parts, with a bit for each number in starts; sums are indexed below the count of all \
     tiles, for which the host makes room, and for one more where there are segments";

/// Reduce-then-scan.
pub static REDUCE: Shader = shader!("scan/reduce").unchecked(IN_RANGE);

/// Records the scan.
///
/// # Errors
/// As [`Spec::record`].
pub fn record(
    spec: &Spec,
    context: &Context,
    batch: &mut Batch<'_>,
    arrays: Arrays<'_>,
) -> Result<()> {
    let tiles = arrays.len.div_ceil(TILE);
    let sums = context.allocate("tile sums", (tiles * spec.dtype.size()) as u64)?;
    record_passes(spec, context, batch, arrays, &spec.specialise(&REDUCE), &sums, |pass, _| pass)
}

/// Records the passes of `wgsl/scan/passes.wgsl`, with a place in `sums` for each tile. `bind` binds what
/// `shader` has besides, for a part of the arrays.
///
/// # Errors
/// As [`Spec::record`].
pub(super) fn record_passes(
    spec: &Spec,
    context: &Context,
    batch: &mut Batch<'_>,
    Arrays { source, result, len, carry }: Arrays<'_>,
    shader: &Shader,
    sums: &Buffer,
    bind: impl for<'b, 'a> Fn(Pass<'b, 'a>, &Part) -> Pass<'b, 'a>,
) -> Result<()> {
    let parts = spec.parts(context, len);
    let slice = |part: &Part| Slice {
        len: part.len as u32,
        first_tile: (part.first / TILE) as u32,
        tiles: part.len.div_ceil(TILE) as u32,
        inclusive: spec.inclusive.into(),
    };
    let reduce = context.pipeline(shader, "reduce")?;
    for part in &parts {
        let slice = slice(part);
        let pass = batch.pass("scan reduce", &reduce);
        let pass = bind(pass.buffer("source", &part.of(source)).buffer("sums", sums), part);
        pass.uniform("slice", &slice).dispatch(context.fold(slice.tiles.into())?);
    }
    let all = Slice { tiles: len.div_ceil(TILE) as u32, ..Slice::default() };
    let spine = context.pipeline(shader, "spine")?;
    let pass = batch.pass("scan spine", &spine).buffer("sums", sums).buffer("carry", carry);
    pass.uniform("slice", &all).dispatch([1; 3]);
    let downsweep = context.pipeline(shader, "downsweep")?;
    for part in &parts {
        let slice = slice(part);
        let pass = batch.pass("scan downsweep", &downsweep);
        let pass = pass.buffer("source", &part.of(source)).buffer("result", &part.of(result));
        let pass = bind(pass.buffer("sums", sums), part);
        pass.uniform("slice", &slice).dispatch(context.fold(slice.tiles.into())?);
    }
    Ok(())
}
