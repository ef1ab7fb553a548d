//! Radix sort with decoupled look-back: reads and writes each key once per digit of 8 bits. Chosen on NVIDIA hardware.

use super::SortBuffers;
use crate::{
    gpu::{Batch, Context, Features, Shader},
    kernels::histogram::U8Pass,
    shader, shader_struct,
    util::error::Result,
};

/// The radix sort.
pub static ONESWEEP: Shader = shader!("sort/onesweep").unchecked(
    "keys are read below digit.len; they go to sums of counts plus ranks, which are a permutation of \
     0..digit.len; states are those of 256 digit values in a row before all tiles and in one for each; \
     workgroup arrays are indexed by invocations, subgroups, digit values, and places within a tile",
);

shader_struct! {
    /// One digit of the sort.
    struct Digit { len: u32, tiles: u32, shift: u32, first_state: u32 }
}

/// Names in the shader of the source and target of each array that moves along with the keys.
const MOVED: [[&str; 2]; 2] = [["payload", "sorted_payload"], ["more", "sorted_more"]];

/// Bits of a digit.
const BITS: u32 = 8;

/// Whether `context` has subgroups of a single known width of at most 32, and the limits that the shader needs.
pub fn is_supported(context: &Context) -> bool {
    let [width, max] = context.info.subgroup_sizes;
    let is_known = width == max && (8..=32).contains(&width) && width.is_power_of_two();
    if !context.has(Features::SUBGROUP | Features::SUBGROUP_BARRIER) || !is_known {
        return false;
    }
    let (shader, limits) = (specialise(&ONESWEEP, width), &context.limits);
    limits.workgroup_size >= shader.constant("LANES")
        && limits.workgroup_bytes >= shader.constant("WORKGROUP_BYTES")
        && limits.storage_buffers >= shader.storage_buffers("scatter_triples")
}

/// Whether it is faster than the other route, which it is if workgroups [have forward
/// progress](Context::has_forward_progress): 6.6 ms instead of 11.2 ms for 2^28 keys on an H200.
pub fn is_preferred(context: &Context) -> bool {
    context.has_forward_progress() && is_supported(context)
}

/// `shader` for subgroups of `width` invocations.
pub fn specialise(shader: &Shader, width: u32) -> Shader {
    let lanes = shader.constant("GROUPS") * width;
    let tile = shader.constant("EACH") * lanes;
    shader.with(&[("WIDTH", width), ("LANES", lanes), ("TILE", tile)])
}

/// Records the sort.
pub fn record(context: &Context, batch: &mut Batch<'_>, arrays: SortBuffers<'_>) -> Result<usize> {
    record_with(context, batch, arrays, &ONESWEEP)
}

/// [`record`] with `shader`: in tests, [`ONESWEEP`] with other constants.
pub fn record_with(
    context: &Context,
    batch: &mut Batch<'_>,
    SortBuffers { keys, moved, len, differing }: SortBuffers<'_>,
    shader: &Shader,
) -> Result<usize> {
    let shader = specialise(shader, context.info.subgroup_sizes[0]);
    let tiles = (len as u32).div_ceil(shader.constant("TILE"));
    let rows = shader.constant("DIGITS") * (tiles + 1);
    let count = U8Pass::for_words(context);
    let counts = context.allocate("digit counts", 4 * count.counters as u64)?;
    let digits = u32::BITS / BITS;
    let states = context.allocate("tile states", 4 * u64::from(digits) * u64::from(rows))?;
    batch.clear(&counts);
    batch.clear(&states);
    count.record(batch, &keys[0], len as u32, &counts)?;
    let digit = Digit { len: len as u32, tiles, ..Digit::default() };
    let buffers = [("counts", &counts), ("states", &states)];
    batch.dispatch("sort start", &shader, "start", &digit, &buffers, [digits, 1, 1])?;
    let entry = ["scatter", "scatter_pairs", "scatter_triples"][moved.len()];
    let groups = context.fold(tiles.into())?;
    let mut from = 0;
    for number in (0..digits).filter(|number| differing >> (number * BITS) & 255 != 0) {
        let digit = Digit { shift: number * BITS, first_state: number * rows, ..digit };
        let to = 1 - from;
        let mut buffers =
            vec![("keys", &keys[from]), ("sorted_keys", &keys[to]), ("states", &states)];
        for (array, [source, target]) in moved.iter().zip(MOVED) {
            buffers.extend([(source, &array[from]), (target, &array[to])]);
        }
        batch.dispatch("sort scatter", &shader, entry, &digit, &buffers, groups)?;
        from = to;
    }
    Ok(from)
}
