//! Counters for many slots, small enough to stay in the first-level cache, which counters of 32 bits would not.
//!
//! The count of a slot is `sums[slot]` plus its `WAYS` bytes in `low`. Increments go to the bytes; one in 256 overflows
//! and adds 256 to `sums`. With two ways, neighbouring samples increment different bytes: a second increment of the
//! same byte would wait for the write of the first.

/// A thread's counters.
pub struct Tally<const WAYS: usize> {
    low: Vec<[u8; WAYS]>,
    sums: Vec<u64>,
}

impl<const WAYS: usize> Tally<WAYS> {
    pub fn new(slots: usize) -> Self {
        Self { low: vec![[0; WAYS]; slots], sums: vec![0; slots] }
    }

    /// The counters for [`increment`], as arrays of `SLOTS`, which spares checks of indices known to be below it.
    pub fn tables<const SLOTS: usize>(&mut self) -> (&mut [[u8; WAYS]; SLOTS], &mut [u64; SLOTS]) {
        let low = self.low.as_mut_slice().try_into().expect("as many slots");
        (low, self.sums.as_mut_slice().try_into().expect("as many slots"))
    }

    /// The counters for [`increment`].
    pub fn slices(&mut self) -> (&mut [[u8; WAYS]], &mut [u64]) {
        (&mut self.low, &mut self.sums)
    }

    /// The counts of `slots` in all of `tallies`.
    pub fn total(tallies: Vec<Self>, slots: usize) -> Vec<u64> {
        let mut totals = vec![0; slots];
        for Self { low, sums } in tallies {
            for ((total, sum), low) in totals.iter_mut().zip(sums).zip(low) {
                *total += sum + low.into_iter().map(u64::from).sum::<u64>();
            }
        }
        totals
    }
}

/// Counts `slot` once, in its byte number `way`.
#[inline(always)]
pub fn increment<const WAYS: usize>(
    low: &mut [[u8; WAYS]],
    sums: &mut [u64],
    slot: usize,
    way: usize,
) {
    let (count, overflows) = low[slot][way].overflowing_add(1);
    low[slot][way] = count;
    if overflows {
        sums[slot] += 256;
    }
}
