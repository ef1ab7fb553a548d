//! Radix sort: all threads partition the items into buckets by the highest bits of their keys (most significant digit
//! first). Then each bucket is sorted in the cache of a core (least significant digit first).
//!
//! Floats share few exponents, so that a digit of their highest bits has few values with many items each. These values
//! are found in a sample. Their items are partitioned further in the same pass, by more bits than the others:
//!
//! ```text
//! key      eeeeeeeeeee|mmmm|mmmm...        bucket = numbers[digit and finer bits]
//!          digit       finer
//! ```

use std::{iter::repeat_n, ops::Range, slice};

use super::{Item, Key, SHORT};
use crate::util::{cache::Scatter, error::Result, memory, parallel::Parallel, simd};

/// Number of values of a digit of 8 bits. Their counters and write positions stay in the first-level cache.
const NARROW: usize = 1 << 8;

/// Number of values of a digit of 11 bits. A u32 has three such digits: for many items, one pass less outweighs the
/// longer tables.
const WIDE: usize = 1 << 11;

/// Minimum number of items that are partitioned by a wide digit, into buckets of about [`MANY_CACHED`] and more.
const MANY: usize = 1 << 24;

/// Minimum number of items of a bucket that is sorted by wide digits.
const MANY_CACHED: usize = 1 << 12;

/// Maximum number of bytes of a bucket that is sorted in the second-level cache of a core, together with as much
/// scratch memory. The buckets of 2^28 random keys by a wide digit have that size.
const CACHED: usize = 5 << 17;

/// Maximum number of items that are sorted by comparison.
const FEW: usize = 128;

/// Maximum number of items that are sorted as one bucket: the tables of a partition would take longer.
const SMALL: usize = 1 << 12;

/// Maximum number of items of a sample. Smaller inputs have one in [`SAMPLED`] items in the sample.
const SAMPLE: usize = 1 << 14;
const SAMPLED: usize = 1 << 4;

/// Buckets that are expected to hold more than one in this many items are divided.
const MAX_BUCKET_SHARE: usize = 1 << 9;

/// Maximum length of the table of bucket numbers. Its entries for frequent values stay in a cache.
const MAX_VALUES: usize = 1 << 20;

/// Returns `len` items in the order of their keys; items with equal keys keep their order. `read(first, slots)` writes
/// the items from index `first` on into `slots`. `finish` changes each sorted part while it is in a cache.
pub fn sort<I: Item>(
    len: usize,
    read: impl Fn(usize, &mut [I]) + Sync,
    finish: &(dyn Fn(&mut [I]) + Sync),
) -> Result<Vec<I>> {
    let mut items = memory::zeros(len)?;
    if len > SMALL {
        partition_and_sort(len, read, &mut items, I::Key::BITS, finish)?;
    } else {
        read(0, &mut items);
        let none = I::Key::default();
        let first = items.first().map_or(none, |item| item.key());
        let differing = items.iter().fold(none, |all, item| all.or_differing(item.key(), first));
        let bits = differing.highest_bit().map_or(0, |bit| bit + 1);
        sort_bucket(&mut items, &mut Vec::new(), bits)?;
        finish(&mut items);
    }
    Ok(items)
}

/// Sorts into `to` by the lowest `bits` bits of the keys; the other bits are equal.
fn partition_and_sort<I: Item>(
    len: usize,
    read: impl Fn(usize, &mut [I]) + Sync,
    mut to: &mut [I],
    bits: u32,
    finish: &(dyn Fn(&mut [I]) + Sync),
) -> Result<()> {
    let parts = match len < MANY {
        true => partition::<I, NARROW>(len, read, to, bits),
        false => partition::<I, WIDE>(len, read, to, bits),
    };
    let mut buckets = memory::room(parts.len())?;
    for (len, below) in parts {
        buckets.push((to.split_off_mut(..len).expect("lengths add up"), below));
    }
    // One scratch per thread: new memory costs a page fault every 4 KiB.
    let sorted = buckets.into_iter().par_fold(
        || (Vec::new(), Ok(())),
        |(scratch, result), (bucket, below)| {
            if result.is_ok() {
                *result = sort_bucket(bucket, scratch, below);
                finish(bucket);
            }
        },
    );
    sorted.into_iter().try_for_each(|(_, result)| result)
}

/// Sorts by the lowest `bits` bits of the keys; the other bits are equal.
fn sort_bucket<I: Item>(items: &mut [I], scratch: &mut Vec<I>, bits: u32) -> Result<()> {
    if items.is_sorted_by_key(|item| item.key()) {
        return Ok(());
    }
    if items.len() <= FEW {
        items.sort_by_key(|item| item.key());
        return Ok(());
    }
    if size_of_val(items) > CACHED && bits > WIDE.ilog2() {
        let copy = memory::copied(items)?;
        let read = |from: usize, slots: &mut [I]| {
            slots.copy_from_slice(&copy[from..][..slots.len()]);
        };
        return partition_and_sort(copy.len(), read, items, bits, &|_| ());
    }
    if scratch.len() < items.len() {
        *scratch = memory::filled(I::default(), items.len());
    }
    let part = &mut scratch[..items.len()];
    let below = match items.len() < MANY_CACHED || bits <= 2 * NARROW.ilog2() {
        true => simd::vectorize(
            #[inline(always)]
            || sort_cached::<I, NARROW>(items, part, bits),
        ),
        false => simd::vectorize(
            #[inline(always)]
            || sort_cached::<I, WIDE>(items, part, bits),
        ),
    };
    if below > 0 { sort_ties(items, scratch, below) } else { Ok(()) }
}

/// Sorts items that are in order except for the lowest `bits` bits of their keys.
fn sort_ties<I: Item>(items: &mut [I], scratch: &mut Vec<I>, bits: u32) -> Result<()> {
    let mut rest = items;
    while let Some(at) = rest.windows(2).position(|pair| pair[0].key() > pair[1].key()) {
        let tie = rest[at].key().bits(bits);
        let differs = |item: &I| item.key().bits(bits) != tie;
        let start = rest[..at].iter().rposition(differs).map_or(0, |last| last + 1);
        let len = rest[at..].iter().position(differs).unwrap_or(rest.len() - at);
        let (ties, behind) = rest.split_at_mut(at + len);
        sort_bucket(&mut ties[start..], scratch, bits)?;
        rest = behind;
    }
    Ok(())
}

/// Assignment of keys to buckets. Buckets are in the order of their keys.
struct Buckets {
    /// Number of low bits that do not determine the bucket.
    shift: u32,
    /// The bucket of each value of the bits above; empty if the value itself is the bucket.
    numbers: Vec<u16>,
    /// For each bucket, the number of bits that differ within it.
    below: Vec<u32>,
}

impl Buckets {
    /// Buckets for keys whose lowest `bits` bits differ. `counts` has the number of keys of a sample with each value of
    /// the digit, the highest of these bits. Values with many more than `max` keys are divided.
    fn new(bits: u32, counts: &[u32], max: u32) -> Self {
        let below_digit = bits.saturating_sub(counts.len().ilog2());
        let deepest = below_digit.min((MAX_VALUES / counts.len()).ilog2());
        // The factor of 4 leaves uniformly distributed keys with one bucket per value.
        let depth = |&count: &u32| match count > 4 * max {
            true => count.div_ceil(max).next_power_of_two().ilog2().min(deepest),
            false => 0,
        };
        let depths: Vec<u32> = counts.iter().map(depth).collect();
        let deepest = depths.iter().copied().max().unwrap_or(0);
        let (mut numbers, mut below) = (Vec::new(), Vec::new());
        for depth in depths {
            for _ in 0..1 << depth {
                if deepest > 0 {
                    let number = below.len() as u16;
                    numbers.extend(repeat_n(number, 1 << (deepest - depth)));
                }
                below.push(below_digit - depth);
            }
        }
        Self { shift: below_digit - deepest, numbers, below }
    }
}

/// Buckets for items whose keys differ at most in the lowest `bits` bits.
fn buckets<I: Item, const DIGITS: usize>(
    len: usize,
    read: &(impl Fn(usize, &mut [I]) + Sync),
    parts: &[Range<usize>],
    mut bits: u32,
) -> Buckets {
    let count = len.div_ceil(SAMPLED).min(SAMPLE);
    let mut sample = memory::filled(I::default(), count);
    for (i, slot) in sample.iter_mut().enumerate() {
        read((i as u64 * len as u64 / count as u64) as usize, slice::from_mut(slot));
    }
    let counts = |bits: u32| {
        let mut counts = vec![0; DIGITS];
        let shift = bits.saturating_sub(DIGITS.ilog2());
        sample.iter().for_each(|&item| counts[digit::<I, DIGITS>(item, shift)] += 1);
        counts
    };
    let mut found = counts(bits);
    if count > 0 && found.contains(&(count as u32)) {
        // All items may share this digit. Then the highest digit in which they differ is used.
        let first = sample[0].key();
        let none = I::Key::default();
        let differing = |part: &Range<usize>| {
            let mut differing = none;
            in_blocks(part, read, |block| {
                for item in block {
                    differing = differing.or_differing(item.key(), first);
                }
            });
            differing
        };
        let differing = parts.iter().par_map(differing);
        let differing = differing.into_iter().fold(none, |all, bits| all.or_differing(bits, none));
        bits = differing.highest_bit().map_or(0, |bit| bit + 1);
        found = counts(bits);
    }
    let cached = count as u64 * (CACHED / 2 / size_of::<I>()) as u64 / len.max(1) as u64;
    let max = cached.min((count / MAX_BUCKET_SHARE) as u64).max(4);
    Buckets::new(bits, &found, max as u32)
}

/// Reads the items of a part in blocks that stay in the first-level cache. So the conversion of numbers to keys is a
/// separate loop, which the compiler vectorizes.
#[inline(always)]
fn in_blocks<I: Item>(
    part: &Range<usize>,
    read: &impl Fn(usize, &mut [I]),
    mut each: impl FnMut(&[I]),
) {
    const BLOCK: usize = 128;
    let mut block = [I::default(); BLOCK];
    for from in part.clone().step_by(BLOCK) {
        let block = &mut block[..BLOCK.min(part.end - from)];
        read(from, block);
        each(block);
    }
}

/// Moves the items into `to`, by [buckets](Buckets) for the lowest `bits` bits of the keys; the other bits are equal.
/// Returns the length of each bucket, and the number of lowest bits that differ within it.
fn partition<I: Item, const DIGITS: usize>(
    len: usize,
    read: impl Fn(usize, &mut [I]) + Sync,
    to: &mut [I],
    bits: u32,
) -> Vec<(usize, u32)> {
    // Each thread moves a part of the items, to its own slots in each bucket.
    let part = len.div_ceil(rayon::current_num_threads()).max(SHORT);
    let parts: Vec<_> = (0..len).step_by(part).map(|i| i..len.min(i + part)).collect();
    let Buckets { shift, numbers, below } = buckets::<I, DIGITS>(len, &read, &parts, bits);
    let lengths = match numbers.len() {
        0 => {
            let bucket = |item| digit::<I, DIGITS>(item, shift);
            move_to_buckets(&parts, &read, bucket, below.len(), to)
        }
        values => {
            let bucket = |item: I| usize::from(numbers[item.key().bits(shift) & (values - 1)]);
            move_to_buckets(&parts, &read, bucket, below.len(), to)
        }
    };
    lengths.into_iter().zip(below).collect()
}

/// Moves the items of each part into `to`, sorted by `bucket`, which is less than `buckets`. Returns the length of each
/// bucket.
fn move_to_buckets<I: Item>(
    parts: &[Range<usize>],
    read: &(impl Fn(usize, &mut [I]) + Sync),
    bucket: impl Fn(I) -> usize + Sync,
    buckets: usize,
    to: &mut [I],
) -> Vec<usize> {
    let count = |part: &Range<usize>| {
        let mut counts = memory::filled(0, buckets);
        in_blocks(part, read, |block| {
            block.iter().for_each(|&item| counts[bucket(item)] += 1);
        });
        counts
    };
    let counts = parts.iter().par_map(count);
    let places = places(&counts, to);
    parts.iter().zip(places).par_each(|(part, places)| {
        let mut scatter = Scatter::new(places);
        in_blocks(part, read, |block| {
            block.iter().for_each(|&item| scatter.push(bucket(item), item));
        });
        scatter.finish();
    });
    (0..buckets).map(|bucket| counts.iter().map(|counts| counts[bucket]).sum()).collect()
}

#[inline(always)]
fn digit<I: Item, const DIGITS: usize>(item: I, shift: u32) -> usize {
    item.key().bits(shift) % DIGITS
}

/// For each part and each bucket, the slots of its items: bucket by bucket, and within a bucket part by part.
fn places<'a, I>(counts: &[Vec<usize>], mut to: &'a mut [I]) -> Vec<Vec<&'a mut [I]>> {
    let digits = counts.first().map_or(0, Vec::len);
    let room = || memory::room(digits).unwrap_or_else(memory::raise);
    let mut places: Vec<Vec<_>> = counts.iter().map(|_| room()).collect();
    for digit in 0..digits {
        for (places, counts) in places.iter_mut().zip(counts) {
            places.push(to.split_off_mut(..counts[digit]).expect("counts add up"));
        }
    }
    places
}

/// Sorts by the highest two digits, or one, of the lowest `bits` bits of the keys, least significant digit first;
/// `scratch` is as long as `items`. Returns the number of bits below these digits: few items of a bucket share both
/// digits, so that further passes would take longer than [`sort_ties`].
#[inline(always)]
fn sort_cached<I: Item, const DIGITS: usize>(items: &mut [I], scratch: &mut [I], bits: u32) -> u32 {
    let below = bits.saturating_sub(2 * DIGITS.ilog2());
    let digit =
        |item: I, pass: usize| digit::<I, DIGITS>(item, below + pass as u32 * DIGITS.ilog2());
    let mut counts =
        memory::filled([0u32; DIGITS], (bits - below).div_ceil(DIGITS.ilog2()) as usize);
    for &item in &*items {
        for (pass, counts) in counts.iter_mut().enumerate() {
            counts[digit(item, pass)] += 1;
        }
    }
    let (mut from, mut to) = (items, scratch);
    let mut moved = false;
    for (pass, places) in counts.iter_mut().enumerate() {
        // All keys share this digit.
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
    below
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the keys from index `from` on, each with its index.
    fn read<K: Key>(keys: &[K]) -> impl Fn(usize, &mut [[K; 2]]) + Sync {
        |from, slots| {
            for (i, slot) in (from..).zip(slots) {
                *slot = [keys[i], K::from(i as u32)];
            }
        }
    }

    /// `keys`, each with its index, sorted by digits of one width.
    fn sorted<K: Key, const DIGITS: usize>(keys: &[K]) -> Vec<[K; 2]> {
        let mut items = vec![[K::default(); 2]; keys.len()];
        let parts = partition::<_, DIGITS>(keys.len(), read(keys), &mut items, K::BITS);
        let mut scratch = items.clone();
        let mut rest = &mut items[..];
        for (len, below) in parts {
            let bucket = rest.split_off_mut(..len).unwrap();
            let below = sort_cached::<_, DIGITS>(bucket, &mut scratch[..len], below);
            sort_ties(bucket, &mut scratch, below).unwrap();
        }
        items
    }

    fn check<K: Key>(keys: &[K]) {
        let mut expected: Vec<[K; 2]> =
            (0..).map(K::from).zip(keys).map(|(i, &k)| [k, i]).collect();
        expected.sort_by_key(|item| item[0]);
        assert!(sorted::<K, NARROW>(keys) == expected);
        assert!(sorted::<K, WIDE>(keys) == expected);
        assert!(sort(keys.len(), read(keys), &|_| ()).unwrap() == expected);
    }

    fn random(i: u64) -> u64 {
        (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
    }

    #[test]
    fn digits_of_both_widths_sort() {
        for len in [0, 1, 2, 1000, 70_001] {
            for shift in [0, 3, 17, 31, 40, 52, 63] {
                let keys: Vec<u64> = (0..len).map(|i| 5 << 60 | random(i) >> shift).collect();
                check(&keys);
                check(&keys.iter().map(|&key| key as u32).collect::<Vec<u32>>());
            }
        }
    }

    #[test]
    fn frequent_digits_and_long_ties_sort() {
        let len = 150_001;
        // Most keys have the digit of an exponent, as floats have; a few are elsewhere, perhaps where no sample is.
        let floats = |i: u64| match i % 1000 {
            7 => random(i),
            _ => ((random(i) >> 11) as f64 / 9e15 - 0.4).to_bits(),
        };
        check(&(0..len).map(floats).collect::<Vec<u64>>());
        check(&(0..len).map(|i| floats(i) as f32).map(f32::to_bits).collect::<Vec<u32>>());
        let one_outlier = |i: u64| if i == 77_777 { u64::MAX } else { random(i) >> 40 };
        check(&(0..len).map(one_outlier).collect::<Vec<u64>>());
        // Keys of a bucket have all middle bits in common, or nearly so.
        check(&(0..len).map(|i| random(i) & (0xff << 56 | 0xfff)).collect::<Vec<u64>>());
        check(&(0..len).map(|i| random(i) & (0xff << 56 | 1 << 30 | 7)).collect::<Vec<u64>>());
        check(&(0..len).rev().map(|i| i / 3).collect::<Vec<u64>>());
    }

    #[test]
    fn frequent_digits_have_more_buckets() {
        let mut counts = vec![0; NARROW];
        (counts[3], counts[5], counts[6]) = (1000, 40, 41);
        let Buckets { shift, numbers, below } = Buckets::new(30, &counts, 10);
        // 128 for 3, so that none has more than 10 of 1000; 8 for 6; one for each of the others.
        assert_eq!((below.len(), shift), (254 + 128 + 8, 22 - 7));
        let at = |digit: usize, finer: usize| usize::from(numbers[digit << 7 | finer]);
        assert_eq!([at(2, 127), at(3, 0), at(3, 127), at(4, 0), at(5, 127)], [2, 3, 130, 131, 132]);
        assert_eq!([at(6, 15), at(6, 16), at(6, 127), at(7, 0)], [133, 134, 140, 141]);
        assert_eq!([below[2], below[3], below[132], below[133]], [22, 15, 22, 19]);
        assert!(Buckets::new(30, &vec![40; NARROW], 10).numbers.is_empty());
    }
}
