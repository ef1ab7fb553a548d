//! Reduce-then-scan of numbers marked with the begins of segments.

use super::{
    arrays::Arrays,
    reduce::{IN_RANGE, record_passes},
    spec::Spec,
};
use crate::{
    gpu::{Batch, Context, Shader},
    kernels::scan::params::TILE,
    shader,
    util::{error::Result, parallel},
};

/// Reduce-then-scan in segments.
pub static SEGMENTS: Shader = shader!("scan/segments").unchecked(IN_RANGE);

/// Whether `context` has the workgroup memory: `quads`, `lanes` and `octets`, whose items take twice a number's bytes.
pub fn fits(spec: &Spec, context: &Context) -> bool {
    let items: u32 =
        ["TILE_QUADS", "LANES", "OCTETS"].map(|name| SEGMENTS.constant(name)).iter().sum();
    2 * items * spec.dtype.size() as u32 <= context.limits.workgroup_bytes
}

/// Records the scan. The carry buffer has a third number: what comes before the first number of each
/// segment.
///
/// # Errors
/// As [`Spec::record`].
pub fn record(
    spec: &Spec,
    context: &Context,
    batch: &mut Batch<'_>,
    arrays: Arrays<'_>,
    begins: &[bool],
) -> Result<()> {
    let starts = context.upload("segment starts", &packed(begins)?)?;
    // Value and mark of each tile, and one more: its value is what comes before each segment.
    let size = spec.dtype.size() as u64;
    let tiles = arrays.len.div_ceil(TILE) as u64;
    let sums = context.allocate("tile sums", (tiles + 1) * 2 * size)?;
    let last = sums.bytes() - 2 * size;
    batch.copy(&arrays.carry.slice(2 * size..3 * size), &sums.slice(last..last + size));
    record_passes(spec, context, batch, arrays, &spec.specialise(&SEGMENTS), &sums, Some(&starts))
}

/// 32 marks per word, the first one in the lowest bit.
fn packed(begins: &[bool]) -> Result<Vec<u32>> {
    let word =
        |begins: &[bool]| begins.iter().rev().fold(0, |word, &mark| word << 1 | u32::from(mark));
    parallel::generated(begins.len().div_ceil(32), |at| {
        word(&begins[32 * at..begins.len().min(32 * (at + 1))])
    })
}
