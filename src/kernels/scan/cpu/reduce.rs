//! Reduce-then-scan in the same order as `wgsl/scan/passes.wgsl`, so that sums and products of floats have the same
//! bits.
//!
//! ```text
//! block   4,096 tiles, scanned as the numbers of a tile are
//! tile    4 x 8 octets   reduced as a balanced tree; scanned from the left, and eight octets as the lanes of one
//! octet   8 lanes        reduced as a balanced tree; scanned with doubling distance
//! lane    4 quads        from the left
//! quad    4 numbers      from the left
//! ```

use crate::{
    kernels::scan::{
        op::Monoid,
        params::{BLOCK, TILE},
    },
    util::parallel::Parallel,
};

/// Lanes of a tile.
const LANES: usize = 256;
/// Maximum number of tiles that a thread takes at a time.
const TASK: usize = 16;
/// Numbers of a lane.
const EACH: usize = TILE / LANES;

/// Scans block by block: sums the tiles, scans these sums, then scans each tile.
pub fn scan<M: Monoid>(
    input: &[M::Stored],
    output: &mut [M::Stored],
    inclusive: bool,
    mut carry: M::Value,
) -> M::Value {
    let tiles = input.len().min(BLOCK).div_ceil(TILE);
    let task = (tiles / (4 * rayon::current_num_threads())).clamp(1, TASK);
    for (input, output) in input.chunks(BLOCK).zip(output.chunks_mut(BLOCK)) {
        let mut sums = [M::from_value(M::IDENTITY); TILE];
        input.chunks(task * TILE).zip(sums.chunks_mut(task)).par_each(|(input, sums)| {
            for (tile, sum) in input.chunks(TILE).zip(sums) {
                *sum = M::from_value(sum_tile::<M>(tile));
            }
        });
        let mut carries = [M::from_value(M::IDENTITY); TILE];
        let sum = scan_tile::<M>(&sums, &mut carries, false, carry);
        carry = M::join(carry, sum);
        let tasks = input.chunks(task * TILE).zip(output.chunks_mut(task * TILE));
        tasks.zip(carries.chunks(task)).par_each(|((input, output), carries)| {
            let tiles = input.chunks(TILE).zip(output.chunks_mut(TILE)).zip(carries);
            for ((input, output), &before) in tiles {
                scan_tile::<M>(input, output, inclusive, M::to_value(before));
            }
        });
    }
    carry
}

/// The sum of a tile: lanes are reduced as a balanced tree, neighbours first.
fn sum_tile<M: Monoid>(tile: &[M::Stored]) -> M::Value {
    let mut padded = [M::from_value(M::IDENTITY); TILE];
    let mut lanes = lane_sums::<M>(filled_up(tile, &mut padded));
    let mut count = LANES;
    while count > 1 {
        count /= 2;
        for i in 0..count {
            lanes[i] = M::join(lanes[2 * i], lanes[2 * i + 1]);
        }
    }
    lanes[0]
}

/// Scans each group of eight `values` with doubling distance (Hillis and Steele 1986).
fn scan_octets<V: Copy>(values: &mut [V], join: impl Fn(V, V) -> V) {
    for octet in values.as_chunks_mut::<8>().0 {
        for distance in [1, 2, 4] {
            let nearer = *octet;
            for (value, &left) in octet[distance..].iter_mut().zip(&nearer) {
                *value = join(left, *value);
            }
        }
    }
}

/// Scans a tile after `before`. Returns the sum of the tile.
fn scan_tile<M: Monoid>(
    input: &[M::Stored],
    output: &mut [M::Stored],
    inclusive: bool,
    before: M::Value,
) -> M::Value {
    if output.len() < TILE {
        let mut padded = [M::from_value(M::IDENTITY); TILE];
        let mut whole = padded;
        let sum = scan_tile::<M>(filled_up(input, &mut padded), &mut whole, inclusive, before);
        output.copy_from_slice(&whole[..output.len()]);
        return sum;
    }
    let input = input.as_chunks::<EACH>().0;
    let mut lanes = lane_sums::<M>(input.as_flattened());
    scan_octets(&mut lanes, M::join);
    let mut octets: [M::Value; LANES / 8] = std::array::from_fn(|octet| lanes[8 * octet + 7]);
    scan_octets(&mut octets, M::join);
    let [a, b, c, d] = [7, 15, 23, 31].map(|octet| octets[octet]);
    let two = M::join(a, b);
    let wide = [M::IDENTITY, a, two, M::join(two, c)];
    for (lane, (numbers, out)) in input.iter().zip(output.as_chunks_mut::<EACH>().0).enumerate() {
        let octet = lane / 8;
        let mut left = wide[octet / 8];
        if octet % 8 > 0 {
            left = M::join(left, octets[octet - 1]);
        }
        if lane % 8 > 0 {
            left = M::join(left, lanes[lane - 1]);
        }
        scan_lane::<M>(numbers, out, inclusive, M::join(before, left));
    }
    M::join(two, M::join(c, d))
}

/// Scans the quads of a lane after `base`.
#[inline(always)]
fn scan_lane<M: Monoid>(
    numbers: &[M::Stored; EACH],
    out: &mut [M::Stored; EACH],
    inclusive: bool,
    base: M::Value,
) {
    let q = quad_sums::<M>(numbers);
    let two = M::join(q[0], q[1]);
    let bases = [base, M::join(base, q[0]), M::join(base, two), M::join(base, M::join(two, q[2]))];
    let quads = numbers.as_chunks::<4>().0.iter().zip(out.as_chunks_mut::<4>().0);
    for ((v, out), base) in quads.zip(bases) {
        let v = v.map(M::to_value);
        let two = M::join(v[0], v[1]);
        let three = M::join(two, v[2]);
        let [x, y, z] = [M::join(base, v[0]), M::join(base, two), M::join(base, three)];
        *out = match inclusive {
            true => [x, y, z, M::join(base, M::join(three, v[3]))],
            false => [base, x, y, z],
        }
        .map(M::from_value);
    }
}

/// `tile` if it is whole, else `padded` with the tile at its start.
fn filled_up<'a, T: Copy>(tile: &'a [T], padded: &'a mut [T; TILE]) -> &'a [T] {
    if tile.len() == TILE {
        return tile;
    }
    padded[..tile.len()].copy_from_slice(tile);
    padded
}

fn lane_sums<M: Monoid>(tile: &[M::Stored]) -> [M::Value; LANES] {
    let mut lanes = [M::IDENTITY; LANES];
    for (lane, numbers) in lanes.iter_mut().zip(tile.as_chunks::<EACH>().0) {
        let q = quad_sums::<M>(numbers);
        *lane = M::join(M::join(M::join(q[0], q[1]), q[2]), q[3]);
    }
    lanes
}

#[inline(always)]
fn quad_sums<M: Monoid>(numbers: &[M::Stored; EACH]) -> [M::Value; 4] {
    std::array::from_fn(|quad| {
        let v: [M::Value; 4] = std::array::from_fn(|i| M::to_value(numbers[4 * quad + i]));
        M::join(M::join(M::join(v[0], v[1]), v[2]), v[3])
    })
}
