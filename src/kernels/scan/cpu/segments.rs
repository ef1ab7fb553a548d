//! Segmented scan: a scan of pairs of a number and whether a segment starts there.

use crate::{
    kernels::scan::op::{Monoid, Segmented},
    util::{error::Result, memory, parallel},
};

/// Scans `input` in segments. `starts`, as long as `input`, marks the first number of each segment, which is joined to
/// `start`. Numbers before the first mark continue a segment whose total is `carry`. Returns the results and the carry
/// for the following numbers.
pub fn scan_segments<M: Monoid>(
    input: &[M::Stored],
    starts: &[bool],
    inclusive: bool,
    start: M::Stored,
    carry: M::Stored,
) -> Result<(Vec<M::Stored>, M::Stored)> {
    let start = M::to_value(start);
    // `start` is joined to the first number of each segment.
    let mark = |at: usize| match starts[at] {
        true => (M::from_value(M::join(start, M::to_value(input[at]))), true),
        false => (input[at], false),
    };
    let marked = parallel::generated(input.len(), mark)?;
    let mut scanned = memory::copied(&marked)?;
    let (after, _) = super::scan::<Segmented<M>>(&marked, &mut scanned, inclusive, (carry, false));
    // At the start of a segment, the exclusive result belongs to the segment before.
    let result = |at: usize| match inclusive || !starts[at] {
        true => scanned[at].0,
        false => M::from_value(start),
    };
    Ok((parallel::generated(scanned.len(), result)?, after))
}
