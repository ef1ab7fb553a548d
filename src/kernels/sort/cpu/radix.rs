//! Radix sort: all threads partition the items into buckets by the highest digit of their keys (most
//! significant digit first); then each bucket is sorted by itself in a core's cache (least significant
//! digit first).

use std::ops::Range;

use super::{Item, Key, SHORT};
use crate::{error::Result, memory, parallel::Parallel};

/// Bits of a digit: 256 places to write to stay within the first cache.
const BITS: u32 = 8;
const DIGITS: usize = 1 << BITS;

/// Buckets of at most so many bytes are sorted in a core's second cache.
const CACHED: usize = 1 << 19;

/// So few items are sorted by comparison.
const FEW: usize = 128;

/// Bytes of one digit that are collected before they are written (write combining): two cache lines.
const COMBINED: usize = 128;

/// The items `item(0)` to `item(len - 1)` in the order of their keys; those with equal keys keep their
/// order.
///
/// # Errors
/// When the memory is not there.
pub fn sort<I: Item>(len: usize, item: impl Fn(usize) -> I + Sync) -> Result<Vec<I>> {
    let mut items = memory::zeros(len)?;
    partition_and_sort(len, item, &mut items, I::Key::BITS)?;
    Ok(items)
}

/// Sorts into `to` by the lowest `bits` bits of the keys, a multiple of [`BITS`]; those above are equal.
fn partition_and_sort<I: Item>(
    len: usize,
    item: impl Fn(usize) -> I + Sync,
    mut to: &mut [I],
    bits: u32,
) -> Result<()> {
    let (lengths, below) = partition(len, item, to, bits - BITS);
    let mut buckets = Vec::with_capacity(DIGITS);
    for len in lengths {
        buckets.push(to.split_off_mut(..len).expect("lengths add up"));
    }
    // One scratch a thread: new memory costs a page fault every 4 KiB.
    let sorted = buckets.into_iter().par_fold(
        || (Vec::new(), Ok(())),
        |(scratch, result), bucket| {
            if result.is_ok() {
                *result = sort_bucket(bucket, scratch, below);
            }
        },
    );
    sorted.into_iter().try_for_each(|(_, result)| result)
}

/// Sorts by the lowest `bits` bits of the keys, those above being equal.
fn sort_bucket<I: Item>(items: &mut [I], scratch: &mut Vec<I>, bits: u32) -> Result<()> {
    if items.len() <= FEW {
        items.sort_by_key(|item| item.key());
    } else if size_of_val(items) <= CACHED || bits <= BITS {
        scratch.resize(scratch.len().max(items.len()), I::default());
        sort_cached(items, &mut scratch[..items.len()], bits);
    } else {
        let copy = memory::copied(items)?;
        partition_and_sort(copy.len(), |i| copy[i], items, bits)?;
    }
    Ok(())
}

/// Moves the items into `to`, sorted by the digit from bit `shift` on, those above being equal; where all
/// items share it, by the highest digit below that differs. Returns how many items have each digit, and the
/// number of bits below it.
fn partition<I: Item>(
    len: usize,
    item: impl Fn(usize) -> I + Sync,
    to: &mut [I],
    mut shift: u32,
) -> ([usize; DIGITS], u32) {
    // Each thread takes a part of the items and has places of its own for each digit.
    let part = len.div_ceil(rayon::current_num_threads()).max(SHORT);
    let parts: Vec<_> = (0..len).step_by(part).map(|i| i..len.min(i + part)).collect();
    let (counts, lengths) = loop {
        let count = |part: &Range<usize>| {
            let mut counts = [0; DIGITS];
            part.clone().for_each(|i| counts[digit(item(i), shift)] += 1);
            counts
        };
        let counts = parts.iter().par_map(count);
        let lengths: [usize; DIGITS] =
            std::array::from_fn(|digit| counts.iter().map(|counts| counts[digit]).sum());
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
        shift = differing.highest_bit().unwrap_or(0) / BITS * BITS;
    };
    let places = places(&counts, to);
    parts.into_iter().zip(places).par_each(|(part, places)| {
        scatter(part.map(&item), places, shift);
    });
    (lengths, shift)
}

fn digit<I: Item>(item: I, shift: u32) -> usize {
    item.key().digit(shift)
}

/// Where each part's items of each digit go: digits in order, and within one digit parts in order.
fn places<'a, I>(counts: &[[usize; DIGITS]], mut to: &'a mut [I]) -> Vec<Vec<&'a mut [I]>> {
    let mut places: Vec<Vec<_>> = counts.iter().map(|_| Vec::with_capacity(DIGITS)).collect();
    for digit in 0..DIGITS {
        for (places, counts) in places.iter_mut().zip(counts) {
            places.push(to.split_off_mut(..counts[digit]).expect("counts add up"));
        }
    }
    places
}

/// Writes `items` to the places of their digits, [`COMBINED`] bytes at a time.
fn scatter<I: Item>(items: impl Iterator<Item = I>, mut places: Vec<&mut [I]>, shift: u32) {
    let most = COMBINED / size_of::<I>();
    let mut combined = vec![I::default(); DIGITS * most];
    let mut counts = [0; DIGITS];
    for item in items {
        let digit = digit(item, shift);
        let (combined, count) = (&mut combined[digit * most..][..most], &mut counts[digit]);
        combined[*count] = item;
        *count += 1;
        if *count == most {
            write(&mut places[digit], combined);
            *count = 0;
        }
    }
    for ((place, combined), count) in places.iter_mut().zip(combined.chunks_exact(most)).zip(counts)
    {
        write(place, &combined[..count]);
    }
}

/// Copies `items` to the start of `place`, which goes on behind them.
fn write<I: Copy>(place: &mut &mut [I], items: &[I]) {
    place.split_off_mut(..items.len()).expect("as many as were counted").copy_from_slice(items);
}

/// [`sort_bucket`], least significant digit first; `scratch` is as long.
fn sort_cached<I: Item>(items: &mut [I], scratch: &mut [I], bits: u32) {
    let passes = bits.div_ceil(BITS) as usize;
    let digit = |item: I, pass: usize| digit(item, pass as u32 * BITS);
    let mut counts = [[0u32; DIGITS]; 8];
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
