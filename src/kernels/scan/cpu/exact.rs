//! Scan by exact operations, which may be evaluated in any order: those of integers, minima and maxima.

use crate::{kernels::scan::op::Monoid, util::parallel::Parallel};

/// Numbers of a thread: they stay in its cache between the two passes.
const RUN: usize = 1 << 15;

/// Computes the total of the numbers of each thread. Then each thread scans its numbers after the totals of the threads
/// before.
pub fn scan<M: Monoid, S: Copy + Into<M::Stored> + Sync>(
    input: &[S],
    output: &mut [M::Stored],
    inclusive: bool,
    mut carry: M::Value,
) -> M::Value {
    let threads = rayon::current_num_threads();
    if threads == 1 || input.len() <= RUN {
        return serial::<M, S>(input, output, inclusive, carry);
    }
    // The second pass over a block finds it in the cache.
    let block = RUN * threads;
    for (input, output) in input.chunks(block).zip(output.chunks_mut(block)) {
        let run = input.len().div_ceil(threads).max(1);
        let mut carries = input.chunks(run).par_map(total::<M, S>);
        for carry_in in &mut carries {
            let after = M::join(carry, *carry_in);
            *carry_in = std::mem::replace(&mut carry, after);
        }
        let runs = input.chunks(run).zip(output.chunks_mut(run)).zip(carries);
        runs.par_each(|((input, output), carry_in)| {
            serial::<M, S>(input, output, inclusive, carry_in);
        });
    }
    carry
}

/// The total of `numbers`. Independent chains keep the arithmetic units busy.
fn total<M: Monoid, S: Copy + Into<M::Stored>>(numbers: &[S]) -> M::Value {
    let mut lanes = [M::IDENTITY; 32];
    let (chunks, rest) = numbers.as_chunks::<32>();
    for chunk in chunks {
        for (lane, &number) in lanes.iter_mut().zip(chunk) {
            *lane = M::join(*lane, M::to_value(number.into()));
        }
    }
    let joined = lanes.into_iter().fold(M::IDENTITY, M::join);
    rest.iter().fold(joined, |sum, &number| M::join(sum, M::to_value(number.into())))
}

fn serial<M: Monoid, S: Copy + Into<M::Stored>>(
    input: &[S],
    output: &mut [M::Stored],
    inclusive: bool,
    mut sum: M::Value,
) -> M::Value {
    for (&number, out) in input.iter().zip(output) {
        let before = sum;
        sum = M::join(sum, M::to_value(number.into()));
        *out = M::from_value(if inclusive { sum } else { before });
    }
    sum
}
