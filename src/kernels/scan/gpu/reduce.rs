//! Reduce-then-scan in three passes: reads each number twice, writes it once. Runs on any device.

use super::{
    arrays::{BoundRange, ScanBuffers},
    spec::ScanSpec,
};
use crate::{
    gpu::{Batch, Buffer, Context, Shader},
    kernels::scan::params::TILE,
    shader, shader_struct,
    util::error::Result,
};

shader_struct! {
    /// The range of the arrays that a pass works on.
    struct Slice { len: u32, first_tile: u32, tiles: u32, inclusive: u32 }
}

pub(super) const IN_RANGE: &str = "quads are read and written below slice.len / 4, which the host keeps within the bound \
     ranges, with a bit for each number in starts; sums are indexed below the count of all \
     tiles, for which the host makes room, and for one more where there are segments";

/// Reduce-then-scan.
pub static REDUCE: Shader = shader!("scan/reduce").unchecked(IN_RANGE);

/// Records the scan.
pub fn record(
    spec: &ScanSpec,
    context: &Context,
    batch: &mut Batch<'_>,
    arrays: ScanBuffers<'_>,
) -> Result<()> {
    let tiles = arrays.len.div_ceil(TILE);
    let sums = context.allocate("tile sums", (tiles * spec.dtype.size()) as u64)?;
    record_passes(spec, context, batch, arrays, &spec.specialise(&REDUCE), &sums, None)
}

/// Records the passes of `wgsl/scan/passes.wgsl`. `sums` has room for each tile, and `starts` a bit for each number.
pub(super) fn record_passes(
    spec: &ScanSpec,
    context: &Context,
    batch: &mut Batch<'_>,
    ScanBuffers { source, result, len, carry }: ScanBuffers<'_>,
    shader: &Shader,
    sums: &Buffer,
    starts: Option<&Buffer>,
) -> Result<()> {
    let ranges = spec.bound_ranges(context, len);
    let mut record = |label, entry, range: &BoundRange, groups: Option<[u32; 3]>| {
        let slice = Slice {
            len: range.len as u32,
            first_tile: (range.first / TILE) as u32,
            tiles: range.len.div_ceil(TILE) as u32,
            inclusive: spec.inclusive.into(),
        };
        let (source, result) = (range.slice(source), range.slice(result));
        let starts = starts.map_or_else(|| sums.clone(), |starts| range.slice_bits(starts));
        let buffers = [("source", &source), ("result", &result), ("starts", &starts)];
        let buffers = [&buffers[..], &[("sums", sums), ("carry", carry)]].concat();
        let groups = groups.map_or_else(|| context.fold(slice.tiles.into()), Ok)?;
        batch.dispatch(label, shader, entry, &slice, &buffers, groups)
    };
    ranges.iter().try_for_each(|range| record("scan reduce", "reduce", range, None))?;
    let all = BoundRange { first: 0, len, bytes: 0..0 };
    record("scan spine", "spine", &all, Some([1; 3]))?;
    ranges.iter().try_for_each(|range| record("scan downsweep", "downsweep", range, None))
}
