//! Chained scan with decoupled look-back in one pass: each number is read once and written once. Chosen on
//! NVIDIA hardware for 32-bit numbers whose results are exact.

use super::{Arrays, Spec};
use crate::{
    error::{Error, Hint, Result},
    gpu::{Batch, Context, Feature, Shader},
    shader, shader_struct,
};

shader_struct! {
    /// The part of the arrays that a pass works on.
    struct Chain { len: u32, tiles: u32, inclusive: u32, part: u32 }
}

/// The scan.
pub static LOOKBACK: Shader = shader!("scan/lookback").unchecked(
    "quads are read and written up to that of number chain.len - 1, which the host keeps within the \
     bound parts; states are those of tiles below chain.tiles, for which the host makes room; a \
     workgroup has 64 subgroups at most, since the host asks for a width of 4 or more; carry has a \
     place for each part and one more",
);

/// Whether these numbers can be looked back over: a state holds 32 bits, and the order of joining depends on timing, so
/// results must not depend on it.
pub fn fits(spec: &Spec) -> bool {
    spec.dtype.size() == 4 && !spec.is_rounded()
}

/// Whether `context` has subgroups of one known width.
pub fn runs_on(context: &Context) -> bool {
    let [least, most] = context.info.subgroup_sizes;
    let width_is_known = least == most && (4..=128).contains(&least) && least.is_power_of_two();
    context.has(Feature::Subgroups) && width_is_known
}

/// Whether it is faster than the other scans. It ends on any device, but gains only where workgroups
/// [make progress](Context::makes_progress): 0.56 ms instead of 0.90 ms for 2^28 numbers on an H200.
pub fn pays(spec: &Spec, context: &Context) -> bool {
    context.makes_progress() && fits(spec) && runs_on(context)
}

/// Numbers in the carry buffer: each part's pass reads one and writes the next.
pub fn carry_places(spec: &Spec, context: &Context, len: usize) -> usize {
    spec.parts(context, len).len() + 1
}

/// Records the scan.
///
/// # Errors
/// As [`Spec::record`], and on software: llvmpipe silently leaves a loop after 65,535 iterations, and a workgroup that
/// waits for another may take more.
pub fn record(
    spec: &Spec,
    context: &Context,
    batch: &mut Batch<'_>,
    arrays: Arrays<'_>,
) -> Result<()> {
    match context.is_hardware() {
        true => record_with(spec, context, batch, arrays, &LOOKBACK),
        false => Err(refused(spec, context)),
    }
}

/// Records the scan with `shader`, which is [`LOOKBACK`] with other constants in tests.
///
/// # Errors
/// As [`Spec::record`].
pub fn record_with(
    spec: &Spec,
    context: &Context,
    batch: &mut Batch<'_>,
    Arrays { source, result, len, carry }: Arrays<'_>,
    shader: &Shader,
) -> Result<()> {
    if !spec.can_look_back(context) {
        return Err(refused(spec, context));
    }
    let lookback = context.pipeline(&spec.specialise(shader), "lookback")?;
    let [tile, stride] = ["TILE", "STRIDE"].map(|name| shader.constant(name));
    for (number, part) in spec.parts(context, len).iter().enumerate() {
        let tiles = (part.len as u32).div_ceil(tile);
        let states = context.allocate("tile states", 4 * u64::from(tiles) * u64::from(stride))?;
        batch.clear(&states);
        let chain = Chain {
            len: part.len as u32,
            tiles,
            inclusive: spec.inclusive.into(),
            part: number as u32,
        };
        let pass = batch.pass("scan look-back", &lookback);
        let pass = pass.buffer("source", &part.of(source)).buffer("result", &part.of(result));
        let pass = pass.buffer("states", &states).buffer("carry", carry);
        pass.uniform("chain", &chain).dispatch(context.fold(tiles.into())?);
    }
    Ok(())
}

/// The error where the look-back was asked for and cannot run.
pub(super) fn refused(spec: &Spec, context: &Context) -> Error {
    let Spec { op, dtype, .. } = spec;
    Error::gpu(format_args!("{} cannot look back over {op} of {dtype}", context.info.name))
        .with_hint(Hint::ScanAlgorithm)
}
