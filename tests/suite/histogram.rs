//! Histogram: both twins against naive references, and the command line.

use gpuproc::{
    kernels::histogram::{Bins, Counts, Histogram, Luma, Pixels, Row},
    samples::{Dtype, Samples},
};

use super::common::{Noise, assert_twins};

/// Counts value by value, with nothing but edges and comparisons. `values` are in the unit that the
/// edges are multiplied by, so that a luminance stays an integer.
fn naive(values: impl Iterator<Item = f64>, bins: &Bins, unit: f64) -> Counts {
    let n = bins.count;
    let edge =
        |k: usize| (bins.low * (n - k) as f64 * unit + bins.high * k as f64 * unit) / n as f64;
    let edges: Vec<f64> = (0..=n).map(edge).collect();
    let mut counts = Counts { bins: vec![0; n], ..Counts::default() };
    for value in values {
        if value.is_nan() {
            counts.nan += 1;
        } else if value < edges[0] {
            counts.below += 1;
        } else if value > edges[n] {
            counts.above += 1;
        } else {
            // The last edge that is not above the value; the topmost belongs to the last bin.
            let bin = edges.partition_point(|&edge| edge <= value) - 1;
            counts.bins[bin.min(n - 1)] += 1;
        }
    }
    counts
}

/// Both twins' rows of `pixels`, compared with each other, without levels.
fn twins(rows: &[Row], bins: Bins, pixels: &Pixels) -> Vec<Counts> {
    let kernel = Histogram { rows: rows.to_vec(), bins };
    let mut counts = assert_twins(&kernel, pixels, |cpu, gpu, name| {
        for ((row, cpu), gpu) in rows.iter().zip(cpu).zip(gpu) {
            assert_eq!(cpu, gpu, "{name} {row:?} {bins:?} of {} pixels", pixels.len());
        }
    });
    counts.iter_mut().for_each(|counts| counts.levels = None);
    counts
}

fn channel(samples: &Samples, channels: usize, c: usize) -> Vec<f64> {
    gpuproc::for_samples!(samples, values => {
        values.iter().skip(c).step_by(channels).map(|&v| v as f64).collect()
    })
}

/// 10,000 times the luminance of integer pixels, exactly: the weights of B1.
fn luma10000(samples: &Samples, channels: usize) -> Vec<f64> {
    let [r, g, b] = [0, 1, 2].map(|c| channel(samples, channels, c));
    let pixels = r.iter().zip(&g).zip(&b);
    pixels.map(|((r, g), b)| 2126.0 * r + 7152.0 * g + 722.0 * b).collect()
}

/// Checks every channel, and luminance where there are three colours.
fn check_integers(samples: Samples, channels: usize, counts: &[usize], range: Option<(f64, f64)>) {
    let dtype = samples.dtype();
    let pixels = Pixels { samples, channels };
    let mut rows: Vec<Row> = (0..channels).map(Row::Channel).collect();
    if channels >= 3 {
        rows.push(Row::Luma(Luma::Bt709));
    }
    let (low, high) = range.or(gpuproc::kernels::histogram::type_range(dtype)).unwrap();
    for &count in counts {
        let bins = Bins::new(count, low, high, dtype).unwrap();
        let found = twins(&rows, bins, &pixels);
        for (row, found) in rows.iter().zip(found) {
            let expected = match row {
                Row::Channel(c) => {
                    naive(channel(&pixels.samples, channels, *c).into_iter(), &bins, 1.0)
                }
                Row::Luma(_) => {
                    naive(luma10000(&pixels.samples, channels).into_iter(), &bins, 10_000.0)
                }
            };
            assert_eq!(found, expected, "{row:?} {bins:?} of {} pixels", pixels.len());
            assert_eq!(found.total(), pixels.len() as u64);
        }
    }
}

fn halves(noise: &mut Noise, len: usize) -> Vec<u16> {
    (0..len).map(|_| (noise.next() >> 48) as u16).collect()
}

#[test]
fn bytes_equal_the_reference_at_every_length_and_channel_count() {
    let mut noise = Noise(1);
    for channels in 1..=4 {
        for pixels in [0, 1, 2, 3, 5, 15, 16, 17, 255, 256, 257, 1021, 4096, 65_537] {
            let bytes = noise.bytes(pixels * channels);
            check_integers(Samples::U8(bytes), channels, &[256], None);
        }
    }
}

#[test]
fn bytes_equal_the_reference_at_every_bin_count() {
    let bytes = Noise(2).bytes(3 * 3001);
    let counts = [1, 2, 3, 7, 100, 255, 256, 257, 1000, 4099, 65_535, 65_536];
    check_integers(Samples::U8(bytes), 3, &counts, None);
}

#[test]
fn luminance_is_exact_at_every_edge() {
    // Every grey level, and every colour of a coarse cube with its corners.
    let mut bytes: Vec<u8> = (0..=255).flat_map(|v| [v, v, v]).collect();
    let steps = [0, 1, 51, 85, 102, 127, 128, 153, 170, 204, 221, 254, 255];
    for r in steps {
        for g in steps {
            bytes.extend(steps.iter().flat_map(|&b| [r, g, b]));
        }
    }
    check_integers(Samples::U8(bytes), 3, &[1, 2, 3, 5, 17, 255, 256, 5000, 65_536], None);
}

#[test]
fn inputs_past_a_binding_are_counted_in_bands() {
    // 3 MiB and a little: three bands on the small device, more groups than it dispatches at once.
    let bytes = Noise(3).bytes(3 * 1_050_001);
    check_integers(Samples::U8(bytes), 3, &[256], None);
    check_integers(Samples::U16(halves(&mut Noise(4), 1_600_003)), 1, &[65_536], None);
}

#[test]
fn flat_and_striped_images_are_counted() {
    for channels in 1..=4 {
        let mut bytes = vec![200; channels * 70_001];
        check_integers(Samples::U8(bytes.clone()), channels, &[256], None);
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = [7, 8, 7, 7, 7, 9, 7, 7, 7][i / channels % 9];
        }
        check_integers(Samples::U8(bytes), channels, &[256], None);
    }
    check_integers(Samples::U16(vec![40_000; 200_001]), 1, &[65_536, 256], None);
}

#[test]
fn sixteen_bits_equal_the_reference() {
    let mut noise = Noise(5);
    for channels in 1..=4 {
        for pixels in [0, 1, 7, 8, 9, 257, 5003] {
            let samples = Samples::U16(halves(&mut noise, pixels * channels));
            check_integers(samples, channels, &[256, 1000, 65_536], None);
        }
    }
}

#[test]
fn signed_samples_keep_their_order() {
    let bytes = Noise(6).bytes(5001);
    let signed = bytes.iter().map(|&b| b as i8).collect();
    check_integers(Samples::I8(signed), 1, &[1, 10, 256], None);
    let wide = halves(&mut Noise(7), 5001).iter().map(|&h| h as i16).collect();
    check_integers(Samples::I16(wide), 1, &[1, 10, 65_536], None);
}

#[test]
fn ranges_leave_values_below_and_above() {
    let bytes = Noise(8).bytes(3 * 2003);
    for (low, high) in [(10.0, 20.0), (0.5, 1.5), (-100.0, 100.25), (300.0, 400.0), (99.9, 180.3)] {
        check_integers(Samples::U8(bytes.clone()), 3, &[1, 7, 256, 65_536], Some((low, high)));
    }
    let wide = halves(&mut Noise(9), 3 * 2003);
    check_integers(Samples::U16(wide), 3, &[7, 256, 65_536], Some((1000.0, 2000.5)));
}

#[test]
fn integers_of_32_bits_equal_the_reference() {
    let mut noise = Noise(10);
    let mut values: Vec<u32> = (0..5001).map(|_| (noise.next() >> 32) as u32).collect();
    values.extend([0, 1, u32::MAX, u32::MAX - 1, 1 << 31]);
    let signed = values.iter().map(|&v| v as i32).collect();
    let counts = [1, 3, 256, 65_536];
    check_integers(Samples::U32(values.clone()), 1, &counts, None);
    check_integers(Samples::U32(values), 1, &counts, Some((4e9, 4.000_001e9)));
    check_integers(Samples::I32(signed), 1, &counts, None);
}

#[test]
fn floats_follow_the_stated_rules() {
    let mut noise = Noise(11);
    let mut values: Vec<f32> = (0..4003).map(|_| (noise.unit() * 1.2 - 0.1) as f32).collect();
    values.extend([0.0, -0.0, 1.0, 1f32.next_down(), 1f32.next_up(), 0.5, 0.25, 1e-40, -1e-40]);
    values.extend([f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN]);
    // Every edge and its neighbours.
    let edges = (0..=256).map(|k| (f64::from(k) / 256.0) as f32);
    values.extend(edges.flat_map(|edge| [edge.next_down(), edge, edge.next_up()]));
    let ranges = [(0.0, 1.0), (0.1, 0.3), (-3.4e38, 3.4e38), (1e-20, 1e-18), (-1.0, 0.0)];
    for samples in
        [Samples::F32(values.clone()), Samples::F64(values.iter().map(|&v| v.into()).collect())]
    {
        for (low, high) in ranges {
            let dtype = samples.dtype();
            for count in [1, 2, 10, 256, 65_536] {
                let bins = Bins::new(count, low, high, dtype).unwrap();
                let pixels = Pixels { samples: samples.clone(), channels: 1 };
                let found = twins(&[Row::Channel(0)], bins, &pixels);
                let expected = naive(channel(&samples, 1, 0).into_iter(), &bins, 1.0);
                assert_eq!(found[0].nan, 2);
                assert_eq!(found[0], expected, "{dtype} {bins:?}");
            }
        }
    }
}

#[test]
fn exactly_one_is_in_the_last_bin() {
    let samples = Samples::F32(vec![0.0, 0.5, 1.0, 1.0]);
    let bins = Bins::new(2, 0.0, 1.0, Dtype::F32).unwrap();
    let found = twins(&[Row::Channel(0)], bins, &Pixels { samples, channels: 1 });
    assert_eq!(found[0].bins, [1, 3]);
}

#[test]
fn float_channels_and_their_luminance_are_told_apart() {
    let mut noise = Noise(12);
    let values: Vec<f32> = (0..4 * 1003).map(|_| noise.unit() as f32).collect();
    let pixels = Pixels { samples: Samples::F32(values.clone()), channels: 4 };
    let rows = [Row::Channel(0), Row::Channel(1), Row::Channel(3), Row::Luma(Luma::Bt601)];
    let bins = Bins::new(100, 0.0, 1.0, Dtype::F32).unwrap();
    let found = twins(&rows, bins, &pixels);
    for (found, c) in found.iter().zip([0, 1, 3]) {
        assert_eq!(*found, naive(channel(&pixels.samples, 4, c).into_iter(), &bins, 1.0));
    }
    let luma = values.chunks(4).map(|p| {
        let [r, g, b] = [p[0], p[1], p[2]].map(f64::from);
        f64::from((0.299 * r + 0.587 * g + 0.114 * b) as f32)
    });
    assert_eq!(found[3], naive(luma, &bins, 1.0));
}

#[test]
fn other_luminances_equal_the_reference() {
    let bytes = Noise(13).bytes(3 * 4001);
    let pixels = Pixels { samples: Samples::U8(bytes.clone()), channels: 3 };
    for count in [3, 256, 1000] {
        let bins = Bins::new(count, 0.0, 255.0, Dtype::U8).unwrap();
        // Two kinds at once: only one of them fits the pass that counts the channels.
        let rows = [Row::Luma(Luma::Bt709), Row::Luma(Luma::Bt601), Row::Luma(Luma::Linear)];
        let found = twins(&rows, bins, &pixels);
        let bt601 = bytes.chunks(3).map(|p| {
            let [r, g, b] = [p[0], p[1], p[2]].map(f64::from);
            299.0 * r + 587.0 * g + 114.0 * b
        });
        assert_eq!(found[1], naive(bt601, &bins, 1000.0));
        // In linear light the table is 784 times as fine as the samples.
        let decode = |byte: u8| {
            let v = f64::from(byte) / 255.0;
            let light = if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) };
            (light * 255.0 * 784.0).round()
        };
        let linear = bytes
            .chunks(3)
            .map(|p| 1063.0 * decode(p[0]) + 3576.0 * decode(p[1]) + 361.0 * decode(p[2]));
        assert_eq!(found[2], naive(linear, &bins, 5000.0 * 784.0));
    }
}

#[test]
fn the_worked_example_of_three_colours() {
    // 6 x 7 pixels: 18 dark, 16 middle, 8 bright.
    let mut bytes = Vec::new();
    for (colour, times) in [([34, 51, 255], 18), ([255, 85, 85], 16), ([255, 221, 0], 8)] {
        (0..times).for_each(|_| bytes.extend(colour));
    }
    let bins = Bins::new(3, 0.0, 255.0, Dtype::U8).unwrap();
    let pixels = Pixels { samples: Samples::U8(bytes), channels: 3 };
    let found = twins(&[Row::Luma(Luma::Bt709)], bins, &pixels);
    assert_eq!(found[0].bins, [18, 16, 8]);
}
