//! Histogram equalization and automatic levels against textbook references.

use gpuproc::{
    data::samples::Samples,
    kernels::histogram::{LookupTable, Pixels, luminance_histogram},
};

use crate::{
    common::{Noise, assert_twins},
    histogram::channel_values,
};

/// Textbook histogram equalisation in f64. Returns the shift of each level.
fn reference_equalize(levels: &[u64], max: f64) -> Vec<f64> {
    let total: u64 = levels.iter().sum();
    let first = levels.iter().copied().find(|&n| n > 0).unwrap_or(0) as f64;
    let mut seen = 0.0;
    let shift = |(level, &n): (usize, &u64)| {
        seen += n as f64;
        let to = ((seen - first).max(0.0) / (total as f64 - first) * max).round();
        if total as f64 == first { 0.0 } else { to - level as f64 }
    };
    levels.iter().enumerate().map(shift).collect()
}

#[test]
fn equalize_and_auto_levels_match_reference() {
    let mut noise = Noise(14);
    for channels in 1..=4usize {
        for count in [0, 1, 5, 86, 1021, 300_007] {
            // Dark pixels with some structure.
            let bytes: Vec<u8> =
                noise.bytes(count * channels).iter().map(|&b| 20 + b / 3).collect();
            let words: Vec<u16> = bytes.iter().map(|&b| u16::from(b) * 200 + 77).collect();
            let mut all = vec![(Samples::U8(bytes), 255.0)];
            if count < 1000 {
                all.push((Samples::U16(words), 65535.0));
            }
            for (samples, max) in all {
                check_adjustments(samples, channels, max);
            }
        }
    }
}

fn check_adjustments(samples: Samples, channels: usize, max: f64) {
    let pixels = Pixels { samples, channels };
    let counter = luminance_histogram(pixels.samples.dtype(), channels).unwrap();
    let counted = &assert_twins(&counter, &pixels, |cpu, gpu, name| assert_eq!(cpu, gpu, "{name}"));
    let values: Vec<Vec<f64>> =
        (0..channels).map(|c| channel_values(&pixels.samples, channels, c)).collect();
    let grey: Vec<usize> = (0..pixels.len())
        .map(|i| match channels {
            1 | 2 => values[0][i] as usize,
            _ => {
                let sum = 2126.0 * values[0][i] + 7152.0 * values[1][i] + 722.0 * values[2][i];
                ((sum + 5000.0) / 10_000.0).floor() as usize
            }
        })
        .collect();
    let mut levels = vec![0u64; max as usize + 1];
    grey.iter().for_each(|&level| levels[level] += 1);
    assert_eq!(counted[0].bins, levels);
    let colours = channels - usize::from(matches!(channels, 2 | 4));

    let equal = assert_twins(&LookupTable::equalize(&counted[0]), &pixels, |cpu, gpu, name| {
        assert_eq!(cpu, gpu, "{name}");
    });
    let shifts = reference_equalize(&levels, max);
    for (c, old) in values.iter().enumerate() {
        for (i, (new, old)) in channel_values(&equal, channels, c).iter().zip(old).enumerate() {
            let shift = if c < colours { shifts[grey[i]] } else { 0.0 };
            assert_eq!(*new, (old + shift).clamp(0.0, max), "pixel {i} channel {c}");
        }
    }

    let stretched =
        assert_twins(&LookupTable::levels(&counted[0], 0.01), &pixels, |cpu, gpu, name| {
            assert_eq!(cpu, gpu, "{name}");
        });
    let mut sorted = grey.clone();
    sorted.sort_unstable();
    let spare = (0.01 * sorted.len() as f64) as usize;
    let [low, high] = match sorted.len() {
        0 => [0.0, max],
        n => [sorted[spare] as f64, sorted[n - 1 - spare] as f64],
    };
    for (c, old) in values.iter().enumerate() {
        for (new, &old) in channel_values(&stretched, channels, c).iter().zip(old) {
            let to = match c < colours && high > low {
                true => ((old - low) * max / (high - low) + 0.5).floor().clamp(0.0, max),
                false => old,
            };
            assert_eq!(*new, to, "channel {c} of {channels}, {low} to {high}");
        }
    }
}
