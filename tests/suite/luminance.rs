//! Luminance: exact for integers of every type, and the same for every filter and on every device.

use std::sync::Arc;

use gpuproc::{
    data::{
        dtype::Dtype,
        grid::{Alpha, Grid},
        noise::Noise,
        samples::Samples,
    },
    device::{Device, DeviceChoice},
    kernels::{
        chain::apply,
        filter::Filter,
        histogram::{
            Bins, Component, Histogram, Luma, Pixels, Statistics, count_values, type_range,
        },
        hysteresis::Hysteresis,
        local_threshold::{LocalMethod, LocalThreshold},
        threshold::{Classify, Threshold},
    },
    util::timings::Timings,
};

use crate::common::{assert_twins, numbers};

const INTEGERS: [Dtype; 6] = [Dtype::U8, Dtype::I8, Dtype::U16, Dtype::I16, Dtype::U32, Dtype::I32];

/// The ends of a type, its middle, 2^24 + 1, equal and small values, and noise: as RGB or RGBA pixels.
fn pixels(dtype: Dtype, channels: usize) -> Vec<i64> {
    let (min, max) = type_range(dtype).map(|(min, max)| (min as i64, max as i64)).unwrap();
    let mut noise = Noise(dtype.size() as u64);
    let mut pixels = Vec::new();
    let known = [
        [min; 3],
        [max; 3],
        [min, max, min],
        [max, min, max],
        [(1 << 24) + 1; 3],
        // Halfway between two samples.
        [0, 41, 44],
        [0, -41, -44],
    ];
    for at in 0..600 {
        let span = if at % 2 == 0 { 60 } else { max - min + 1 };
        let random = |noise: &mut Noise| {
            (noise.next() >> 12) as i64 % span - if min < 0 { span / 2 } else { 0 }
        };
        let pixel = known.get(at).copied().unwrap_or_else(|| [0; 3].map(|_| random(&mut noise)));
        let mut pixel = pixel.to_vec();
        pixel.resize(channels, 7);
        pixels.extend(pixel.iter().map(|value| value.clamp(&min, &max)));
    }
    pixels
}

fn samples_of(dtype: Dtype, values: &[i64]) -> Samples {
    Samples::F64(values.iter().map(|&value| value as f64).collect()).converted(dtype).unwrap()
}

/// 5000 times the luminance.
fn weighted(pixel: &[i64]) -> i64 {
    1063 * pixel[0] + 3576 * pixel[1] + 361 * pixel[2]
}

#[test]
fn luminance_of_integers_is_exact_and_rounded_halves_up() {
    let mut halves = 0;
    for dtype in INTEGERS {
        for channels in [3, 4] {
            let values = pixels(dtype, channels);
            let expected = values.chunks(channels).map(weighted);
            halves += expected.clone().filter(|sum| sum.rem_euclid(5000) == 2500).count();
            let expected: Vec<i64> = expected.map(|sum| (sum + 2500).div_euclid(5000)).collect();
            let samples = samples_of(dtype, &values);
            let grey = Luma::Bt709.grey(&samples, channels).unwrap();
            assert!(*grey == samples_of(dtype, &expected), "{dtype} {channels}");
        }
    }
    assert!(halves >= 18, "{halves} luminances lie halfway between two samples");
}

#[test]
fn luminance_of_floats_keeps_grey_and_does_not_overflow() {
    let mut noise = Noise(3);
    let mut values: Vec<f64> = (0..3000).map(|_| noise.unit() * 1e3 - 500.0).collect();
    values.extend(
        [0.1, 1.0 / 3.0, 16_777_217.0, f64::MAX, f64::INFINITY].iter().flat_map(|v| [*v; 3]),
    );
    values.extend([f64::MAX, f64::MAX, 0.0]);
    let samples = Samples::F64(values.clone());
    let grey = numbers(&Luma::Bt709.grey(&samples, 3).unwrap());
    for (pixel, found) in values.chunks(3).zip(&grey) {
        let size: f64 = pixel.iter().map(|value| value.abs()).fold(0.0, f64::max);
        let expected = 0.2126 * pixel[0] + 0.7152 * pixel[1] + 0.0722 * pixel[2];
        let is_grey = pixel[0] == pixel[1] && pixel[1] == pixel[2];
        match is_grey {
            true => assert_eq!(*found, pixel[0]),
            false => {
                assert!((found - expected).abs() <= 4e-16 * size, "{pixel:?}: {found} {expected}");
            }
        }
    }
    let singles: Vec<f32> = values.iter().map(|&value| value as f32).collect();
    let found = numbers(&Luma::Bt709.grey(&Samples::F32(singles.clone()), 3).unwrap());
    for (pixel, found) in singles.chunks(3).zip(found) {
        let [r, g, b] = [0, 1, 2].map(|c| f64::from(pixel[c]));
        let expected = ((1063.0 * r + 3576.0 * g + 361.0 * b) / 5000.0) as f32;
        assert_eq!(found, f64::from(expected), "{pixel:?}");
    }
}

/// Bins and statistics of the luminance are those of the exact sums.
#[test]
fn histograms_count_the_exact_luminance_of_every_type() {
    for dtype in INTEGERS {
        let values = pixels(dtype, 3);
        let samples = samples_of(dtype, &values);
        let pixels = Pixels { samples, channels: 3 };
        let (low, high) = type_range(dtype).unwrap();
        for count in [1, 3, 256] {
            let bins = Bins::new(count, low, high, dtype).unwrap();
            let components = vec![Component::Luma(Luma::Bt709)];
            let kernel = Histogram { components, bins, weighted: false };
            let found =
                assert_twins(&kernel, &pixels, |cpu, gpu, name| assert_eq!(cpu, gpu, "{name}"));
            let width = (high - low) as i128 * 5000;
            let mut expected = vec![0u64; count];
            for pixel in values.chunks(3) {
                let above = i128::from(weighted(pixel)) - low as i128 * 5000;
                let bin = (above * count as i128 / width) as usize;
                expected[bin.min(count - 1)] += 1;
            }
            assert_eq!(found[0].bins, expected, "{dtype} {count}");
            let measured = count_values(&pixels, Component::Luma(Luma::Bt709), [low, high], false);
            let found =
                Statistics::new(&found[0], &bins, dtype, Some(measured), false, &[]).unwrap();
            let sums = || values.chunks(3).map(weighted);
            assert_eq!(found.min, sums().min().unwrap() as f64 / 5000.0, "{dtype}");
            assert_eq!(found.max, sums().max().unwrap() as f64 / 5000.0, "{dtype}");
        }
    }
}

/// Filters of colours equal those of the luminance, with the same default parameters.
#[test]
fn every_threshold_of_colours_is_that_of_their_luminance() {
    let local = |method| LocalThreshold {
        method,
        radius: [2, 2, 0],
        sigma: [1.0, 1.0, 0.0],
        offset: 0.0,
        k: 0.2,
        range: None,
    };
    for dtype in Dtype::SAMPLES {
        let samples = match dtype.is_float() {
            true => samples_of(Dtype::U8, &pixels(Dtype::U8, 3)).converted(dtype).unwrap(),
            false => samples_of(dtype, &pixels(dtype, 3)),
        };
        let grey = Luma::Bt709.grey(&samples, 3).unwrap().into_owned();
        let middle = numbers(&grey).iter().sum::<f64>() / grey.len() as f64;
        let filters: Vec<Box<dyn Filter>> = vec![
            Box::new(local(LocalMethod::Mean)),
            Box::new(local(LocalMethod::Sauvola)),
            Box::new(Hysteresis::new([middle, middle * 1.5])),
            Box::new(Classify::from(Threshold::Values(vec![middle]))),
        ];
        let grid =
            |channels, samples| Grid { dims: [30, 20, 1], channels, alpha: Alpha::None, samples };
        let device = Device::new(&DeviceChoice::Cpu, Arc::new(Timings::new(false)));
        for filter in filters {
            let [of_colours, of_grey] = [(3, &samples), (1, &grey)].map(|(channels, samples)| {
                apply(&*filter, &device, &grid(channels, samples.clone())).unwrap().samples
            });
            assert!(of_colours == of_grey, "{dtype} {:?}", filter.parameters());
        }
    }
}

#[test]
fn white_of_32_bits_lies_in_the_last_bin() {
    let white = [u32::MAX; 3 * 4];
    let bins = Bins::new(4, 0.0, f64::from(u32::MAX), Dtype::U32).unwrap();
    let pixels = Pixels { samples: Samples::U32(white.to_vec()), channels: 3 };
    let components = vec![Component::Luma(Luma::Bt709), Component::Channel(0)];
    let kernel = Histogram { components, bins, weighted: false };
    let found = assert_twins(&kernel, &pixels, |cpu, gpu, name| assert_eq!(cpu, gpu, "{name}"));
    assert_eq!((&found[0].bins[..], found[0].above), (&[0, 0, 0, 4][..], 0));
    assert_eq!(found[0].bins, found[1].bins);
}

/// Decodes sRGB (IEC 61966-2-1).
fn light(value: f64) -> f64 {
    if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
}

/// Stored values of 8 and 16 bits are decoded, those of other types are light already.
#[test]
fn linear_luminance_decodes_samples_of_8_and_16_bits() {
    for dtype in INTEGERS {
        let values = pixels(dtype, 3);
        let (_, max) = type_range(dtype).unwrap();
        let samples = samples_of(dtype, &values);
        for (luma, weights) in [
            (Luma::Linear, [0.2126, 0.7152, 0.0722]),
            (Luma::Bt601, [0.299, 0.587, 0.114]),
            (Luma::Bt709, [0.2126, 0.7152, 0.0722]),
        ] {
            let is_decoded = luma == Luma::Linear && matches!(dtype, Dtype::U8 | Dtype::U16);
            let found = numbers(&luma.grey(&samples, 3).unwrap());
            for (pixel, found) in values.chunks(3).zip(found) {
                let part = |c: usize| {
                    let value = pixel[c] as f64;
                    weights[c] * if is_decoded { light(value / max) * max } else { value }
                };
                let exact = part(0) + part(1) + part(2);
                // Rounded to the sample; light is rounded to a third of a step or less before.
                let allowed = 0.5 + if is_decoded { 0.2 } else { 1e-6 };
                assert!(
                    (found - exact).abs() <= allowed,
                    "{luma:?} {dtype} {pixel:?}: {found} {exact}"
                );
            }
        }
    }
}
