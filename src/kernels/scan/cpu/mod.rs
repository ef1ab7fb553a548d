//! The scans on the CPU.

mod exact;
mod reduce;
mod segments;
mod table;

pub use exact::scan as scan_exact;
pub use segments::scan_segments;
pub use table::sum_table;

use super::op::Monoid;

/// Scans `input` after `carry` into `output`, which has the same length. Returns the carry for the following numbers.
pub fn scan<M: Monoid>(
    input: &[M::Stored],
    output: &mut [M::Stored],
    inclusive: bool,
    carry: M::Stored,
) -> M::Stored {
    let carry = M::to_value(carry);
    M::from_value(match M::EXACT {
        true => exact::scan::<M, _>(input, output, inclusive, carry),
        false => reduce::scan::<M>(input, output, inclusive, carry),
    })
}
