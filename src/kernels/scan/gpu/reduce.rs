//! Reduce-then-scan in three passes: reads each number twice, writes it once. Runs on any device.

use super::{
    arrays::{Part, ScanBuffers},
    spec::Spec,
};
use crate::{
    gpu::{Batch, Buffer, Context, Shader},
    kernels::scan::params::TILE,
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
    arrays: ScanBuffers<'_>,
) -> Result<()> {
    let tiles = arrays.len.div_ceil(TILE);
    let sums = context.allocate("tile sums", (tiles * spec.dtype.size()) as u64)?;
    record_passes(spec, context, batch, arrays, &spec.specialise(&REDUCE), &sums, None)
}

/// Records the passes of `wgsl/scan/passes.wgsl`. `sums` has room for each tile, and `starts` a bit for each number.
///
/// # Errors
/// As [`Spec::record`].
pub(super) fn record_passes(
    spec: &Spec,
    context: &Context,
    batch: &mut Batch<'_>,
    ScanBuffers { source, result, len, carry }: ScanBuffers<'_>,
    shader: &Shader,
    sums: &Buffer,
    starts: Option<&Buffer>,
) -> Result<()> {
    let parts = spec.parts(context, len);
    let mut record = |label, entry, part: &Part, groups: Option<[u32; 3]>| {
        let slice = Slice {
            len: part.len as u32,
            first_tile: (part.first / TILE) as u32,
            tiles: part.len.div_ceil(TILE) as u32,
            inclusive: spec.inclusive.into(),
        };
        let (source, result) = (part.of(source), part.of(result));
        let starts = starts.map_or_else(|| sums.clone(), |starts| part.bits_of(starts));
        let buffers = [("source", &source), ("result", &result), ("starts", &starts)];
        let buffers = [&buffers[..], &[("sums", sums), ("carry", carry)]].concat();
        let groups = groups.map_or_else(|| context.fold(slice.tiles.into()), Ok)?;
        batch.dispatch(label, (shader, entry), &slice, &buffers, groups)
    };
    parts.iter().try_for_each(|part| record("scan reduce", "reduce", part, None))?;
    let all = Part { first: 0, len, bytes: 0..0 };
    record("scan spine", "spine", &all, Some([1; 3]))?;
    parts.iter().try_for_each(|part| record("scan downsweep", "downsweep", part, None))
}
