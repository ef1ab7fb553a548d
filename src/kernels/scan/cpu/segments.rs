//! Scan in segments: a scan of numbers marked with the begins of segments.

use crate::{
    kernels::scan::op::{Monoid, Segmented},
    util::{error::Result, memory, parallel},
};

/// Scans `input` in segments. `begins`, as long as `input`, marks the first number of each segment, which is joined to
/// `start`; numbers before the first mark continue a segment whose total is `carry`. Returns the results and the carry
/// for the numbers that follow.
///
/// # Errors
/// When the memory is not there.
pub fn scan_segments<M: Monoid>(
    input: &[M::Stored],
    begins: &[bool],
    inclusive: bool,
    start: M::Stored,
    carry: M::Stored,
) -> Result<(Vec<M::Stored>, M::Stored)> {
    let start = M::enter(start);
    // `start` is joined to the first number of each segment.
    let mark = |at: usize| match begins[at] {
        true => (M::leave(M::join(start, M::enter(input[at]))), true),
        false => (input[at], false),
    };
    let marked = parallel::generated(input.len(), mark)?;
    let mut scanned = memory::copied(&marked)?;
    let (after, _) = super::scan::<Segmented<M>>(&marked, &mut scanned, inclusive, (carry, false));
    // An exclusive result at a begin is that of the segment before.
    let result = |at: usize| match inclusive || !begins[at] {
        true => scanned[at].0,
        false => M::leave(start),
    };
    Ok((parallel::generated(scanned.len(), result)?, after))
}
