//! The native sort: all threads deal the items out in heaps by the highest digit of their keys; then each
//! heap is sorted by itself by the digits below, in a core's cache.

use std::ops::Range;

use crate::memory::{self, raise};
use rayon::prelude::*;

/// What is sorted: a key, perhaps with a value.
pub trait Item: Copy + bytemuck::Zeroable + Default + Send + Sync {
    /// What it is sorted by.
    fn key(self) -> u32;
}

impl Item for u32 {
    fn key(self) -> u32 {
        self
    }
}

impl Item for (u32, u32) {
    fn key(self) -> u32 {
        self.0
    }
}

/// Bits of a digit. 256 places to write to stay within the first cache.
const BITS: u32 = 8;
const DIGITS: usize = 1 << BITS;

/// Shorter arrays are not worth another thread.
const SHORT: usize = 1 << 15;

/// Heaps of no more bytes are sorted in a core's second cache.
const CACHED: usize = 1 << 19;

/// So few items are compared rather than counted.
const FEW: usize = 128;

/// Bytes of one digit that are collected before they are written: two lines of the cache.
const COLLECTED: usize = 128;

/// The items `item(0)` to `item(len - 1)` in the order of their keys; those with equal keys in the order
/// they had.
pub fn sort<I: Item>(len: usize, item: impl Fn(usize) -> I + Sync) -> Vec<I> {
    let mut items = memory::zeros(len).unwrap_or_else(raise);
    deal_and_sort(len, item, &mut items, u32::BITS);
    items
}

/// Sorts into `to` by the lowest `bits` bits of the keys, a multiple of [`BITS`]; those above are equal.
fn deal_and_sort<I: Item>(
    len: usize,
    item: impl Fn(usize) -> I + Sync,
    mut to: &mut [I],
    bits: u32,
) {
    let (lengths, below) = deal(len, item, to, bits - BITS);
    let mut heaps = Vec::with_capacity(DIGITS);
    for len in lengths {
        heaps.push(to.split_off_mut(..len).expect("lengths add up"));
    }
    // Memory is dear while it is fresh: each thread has one scratch for all of its heaps.
    let sort = |scratch: &mut Vec<I>, heap| sort_heap(heap, scratch, below);
    heaps.into_par_iter().for_each_init(Vec::new, sort);
}

/// Sorts by the lowest `bits` bits of the keys, those above being equal.
fn sort_heap<I: Item>(items: &mut [I], scratch: &mut Vec<I>, bits: u32) {
    if items.len() <= FEW {
        items.sort_by_key(|item| item.key());
    } else if size_of_val(items) <= CACHED || bits <= BITS {
        scratch.resize(scratch.len().max(items.len()), I::default());
        sort_cached(items, &mut scratch[..items.len()], bits);
    } else {
        let dealt = memory::copied(items).unwrap_or_else(raise);
        deal_and_sort(dealt.len(), |i| dealt[i], items, bits);
    }
}

/// Moves the items into `to`, sorted by the digit whose lowest bit has the number `shift`, all above being
/// equal, or by the highest below it that differs. Returns how many there are of each digit, and how
/// many bits are left below.
fn deal<I: Item>(
    len: usize,
    item: impl Fn(usize) -> I + Sync,
    mut to: &mut [I],
    mut shift: u32,
) -> ([usize; DIGITS], u32) {
    // Each thread takes a part of the items and has places of its own for each digit.
    let part = len.div_ceil(rayon::current_num_threads()).max(SHORT);
    let parts: Vec<_> = (0..len).step_by(part).map(|i| i..len.min(i + part)).collect();
    let digit = |item: I, shift| (item.key() >> shift) as usize % DIGITS;
    let (counts, lengths) = loop {
        let count = |part: &Range<usize>| {
            let mut counts = [0; DIGITS];
            part.clone().for_each(|i| counts[digit(item(i), shift)] += 1);
            counts
        };
        let counts: Vec<[usize; DIGITS]> = parts.par_iter().map(count).collect();
        let lengths: [usize; DIGITS] =
            std::array::from_fn(|digit| counts.iter().map(|counts| counts[digit]).sum());
        if shift == 0 || len == 0 || !lengths.contains(&len) {
            break (counts, lengths);
        }
        let (first, keys) = (item(0).key(), (0..len).into_par_iter().with_min_len(SHORT));
        let differing = keys.map(|i| item(i).key() ^ first).reduce(|| 0, |a, b| a | b);
        shift = differing.checked_ilog2().unwrap_or(0) / BITS * BITS;
    };
    let mut places: Vec<Vec<_>> = counts.iter().map(|_| Vec::with_capacity(DIGITS)).collect();
    for digit in 0..DIGITS {
        for (places, counts) in places.iter_mut().zip(&counts) {
            places.push(to.split_off_mut(..counts[digit]).expect("counts add up"));
        }
    }
    parts.into_par_iter().zip(places).for_each(|(part, mut places)| {
        let most = COLLECTED / size_of::<I>();
        let mut collected = vec![I::default(); DIGITS * most];
        let mut counts = [0; DIGITS];
        for item in part.map(&item) {
            let digit = digit(item, shift);
            let (collected, count) = (&mut collected[digit * most..][..most], &mut counts[digit]);
            collected[*count] = item;
            *count += 1;
            if *count == most {
                write(&mut places[digit], collected);
                *count = 0;
            }
        }
        for ((place, collected), count) in
            places.iter_mut().zip(collected.chunks_exact(most)).zip(counts)
        {
            write(place, &collected[..count]);
        }
    });
    (lengths, shift)
}

/// Copies `items` to the start of `place`, which goes on behind them.
fn write<I: Copy>(place: &mut &mut [I], items: &[I]) {
    place.split_off_mut(..items.len()).expect("as many as were counted").copy_from_slice(items);
}

/// [`sort_heap`], least significant digit first; `scratch` is as long.
fn sort_cached<I: Item>(items: &mut [I], scratch: &mut [I], bits: u32) {
    let passes = bits.div_ceil(BITS) as usize;
    let digit = |item: I, pass: usize| (item.key() >> (pass as u32 * BITS)) as usize % DIGITS;
    let mut counts = [[0u32; DIGITS]; 4];
    for &item in &*items {
        for (pass, counts) in counts[..passes].iter_mut().enumerate() {
            counts[digit(item, pass)] += 1;
        }
    }
    let (mut from, mut to) = (items, scratch);
    let mut moved = false;
    for (pass, places) in counts[..passes].iter_mut().enumerate() {
        // A digit that all keys share moves nothing.
        if places.contains(&(from.len() as u32)) {
            continue;
        }
        let mut next = 0;
        for place in places.iter_mut() {
            next += std::mem::replace(place, next);
        }
        for &item in &*from {
            let place = &mut places[digit(item, pass)];
            to[*place as usize] = item;
            *place += 1;
        }
        std::mem::swap(&mut from, &mut to);
        moved = !moved;
    }
    if moved {
        to.copy_from_slice(from);
    }
}

/// Merges sorted runs of `run` items each; the last may be shorter.
pub fn merge_runs<I: Item>(items: Vec<I>, run: usize) -> Vec<I> {
    let other = memory::zeros(items.len()).unwrap_or_else(raise);
    merge_from(items, other, run)
}

fn merge_from<I: Item>(mut items: Vec<I>, mut other: Vec<I>, mut run: usize) -> Vec<I> {
    while run < items.len() {
        let pairs = items.par_chunks(2 * run).zip(other.par_chunks_mut(2 * run));
        pairs.for_each(|(pair, merged)| {
            let (first, second) = pair.split_at(run.min(pair.len()));
            merge(first, second, merged);
        });
        std::mem::swap(&mut items, &mut other);
        run *= 2;
    }
    items
}

/// Merges two sorted runs; of equal keys those of the first come first. Long ones are cut in two, each
/// half for a thread.
fn merge<I: Item>(first: &[I], second: &[I], merged: &mut [I]) {
    if merged.len() > SHORT && !first.is_empty() && !second.is_empty() {
        let (i, j) = if first.len() >= second.len() {
            let i = first.len() / 2;
            (i, second.partition_point(|item| item.key() < first[i].key()))
        } else {
            let j = second.len() / 2;
            (first.partition_point(|item| item.key() <= second[j].key()), j)
        };
        let (lower, upper) = merged.split_at_mut(i + j);
        rayon::join(
            || merge(&first[..i], &second[..j], lower),
            || merge(&first[i..], &second[j..], upper),
        );
        return;
    }
    let (mut i, mut j) = (0, 0);
    for slot in merged {
        let take_first = match (first.get(i), second.get(j)) {
            (Some(a), Some(b)) => a.key() <= b.key(),
            (a, _) => a.is_some(),
        };
        if take_first {
            *slot = first[i];
            i += 1;
        } else {
            *slot = second[j];
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_is_stable_at_every_length() {
        let run = |len: u32, step: u32, from: u32| -> Vec<(u32, u32)> {
            (0..len).map(|i| (i * step / 7, from + i)).collect()
        };
        for (a, b) in [(0, 3), (3, 0), (5, 7), (40_000, 3), (30_000, 50_000)] {
            let items = [run(a, 3, 0), run(b, 2, 1 << 20)].concat();
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            let mut merged = vec![(0, 0); items.len()];
            merge(&items[..a as usize], &items[a as usize..], &mut merged);
            assert!(merged == expected, "{a} and {b}");
        }
    }

    #[test]
    fn odd_runs_are_merged() {
        let items: Vec<u32> =
            (0..7u32).flat_map(|r| (0..5000 - r / 6).map(move |i| i * 7 + r)).collect();
        let mut expected = items.clone();
        expected.sort_unstable();
        assert!(merge_runs(items, 5000) == expected);
    }
}
