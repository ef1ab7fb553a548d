//! Radix sort that reads and writes each key once a digit of 8 bits, by looking back. Chosen on NVIDIA hardware.

use super::Arrays;
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

/// The shader's names of the arrays that move along with the keys: source and target of each.
const MOVED: [[&str; 2]; 2] = [["payload", "sorted_payload"], ["more", "sorted_more"]];

/// Bits of a digit.
const BITS: u32 = 8;

/// Whether `context` has subgroups of one known width, no wider than a word, and grants such workgroups and buffers.
pub fn runs_on(context: &Context) -> bool {
    let [least, most] = context.info.subgroup_sizes;
    let width_is_known = least == most && (8..=32).contains(&least) && least.is_power_of_two();
    if !context.has(Features::SUBGROUP | Features::SUBGROUP_BARRIER) || !width_is_known {
        return false;
    }
    let (shader, limits) = (specialise(&ONESWEEP, least), &context.limits);
    limits.workgroup_size >= shader.constant("LANES")
        && limits.workgroup_bytes >= shader.constant("WORKGROUP_BYTES")
        && limits.storage_buffers >= shader.storage_buffers("scatter_triples")
}

/// Whether it is faster than the other route: where workgroups [have forward progress](Context::has_forward_progress), 6.6 ms instead
/// of 11.2 ms for 2^28 keys on an H200.
pub fn pays(context: &Context) -> bool {
    context.has_forward_progress() && runs_on(context)
}

/// `shader` for subgroups of `width` invocations.
pub fn specialise(shader: &Shader, width: u32) -> Shader {
    let lanes = shader.constant("GROUPS") * width;
    let tile = shader.constant("EACH") * lanes;
    shader.with(&[("WIDTH", width), ("LANES", lanes), ("TILE", tile)])
}

/// Records the sort.
///
/// # Errors
/// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when there is no memory or the driver refuses a shader.
pub fn record(context: &Context, batch: &mut Batch<'_>, arrays: Arrays<'_>) -> Result<usize> {
    record_with(context, batch, arrays, &ONESWEEP)
}

/// [`record`] with `shader`, which is [`ONESWEEP`] with other constants in tests.
///
/// # Errors
/// As [`record`].
pub fn record_with(
    context: &Context,
    batch: &mut Batch<'_>,
    Arrays { keys, moved, len, differing }: Arrays<'_>,
    shader: &Shader,
) -> Result<usize> {
    let shader = specialise(shader, context.info.subgroup_sizes[0]);
    let tiles = (len as u32).div_ceil(shader.constant("TILE"));
    let rows = shader.constant("DIGITS") * (tiles + 1);
    let count = U8Pass::of_words(context);
    let counts = context.allocate("digit counts", 4 * count.counters as u64)?;
    let digits = u32::BITS / BITS;
    let states = context.allocate("tile states", 4 * u64::from(digits) * u64::from(rows))?;
    batch.clear(&counts);
    batch.clear(&states);
    count.record(batch, &keys[0], len as u32, &counts)?;
    let digit = Digit { len: len as u32, tiles, ..Digit::default() };
    let buffers = [("counts", &counts), ("states", &states)];
    batch.dispatch("sort start", (&shader, "start"), &digit, &buffers, [digits, 1, 1])?;
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
        batch.dispatch("sort scatter", (&shader, entry), &digit, &buffers, groups)?;
        from = to;
    }
    Ok(from)
}
