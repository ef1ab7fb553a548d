//! Least-significant-digit radix sort: for each digit, count, scan the counts, scatter.

use crate::{
    data::dtype::Dtype,
    error::Result,
    gpu::{Batch, Buffer, Context, Shader},
    kernels::scan::{Algorithm, Arrays, Op, Spec},
    shader, shader_struct,
};

/// The radix sort.
pub static RADIX: Shader = shader!("sort/radix").unchecked(
    "keys are read below digit.len; they go to scanned counts plus ranks, which are a permutation of \
     0..digit.len; counts are indexed below 16 digits times digit.tiles; workgroup arrays by lanes, \
     digits, and places within a tile",
);

shader_struct! {
    /// One digit of the sort.
    struct Digit { len: u32, tiles: u32, shift: u32 }
}

/// Records the sort of the first `len` keys of `keys[0]` and of `payload[0]` with them; the other
/// buffer of each pair, as long, is used on the way. Each fits one binding.
///
/// # Errors
/// [`Kind::Gpu`](crate::error::Kind::Gpu) when there is no memory or the driver refuses a shader.
pub fn record(
    context: &Context,
    batch: &mut Batch<'_>,
    keys: &[Buffer; 2],
    payload: Option<&[Buffer; 2]>,
    len: usize,
) -> Result<()> {
    let digits = RADIX.constant("DIGITS");
    let tiles = len.div_ceil(RADIX.constant("TILE") as usize) as u32;
    // The scan takes whole quads, which 16 digits always make.
    let places = digits as usize * tiles as usize;
    let counts = context.allocate("digit counts", 4 * places as u64)?;
    let starts = context.allocate("digit starts", 4 * places as u64)?;
    let (dtype, op) = (Dtype::U32, Op::Sum);
    let scan = Spec { dtype, op, inclusive: false, algorithm: Algorithm::Auto };
    let carry = context.upload("carry", &vec![0u32; scan.carry_places(context, places)])?;
    let count = context.pipeline(&RADIX, "count")?;
    let scatters = scatters(context, payload.is_some());
    let scatters =
        scatters.iter().map(|entry| context.pipeline(&RADIX, entry)).collect::<Result<Vec<_>>>()?;
    let groups = context.fold(tiles.into())?;
    let digit_bits = digits.ilog2();
    for pass in 0..u32::BITS / digit_bits {
        let digit = Digit { len: len as u32, tiles, shift: pass * digit_bits };
        let (from, to) = (pass as usize % 2, (pass as usize + 1) % 2);
        let counting = batch.pass("sort count", &count).buffer("keys", &keys[from]);
        counting.buffer("counts", &counts).uniform("digit", &digit).dispatch(groups);
        let arrays = Arrays { source: &counts, result: &starts, len: places, carry: &carry };
        scan.record(context, batch, arrays)?;
        for scatter in &scatters {
            let mut pass = batch.pass("sort scatter", scatter).uniform("digit", &digit);
            pass = pass.buffer("keys", &keys[from]).buffer("counts", &starts);
            if scatter.uses("sorted_keys") {
                pass = pass.buffer("sorted_keys", &keys[to]);
            }
            if let Some(payload) = payload.filter(|_| scatter.uses("payload")) {
                pass = pass.buffer("payload", &payload[from]);
                pass = pass.buffer("sorted_payload", &payload[to]);
            }
            pass.dispatch(groups);
        }
    }
    Ok(())
}

/// The entry points that move keys and payload: together where a shader may have that many buffers.
fn scatters(context: &Context, with_payload: bool) -> &'static [&'static str] {
    let fits = RADIX.storage_buffers("scatter_pairs") <= context.limits.storage_buffers;
    match (with_payload, fits) {
        (false, _) => &["scatter"],
        (true, true) => &["scatter_pairs"],
        (true, false) => &["scatter", "scatter_payload"],
    }
}
