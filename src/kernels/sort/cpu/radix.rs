//! Radix sort: all threads partition the items into buckets by the highest digit of their keys (most
//! significant digit first); then each bucket is sorted by itself in a core's cache (least significant
//! digit first).

use std::ops::Range;

use super::{Item, Key, SHORT};
use crate::{cache, error::Result, memory, parallel::Parallel};

/// Values of a digit of 8 bits: their counters and write positions stay in the first-level cache.
const NARROW: usize = 1 << 8;

/// Values of a digit of 11 bits, three to a u32: for many items one pass fewer is worth longer tables.
const WIDE: usize = 1 << 11;

/// From this many items on, they are partitioned by a wide digit, into buckets of about [`MANY_CACHED`] and more.
const MANY: usize = 1 << 24;

/// From this many items on, a bucket is sorted by wide digits.
const MANY_CACHED: usize = 1 << 12;

/// Buckets of at most this many bytes are sorted in a core's second-level cache, together with as much scratch memory.
/// The buckets of 2^28 random keys by a wide digit have that size.
const CACHED: usize = 5 << 17;

/// Up to this many items are sorted by comparison.
const FEW: usize = 128;

/// The items `item(0)` to `item(len - 1)` in the order of their keys; those with equal keys keep their
/// order. `finish` changes each sorted part while it is in a cache.
///
/// # Errors
/// When the memory is not there.
pub fn sort<I: Item>(
    len: usize,
    item: impl Fn(usize) -> I + Sync,
    finish: &(dyn Fn(&mut [I]) + Sync),
) -> Result<Vec<I>> {
    let mut items = memory::zeros(len)?;
    partition_and_sort(len, item, &mut items, I::Key::BITS, finish)?;
    Ok(items)
}

/// Sorts into `to` by the lowest `bits` bits of the keys; those above are equal.
fn partition_and_sort<I: Item>(
    len: usize,
    item: impl Fn(usize) -> I + Sync,
    mut to: &mut [I],
    bits: u32,
    finish: &(dyn Fn(&mut [I]) + Sync),
) -> Result<()> {
    let (lengths, below) = match len < MANY {
        true => partition::<I, NARROW>(len, item, to, bits),
        false => partition::<I, WIDE>(len, item, to, bits),
    };
    let mut buckets = Vec::with_capacity(lengths.len());
    for len in lengths {
        buckets.push(to.split_off_mut(..len).expect("lengths add up"));
    }
    // One scratch per thread: new memory costs a page fault every 4 KiB.
    let sorted = buckets.into_iter().par_fold(
        || (Vec::new(), Ok(())),
        |(scratch, result), bucket| {
            if result.is_ok() {
                *result = sort_bucket(bucket, scratch, below, finish);
            }
        },
    );
    sorted.into_iter().try_for_each(|(_, result)| result)
}

/// Sorts by the lowest `bits` bits of the keys, those above being equal.
fn sort_bucket<I: Item>(
    items: &mut [I],
    scratch: &mut Vec<I>,
    bits: u32,
    finish: &(dyn Fn(&mut [I]) + Sync),
) -> Result<()> {
    if items.len() <= FEW {
        items.sort_by_key(|item| item.key());
    } else if size_of_val(items) <= CACHED || bits <= WIDE.ilog2() {
        scratch.resize(scratch.len().max(items.len()), I::default());
        let scratch = &mut scratch[..items.len()];
        let passes = |digits: usize| bits.div_ceil(digits.ilog2());
        match items.len() < MANY_CACHED || passes(NARROW) == passes(WIDE) {
            true => sort_cached::<I, NARROW>(items, scratch, bits),
            false => sort_cached::<I, WIDE>(items, scratch, bits),
        }
    } else {
        let copy = memory::copied(items)?;
        return partition_and_sort(copy.len(), |i| copy[i], items, bits, finish);
    }
    finish(items);
    Ok(())
}

/// Moves the items into `to`, sorted by one digit of `DIGITS` values: the highest in the lowest `bits` bits of the
/// keys, above which all are equal, or if all items share that digit, the highest one below that differs. Returns how
/// many items have each value of the digit, and the number of bits below it.
fn partition<I: Item, const DIGITS: usize>(
    len: usize,
    item: impl Fn(usize) -> I + Sync,
    to: &mut [I],
    bits: u32,
) -> (Vec<usize>, u32) {
    let mut shift = bits.saturating_sub(DIGITS.ilog2());
    // Each thread takes a part of the items and has places of its own for each digit.
    let part = len.div_ceil(rayon::current_num_threads()).max(SHORT);
    let parts: Vec<_> = (0..len).step_by(part).map(|i| i..len.min(i + part)).collect();
    let (counts, lengths) = loop {
        let count = |part: &Range<usize>| {
            let mut counts = vec![0; DIGITS];
            part.clone().for_each(|i| counts[digit::<I, DIGITS>(item(i), shift)] += 1);
            counts
        };
        let counts = parts.iter().par_map(count);
        let total = |digit| counts.iter().map(|counts| counts[digit]).sum();
        let lengths: Vec<usize> = (0..DIGITS).map(total).collect();
        if shift == 0 || len == 0 || !lengths.contains(&len) {
            break (counts, lengths);
        }
        let first = item(0).key();
        let none = I::Key::default();
        let differing = |part: &Range<usize>| {
            part.clone().fold(none, |bits, i| bits.or_differing(item(i).key(), first))
        };
        let differing = parts.iter().par_map(differing);
        let differing = differing.into_iter().fold(none, |all, bits| all.or_differing(bits, none));
        shift = differing.highest_bit().map_or(0, |bit| (bit + 1).saturating_sub(DIGITS.ilog2()));
    };
    let places = places(&counts, to);
    parts.into_iter().zip(places).par_each(|(part, places)| {
        cache::scatter(
            places,
            part.map(|i| {
                let item = item(i);
                (digit::<I, DIGITS>(item, shift), item)
            }),
        );
    });
    (lengths, shift)
}

fn digit<I: Item, const DIGITS: usize>(item: I, shift: u32) -> usize {
    item.key().bits(shift) % DIGITS
}

/// For each part and each value of the digit, the slots of its items: values in order, and within a value parts in
/// order.
fn places<'a, I>(counts: &[Vec<usize>], mut to: &'a mut [I]) -> Vec<Vec<&'a mut [I]>> {
    let digits = counts.first().map_or(0, Vec::len);
    let mut places: Vec<Vec<_>> = counts.iter().map(|_| Vec::with_capacity(digits)).collect();
    for digit in 0..digits {
        for (places, counts) in places.iter_mut().zip(counts) {
            places.push(to.split_off_mut(..counts[digit]).expect("counts add up"));
        }
    }
    places
}

/// Sorts by the lowest `bits` bits of the keys, least significant digit first; `scratch` is as long as `items`.
fn sort_cached<I: Item, const DIGITS: usize>(items: &mut [I], scratch: &mut [I], bits: u32) {
    let digit = |item: I, pass: usize| digit::<I, DIGITS>(item, pass as u32 * DIGITS.ilog2());
    let mut counts = vec![[0u32; DIGITS]; bits.div_ceil(DIGITS.ilog2()) as usize];
    for &item in &*items {
        for (pass, counts) in counts.iter_mut().enumerate() {
            counts[digit(item, pass)] += 1;
        }
    }
    let (mut from, mut to) = (items, scratch);
    let mut moved = false;
    for (pass, places) in counts.iter_mut().enumerate() {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What the digits of one width make of `keys`, each with its number.
    fn sorted<K: Key, const DIGITS: usize>(keys: &[K]) -> Vec<[K; 2]> {
        let mut items = vec![[K::default(); 2]; keys.len()];
        let item = |i: usize| [keys[i], K::from(i as u32)];
        let (lengths, below) = partition::<_, DIGITS>(keys.len(), item, &mut items, K::BITS);
        let mut scratch = items.clone();
        let mut rest = &mut items[..];
        for len in lengths {
            let bucket = rest.split_off_mut(..len).unwrap();
            sort_cached::<_, DIGITS>(bucket, &mut scratch[..len], below);
        }
        items
    }

    fn check<K: Key>(keys: &[K]) {
        let mut expected: Vec<[K; 2]> =
            (0..).map(K::from).zip(keys).map(|(i, &k)| [k, i]).collect();
        expected.sort_by_key(|item| item[0]);
        assert!(sorted::<K, NARROW>(keys) == expected);
        assert!(sorted::<K, WIDE>(keys) == expected);
    }

    #[test]
    fn digits_of_both_widths_sort() {
        let random = |i: u64| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        for len in [0, 1, 2, 1000, 70_001] {
            for shift in [0, 3, 17, 31, 40, 52, 63] {
                let keys: Vec<u64> = (0..len).map(|i| 5 << 60 | random(i) >> shift).collect();
                check(&keys);
                check(&keys.iter().map(|&key| key as u32).collect::<Vec<u32>>());
            }
        }
    }
}
