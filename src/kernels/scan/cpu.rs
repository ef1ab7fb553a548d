//! The native scan. Where the order of joining matters (sums and products of floats) it is the
//! shader's, step for step, so that both give the same bits.

use rayon::prelude::*;

use super::{
    BLOCK, TILE,
    op::{Monoid, Segmented},
};
use crate::memory::{self, raise};

/// Lanes of a tile: as many as a workgroup has invocations.
const LANES: usize = 256;
/// Numbers that one thread takes at a time where the order is free: they stay in its cache between
/// the two passes.
const RUN: usize = 1 << 15;

/// Scans `input` into `output`, which is as long, after `carry`; returns the carry for what follows.
pub fn scan<M: Monoid>(
    input: &[M::Stored],
    output: &mut [M::Stored],
    inclusive: bool,
    carry: M::Stored,
) -> M::Stored {
    let carry = M::enter(carry);
    M::leave(match M::EXACT {
        true => scan_any_order::<M>(input, output, inclusive, carry),
        false => scan_fixed_order::<M>(input, output, inclusive, carry),
    })
}

fn scan_any_order<M: Monoid>(
    input: &[M::Stored],
    output: &mut [M::Stored],
    inclusive: bool,
    mut carry: M::Value,
) -> M::Value {
    let threads = rayon::current_num_threads();
    if threads == 1 || input.len() <= RUN {
        return serial::<M>(input, output, inclusive, carry);
    }
    // A stretch at a time, so that the second pass finds it in the cache.
    let stretch = RUN * threads;
    for (input, output) in input.chunks(stretch).zip(output.chunks_mut(stretch)) {
        let run = input.len().div_ceil(threads).max(1);
        let mut befores: Vec<M::Value> = input.par_chunks(run).map(total::<M>).collect();
        for before in &mut befores {
            let after = M::join(carry, *before);
            *before = std::mem::replace(&mut carry, after);
        }
        let runs = input.par_chunks(run).zip(output.par_chunks_mut(run)).zip(befores);
        runs.for_each(|((input, output), before)| {
            serial::<M>(input, output, inclusive, before);
        });
    }
    carry
}

/// All of `numbers` joined. Independent chains keep the arithmetic units busy.
fn total<M: Monoid>(numbers: &[M::Stored]) -> M::Value {
    let mut lanes = [M::IDENTITY; 32];
    let chunks = numbers.chunks_exact(lanes.len());
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &number) in lanes.iter_mut().zip(chunk) {
            *lane = M::join(*lane, M::enter(number));
        }
    }
    let joined = lanes.into_iter().fold(M::IDENTITY, M::join);
    rest.iter().fold(joined, |sum, &number| M::join(sum, M::enter(number)))
}

fn serial<M: Monoid>(
    input: &[M::Stored],
    output: &mut [M::Stored],
    inclusive: bool,
    mut sum: M::Value,
) -> M::Value {
    for (&number, out) in input.iter().zip(output) {
        let before = sum;
        sum = M::join(sum, M::enter(number));
        *out = M::leave(if inclusive { sum } else { before });
    }
    sum
}

/// Scans `input` anew from `start` on wherever `starts`, which is as long, says so, before that after
/// `carry`; returns the results and the carry for what follows.
pub fn scan_segments<M: Monoid>(
    input: &[M::Stored],
    starts: &[bool],
    inclusive: bool,
    start: M::Stored,
    carry: M::Stored,
) -> (Vec<M::Stored>, M::Stored) {
    let start = M::enter(start);
    let mark = |(&number, &begins): (&M::Stored, &bool)| match begins {
        true => (M::leave(M::join(start, M::enter(number))), true),
        false => (number, false),
    };
    let marked = memory::collect(input.par_iter().zip(starts).map(mark)).unwrap_or_else(raise);
    let mut scanned = memory::copied(&marked).unwrap_or_else(raise);
    let (after, _) = scan::<Segmented<M>>(&marked, &mut scanned, inclusive, (carry, false));
    let shown = |((value, _), begins): ((M::Stored, bool), &bool)| match inclusive || !begins {
        true => value,
        false => M::leave(start),
    };
    let shown = memory::collect(scanned.into_par_iter().zip(starts).map(shown));
    (shown.unwrap_or_else(raise), after)
}

fn scan_fixed_order<M: Monoid>(
    input: &[M::Stored],
    output: &mut [M::Stored],
    inclusive: bool,
    mut carry: M::Value,
) -> M::Value {
    for (input, output) in input.chunks(BLOCK).zip(output.chunks_mut(BLOCK)) {
        let mut sums = [M::leave(M::IDENTITY); TILE];
        let tiles = input.par_chunks(TILE).zip(&mut sums);
        tiles.for_each(|(tile, sum)| *sum = M::leave(sum_tile::<M>(tile)));
        // The block's tiles are scanned as a tile is.
        let mut befores = [M::leave(M::IDENTITY); TILE];
        let sum = scan_tile::<M>(&sums, &mut befores, false, carry);
        carry = M::join(carry, sum);
        let tiles = input.par_chunks(TILE).zip(output.par_chunks_mut(TILE)).zip(&befores[..]);
        tiles.for_each(|((input, output), &before)| {
            scan_tile::<M>(input, output, inclusive, M::enter(before));
        });
    }
    carry
}

/// The tile's sum. The order of joining is that of `scan.wgsl`: quads from the left, four quads a lane
/// from the left, lanes as a balanced tree.
fn sum_tile<M: Monoid>(tile: &[M::Stored]) -> M::Value {
    let mut padded = [M::leave(M::IDENTITY); TILE];
    let tile = filled_up(tile, &mut padded);
    let mut lanes = lane_sums::<M>(tile);
    let mut count = LANES;
    while count > 1 {
        count /= 2;
        for i in 0..count {
            lanes[i] = M::join(lanes[2 * i], lanes[2 * i + 1]);
        }
    }
    lanes[0]
}

/// Scans a tile after `before` in the order of [`sum_tile`], lanes as Hillis and Steele (1986) do,
/// with doubling distance; returns the tile's sum.
fn scan_tile<M: Monoid>(
    input: &[M::Stored],
    output: &mut [M::Stored],
    inclusive: bool,
    before: M::Value,
) -> M::Value {
    if output.len() < TILE {
        let mut padded = [M::leave(M::IDENTITY); TILE];
        let mut whole = padded;
        let sum = scan_tile::<M>(filled_up(input, &mut padded), &mut whole, inclusive, before);
        output.copy_from_slice(&whole[..output.len()]);
        return sum;
    }
    let input = input.as_chunks::<EACH>().0;
    let mut lanes = lane_sums::<M>(input.as_flattened());
    let mut distance = 1;
    while distance < LANES {
        let nearer = lanes;
        for (lane, &left) in lanes[distance..].iter_mut().zip(&nearer) {
            *lane = M::join(left, *lane);
        }
        distance *= 2;
    }
    let mut left = M::IDENTITY;
    for ((v, out), lane) in input.iter().zip(output.as_chunks_mut::<EACH>().0).zip(lanes) {
        let q = quad_sums::<M>(v);
        let base = M::join(before, left);
        let two = M::join(q[0], q[1]);
        let bases =
            [base, M::join(base, q[0]), M::join(base, two), M::join(base, M::join(two, q[2]))];
        for ((v, out), base) in
            v.as_chunks::<4>().0.iter().zip(out.as_chunks_mut::<4>().0).zip(bases)
        {
            let v = v.map(M::enter);
            let two = M::join(v[0], v[1]);
            let three = M::join(two, v[2]);
            let [x, y, z] = [M::join(base, v[0]), M::join(base, two), M::join(base, three)];
            *out = match inclusive {
                true => [x, y, z, M::join(base, M::join(three, v[3]))],
                false => [base, x, y, z],
            }
            .map(M::leave);
        }
        left = lane;
    }
    left
}

/// Numbers of a lane.
const EACH: usize = TILE / LANES;

/// `tile`, or where it is short, `padded` with it at its start.
fn filled_up<'a, T: Copy>(tile: &'a [T], padded: &'a mut [T; TILE]) -> &'a [T] {
    if tile.len() == TILE {
        return tile;
    }
    padded[..tile.len()].copy_from_slice(tile);
    padded
}

fn lane_sums<M: Monoid>(tile: &[M::Stored]) -> [M::Value; LANES] {
    let mut lanes = [M::IDENTITY; LANES];
    for (lane, v) in lanes.iter_mut().zip(tile.as_chunks::<EACH>().0) {
        let q = quad_sums::<M>(v);
        *lane = M::join(M::join(M::join(q[0], q[1]), q[2]), q[3]);
    }
    lanes
}

#[inline(always)]
fn quad_sums<M: Monoid>(v: &[M::Stored; EACH]) -> [M::Value; 4] {
    std::array::from_fn(|quad| {
        let v: [M::Value; 4] = std::array::from_fn(|i| M::enter(v[4 * quad + i]));
        M::join(M::join(M::join(v[0], v[1]), v[2]), v[3])
    })
}
