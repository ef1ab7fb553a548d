//! Histogram: the CPU and GPU kernels against naive references.

use gpuproc::{
    data::{dtype::Dtype, samples::Samples},
    kernels::histogram::{
        Bins, Component, Counts, Histogram, Luma, Pixels, alpha_unit, type_range,
    },
};

use crate::{
    common::{Noise, assert_twins, works},
    inputs::fixture,
};

/// Counts values by comparison with the bin edges. Edges are multiplied by `unit`, as the values are, so that
/// luminances are integers.
fn reference_counts(values: impl Iterator<Item = f64>, bins: &Bins, unit: f64) -> Counts {
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
            // The last edge at or below the value. The last bin includes its upper edge.
            let bin = edges.partition_point(|&edge| edge <= value) - 1;
            counts.bins[bin.min(n - 1)] += 1;
        }
    }
    counts
}

/// Counts `pixels` on the CPU and on every device, which must agree. Returns the counts without levels.
fn count_on_all_devices(components: &[Component], bins: Bins, pixels: &Pixels) -> Vec<Counts> {
    let kernel = Histogram { components: components.to_vec(), bins, weighted: false };
    let mut counts = assert_twins(&kernel, pixels, |cpu, gpu, name| {
        for ((component, cpu), gpu) in components.iter().zip(cpu).zip(gpu) {
            assert_eq!(cpu, gpu, "{name} {component:?} {bins:?} of {} pixels", pixels.len());
        }
    });
    counts.iter_mut().for_each(|counts| counts.levels = None);
    counts
}

pub fn channel_values(samples: &Samples, channels: usize, c: usize) -> Vec<f64> {
    gpuproc::for_samples!(samples, values => {
        #[allow(clippy::cast_lossless, clippy::unnecessary_cast)]
        values.iter().skip(c).step_by(channels).map(|&v| v as f64).collect()
    })
}

/// 10,000 times the BT.709 luminance of integer pixels, which is an integer.
fn luma_times_10000(samples: &Samples, channels: usize) -> Vec<f64> {
    let [r, g, b] = [0, 1, 2].map(|c| channel_values(samples, channels, c));
    let pixels = r.iter().zip(&g).zip(&b);
    pixels.map(|((r, g), b)| 2126.0 * r + 7152.0 * g + 722.0 * b).collect()
}

/// Compares the counts of every channel, and of the luminance of RGB pixels, with the reference.
fn check_integers(samples: Samples, channels: usize, counts: &[usize], range: Option<(f64, f64)>) {
    let dtype = samples.dtype();
    let pixels = Pixels { samples, channels };
    let mut components: Vec<Component> = (0..channels).map(Component::Channel).collect();
    if channels >= 3 {
        components.push(Component::Luma(Luma::Bt709));
    }
    let (low, high) = range.or(gpuproc::kernels::histogram::type_range(dtype)).unwrap();
    for &count in counts {
        let bins = Bins::new(count, low, high, dtype).unwrap();
        let found = count_on_all_devices(&components, bins, &pixels);
        for (component, found) in components.iter().zip(found) {
            let expected = match component {
                Component::Channel(c) => reference_counts(
                    channel_values(&pixels.samples, channels, *c).into_iter(),
                    &bins,
                    1.0,
                ),
                Component::Luma(_) => reference_counts(
                    luma_times_10000(&pixels.samples, channels).into_iter(),
                    &bins,
                    10_000.0,
                ),
            };
            assert_eq!(found, expected, "{component:?} {bins:?} of {} pixels", pixels.len());
            assert_eq!(found.total(), pixels.len() as u64);
        }
    }
}

fn noise_u16(noise: &mut Noise, len: usize) -> Vec<u16> {
    (0..len).map(|_| (noise.next() >> 48) as u16).collect()
}

#[test]
fn u8_counts_match_reference_for_all_lengths_and_channel_counts() {
    let mut noise = Noise(1);
    for channels in 1..=4 {
        for pixels in [0, 1, 2, 3, 5, 15, 16, 17, 255, 256, 257, 1021, 4096, 65_537] {
            let bytes = noise.bytes(pixels * channels);
            check_integers(Samples::U8(bytes), channels, &[256], None);
        }
    }
}

#[test]
fn u8_counts_match_reference_for_all_bin_counts() {
    let bytes = Noise(2).bytes(3 * 3001);
    let counts = [1, 2, 3, 7, 100, 255, 256, 257, 1000, 4099, 10_000, 65_535, 65_536];
    check_integers(Samples::U8(bytes), 3, &counts, None);
}

#[test]
fn luminance_is_exact_at_bin_edges() {
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
fn inputs_larger_than_a_binding_are_counted_in_bands() {
    // A little more than 3 MiB, so that the small device needs several bands and several dispatches.
    let bytes = Noise(3).bytes(3 * 1_050_001);
    check_integers(Samples::U8(bytes), 3, &[256], None);
    check_integers(Samples::U16(noise_u16(&mut Noise(4), 1_600_003)), 1, &[65_536], None);
}

#[test]
fn constant_and_striped_images_match_reference() {
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
fn u16_counts_match_reference() {
    let mut noise = Noise(5);
    for channels in 1..=4 {
        for pixels in [0, 1, 7, 8, 9, 257, 5003] {
            let samples = Samples::U16(noise_u16(&mut noise, pixels * channels));
            check_integers(samples, channels, &[256, 1000, 65_536], None);
        }
    }
}

/// Levels that share a word of 8-bit counters on the GPU. Each is counted so often that its counter overflows in every
/// workgroup, alone and next to other full counters.
#[test]
fn u16_counters_do_not_overflow_with_few_levels() {
    let mut noise = Noise(21);
    for (len, levels) in [
        // More than 255 samples for each invocation of the small device.
        (1_100_003, &[0x7134_u16][..]),
        (1_200_007, &[0x7134, 0x7135]),
        (1_200_001, &[0x7134, 0x7135, 0x7136, 0x7137]),
        // The last word of counters, and a level in another span.
        (600_011, &[0xfffc, 0xfffd, 0xfffe, 0xffff, 0x0003]),
    ] {
        let mut pick = || levels[(noise.next() >> 32) as usize % levels.len()];
        let samples: Vec<u16> = (0..len).map(|_| pick()).collect();
        check_integers(Samples::U16(samples), 1, &[65_536], None);
    }
    // Vectors that repeat two levels, in one long run and in runs of 40 samples.
    for run in [600_011, 40] {
        let level = |i: usize| [0x0003, 0xfff0][i % 2] + (i / run % 5) as u16;
        check_integers(Samples::U16((0..600_011).map(level).collect()), 1, &[65_536], None);
    }
    // RGB pixels, and binned u32 values with whole vectors of one value.
    let mut pick = || [9u16, 10, 11, 12][(noise.next() >> 32) as usize % 4];
    check_integers(Samples::U16((0..3 * 200_003).map(|_| pick()).collect()), 3, &[65_536], None);
    let values = (0..800_007).map(|i| if i / 1000 % 2 == 0 { 1000 } else { u32::from(pick()) });
    check_integers(Samples::U32(values.collect()), 1, &[65_536], Some((0.0, 65_535.0)));
}

#[test]
fn signed_counts_match_reference() {
    let bytes = Noise(6).bytes(5001);
    let signed = bytes.iter().map(|&b| b as i8).collect();
    check_integers(Samples::I8(signed), 1, &[1, 10, 256], None);
    let wide = noise_u16(&mut Noise(7), 5001).iter().map(|&h| h as i16).collect();
    check_integers(Samples::I16(wide), 1, &[1, 10, 65_536], None);
}

#[test]
fn values_outside_the_range_are_counted_separately() {
    let bytes = Noise(8).bytes(3 * 2003);
    for (low, high) in [(10.0, 20.0), (0.5, 1.5), (-100.0, 100.25), (300.0, 400.0), (99.9, 180.3)] {
        check_integers(Samples::U8(bytes.clone()), 3, &[1, 7, 256, 65_536], Some((low, high)));
    }
    let wide = noise_u16(&mut Noise(9), 3 * 2003);
    check_integers(Samples::U16(wide), 3, &[7, 256, 65_536], Some((1000.0, 2000.5)));
}

#[test]
fn u32_and_i32_counts_match_reference() {
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
fn float_counts_match_reference_at_bin_edges_and_for_non_finite_values() {
    let mut noise = Noise(11);
    let mut values: Vec<f32> = (0..4003).map(|_| (noise.unit() * 1.2 - 0.1) as f32).collect();
    values.extend([0.0, -0.0, 1.0, 1f32.next_down(), 1f32.next_up(), 0.5, 0.25, 1e-40, -1e-40]);
    values.extend([f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN]);
    // Every bin edge and the floats next to it.
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
                let found = count_on_all_devices(&[Component::Channel(0)], bins, &pixels);
                let expected =
                    reference_counts(channel_values(&samples, 1, 0).into_iter(), &bins, 1.0);
                assert_eq!(found[0].nan, 2);
                assert_eq!(found[0], expected, "{dtype} {bins:?}");
            }
        }
    }
}

#[test]
fn upper_bound_belongs_to_the_last_bin() {
    let samples = Samples::F32(vec![0.0, 0.5, 1.0, 1.0]);
    let bins = Bins::new(2, 0.0, 1.0, Dtype::F32).unwrap();
    let found =
        count_on_all_devices(&[Component::Channel(0)], bins, &Pixels { samples, channels: 1 });
    assert_eq!(found[0].bins, [1, 3]);
}

#[test]
fn float_channels_and_luminance_match_reference() {
    let mut noise = Noise(12);
    let values: Vec<f32> = (0..4 * 1003).map(|_| noise.unit() as f32).collect();
    let pixels = Pixels { samples: Samples::F32(values.clone()), channels: 4 };
    let components = [
        Component::Channel(0),
        Component::Channel(1),
        Component::Channel(3),
        Component::Luma(Luma::Bt601),
    ];
    let bins = Bins::new(100, 0.0, 1.0, Dtype::F32).unwrap();
    let found = count_on_all_devices(&components, bins, &pixels);
    for (found, c) in found.iter().zip([0, 1, 3]) {
        assert_eq!(
            *found,
            reference_counts(channel_values(&pixels.samples, 4, c).into_iter(), &bins, 1.0)
        );
    }
    let luma = values.chunks(4).map(|p| {
        let [r, g, b] = [p[0], p[1], p[2]].map(f64::from);
        f64::from(((299.0 * r + 587.0 * g + 114.0 * b) / 1000.0) as f32)
    });
    assert_eq!(found[3], reference_counts(luma, &bins, 1.0));
}

/// Luminance of the types other than u8, u16 and f32, together with one channel.
#[test]
fn luminance_of_other_types_matches_reference() {
    let mut bytes = Noise(14).bytes(24 * 501);
    // White pixels of every integer type.
    bytes.extend([[255; 24], [0xff, 0xff, 0xff, 0x7f].repeat(6).try_into().unwrap()].concat());
    for samples in [
        Samples::I8(bytemuck::pod_collect_to_vec(&bytes)),
        Samples::I16(bytemuck::pod_collect_to_vec(&bytes)),
        Samples::U32(bytemuck::pod_collect_to_vec(&bytes)),
        Samples::I32(bytemuck::pod_collect_to_vec(&bytes)),
        Samples::F64(bytes.iter().map(|&byte| f64::from(byte) / 255.0).collect()),
    ] {
        let dtype = samples.dtype();
        let (low, high) = type_range(dtype).unwrap_or((0.1, 0.9));
        let [r, g, b] = [0, 1, 2].map(|c| channel_values(&samples, 3, c));
        // Luminance of floats is rounded to a float; that of integers is a fraction of 1000.
        let scale = if dtype == Dtype::F64 { 1.0 } else { 1000.0 };
        let luma = |((&r, &g), &b): ((&f64, &f64), &f64)| {
            if r == g && g == b {
                return r * scale;
            }
            (299.0 * r + 587.0 * g + 114.0 * b) / (1000.0 / scale)
        };
        let luma: Vec<f64> = r.iter().zip(&g).zip(&b).map(luma).collect();
        let pixels = Pixels { samples, channels: 3 };
        for count in [1, 77, 1000] {
            let bins = Bins::new(count, low, high, dtype).unwrap();
            let found = count_on_all_devices(
                &[Component::Channel(1), Component::Luma(Luma::Bt601)],
                bins,
                &pixels,
            );
            assert_eq!(
                found[0].bins,
                reference_counts(g.iter().copied(), &bins, 1.0).bins,
                "{dtype}"
            );
            assert_eq!(
                found[1],
                reference_counts(luma.iter().copied(), &bins, scale),
                "{dtype} {count}"
            );
        }
    }
}

#[test]
fn bt601_and_linear_luminance_match_reference() {
    let bytes = Noise(13).bytes(3 * 4001);
    let pixels = Pixels { samples: Samples::U8(bytes.clone()), channels: 3 };
    for count in [3, 256, 1000] {
        let bins = Bins::new(count, 0.0, 255.0, Dtype::U8).unwrap();
        // Components of two kinds, of which only one can be counted in the same pass as the channels.
        let components = [
            Component::Luma(Luma::Bt709),
            Component::Luma(Luma::Bt601),
            Component::Luma(Luma::Linear),
        ];
        let found = count_on_all_devices(&components, bins, &pixels);
        let bt601 = bytes.chunks(3).map(|p| {
            let [r, g, b] = [p[0], p[1], p[2]].map(f64::from);
            299.0 * r + 587.0 * g + 114.0 * b
        });
        assert_eq!(found[1], reference_counts(bt601, &bins, 1000.0));
        // The table of linear light has 784 steps per level.
        let decode = |byte: u8| {
            let v = f64::from(byte) / 255.0;
            let light = if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) };
            (light * 255.0 * 784.0).round()
        };
        let linear = bytes
            .chunks(3)
            .map(|p| 1063.0 * decode(p[0]) + 3576.0 * decode(p[1]) + 361.0 * decode(p[2]));
        assert_eq!(found[2], reference_counts(linear, &bins, 5000.0 * 784.0));
    }
}

#[test]
fn alpha_weighted_counts_match_reference() {
    let mut noise = Noise(15);
    for channels in [2, 4] {
        let bytes = noise.bytes(channels * 3001);
        let floats = bytes.iter().map(|&b| f32::from(b) / 255.0).collect();
        let words = bytes.iter().map(|&b| u16::from(b) * 257).collect();
        let all = [
            (Samples::U8(bytes), 255.0),
            (Samples::U16(words), 65535.0),
            (Samples::F32(floats), 1.0),
        ];
        for (samples, max) in all {
            let dtype = samples.dtype();
            let alpha = channel_values(&samples, channels, channels - 1);
            let mut components = vec![Component::Channel(0)];
            let mut values = vec![channel_values(&samples, channels, 0)];
            if channels == 4 && max > 1.0 {
                components.push(Component::Luma(Luma::Bt709));
                values.push(
                    luma_times_10000(&samples, channels).iter().map(|v| v / 10_000.0).collect(),
                );
            }
            let bins = Bins::new(50, 0.0, max, dtype).unwrap();
            let kernel = Histogram { components, bins, weighted: true };
            let pixels = Pixels { samples, channels };
            let found =
                assert_twins(&kernel, &pixels, |cpu, gpu, name| assert_eq!(cpu, gpu, "{name}"));
            let unit = f64::from(alpha_unit(dtype));
            for (found, values) in found.iter().zip(&values) {
                let mut expected = vec![0u64; 50];
                for (value, alpha) in values.iter().zip(&alpha) {
                    let bin = (0..50).rev().find(|&k| bins.edge(k) <= *value).unwrap();
                    expected[bin] += (alpha / max * unit).round() as u64;
                }
                assert_eq!(found.bins, expected, "{dtype} {channels}");
            }
        }
    }
}

#[test]
fn luminance_of_three_colours_falls_into_three_bins() {
    // 6 x 7 pixels: 18 dark, 16 medium, 8 bright.
    let mut bytes = Vec::new();
    for (colour, times) in [([34, 51, 255], 18), ([255, 85, 85], 16), ([255, 221, 0], 8)] {
        (0..times).for_each(|_| bytes.extend(colour));
    }
    let bins = Bins::new(3, 0.0, 255.0, Dtype::U8).unwrap();
    let pixels = Pixels { samples: Samples::U8(bytes), channels: 3 };
    let found = count_on_all_devices(&[Component::Luma(Luma::Bt709)], bins, &pixels);
    assert_eq!(found[0].bins, [18, 16, 8]);
}

/// JPEG files are counted in parts. The counts must equal those of the pixels that `djpeg` decodes.
#[test]
fn jpeg_counts_equal_those_of_decoded_pixels() {
    let folder = fixture("jpeg");
    let out = tempfile::tempdir().unwrap();
    let names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut counted = 0;
    for jpeg in names.filter(|path| path.extension().is_some_and(|name| name == "jpg")) {
        let counts = |path: &std::path::Path, options: &str| {
            let json = out.path().join("counts.json");
            let line = format!("histogram {} -o {} {options}", path.display(), json.display());
            works(&folder, &line);
            let counts: serde_json::Value =
                serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
            counts[0]["channels"].clone()
        };
        for options in ["", "--bins 7 --luma bt601", "--threads 1 --range 10,99"] {
            let expected = counts(&jpeg.with_extension("png"), options);
            assert!(expected[0]["values"].is_array(), "{expected}");
            assert_eq!(counts(&jpeg, options), expected, "{} {options}", jpeg.display());
            counted += 1;
        }
    }
    assert!(counted > 50, "{counted}");
}
