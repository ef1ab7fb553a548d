//! Number of samples of each value, for exact percentiles, modes and entropies of samples without a table of levels:
//! floats, 32-bit integers, luminance.
//!
//! Values are stored as keys: 64-bit integers in the order of the values. If there are more than `max_keys` different
//! keys, their lowest bits are dropped until at most `max_keys` are left:
//!
//! ```text
//! shift = min { s : |{ key >> s }| <= max_keys }
//! ```
//! The shift depends only on the samples and not on how they are divided, since no part has more different keys than
//! the whole.

use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::{
    counts::{Component, Pixels},
    cpu::values::fold_values,
    luma::Luma,
    moments::{Moments, moments},
};
use crate::{
    data::{
        float_key::{f64_to_key, key_to_f64},
        samples::Samples,
    },
    util::memory,
};

/// Maximum number of different values that are kept for a component.
const MAX_VALUES: usize = 1 << 18;

/// Maximum number of different luminances of 8-bit and 16-bit pixels that are kept. 8-bit pixels have at most
/// `255 * 5000 + 1` different luminances, unless light is decoded first.
const MAX_LUMINANCES: usize = 5 << 18;

/// Maximum number of bytes of the values of one component.
pub const VALUE_COUNTS_BYTES: u64 = (MAX_LUMINANCES * size_of::<(u64, u64)>()) as u64;

/// Minimum number of recent keys that are sorted at a time.
const FEW: usize = 1 << 16;

/// Different values in order, and the number of samples of each.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct ValueCounts {
    /// Maximum number of different keys.
    max_keys: usize,
    /// Bits of the keys that are dropped.
    shift: u32,
    /// Keys, shifted right by `shift`, in order, and counts.
    keys: Vec<(u64, u64)>,
    /// Further keys and counts, in sorted runs. They are merged into `keys` once there are as many of them: merging
    /// each run by itself would copy all `keys` each time.
    recent: Vec<(u64, u64)>,
}

/// Serialized [`ValueCounts`], which are not checked yet.
#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(rename = "most")]
    max_keys: usize,
    shift: u32,
    keys: Vec<(u64, u64)>,
}

impl From<ValueCounts> for Stored {
    fn from(mut values: ValueCounts) -> Self {
        values.merge_recent();
        let ValueCounts { max_keys, shift, keys, .. } = values;
        Self { max_keys, shift, keys }
    }
}

impl TryFrom<Stored> for ValueCounts {
    type Error = &'static str;

    fn try_from(Stored { max_keys, shift, keys }: Stored) -> Result<Self, &'static str> {
        let max = u64::MAX.checked_shr(shift).ok_or("expected a shift below 64 bits")?;
        let is_ascending = keys.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let fits = keys.last().is_none_or(|last| last.0 <= max)
            && max_keys <= MAX_LUMINANCES
            && keys.len() <= max_keys;
        let values = Self { max_keys, shift, keys, recent: Vec::new() };
        (is_ascending && fits).then_some(values).ok_or("keys are not in order")
    }
}

/// The key of a number. -0 has the key of +0.
fn key(value: f64) -> u64 {
    f64_to_key(value + 0.0)
}

/// Drops `shift` bits of the keys, and merges neighbours that then have the same key.
fn drop_low_bits(keys: &mut Vec<(u64, u64)>, shift: u32) {
    keys.iter_mut().for_each(|(key, _)| *key >>= shift);
    keys.dedup_by(|(key, count), (last, sum)| {
        let is_same = key == last;
        *sum += if is_same { *count } else { 0 };
        is_same
    });
}

impl ValueCounts {
    /// Values from keys and counts in ascending order. Keys may occur several times.
    fn new(max_keys: usize, mut keys: Vec<(u64, u64)>) -> Self {
        drop_low_bits(&mut keys, 0);
        let mut values = Self { max_keys, shift: 0, keys, recent: Vec::new() };
        values.drop_bits();
        values
    }

    /// Adds another set.
    pub fn add(&mut self, mut other: Self) {
        self.max_keys = self.max_keys.min(other.max_keys);
        let shift = self.shift.max(other.shift);
        self.shift_to(shift);
        other.shift_to(shift);
        self.recent.append(&mut other.keys);
        self.recent.append(&mut other.recent);
        if self.recent.len() > self.keys.len().max(FEW) {
            self.merge_recent();
        }
    }

    /// Sorts `recent` into `keys`.
    fn merge_recent(&mut self) {
        self.keys.append(&mut self.recent);
        // A stable sort finds the runs and merges them.
        self.keys.sort_by_key(|&(key, _)| key);
        drop_low_bits(&mut self.keys, 0);
        self.drop_bits();
    }

    /// Drops more bits if there are too many keys.
    fn drop_bits(&mut self) {
        if self.keys.len() <= self.max_keys {
            return;
        }
        // After a shift of s, neighbours differ if they differ in a bit from s on.
        let mut highest = [0; 64];
        for pair in self.keys.windows(2) {
            highest[(pair[0].0 ^ pair[1].0).ilog2() as usize] += 1;
        }
        let (mut left, mut more) = (self.keys.len(), 0);
        while left > self.max_keys {
            left -= highest[more as usize];
            more += 1;
        }
        self.shift_to(self.shift + more);
    }

    fn shift_to(&mut self, shift: u32) {
        if shift > self.shift {
            drop_low_bits(&mut self.keys, shift - self.shift);
            drop_low_bits(&mut self.recent, shift - self.shift);
            self.shift = shift;
        }
    }

    /// The moments of the values, unless bits were dropped.
    fn moments(&self, low: f64, high: f64) -> Option<Moments> {
        let values = || self.keys.iter().chain(&self.recent).map(|&(key, n)| (key_to_f64(key), n));
        (self.shift == 0).then(|| Moments::from_bins(values(), low, high))
    }

    /// Each value with its count. Values with equal keys are represented by the smallest one, but at least `low`.
    pub(super) fn levels(mut self, low: f64) -> Vec<(f64, u64)> {
        self.merge_recent();
        let level = |&(key, count): &(u64, u64)| (key_to_f64(key << self.shift).max(low), count);
        self.keys.iter().map(level).collect()
    }
}

/// Counts each finite value of a component, and computes the moments of these values. The bins are from `low` to `high`. If
/// `weighted`, values are weighted by alpha, as the counts of the histogram are.
///
/// # Panics
/// If the pixels lack the component.
pub fn count_values(
    pixels: &Pixels,
    component: Component,
    [low, high]: [f64; 2],
    weighted: bool,
) -> (Moments, ValueCounts) {
    let max_keys = match (component, pixels.samples.dtype()) {
        (Component::Luma(_), dtype) if dtype.size() <= 2 => MAX_LUMINANCES,
        _ => MAX_VALUES,
    };
    let all = match (component, &pixels.samples) {
        (Component::Luma(luma), Samples::U8(_))
            if luma != Luma::Linear && !weighted && TABLE.contains(&pixels.len()) =>
        {
            let unit = f64::from(luma.weights().1);
            let start = || memory::filled(0u32, 255 * unit as usize + 1);
            let add = |table: &mut Vec<u32>, value, _| table[(value * unit + 0.5) as usize] += 1;
            let mut all = ValueCounts::new(max_keys, Vec::new());
            for table in fold_values(pixels, component, false, start, add, |_| ()) {
                let values = table.into_iter().zip(0..).filter(|&(n, _)| n > 0);
                let values = values.map(|(n, level)| (f64::from(level) / unit, n.into()));
                let keys = values.map(|(value, n)| (key(value), n)).collect();
                all.add(ValueCounts::new(max_keys, keys));
            }
            all
        }
        _ => {
            let all = Mutex::new(ValueCounts::new(max_keys, Vec::new()));
            let add_part = |keys| {
                let part = ValueCounts::new(max_keys, keys);
                all.lock().expect("no thread panics").add(part);
            };
            let is_counted = |value: f64, n| value.is_finite() && n > 0;
            if weighted {
                let add = |keys: &mut Vec<(u64, u64)>, value, n| {
                    keys.extend(is_counted(value, n).then(|| (key(value), n)));
                };
                fold_values(pixels, component, true, Vec::new, add, |keys| {
                    keys.sort_unstable_by_key(|&(key, _)| key);
                    add_part(std::mem::take(keys));
                });
            } else {
                // Keys without counts have half as many bytes and are sorted faster.
                let add = |keys: &mut Vec<u64>, value, n| {
                    keys.extend(is_counted(value, n).then(|| key(value)));
                };
                fold_values(pixels, component, false, Vec::new, add, |keys| {
                    keys.sort_unstable();
                    let runs = keys.chunk_by(|a, b| a == b);
                    add_part(runs.map(|run| (run[0], run.len() as u64)).collect());
                    keys.clear();
                });
            }
            all.into_inner().expect("no thread panics")
        }
    };
    let found = all.moments(low, high);
    (found.unwrap_or_else(|| moments(pixels, component, low, high, weighted)), all)
}

/// Numbers of 8-bit pixels whose luminances are counted in a table instead of sorted: fewer would not be worth clearing
/// the table, and more would overflow a counter.
const TABLE: std::ops::Range<usize> = 1 << 19..1 << 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::noise::Noise;

    /// Stored values are untrusted: their order is relied on.
    #[test]
    fn stored_values_are_checked() {
        let read =
            |text: &str| serde_json::from_str::<ValueCounts>(text).map_err(|e| e.to_string());
        let stored = r#"{"most":9,"shift":60,"keys":[[3,1],[15,2]]}"#;
        let values = read(stored).unwrap();
        assert_eq!(serde_json::to_string(&values).unwrap(), stored);
        for keys in ["[[3,1],[3,1]]", "[[4,1],[3,1]]", "[[16,1]]"] {
            let error = read(&format!(r#"{{"most":9,"shift":60,"keys":{keys}}}"#)).unwrap_err();
            assert!(error.contains("keys are not in order"), "{error}");
        }
        for (max_keys, shift, expected) in [
            (9usize, 64, "expected a shift below 64 bits"),
            (1, 60, "not in order"),
            (1 << 40, 60, "not in order"),
        ] {
            let stored = format!(r#"{{"most":{max_keys},"shift":{shift},"keys":[[3,1],[15,2]]}}"#);
            assert!(read(&stored).unwrap_err().contains(expected), "{stored}");
        }
    }

    /// Few values are counted exactly, many to the remaining bits, for any division into parts.
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
            let count = |samples: &[f32]| {
                let pixels = Pixels { samples: Samples::F32(samples.to_vec()), channels: 1 };
                count_values(&pixels, Component::Channel(0), [-50.0, f64::INFINITY], false)
            };
            let (moments, whole) = count(&samples);
            let stored = |values: ValueCounts| Stored::from(values).keys;
            let shift = whole.shift;
            let whole = stored(whole);
            for divisor in [7, 300] {
                let parts = samples.chunks(len / divisor).map(count);
                let (sums, parts) = parts
                    .reduce(|(sums, mut all), (more, values)| {
                        all.add(values);
                        (sums.merged(more), all)
                    })
                    .unwrap();
                assert_eq!((&sums, parts.shift, stored(parts) == whole), (&moments, shift, true));
            }
            assert!(whole.len() <= MAX_VALUES);
            assert_eq!(shift > 0, bits == 24);
            // Values below the bins count, too.
            let all = samples.len() as u64;
            assert_eq!((whole.iter().map(|key| key.1).sum::<u64>(), moments.count), (all, all));
            if bits == 9 {
                let naive = samples.iter().filter(|&&sample| sample == 7.0).count() as u64;
                assert!(count(&samples).1.levels(-100.0).contains(&(7.0, naive)));
            }
        }
    }

    /// Noise of 8 bits has nearly all luminances that there are.
    #[test]
    fn luminances_of_8_bits_are_kept_apart() {
        let samples = Noise(6).bytes(3 << 20);
        let (sum, unit) = Luma::Bt709.integer::<u8>();
        let luma = samples.chunks_exact(3).map(|pixel| sum(pixel) / unit);
        let mut sorted: Vec<f64> = luma.collect();
        sorted.sort_unstable_by(f64::total_cmp);
        // Values outside the bins count, too.
        let range = [17.0, 200.5];
        let component = Component::Luma(Luma::Bt709);
        // In a table, and by sorting.
        for part in [samples.len(), 3 << 18] {
            let mut all = ValueCounts::new(MAX_LUMINANCES, Vec::new());
            let mut sums = Moments::default();
            for part in samples.chunks(part) {
                let pixels = Pixels { samples: Samples::U8(part.to_vec()), channels: 3 };
                let (moments, values) = count_values(&pixels, component, range, false);
                sums = sums.merged(moments);
                all.add(values);
            }
            let naive = sorted.iter().map(|&value| (value, 1));
            assert_eq!(sums, Moments::from_bins(naive, range[0], range[1]));
            let levels = all.levels(0.0);
            assert!(levels.len() > MAX_VALUES, "{}", levels.len());
            let all = levels.into_iter().flat_map(|(value, n)| (0..n).map(move |_| value));
            assert!(all.eq(sorted.iter().copied()));
        }
    }
}
