//! The native sort: each thread sorts a run by radix, then runs are merged, all threads at it.

use rayon::prelude::*;

/// What is sorted: a key, perhaps with a value.
pub trait Item: Copy + Default + Send + Sync {
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

/// Bits of a digit: three passes, whose counters stay in the cache.
const BITS: u32 = 11;
const DIGITS: usize = 1 << BITS;
const PASSES: usize = 3;

/// Shorter runs are not worth another thread.
const SHORT: usize = 1 << 15;

/// The items in the order of their keys; those with equal keys in the order they had.
pub fn sort<I: Item>(mut items: Vec<I>) -> Vec<I> {
    let run = items.len().div_ceil(rayon::current_num_threads()).max(SHORT);
    let mut other = vec![I::default(); items.len()];
    let runs = items.par_chunks_mut(run).zip(other.par_chunks_mut(run));
    runs.for_each(|(items, other)| sort_run(items, other));
    merge_from(items, other, run)
}

/// Merges sorted runs of `run` items each; the last may be shorter.
pub fn merge_runs<I: Item>(items: Vec<I>, run: usize) -> Vec<I> {
    let other = vec![I::default(); items.len()];
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

/// Least significant digit first; `other` is as long and holds nothing of worth.
fn sort_run<I: Item>(items: &mut [I], other: &mut [I]) {
    let digit = |item: I, pass: usize| (item.key() >> (pass as u32 * BITS)) as usize % DIGITS;
    let mut counts = vec![[0usize; DIGITS]; PASSES];
    for &item in &*items {
        for (pass, counts) in counts.iter_mut().enumerate() {
            counts[digit(item, pass)] += 1;
        }
    }
    let (mut from, mut to) = (items, other);
    let mut swapped = false;
    for (pass, places) in counts.iter_mut().enumerate() {
        // A digit that all keys share moves nothing.
        if places.contains(&from.len()) {
            continue;
        }
        let mut next = 0;
        for place in places.iter_mut() {
            next += std::mem::replace(place, next);
        }
        for &item in &*from {
            let place = &mut places[digit(item, pass)];
            to[*place] = item;
            *place += 1;
        }
        std::mem::swap(&mut from, &mut to);
        swapped = !swapped;
    }
    if swapped {
        to.copy_from_slice(from);
    }
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
