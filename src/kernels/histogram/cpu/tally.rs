//! Counters of many slots that fit into the first-level cache, for which counters of 32 bits would be too large.
//!
//! The count of a slot is `sums[slot]` plus its `COPIES` bytes in `low`. Increments go to the bytes. One in 256
//! overflows and adds 256 to `sums`. With two copies, neighbouring samples increment different bytes: a second
//! increment of the same byte would wait for the write of the first.

use crate::util::memory;

/// A thread's counters.
pub struct Tally<const COPIES: usize> {
    low: Vec<[u8; COPIES]>,
    sums: Vec<u64>,
}

impl<const COPIES: usize> Tally<COPIES> {
    pub fn new(slots: usize) -> Self {
        Self { low: memory::filled([0; COPIES], slots), sums: memory::filled(0, slots) }
    }

    /// The counters for [`increment`], as arrays of `SLOTS`: indices that are known to be below `SLOTS` need no check.
    pub fn tables<const SLOTS: usize>(
        &mut self,
    ) -> (&mut [[u8; COPIES]; SLOTS], &mut [u64; SLOTS]) {
        let low = self.low.as_mut_slice().try_into().expect("as many slots");
        (low, self.sums.as_mut_slice().try_into().expect("as many slots"))
    }

    /// The counters for [`increment`].
    pub fn slices(&mut self) -> (&mut [[u8; COPIES]], &mut [u64]) {
        (&mut self.low, &mut self.sums)
    }

    /// The counts of `slots` slots, summed over `tallies`.
    pub fn total(tallies: Vec<Self>, slots: usize) -> Vec<u64> {
        let mut totals = memory::filled(0, slots);
        for Self { low, sums } in tallies {
            for ((total, sum), low) in totals.iter_mut().zip(sums).zip(low) {
                *total += sum + low.into_iter().map(u64::from).sum::<u64>();
            }
        }
        totals
    }
}

/// Adds 1 to `slot`, in its byte number `copy`.
#[inline(always)]
pub fn increment<const COPIES: usize>(
    low: &mut [[u8; COPIES]],
    sums: &mut [u64],
    slot: usize,
    copy: usize,
) {
    let (count, overflows) = low[slot][copy].overflowing_add(1);
    low[slot][copy] = count;
    if overflows {
        sums[slot] += 256;
    }
}
