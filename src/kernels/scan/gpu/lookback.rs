//! Chained scans with decoupled look-back in one pass: each number is read once and written once. Chosen on NVIDIA
//! hardware for 32-bit numbers.

use super::{
    arrays::{BoundRange, ScanBuffers},
    spec::ScanSpec,
};
use crate::{
    gpu::{Batch, Context, Features, Shader},
    kernels::scan::params::{BLOCK, TILE},
    shader, shader_struct,
    util::error::{Error, Result},
};

shader_struct! {
    /// The range of the arrays that a pass works on.
    struct Chain { len: u32, tiles: u32, inclusive: u32, part: u32 }
}

/// Scan with exact results. The order of evaluation depends on timing.
pub static LOOKBACK: Shader = shader!("scan/lookback").unchecked(
    "quads are read and written up to that of number chain.len - 1, which the host keeps within the \
     bound parts; states are those of tiles below chain.tiles, for which the host makes room; a \
     workgroup has 64 subgroups at most, since the host asks for a width of 4 or more; carry has a \
     place for each range and one more",
);

/// Scan with rounded results, in a fixed order of evaluation.
pub static CHAINED: Shader = shader!("scan/chained").unchecked(
    "quads are read and written up to that of number chain.len - 1, which the host keeps within the \
     bound parts; states are those of tiles below chain.tiles, of their strips and blocks, for which the \
     host makes room; workgroup arrays are indexed by invocations, and by tiles of a strip; carry has a \
     place for each range and one more",
);

/// The shader for these numbers; `None` unless they have 32 bits, like the states of tiles.
pub fn shader(spec: &ScanSpec) -> Option<&'static Shader> {
    let shader = if spec.is_rounded() { &CHAINED } else { &LOOKBACK };
    (spec.dtype.size() == 4).then_some(shader)
}

/// Whether `context` has subgroups of a single known width, and can bind the smallest range.
pub fn is_supported(spec: &ScanSpec, context: &Context) -> bool {
    let [min, max] = context.info.subgroup_sizes;
    let known = min == max && min.is_power_of_two();
    let widths = if spec.is_rounded() { 8..=128 } else { 4..=128 };
    let can_bind = context.max_binding() >= 4 * granularity(spec) as u64;
    let is_able = context.has(Features::SUBGROUP) && known && widths.contains(&min);
    shader(spec).is_some() && is_able && can_bind
}

/// Whether it is faster than reduce-then-scan, which it is only if workgroups [have forward
/// progress](Context::has_forward_progress): on an H200, it takes 0.56 ms instead of 0.90 ms for 2^28 integers, and
/// 0.82 ms for as many floats.
pub fn is_preferred(spec: &ScanSpec, context: &Context) -> bool {
    context.has_forward_progress() && is_supported(spec, context)
}

/// The length of each range except for the last is a multiple of this.
fn granularity(spec: &ScanSpec) -> usize {
    if spec.is_rounded() { BLOCK } else { TILE }
}

fn bound_ranges(spec: &ScanSpec, context: &Context, len: usize) -> Vec<BoundRange> {
    spec.split(context, len, granularity(spec))
}

/// Length of the carry buffer: the pass over each range reads a carry and writes the next one.
pub fn carry_len(spec: &ScanSpec, context: &Context, len: usize) -> usize {
    bound_ranges(spec, context, len).len() + 1
}

/// Records the scan. Refuses devices in software: llvmpipe silently ends a loop after 65,535 iterations, and a
/// workgroup that waits for another may need more.
pub fn record(
    spec: &ScanSpec,
    context: &Context,
    batch: &mut Batch<'_>,
    arrays: ScanBuffers<'_>,
) -> Result<()> {
    match shader(spec) {
        Some(shader) if context.is_hardware() => record_with(spec, context, batch, arrays, shader),
        _ => Err(refused(spec, context)),
    }
}

/// Records the scan with `shader`. Tests pass shaders with other constants.
pub fn record_with(
    spec: &ScanSpec,
    context: &Context,
    batch: &mut Batch<'_>,
    ScanBuffers { source, result, len, carry }: ScanBuffers<'_>,
    shader: &Shader,
) -> Result<()> {
    if !is_supported(spec, context) {
        return Err(refused(spec, context));
    }
    let entry = if spec.is_rounded() { "chained" } else { "lookback" };
    let specialised = spec.specialise(shader);
    let constant = |name| shader.constant(name) as usize;
    for (number, range) in bound_ranges(spec, context, len).iter().enumerate() {
        let (tiles, states, groups) = match spec.is_rounded() {
            true => {
                // States of the tiles of all strips, of the strips, and of the carries before each block and after the
                // last.
                let (tiles, strip) = (range.len.div_ceil(TILE), constant("STRIP"));
                let blocks = range.len.div_ceil(BLOCK);
                (tiles, tiles.div_ceil(strip) * (strip + 1) + blocks + 1, tiles.div_ceil(2))
            }
            false => {
                let tiles = range.len.div_ceil(constant("TILE"));
                (tiles, tiles * constant("STRIDE"), tiles)
            }
        };
        let states = context.allocate("tile states", 4 * states as u64)?;
        batch.clear(&states);
        let chain = Chain {
            len: range.len as u32,
            tiles: tiles as u32,
            inclusive: spec.inclusive.into(),
            part: number as u32,
        };
        let (source, result) = (range.slice(source), range.slice(result));
        let buffers =
            [("source", &source), ("result", &result), ("states", &states), ("carry", carry)];
        let groups = context.fold(groups as u64)?;
        batch.dispatch("scan look-back", &specialised, entry, &chain, &buffers, groups)?;
    }
    Ok(())
}

/// The error if the look-back is requested and not supported.
fn refused(spec: &ScanSpec, context: &Context) -> Error {
    let ScanSpec { op, dtype, .. } = spec;
    Error::gpu(format_args!(
        "{} does not support the look-back of {op} of {dtype}",
        context.info.name
    ))
}
