//! How often each different value occurs, for exact percentiles, modes and entropies of samples that have no table of
//! levels: floats, 32-bit integers, luminance.
//!
//! Values are kept as keys, 64-bit integers in the values' order. With more than [`MOST`] different keys, their lowest
//! bits are dropped until no more than [`MOST`] are left:
//!
//! ```text
//! shift = min { s : |{ key >> s }| <= MOST }
//! ```
//! The shift depends on the samples alone and not on how they are divided, since no part has more different keys than
//! the whole.

use serde::{Deserialize, Serialize};

use super::{
    counts::{Component, Pixels},
    luma::Luma,
};
use crate::{
    data::{
        float_key::{f64_of_key, key_of_f64},
        samples::Samples,
    },
    for_samples,
    parallel::Parallel,
};

/// The most different values that are kept apart.
const MOST: usize = 1 << 18;

/// Pixels that are sorted at a time.
const CHUNK: usize = 1 << 18;

/// Different values in order, and how often each occurs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct Values {
    /// Bits of the keys that are dropped.
    shift: u32,
    /// Keys without those bits, in order, and counts.
    keys: Vec<(u64, u64)>,
}

/// [`Values`] as a file holds them, not checked yet.
#[derive(Deserialize)]
struct Stored {
    shift: u32,
    keys: Vec<(u64, u64)>,
}

impl TryFrom<Stored> for Values {
    type Error = &'static str;

    fn try_from(Stored { shift, keys }: Stored) -> Result<Self, &'static str> {
        let greatest = u64::MAX.checked_shr(shift).ok_or("keys have 64 bits")?;
        let is_ascending = keys.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let fits = keys.last().is_none_or(|last| last.0 <= greatest) && keys.len() <= MOST;
        (is_ascending && fits).then_some(Self { shift, keys }).ok_or("keys are not in order")
    }
}

/// The key of a number; -0 has that of +0.
fn key(value: f64) -> u64 {
    key_of_f64(value + 0.0)
}

impl Values {
    /// The values of unsorted keys.
    fn new(mut keys: Vec<u64>) -> Self {
        keys.sort_unstable();
        let mut counted: Vec<(u64, u64)> = Vec::new();
        for key in keys {
            match counted.last_mut() {
                Some((last, count)) if *last == key => *count += 1,
                _ => counted.push((key, 1)),
            }
        }
        Self { shift: 0, keys: counted }.within_most()
    }

    /// Drops further bits where there are too many keys.
    fn within_most(self) -> Self {
        if self.keys.len() <= MOST {
            return self;
        }
        // Neighbours differ after a shift of s where they differ in a bit from s on.
        let mut highest = [0; 64];
        for pair in self.keys.windows(2) {
            highest[(pair[0].0 ^ pair[1].0).ilog2() as usize] += 1;
        }
        let (mut left, mut more) = (self.keys.len(), 0);
        while left > MOST {
            left -= highest[more as usize];
            more += 1;
        }
        self.shifted(more)
    }

    fn shifted(mut self, more: u32) -> Self {
        self.shift += more;
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(self.keys.len());
        for (key, count) in self.keys {
            match joined.last_mut() {
                Some((last, sum)) if *last == key >> more => *sum += count,
                _ => joined.push((key >> more, count)),
            }
        }
        Self { keys: joined, ..self }
    }

    /// The values of two sets together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        if self.keys.is_empty() || other.keys.is_empty() {
            return if self.keys.is_empty() { other } else { self };
        }
        let shift = self.shift.max(other.shift);
        let [one, other] = [self, other].map(|values| {
            let more = shift - values.shift;
            if more == 0 { values } else { values.shifted(more) }
        });
        let mut keys = Vec::with_capacity(one.keys.len() + other.keys.len());
        let (mut a, mut b) = (one.keys.into_iter().peekable(), other.keys.into_iter().peekable());
        loop {
            let next = match (a.peek(), b.peek()) {
                (Some(x), Some(y)) if x.0 == y.0 => (x.0, x.1 + y.1),
                (Some(x), Some(y)) => {
                    if x.0 < y.0 {
                        *x
                    } else {
                        *y
                    }
                }
                (Some(x), None) => *x,
                (None, Some(y)) => *y,
                (None, None) => break,
            };
            a.next_if(|x| x.0 == next.0);
            b.next_if(|y| y.0 == next.0);
            keys.push(next);
        }
        Self { shift, keys }.within_most()
    }

    /// Each value with its count; of values with equal keys, the least one, but no less than `low`.
    pub(super) fn levels(&self, low: f64) -> Vec<(f64, u64)> {
        let level = |&(key, count): &(u64, u64)| (f64_of_key(key << self.shift).max(low), count);
        self.keys.iter().map(level).collect()
    }
}

/// How often each value of a component from `low` to `high` occurs.
pub fn values(pixels: &Pixels, component: Component, low: f64, high: f64) -> Values {
    fn count<T: Sync>(
        samples: &[T],
        channels: usize,
        [low, high]: [f64; 2],
        value: impl Fn(&[T]) -> f64 + Sync,
    ) -> Values {
        let mut all = Values::default();
        // One chunk a thread at a time, so that memory is bounded.
        let together = channels * CHUNK * rayon::current_num_threads();
        for samples in samples.chunks(together) {
            let parts = samples.chunks(channels * CHUNK).par_map(|chunk| {
                let values = chunk.chunks_exact(channels).map(&value);
                let inside = |v: &f64| *v >= low && *v <= high && v.is_finite();
                Values::new(values.filter(inside).map(key).collect())
            });
            all = parts.into_iter().fold(all, Values::and);
        }
        all
    }
    let (channels, range) = (pixels.channels, [low, high]);
    match (component, &pixels.samples) {
        (Component::Channel(channel), samples) => for_samples!(samples, values => {
            #[allow(clippy::cast_lossless, clippy::unnecessary_cast)]
            count(values, channels, range, |pixel| pixel[channel] as f64)
        }),
        (Component::Luma(luma), Samples::U8(samples)) => {
            count(samples, channels, range, Luma::in_samples(luma, 255))
        }
        (Component::Luma(luma), Samples::U16(samples)) => {
            count(samples, channels, range, Luma::in_samples(luma, 65535))
        }
        (Component::Luma(luma), samples) => {
            let plane = luma.float_plane(samples, channels);
            count(&plane, 1, range, |value| value[0].into())
        }
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
        let stored = r#"{"shift":60,"keys":[[3,1],[15,2]]}"#;
        let values = read(stored).unwrap();
        assert_eq!(serde_json::to_string(&values).unwrap(), stored);
        for keys in ["[[3,1],[3,1]]", "[[4,1],[3,1]]", "[[16,1]]"] {
            let error = read(&format!(r#"{{"shift":60,"keys":{keys}}}"#)).unwrap_err();
            assert!(error.contains("keys are not in order"), "{error}");
        }
        assert!(read(r#"{"shift":64,"keys":[]}"#).unwrap_err().contains("keys have 64 bits"));
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
                values(&pixels, Component::Channel(0), -50.0, f64::INFINITY)
            };
            let whole = of(&samples);
            let parts = samples.chunks(len / 7).map(of).reduce(Values::and).unwrap();
            assert_eq!(whole, parts);
            assert!(whole.keys.len() <= MOST);
            assert_eq!(whole.shift > 0, bits == 24);
            let inside = samples.iter().filter(|&&sample| sample >= -50.0).count() as u64;
            assert_eq!(whole.keys.iter().map(|key| key.1).sum::<u64>(), inside);
            if bits == 9 {
                let naive = samples.iter().filter(|&&sample| sample == 7.0).count() as u64;
                assert!(whole.levels(-50.0).contains(&(7.0, naive)));
            }
        }
    }
}
