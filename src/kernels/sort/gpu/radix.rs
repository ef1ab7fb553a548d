//! Least-significant-digit radix sort: for each digit, count, scan the counts, scatter.

use super::SortBuffers;
use crate::{
    data::dtype::Dtype,
    gpu::{Batch, Buffer, Context, Shader},
    kernels::scan::{self, Algorithm, Op, ScanSpec},
    shader, shader_struct,
    util::{error::Result, memory},
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

/// Records the sort.
pub fn record(
    context: &Context,
    batch: &mut Batch<'_>,
    SortBuffers { keys, moved, len, differing }: SortBuffers<'_>,
) -> Result<usize> {
    let digits = RADIX.constant("DIGITS");
    let tiles = len.div_ceil(RADIX.constant("TILE") as usize) as u32;
    // The scan needs a multiple of four numbers, which 16 digits always are.
    let places = digits as usize * tiles as usize;
    let counts = context.allocate("digit counts", 4 * places as u64)?;
    let starts = context.allocate("digit starts", 4 * places as u64)?;
    let (dtype, op) = (Dtype::U32, Op::Sum);
    let scan = ScanSpec { dtype, op, inclusive: false, algorithm: Algorithm::Auto };
    let carry = context.upload("carry", &memory::filled(0u32, scan.carry_len(context, places)))?;
    let groups = context.fold(tiles.into())?;
    let digit_bits = digits.ilog2();
    let shifts = (0..u32::BITS).step_by(digit_bits as usize);
    let mut from = 0;
    for shift in shifts.filter(|shift| differing >> shift & (digits - 1) != 0) {
        let digit = Digit { len: len as u32, tiles, shift };
        let to = 1 - from;
        let buffers = [("keys", &keys[from]), ("counts", &counts)];
        batch.dispatch("sort count", &RADIX, "count", &digit, &buffers, groups)?;
        let arrays =
            scan::ScanBuffers { source: &counts, result: &starts, len: places, carry: &carry };
        scan.record(context, batch, arrays)?;
        for (entry, moved) in scatters(context, moved) {
            let [source, target] = moved
                .map_or([from, to].map(|at| &keys[at]), |moved| [from, to].map(|at| &moved[at]));
            let buffers = [("keys", &keys[from]), ("counts", &starts), ("sorted_keys", &keys[to])];
            let buffers =
                [&buffers[..], &[("payload", source), ("sorted_payload", target)]].concat();
            batch.dispatch("sort scatter", &RADIX, entry, &digit, &buffers, groups)?;
        }
        from = to;
    }
    Ok(from)
}

/// The entry points that move the keys and the arrays of `moved`, each with the array that it moves. One entry point
/// moves the keys and the first array if a shader can bind that many buffers.
fn scatters<'a>(
    context: &Context,
    moved: &'a [&'a [Buffer; 2]],
) -> impl Iterator<Item = (&'static str, Option<&'a [Buffer; 2]>)> {
    let fits = RADIX.storage_buffers("scatter_pairs") <= context.limits.storage_buffers;
    let (first, others) = match moved {
        [first, others @ ..] if fits => (("scatter_pairs", Some(*first)), others),
        all => (("scatter", None), all),
    };
    std::iter::once(first).chain(others.iter().map(|other| ("scatter_payload", Some(*other))))
}
