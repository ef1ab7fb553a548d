//! The native scans.

mod commutative;
mod reduce;
mod segments;
mod table;

pub use segments::scan_segments;
pub use table::sum_table;

use super::op::Monoid;

/// Scans `input` into `output`, which is as long, after `carry`. Returns the carry for what follows.
pub fn scan<M: Monoid>(
    input: &[M::Stored],
    output: &mut [M::Stored],
    inclusive: bool,
    carry: M::Stored,
) -> M::Stored {
    let carry = M::enter(carry);
    M::leave(match M::EXACT {
        true => commutative::scan::<M>(input, output, inclusive, carry),
        false => reduce::scan::<M>(input, output, inclusive, carry),
    })
}
