//! Chained scan in one pass and in the fixed order: each number is read once and written once. Chosen on NVIDIA
//! hardware for sums and products of f32.

use super::{Arrays, Part, Spec, lookback};
use crate::{
    error::Result,
    gpu::{Batch, Context, Shader},
    kernels::scan::{BLOCK, TILE},
    shader, shader_struct,
};

shader_struct! {
    /// The part of the arrays that a pass works on.
    struct Chain { len: u32, tiles: u32, inclusive: u32, part: u32 }
}

/// The scan.
pub static CHAINED: Shader = shader!("scan/chained").unchecked(
    "quads are read and written up to that of number chain.len - 1, which the host keeps within the \
     bound parts; states are those of tiles below chain.tiles, of their strips and blocks, for which the \
     host makes room; workgroup arrays are indexed by invocations, and by tiles of a strip; carry has a \
     place for each part and one more",
);

/// Whether results depend on the order of joining, so that it is to be fixed, and a state's 32 bits hold a number.
pub fn fits(spec: &Spec) -> bool {
    spec.dtype.size() == 4 && spec.is_rounded()
}

/// Whether `context` has subgroups of one known width, and binds a block at once.
pub fn runs_on(context: &Context) -> bool {
    let binds_a_block = context.max_binding() >= 4 * BLOCK as u64;
    binds_a_block && lookback::runs_on(context) && context.info.subgroup_sizes[0] >= 8
}

/// Whether it is faster than the other scans: where the look-back is (on an H200, 0.060 ms instead of 0.081 ms for
/// 2^24 numbers, 0.82 ms instead of 0.90 ms for 2^28).
pub fn pays(spec: &Spec, context: &Context) -> bool {
    fits(spec) && runs_on(context) && context.makes_progress()
}

/// Parts of whole blocks.
fn parts(spec: &Spec, context: &Context, len: usize) -> Vec<Part> {
    spec.parts_of(context, len, BLOCK)
}

/// Numbers in the carry buffer: each part's pass reads one and writes the next.
pub fn carry_places(spec: &Spec, context: &Context, len: usize) -> usize {
    parts(spec, context, len).len() + 1
}

/// Records the scan.
///
/// # Errors
/// As [`lookback::record`].
pub fn record(
    spec: &Spec,
    context: &Context,
    batch: &mut Batch<'_>,
    arrays: Arrays<'_>,
) -> Result<()> {
    match context.is_hardware() {
        true => record_with(spec, context, batch, arrays, &CHAINED),
        false => Err(lookback::refused(spec, context)),
    }
}

/// Records the scan with `shader`, which is [`CHAINED`] with other constants in tests.
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
    if !spec.can_chain(context) {
        return Err(lookback::refused(spec, context));
    }
    let strip = shader.constant("STRIP") as usize;
    let chained = context.pipeline(&spec.specialise(shader), "chained")?;
    for (number, part) in parts(spec, context, len).iter().enumerate() {
        let tiles = part.len.div_ceil(TILE);
        // States of the tiles of all strips, of the strips, and of the carries before each block and after the last.
        let strips = tiles.div_ceil(strip);
        let places = strips * (strip + 1) + part.len.div_ceil(BLOCK) + 1;
        let states = context.allocate("tile states", 4 * places as u64)?;
        batch.clear(&states);
        let chain = Chain {
            len: part.len as u32,
            tiles: tiles as u32,
            inclusive: spec.inclusive.into(),
            part: number as u32,
        };
        let pass = batch.pass("scan chained", &chained);
        let pass = pass.buffer("source", &part.of(source)).buffer("result", &part.of(result));
        let pass = pass.buffer("states", &states).buffer("carry", carry);
        pass.uniform("chain", &chain).dispatch(context.fold(tiles.div_ceil(2) as u64)?);
    }
    Ok(())
}
