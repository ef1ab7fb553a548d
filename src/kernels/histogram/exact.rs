//! How often each different value occurs, for exact percentiles, modes and entropies of samples that have no table of
//! levels: floats, 32-bit integers, luminance.
//!
//! Values are kept as keys: 64-bit integers in the order of the values. If there are more than `most` different keys,
//! their lowest bits are dropped until no more than `most` are left:
//!
//! ```text
//! shift = min { s : |{ key >> s }| <= most }
//! ```
//! The shift depends on the samples alone and not on how they are divided, since no part has more different keys than
//! the whole.

use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::{
    counts::{Component, Pixels},
    cpu::values::{Work, each_value},
    luma::Luma,
    moments::{Moments, moments},
};
use crate::data::{
    dtype::Dtype,
    float_key::{f64_of_key, key_of_f64},
    samples::Samples,
};

/// Maximum number of different values that are kept for a component.
const MOST: usize = 1 << 18;

/// Maximum number of different luminances of 8-bit and 16-bit pixels that are kept. 8-bit pixels have at most
/// `255 * 5000 + 1` different luminances, unless light is decoded first.
const MOST_LUMINANCES: usize = 5 << 18;

/// Maximum number of bytes of the values of one component.
pub const VALUES_BYTES: u64 = (MOST_LUMINANCES * size_of::<(u64, u64)>()) as u64;

/// Keys are not sorted while there are fewer of them than this.
const FEW: usize = 1 << 16;

/// Different values in order, and how often each occurs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Values {
    /// Maximum number of different keys.
    most: usize,
    /// Bits of the keys that are dropped.
    shift: u32,
    /// Keys without those bits, in order, and counts.
    keys: Vec<(u64, u64)>,
    /// Further keys and counts, in runs that are each in order. They are sorted once they are as many as `keys`:
    /// if each run were merged at once, all `keys` would be copied each time.
    recent: Vec<(u64, u64)>,
}

/// [`Values`] as a file holds them, not checked yet.
#[derive(Serialize, Deserialize)]
struct Stored {
    most: usize,
    shift: u32,
    keys: Vec<(u64, u64)>,
}

impl From<Values> for Stored {
    fn from(mut values: Values) -> Self {
        values.settle();
        let Values { most, shift, keys, .. } = values;
        Self { most, shift, keys }
    }
}

impl TryFrom<Stored> for Values {
    type Error = &'static str;

    fn try_from(Stored { most, shift, keys }: Stored) -> Result<Self, &'static str> {
        let greatest = u64::MAX.checked_shr(shift).ok_or("keys have 64 bits")?;
        let is_ascending = keys.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let fits = keys.last().is_none_or(|last| last.0 <= greatest)
            && most <= MOST_LUMINANCES
            && keys.len() <= most;
        let values = Self { most, shift, keys, recent: Vec::new() };
        (is_ascending && fits).then_some(values).ok_or("keys are not in order")
    }
}

/// The key of a number; -0 has that of +0.
fn key(value: f64) -> u64 {
    key_of_f64(value + 0.0)
}

/// Joins neighbours that have the same key once `shift` bits are dropped.
fn join(keys: &mut Vec<(u64, u64)>, shift: u32) {
    keys.iter_mut().for_each(|(key, _)| *key >>= shift);
    keys.dedup_by(|(key, count), (last, sum)| {
        let is_same = key == last;
        *sum += if is_same { *count } else { 0 };
        is_same
    });
}

impl Values {
    /// The values of keys and counts in order. Keys may be equal.
    fn new(most: usize, mut keys: Vec<(u64, u64)>) -> Self {
        join(&mut keys, 0);
        let mut values = Self { most, shift: 0, keys, recent: Vec::new() };
        values.drop_bits();
        values
    }

    /// Adds another set.
    pub fn add(&mut self, mut other: Self) {
        self.most = self.most.min(other.most);
        let shift = self.shift.max(other.shift);
        self.shift_to(shift);
        other.shift_to(shift);
        self.recent.append(&mut other.keys);
        self.recent.append(&mut other.recent);
        if self.recent.len() > self.keys.len().max(FEW) {
            self.settle();
        }
    }

    /// Sorts `recent` into `keys`.
    fn settle(&mut self) {
        self.keys.append(&mut self.recent);
        // A stable sort finds the runs and merges them.
        self.keys.sort_by_key(|&(key, _)| key);
        join(&mut self.keys, 0);
        self.drop_bits();
    }

    /// Drops further bits where there are too many keys.
    fn drop_bits(&mut self) {
        if self.keys.len() <= self.most {
            return;
        }
        // Neighbours differ after a shift of s where they differ in a bit from s on.
        let mut highest = [0; 64];
        for pair in self.keys.windows(2) {
            highest[(pair[0].0 ^ pair[1].0).ilog2() as usize] += 1;
        }
        let (mut left, mut more) = (self.keys.len(), 0);
        while left > self.most {
            left -= highest[more as usize];
            more += 1;
        }
        self.shift_to(self.shift + more);
    }

    fn shift_to(&mut self, shift: u32) {
        if shift > self.shift {
            join(&mut self.keys, shift - self.shift);
            join(&mut self.recent, shift - self.shift);
            self.shift = shift;
        }
    }

    /// The moments of the values from `low` to `high`, unless bits were dropped.
    fn moments(&self, low: f64, high: f64) -> Option<Moments> {
        let values = || self.keys.iter().chain(&self.recent).map(|&(key, n)| (f64_of_key(key), n));
        (self.shift == 0).then(|| Moments::of(values(), low, high))
    }

    /// Each value with its count; of values with equal keys, the least one, but no less than `low`.
    pub(super) fn levels(mut self, low: f64) -> Vec<(f64, u64)> {
        self.settle();
        let level = |&(key, count): &(u64, u64)| (f64_of_key(key << self.shift).max(low), count);
        self.keys.iter().map(level).collect()
    }
}

/// How often each value of a component from `low` to `high` occurs, with `weighted` weighted by alpha as the counts are,
/// and the moments of these values.
///
/// # Panics
/// When there is no such component, for which counting fails.
pub fn values(
    pixels: &Pixels,
    component: Component,
    [low, high]: [f64; 2],
    weighted: bool,
) -> (Moments, Values) {
    let most = match (component, pixels.samples.dtype()) {
        (Component::Luma(_), Dtype::U8 | Dtype::U16) => MOST_LUMINANCES,
        _ => MOST,
    };
    let all = match (component, &pixels.samples) {
        (Component::Luma(luma), Samples::U8(_))
            if luma != Luma::Linear && !weighted && TABLE.contains(&pixels.len()) =>
        {
            let unit = f64::from(luma.weights().1);
            let mut all = Values::new(most, Vec::new());
            for table in each_value(pixels, component, false, &Table { unit }) {
                let values = table.into_iter().zip(0..).filter(|&(n, _)| n > 0);
                let values = values.map(|(n, level)| (f64::from(level) / unit, n.into()));
                let is_inside = |&(value, _): &(f64, u64)| value >= low && value <= high;
                let keys = values.filter(is_inside).map(|(value, n)| (key(value), n));
                all.add(Values::new(most, keys.collect()));
            }
            all
        }
        _ => {
            let all = Mutex::new(Values::new(most, Vec::new()));
            each_value(
                pixels,
                component,
                weighted,
                &Inside { low, high, weighted, most, all: &all },
            );
            all.into_inner().expect("no thread panics")
        }
    };
    let found = all.moments(low, high);
    (found.unwrap_or_else(|| moments(pixels, component, low, high, weighted)), all)
}

/// Numbers of 8-bit pixels for which luminances are counted in a table rather than sorted: enough that clearing the
/// table pays, and no more than a counter holds.
const TABLE: std::ops::Range<usize> = 1 << 19..1 << 32;

/// Counts luminances in a table of all possible luminances of 8-bit pixels.
struct Table {
    /// Number of luminances in a step of a sample.
    unit: f64,
}

impl Work for Table {
    type State = Vec<u32>;

    const PART: usize = 1 << 20;

    fn start(&self) -> Vec<u32> {
        vec![0; 255 * self.unit as usize + 1]
    }

    fn add(&self, counts: &mut Vec<u32>, values: impl Iterator<Item = (f64, u64)>) {
        values.for_each(|(value, _)| counts[(value * self.unit + 0.5) as usize] += 1);
    }
}

/// Adds the values inside a range to those of all parts.
struct Inside<'a> {
    low: f64,
    high: f64,
    weighted: bool,
    most: usize,
    all: &'a Mutex<Values>,
}

impl Work for Inside<'_> {
    type State = ();

    fn start(&self) {}

    fn add(&self, (): &mut (), values: impl Iterator<Item = (f64, u64)>) {
        let inside =
            |&(v, n): &(f64, u64)| v >= self.low && v <= self.high && v.is_finite() && n > 0;
        let values = values.filter(inside).map(|(value, n)| (key(value), n));
        let mut keys = Vec::new();
        match self.weighted {
            true => {
                keys.extend(values);
                keys.sort_unstable_by_key(|&(key, _)| key);
            }
            // Half as many bytes are sorted faster.
            false => {
                let mut alone: Vec<u64> = values.map(|(key, _)| key).collect();
                alone.sort_unstable();
                keys.extend(alone.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)));
            }
        }
        let part = Values::new(self.most, keys);
        self.all.lock().expect("no thread panics").add(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::noise::Noise;

    #[test]
    fn keys_have_the_order_of_numbers() {
        let numbers = [f64::NEG_INFINITY, -1e300, -1.0, -1e-320, 0.0, 1e-320, 0.5, 2.0, 1e300];
        assert!(numbers.windows(2).all(|pair| key(pair[0]) < key(pair[1])));
        assert!(numbers.iter().all(|&number| f64_of_key(key(number)) == number));
        assert_eq!(key(-0.0), key(0.0));
    }

    /// Stored values are untrusted: their order is relied on.
    #[test]
    fn stored_values_are_checked() {
        let read = |text: &str| serde_json::from_str::<Values>(text).map_err(|e| e.to_string());
        let stored = r#"{"most":9,"shift":60,"keys":[[3,1],[15,2]]}"#;
        let values = read(stored).unwrap();
        assert_eq!(serde_json::to_string(&values).unwrap(), stored);
        for keys in ["[[3,1],[3,1]]", "[[4,1],[3,1]]", "[[16,1]]"] {
            let error = read(&format!(r#"{{"most":9,"shift":60,"keys":{keys}}}"#)).unwrap_err();
            assert!(error.contains("keys are not in order"), "{error}");
        }
        for (most, shift, expected) in [
            (9usize, 64, "keys have 64 bits"),
            (1, 60, "not in order"),
            (1 << 40, 60, "not in order"),
        ] {
            let stored = format!(r#"{{"most":{most},"shift":{shift},"keys":[[3,1],[15,2]]}}"#);
            assert!(read(&stored).unwrap_err().contains(expected), "{stored}");
        }
    }

    /// Few values are counted exactly, many to the bits that are left, whatever the parts are.
    #[test]
    fn values_do_not_depend_on_how_samples_are_divided() {
        for (bits, len) in [(9, 100_000), (24, 700_000)] {
            let mut noise = Noise(5);
            let samples: Vec<f32> = noise
                .bytes(4 * len)
                .as_chunks::<4>()
                .0
                .iter()
                .map(|&bytes| (u32::from_le_bytes(bytes) >> (32 - bits)) as f32 - 100.0)
                .collect();
            let of = |samples: &[f32]| {
                let pixels = Pixels { samples: Samples::F32(samples.to_vec()), channels: 1 };
                values(&pixels, Component::Channel(0), [-50.0, f64::INFINITY], false)
            };
            let (moments, whole) = of(&samples);
            let stored = |values: Values| Stored::from(values).keys;
            let shift = whole.shift;
            let whole = stored(whole);
            for divisor in [7, 300] {
                let parts = samples.chunks(len / divisor).map(of);
                let (sums, parts) = parts
                    .reduce(|(sums, mut all), (more, values)| {
                        all.add(values);
                        (sums.and(more), all)
                    })
                    .unwrap();
                assert_eq!((&sums, parts.shift, stored(parts) == whole), (&moments, shift, true));
            }
            assert!(whole.len() <= MOST);
            assert_eq!(shift > 0, bits == 24);
            let inside = samples.iter().filter(|&&sample| sample >= -50.0).count() as u64;
            assert_eq!(
                (whole.iter().map(|key| key.1).sum::<u64>(), moments.count),
                (inside, inside)
            );
            if bits == 9 {
                let naive = samples.iter().filter(|&&sample| sample == 7.0).count() as u64;
                assert!(of(&samples).1.levels(-50.0).contains(&(7.0, naive)));
            }
        }
    }

    /// Noise of 8 bits has nearly all luminances that there are.
    #[test]
    fn luminances_of_8_bits_are_kept_apart() {
        let samples = Noise(6).bytes(3 << 20);
        let luma = Luma::Bt709.in_samples(255);
        let mut sorted: Vec<f64> = samples.chunks_exact(3).map(luma).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let range = [17.0, 200.5];
        sorted.retain(|value| (range[0]..=range[1]).contains(value));
        let component = Component::Luma(Luma::Bt709);
        // In a table, and by sorting.
        for part in [samples.len(), 3 << 18] {
            let mut all = Values::new(MOST_LUMINANCES, Vec::new());
            let mut sums = Moments::default();
            for part in samples.chunks(part) {
                let pixels = Pixels { samples: Samples::U8(part.to_vec()), channels: 3 };
                let (moments, values) = values(&pixels, component, range, false);
                sums = sums.and(moments);
                all.add(values);
            }
            let naive = sorted.iter().map(|&value| (value, 1));
            assert_eq!(sums, Moments::of(naive, range[0], range[1]));
            let levels = all.levels(0.0);
            assert!(levels.len() > MOST, "{}", levels.len());
            let all = levels.into_iter().flat_map(|(value, n)| (0..n).map(move |_| value));
            assert!(all.eq(sorted.iter().copied()));
        }
    }
}
