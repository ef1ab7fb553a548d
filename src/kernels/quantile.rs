//! Exact quantiles of inputs that are read in several passes, with bounded memory. Each pass finds a digit of the
//! sample, the most significant one first, by counting the samples that have the same digits before it.

use super::histogram::{rank, type_range};
use crate::{
    data::{
        dtype::Dtype,
        float_key::{f32_to_key, f64_to_key, key_to_f32, key_to_f64},
        samples::Samples,
    },
    for_samples,
    util::parallel::Parallel,
};

/// Number of values of a digit.
pub(super) const DIGIT_VALUES: usize = 1 << DIGIT_BITS;

/// Number of bits of a digit.
const DIGIT_BITS: u32 = 16;

/// Number of samples that a thread takes at a time: a multiple of its counters, which it clears first and adds to the
/// total at the end.
const CHUNK: usize = 4 * DIGIT_VALUES;

/// Counts each sample `times` times at the index that `slot` returns, which is below [`DIGIT_VALUES`]. Samples for which it
/// returns `None` are ignored.
pub(super) fn count(
    counts: &mut [u64],
    samples: &Samples,
    times: u64,
    slot: impl Fn(f64) -> Option<usize> + Sync,
) {
    let mut count_levels = |bytes: &[u8], value: fn(u8) -> f64| {
        for (level, number) in (0..=u8::MAX).zip(byte_counts(bytes)) {
            if let Some(slot) = slot(value(level)) {
                counts[slot] += number * times;
            }
        }
    };
    match samples {
        Samples::U8(values) => count_levels(values, f64::from),
        Samples::I8(values) => {
            count_levels(bytemuck::cast_slice(values), |level| f64::from(level.cast_signed()));
        }
        _ => for_samples!(samples, values => count_values(counts, values, times, slot)),
    }
}

/// Number of times that each byte occurs.
fn byte_counts(bytes: &[u8]) -> [u64; 256] {
    // Neighbouring samples count in different tables: a second increment of a counter would wait for the write of the
    // first.
    let tables = || [[0; 256]; 4];
    let add = |tables: &mut [[u64; 256]; 4], chunk: &[u8]| {
        let mut fours = chunk.chunks_exact(4);
        for four in &mut fours {
            tables.iter_mut().zip(four).for_each(|(table, &byte)| table[usize::from(byte)] += 1);
        }
        fours.remainder().iter().for_each(|&byte| tables[0][usize::from(byte)] += 1);
    };
    let parts = bytes.chunks(CHUNK).par_fold(tables, add);
    std::array::from_fn(|level| parts.iter().flatten().map(|table| table[level]).sum())
}

fn count_values<T: Copy + Into<f64> + Sync>(
    counts: &mut [u64],
    values: &[T],
    times: u64,
    slot: impl Fn(f64) -> Option<usize> + Sync,
) {
    let add = |counts: &mut [u64], values: &[T]| {
        for &value in values {
            if let Some(slot) = slot(value.into()) {
                counts[slot] += times;
            }
        }
    };
    let (whole, rest) = values.split_at(values.len() / CHUNK * CHUNK);
    add(counts, rest);
    let parts =
        whole.chunks(CHUNK).par_fold(|| vec![0; DIGIT_VALUES], |counts, chunk| add(counts, chunk));
    for part in parts {
        counts.iter_mut().zip(part).for_each(|(sum, count)| *sum += count);
    }
}

/// The search for a percentile by the nearest-rank method, whose result is a sample. Samples that are not finite are
/// ignored.
#[derive(Clone, Debug)]
pub struct Quantile {
    dtype: Dtype,
    percent: f64,
    /// The digits found so far of the sample's key. Keys have the order of the samples.
    found: u64,
    /// Number of bits of the key that are not found yet.
    unknown: u32,
    /// The rank of the sample among those that share these digits; `None` before the first pass has ended.
    rank: Option<u64>,
    counts: Vec<u64>,
}

impl Quantile {
    /// Starts the search for the percentile `percent`, from 0 to 100, of samples of type `dtype`.
    pub fn new(dtype: Dtype, percent: f64) -> Self {
        let unknown = (8 * dtype.size() as u32).max(DIGIT_BITS);
        Self { dtype, percent, found: 0, unknown, rank: None, counts: vec![0; DIGIT_VALUES] }
    }

    /// Counts samples, each `times` times. Each pass must count all samples, in any number of parts.
    pub fn count(&mut self, samples: &Samples, times: u64) {
        let Self { dtype, found, .. } = *self;
        let shift = self.unknown - DIGIT_BITS;
        count(&mut self.counts, samples, times, |value| {
            let digits = value.is_finite().then(|| key(dtype, value) >> shift)?;
            (digits >> DIGIT_BITS == found).then_some(digits as usize % DIGIT_VALUES)
        });
    }

    /// Ends a pass. Returns whether another one is needed.
    pub fn advance(&mut self) -> bool {
        let total = self.counts.iter().sum();
        let mut rank = self.rank.unwrap_or_else(|| rank(self.percent, total));
        let is_found = |&count: &u64| {
            let is_here = rank <= count;
            rank -= if is_here { 0 } else { count };
            is_here
        };
        let Some(digit) = self.counts.iter().position(is_found) else { return false };
        self.found = self.found << DIGIT_BITS | digit as u64;
        self.unknown -= DIGIT_BITS;
        self.rank = Some(rank);
        self.counts.fill(0);
        self.unknown > 0
    }

    /// The sample, after the last pass. `None` if no sample is finite.
    pub fn sample(&self) -> Option<f64> {
        (self.unknown == 0).then(|| match self.dtype {
            Dtype::F64 => key_to_f64(self.found),
            Dtype::F32 => key_to_f32(self.found as u32).into(),
            dtype => type_range(dtype).map_or(0.0, |range| range.0) + self.found as f64,
        })
    }
}

/// The key of a finite sample. -0 has the key of +0.
fn key(dtype: Dtype, value: f64) -> u64 {
    match dtype {
        Dtype::F64 => f64_to_key(value + 0.0),
        Dtype::F32 => f32_to_key(value as f32 + 0.0).into(),
        dtype => (value - type_range(dtype).map_or(0.0, |range| range.0)) as u64,
    }
}
