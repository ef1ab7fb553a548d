//! Scan in segments: a scan of numbers marked with the begins of segments.

use rayon::prelude::*;

use crate::{
    error::Result,
    kernels::scan::op::{Monoid, Segmented},
    memory,
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
    let mark = |(&number, &begins): (&M::Stored, &bool)| match begins {
        true => (M::leave(M::join(start, M::enter(number))), true),
        false => (number, false),
    };
    let marked = memory::collect(input.par_iter().zip(begins).map(mark))?;
    let mut scanned = memory::copied(&marked)?;
    let (after, _) = super::scan::<Segmented<M>>(&marked, &mut scanned, inclusive, (carry, false));
    // An exclusive result at a begin is that of the segment before.
    let result = |((value, _), begins): ((M::Stored, bool), &bool)| match inclusive || !begins {
        true => value,
        false => M::leave(start),
    };
    let results = memory::collect(scanned.into_par_iter().zip(begins).map(result));
    Ok((results?, after))
}
