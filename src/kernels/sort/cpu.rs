//! The native sort: all threads deal the items out in heaps by the highest digit of their keys; then each
//! heap is sorted by itself by the digits below, in a core's cache.

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

/// Bits of a digit. 256 places to write to stay within the first cache.
const BITS: u32 = 8;
const DIGITS: usize = 1 << BITS;

/// Shorter arrays are not worth another thread.
const SHORT: usize = 1 << 15;

/// Heaps of no more bytes are sorted in a core's second cache.
const CACHED: usize = 1 << 19;

/// So few items are compared rather than counted.
const FEW: usize = 128;

/// The items `item(0)` to `item(len - 1)` in the order of their keys; those with equal keys in the order
/// they had.
pub fn sort<I: Item>(len: usize, item: impl Fn(usize) -> I + Sync) -> Vec<I> {
    let bits = (0..len).into_par_iter().with_min_len(SHORT).map(|i| item(i).key());
    let (ones, zeros) = bits
        .fold(|| (0, 0), |(a, b), k| (a | k, b | !k))
        .reduce(|| (0, 0), |(a, b), (c, d)| (a | c, b | d));
    // Higher bits than the highest that differs move nothing.
    let bits = u32::BITS - (ones & zeros).leading_zeros();
    let low = bits.saturating_sub(BITS);
    let mut items = vec![I::default(); len];
    let heaps = deal(len, item, &mut items, low);
    let mut other = vec![I::default(); len];
    sort_heaps(&heaps, &mut items, &mut other, low, true);
    other
}

/// Sorts by the lowest `bits` bits of the keys, those above being equal. The result goes to `to` where
/// `moved` says so, else to `from`; both are as long, and what `to` holds is of no worth.
fn sort_heap<I: Item>(from: &mut [I], to: &mut [I], bits: u32, moved: bool) {
    if from.len() <= FEW {
        from.sort_by_key(|item| item.key());
        if moved {
            to.copy_from_slice(from);
        }
    } else if size_of_val(from) <= CACHED || bits <= BITS {
        sort_cached(from, to, bits, moved);
    } else {
        let low = bits - BITS;
        let heaps = deal(from.len(), |i| from[i], to, low);
        sort_heaps(&heaps, to, from, low, !moved);
    }
}

/// [`sort_heap`] of each of neighbouring heaps, which are `lengths` long.
fn sort_heaps<I: Item>(
    lengths: &[usize],
    mut from: &mut [I],
    mut to: &mut [I],
    bits: u32,
    moved: bool,
) {
    let mut heaps = Vec::with_capacity(lengths.len());
    for &len in lengths {
        heaps.push((
            from.split_off_mut(..len).expect("lengths add up"),
            to.split_off_mut(..len).expect("lengths add up"),
        ));
    }
    heaps.into_par_iter().for_each(|(from, to)| sort_heap(from, to, bits, moved));
}

/// Moves the items into `to`, sorted by the digit whose lowest bit has the number `shift` and which has
/// all bits that differ above that; returns how many there are of each. Each thread takes a part of the
/// items and has places of its own for each digit.
fn deal<I: Item>(
    len: usize,
    item: impl Fn(usize) -> I + Sync,
    mut to: &mut [I],
    shift: u32,
) -> [usize; DIGITS] {
    let digit = |item: I| (item.key() >> shift) as usize % DIGITS;
    let part = len.div_ceil(rayon::current_num_threads()).max(SHORT);
    let parts: Vec<_> = (0..len).step_by(part).map(|i| i..len.min(i + part)).collect();
    let counts: Vec<[usize; DIGITS]> = parts
        .par_iter()
        .map(|part| {
            let mut counts = [0; DIGITS];
            part.clone().for_each(|i| counts[digit(item(i))] += 1);
            counts
        })
        .collect();
    let mut places: Vec<Vec<_>> = counts.iter().map(|_| Vec::with_capacity(DIGITS)).collect();
    for digit in 0..DIGITS {
        for (places, counts) in places.iter_mut().zip(&counts) {
            let own = to.split_off_mut(..counts[digit]).expect("counts add up");
            places.push(own.iter_mut());
        }
    }
    parts.into_par_iter().zip(places).for_each(|(part, mut places)| {
        for item in part.map(&item) {
            *places[digit(item)].next().expect("as many as were counted") = item;
        }
    });
    std::array::from_fn(|digit| counts.iter().map(|counts| counts[digit]).sum())
}

/// [`sort_heap`], least significant digit first.
fn sort_cached<'a, I: Item>(
    mut from: &'a mut [I],
    mut to: &'a mut [I],
    bits: u32,
    mut moved: bool,
) {
    let passes = bits.div_ceil(BITS) as usize;
    let digit = |item: I, pass: usize| (item.key() >> (pass as u32 * BITS)) as usize % DIGITS;
    let mut counts = [[0usize; DIGITS]; 4];
    for &item in &*from {
        for (pass, counts) in counts[..passes].iter_mut().enumerate() {
            counts[digit(item, pass)] += 1;
        }
    }
    for (pass, places) in counts[..passes].iter_mut().enumerate() {
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
        moved = !moved;
    }
    if moved {
        to.copy_from_slice(from);
    }
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
