//! The native scan. Where the order of joining matters (sums and products of floats) it is the
//! shader's, step for step, so that both give the same bits.

use rayon::prelude::*;

use super::{BLOCK, TILE, op::Monoid};

/// Lanes of a tile: as many as a workgroup has invocations.
const LANES: usize = 256;
/// Quads (4 neighbouring numbers) of a tile.
const QUADS: usize = TILE / 4;
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

fn scan_fixed_order<M: Monoid>(
    input: &[M::Stored],
    output: &mut [M::Stored],
    inclusive: bool,
    mut carry: M::Value,
) -> M::Value {
    for (input, output) in input.chunks(BLOCK).zip(output.chunks_mut(BLOCK)) {
        let mut sums = vec![M::IDENTITY; TILE];
        let tiles = input.par_chunks(TILE).zip(&mut sums);
        tiles.for_each(|(tile, sum)| *sum = Tile::<M>::new(tile).total());
        // The block's tiles are scanned as a tile is.
        let spine = Tile::<M>::from_values(sums.try_into().expect("as long as a tile"));
        let mut befores = [M::IDENTITY; TILE];
        spine.scan(carry, false, |i, value| befores[i] = value);
        carry = M::join(carry, spine.total());
        let tiles = input.par_chunks(TILE).zip(output.par_chunks_mut(TILE)).zip(&befores[..]);
        tiles.for_each(|((input, output), &before)| {
            let tile = Tile::<M>::new(input);
            match <&mut [M::Stored; TILE]>::try_from(&mut *output) {
                Ok(output) => tile.scan(before, inclusive, |i, v| output[i] = M::leave(v)),
                Err(_) => tile.scan(before, inclusive, |i, v| {
                    if let Some(out) = output.get_mut(i) {
                        *out = M::leave(v);
                    }
                }),
            }
        });
    }
    carry
}

/// A tile, filled up with the identity, and its sums at three heights. The order of joining is that
/// of `scan.wgsl`: quads from the left, four quads a lane from the left, lanes as Hillis and Steele
/// (1986) do, with doubling distance.
struct Tile<M: Monoid> {
    values: Box<[M::Value; TILE]>,
    quads: [M::Value; QUADS],
    /// The sum of all lanes up to this one.
    lanes: [M::Value; LANES],
}

impl<M: Monoid> Tile<M> {
    fn new(numbers: &[M::Stored]) -> Self {
        let mut values = [M::IDENTITY; TILE];
        for (value, &number) in values.iter_mut().zip(numbers) {
            *value = M::enter(number);
        }
        Self::from_values(Box::new(values))
    }

    fn from_values(values: Box<[M::Value; TILE]>) -> Self {
        let mut quads = [M::IDENTITY; QUADS];
        for (quad, v) in quads.iter_mut().zip(values.as_chunks::<4>().0) {
            *quad = M::join(M::join(M::join(v[0], v[1]), v[2]), v[3]);
        }
        let mut lanes = [M::IDENTITY; LANES];
        for (lane, q) in lanes.iter_mut().zip(quads.as_chunks::<4>().0) {
            *lane = M::join(M::join(M::join(q[0], q[1]), q[2]), q[3]);
        }
        let mut distance = 1;
        while distance < LANES {
            let before = lanes;
            for i in distance..LANES {
                lanes[i] = M::join(before[i - distance], before[i]);
            }
            distance *= 2;
        }
        Self { values, quads, lanes }
    }

    fn total(&self) -> M::Value {
        self.lanes[LANES - 1]
    }

    #[inline(always)]
    fn scan(&self, before: M::Value, inclusive: bool, mut put: impl FnMut(usize, M::Value)) {
        for lane in 0..LANES {
            let left = if lane == 0 { M::IDENTITY } else { self.lanes[lane - 1] };
            let base = M::join(before, left);
            let q = &self.quads[4 * lane..4 * lane + 3];
            let two = M::join(q[0], q[1]);
            let bases =
                [base, M::join(base, q[0]), M::join(base, two), M::join(base, M::join(two, q[2]))];
            for (quad, base) in bases.into_iter().enumerate() {
                let at = 16 * lane + 4 * quad;
                let v = &self.values[at..at + 4];
                let two = M::join(v[0], v[1]);
                let three = M::join(two, v[2]);
                let sums = [M::join(base, v[0]), M::join(base, two), M::join(base, three)];
                if inclusive {
                    put(at, sums[0]);
                    put(at + 1, sums[1]);
                    put(at + 2, sums[2]);
                    put(at + 3, M::join(base, M::join(three, v[3])));
                } else {
                    put(at, base);
                    put(at + 1, sums[0]);
                    put(at + 2, sums[1]);
                    put(at + 3, sums[2]);
                }
            }
        }
    }
}
