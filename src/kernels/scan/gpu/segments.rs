//! Segmented reduce-then-scan.

use super::{
    arrays::ScanBuffers,
    reduce::{IN_RANGE, record_passes},
    spec::ScanSpec,
};
use crate::{
    gpu::{Batch, Context, Shader},
    kernels::scan::params::TILE,
    shader,
    util::{error::Result, parallel},
};

/// Segmented reduce-then-scan.
pub static SEGMENTS: Shader = shader!("scan/segments").unchecked(IN_RANGE);

/// Whether workgroup memory has room for `quads`, `lanes` and `octets`, whose items take twice the bytes of a number.
pub fn fits(spec: &ScanSpec, context: &Context) -> bool {
    let items: u32 =
        ["TILE_QUADS", "LANES", "OCTETS"].map(|name| SEGMENTS.constant(name)).iter().sum();
    2 * items * spec.dtype.size() as u32 <= context.limits.workgroup_bytes
}

/// Records the scan. The third number of the carry buffer is the carry before each segment.
pub fn record(
    spec: &ScanSpec,
    context: &Context,
    batch: &mut Batch<'_>,
    arrays: ScanBuffers<'_>,
    starts: &[bool],
) -> Result<()> {
    let bits = context.upload("segment starts", &packed(starts)?)?;
    // Value and mark of each tile, and one more value: the carry before each segment.
    let size = spec.dtype.size() as u64;
    let tiles = arrays.len.div_ceil(TILE) as u64;
    let sums = context.allocate("tile sums", (tiles + 1) * 2 * size)?;
    let last = sums.bytes() - 2 * size;
    batch.copy(&arrays.carry.slice(2 * size..3 * size), &sums.slice(last..last + size));
    record_passes(spec, context, batch, arrays, &spec.specialise(&SEGMENTS), &sums, Some(&bits))
}

/// Packs 32 marks per word, the first one into the lowest bit.
fn packed(starts: &[bool]) -> Result<Vec<u32>> {
    let word =
        |starts: &[bool]| starts.iter().rev().fold(0, |word, &mark| word << 1 | u32::from(mark));
    parallel::generated(starts.len().div_ceil(32), |at| {
        word(&starts[32 * at..starts.len().min(32 * (at + 1))])
    })
}
