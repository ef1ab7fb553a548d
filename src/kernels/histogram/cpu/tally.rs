//! Counters of so many slots that 32 bits a slot would not stay in the first-level cache.
//!
//! The count of a slot is `sums[slot]` and the sum of its `WAYS` bytes in `low`. Increments go to the bytes; the one in
//! 256 that overflows adds 256 to `sums`. With two ways, neighbouring samples take different bytes: an increment of a
//! byte that the one before has just written would wait for that write.

/// A thread's counters.
pub struct Tally<const WAYS: usize> {
    low: Vec<[u8; WAYS]>,
    sums: Vec<u64>,
}

impl<const WAYS: usize> Tally<WAYS> {
    pub fn new(slots: usize) -> Self {
        Self { low: vec![[0; WAYS]; slots], sums: vec![0; slots] }
    }

    /// The counters, to be handed to [`increment`] with slots below their number, which the caller knows.
    pub fn tables<const SLOTS: usize>(&mut self) -> (&mut [[u8; WAYS]; SLOTS], &mut [u64; SLOTS]) {
        let low = self.low.as_mut_slice().try_into().expect("as many slots");
        (low, self.sums.as_mut_slice().try_into().expect("as many slots"))
    }

    /// The counters, to be handed to [`increment`].
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

/// Counts `slot` once, by its byte `way`.
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
