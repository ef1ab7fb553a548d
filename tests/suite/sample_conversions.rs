//! Conversions of samples between types and conventions, and parts of jobs, by their definitions.

use gpuproc::data::{
    dtype::Dtype,
    image::{Image, Metadata},
    samples::Samples,
    shard::Shard,
};

use crate::{common::type_range, inputs::as_f64};

/// Numbers at and beyond the limits of all types, and halves.
const NUMBERS: [f64; 31] = [
    0.0,
    0.25,
    0.5,
    0.75,
    1.0,
    1.5,
    2.5,
    -0.5,
    -0.49,
    -1.0,
    -1.5,
    -2.5,
    127.0,
    127.5,
    128.0,
    254.5,
    255.0,
    255.49,
    256.0,
    -128.0,
    -128.5,
    -129.0,
    32_767.0,
    32_768.0,
    -32_769.0,
    65_535.0,
    65_535.5,
    4_294_967_295.0,
    4e9,
    -3e9,
    1e12,
];

/// Rounds, halves away from 0, and clamps.
fn stored(value: f64, dtype: Dtype) -> f64 {
    let (low, high) = type_range(dtype);
    match dtype {
        Dtype::F64 => value,
        Dtype::F32 => f64::from(value as f32),
        _ if value.is_nan() => 0.0,
        _ => value.round().clamp(low, high),
    }
}

#[test]
fn numbers_are_rounded_and_clamped_to_every_type() {
    for from in Dtype::SAMPLES {
        // The numbers that the type holds.
        let own: Vec<f64> = NUMBERS.iter().map(|&value| stored(value, from)).collect();
        let mut numbers = own.repeat(400);
        if from.is_float() {
            numbers.extend([f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
        }
        let samples = Samples::F64(numbers.clone()).converted(from).unwrap();
        assert_eq!(as_f64(&samples)[..31], own, "{from}");
        for to in Dtype::SAMPLES {
            let found = as_f64(&samples.converted(to).unwrap());
            for (&number, found) in numbers.iter().zip(found) {
                let expected = stored(number, to);
                let is_same = found == expected || found.is_nan() && expected.is_nan();
                assert!(is_same, "{number} from {from} to {to}: {found}, expected {expected}");
            }
        }
    }
}

fn image(channels: usize, samples: Samples) -> Image {
    let width = samples.len() / channels;
    Image { width, height: 1, channels, samples, is_linear: false, metadata: Metadata::default() }
}

/// Full intensity stays full intensity; numbers without one keep their value.
#[test]
fn intensities_are_scaled_between_types() {
    let wide: Vec<u16> = (0..=u16::MAX).collect();
    let narrow = image(1, wide.clone().into()).narrowed(Dtype::U8).unwrap();
    let expected: Vec<u8> = wide.iter().map(|&v| (f64::from(v) / 257.0).round() as u8).collect();
    assert_eq!(narrow.samples, Samples::U8(expected));
    let floats = image(1, wide.clone().into()).to_floats().unwrap();
    let expected: Vec<f32> = wide.iter().map(|&v| f32::from(v) / 65_535.0).collect();
    assert_eq!(floats.samples, Samples::F32(expected));
    let bytes: Vec<u8> = (0..=255).collect();
    let floats = image(1, bytes.clone().into()).to_floats().unwrap();
    let expected: Vec<f32> = bytes.iter().map(|&v| f32::from(v) / 255.0).collect();
    assert_eq!(floats.samples, Samples::F32(expected));
    // All levels come back, and shares of full intensity are clamped and rounded.
    let shares: Vec<f64> = (0..=255)
        .map(|v| f64::from(v) / 255.0)
        .chain([-0.5, 1.5, 0.123, 0.87, 0.4985, f64::INFINITY])
        .collect();
    let singles = Samples::F32(shares.iter().map(|&v| v as f32).collect());
    for samples in [singles, Samples::F64(shares.clone())] {
        for (to, max) in [(Dtype::U8, 255.0), (Dtype::U16, 65_535.0)] {
            let found = as_f64(&image(1, samples.clone()).narrowed(to).unwrap().samples);
            let expected: Vec<f64> = shares
                .iter()
                .map(|&v| (f64::from(v as f32).clamp(0.0, 1.0) * max).round())
                .collect();
            assert_eq!(found, expected, "{} to {to}", samples.dtype());
        }
    }
    let doubles = image(1, Samples::F64(vec![0.1, -7.0, 1e300])).narrowed(Dtype::F32).unwrap();
    assert_eq!(doubles.samples, Samples::F32(vec![0.1, -7.0, f32::INFINITY]));
    for from in [Dtype::I8, Dtype::I16, Dtype::U32, Dtype::I32] {
        let samples = Samples::F64(NUMBERS.to_vec()).converted(from).unwrap();
        for to in [Dtype::U8, Dtype::U16, Dtype::F32] {
            let found = image(1, samples.clone()).narrowed(to).unwrap().samples;
            assert_eq!(found, samples.converted(to).unwrap(), "{from} to {to}");
        }
        let floats = image(1, samples.clone()).to_floats().unwrap().samples;
        assert_eq!(floats, samples.converted(Dtype::F32).unwrap(), "{from}");
    }
}

#[test]
fn alpha_is_found_dropped_and_spread() {
    let types: [(Dtype, f64); 4] =
        [(Dtype::U8, 255.0), (Dtype::U16, 65_535.0), (Dtype::F32, 1.0), (Dtype::F64, 1.0)];
    for (dtype, full) in types {
        for channels in 1..=4usize {
            let has_alpha = channels % 2 == 0;
            for transparent in [None, Some(0), Some(2)] {
                let values = (0..3 * channels).map(|i| match (i % channels, transparent) {
                    (last, Some(pixel)) if last + 1 == channels && pixel == i / channels => {
                        full / 5.0
                    }
                    (last, _) if last + 1 == channels => full,
                    _ => i as f64 / 20.0 * full,
                });
                let values: Vec<f64> = values.collect();
                let samples = Samples::F64(values).converted(dtype).unwrap();
                let own = as_f64(&samples);
                let image = image(channels, samples);
                assert_eq!(image.has_alpha(), has_alpha);
                assert_eq!(
                    image.is_opaque(),
                    !has_alpha || transparent.is_none(),
                    "{dtype} {channels}"
                );
                let plain = image.without_alpha().unwrap();
                let colours = channels - usize::from(has_alpha);
                assert_eq!(plain.channels, colours);
                let expected: Vec<f64> =
                    own.chunks(channels).flat_map(|pixel| pixel[..colours].to_vec()).collect();
                assert_eq!(as_f64(&plain.samples), expected, "{dtype} {channels}");
                if channels == 2 {
                    let rgba = image.to_rgba().unwrap();
                    let expected: Vec<f64> = own
                        .chunks(2)
                        .flat_map(|pixel| [pixel[0], pixel[0], pixel[0], pixel[1]])
                        .collect();
                    assert_eq!((rgba.channels, as_f64(&rgba.samples)), (4, expected));
                }
            }
        }
    }
    // Types without a full intensity are never opaque.
    assert!(!image(2, Samples::I16(vec![1, 32_767])).is_opaque());
}

/// Light is premultiplied with alpha, and decoded from sRGB where samples are integers of 8 or 16 bits.
#[test]
fn light_and_encoded_samples_are_converted_back() {
    let decode = |v: f64| if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) };
    for (dtype, full) in [(Dtype::U8, 255.0), (Dtype::U16, 65_535.0), (Dtype::F32, 1.0)] {
        for channels in 1..=4usize {
            let has_alpha = channels % 2 == 0;
            let shares: Vec<f64> = (0..60 * channels)
                .map(|i| match has_alpha && i % channels + 1 == channels {
                    true => [1.0, 0.6, 0.2][i / channels % 3],
                    false => (i * 37 % 256) as f64 / 255.0,
                })
                .collect();
            let samples =
                Samples::F64(shares.iter().map(|v| v * full).collect()).converted(dtype).unwrap();
            let own: Vec<f64> = as_f64(&samples).iter().map(|v| v / full).collect();
            let straight = image(channels, samples.clone());
            let linear = straight.to_linear().unwrap();
            assert!(linear.is_linear && linear.samples.dtype() == Dtype::F32);
            for (found, pixel) in as_f64(&linear.samples).chunks(channels).zip(own.chunks(channels))
            {
                let alpha = if has_alpha { pixel[channels - 1] } else { 1.0 };
                for c in 0..channels - usize::from(has_alpha) {
                    let light = if dtype.is_float() { pixel[c] } else { decode(pixel[c]) };
                    assert!(
                        (found[c] - light * alpha).abs() < 1e-6,
                        "{dtype} {channels}: {found:?} {pixel:?}"
                    );
                }
                assert!(!has_alpha || (found[channels - 1] - alpha).abs() < 1e-6);
            }
            let back = linear.to_straight(dtype).unwrap();
            assert!(!back.is_linear && back.samples.dtype() == dtype);
            let allowed = match dtype {
                Dtype::U8 => 0.0,
                Dtype::U16 => 1.0,
                _ => 1e-6,
            };
            for (found, expected) in as_f64(&back.samples).into_iter().zip(as_f64(&samples)) {
                assert!(
                    (found - expected).abs() <= allowed,
                    "{dtype} {channels}: {found} {expected}"
                );
            }
        }
    }
    // Light of alpha 0 keeps its colours, and light above full intensity is clamped.
    let samples = Samples::F32(vec![0.25, 0.0, 3.0, 1.0]);
    let light = Image { is_linear: true, ..image(2, samples) };
    assert_eq!(
        light.to_straight(Dtype::F32).unwrap().samples,
        Samples::F32(vec![0.25, 0.0, 3.0, 1.0])
    );
    assert_eq!(light.to_straight(Dtype::U8).unwrap().samples, Samples::U8(vec![137, 0, 255, 255]));
}

/// Shards divide an axis into parts in order, whose lengths differ by at most one, and files by turns.
#[test]
fn shards_are_equal_parts() {
    for count in [1u32, 2, 3, 7, 64] {
        let shards: Vec<Shard> =
            (0..count).map(|index| format!("{index}/{count}").parse().unwrap()).collect();
        for len in [0usize, 1, 2, 3, 6, 7, 8, 63, 64, 65, 1000] {
            let mut next = 0;
            for (index, shard) in shards.iter().enumerate() {
                let range = shard.range(len);
                assert_eq!(range.start, next, "{shard} of {len}");
                let own = range.len();
                assert!(
                    own == len / count as usize || own == len.div_ceil(count as usize),
                    "{shard} of {len}"
                );
                next = range.end;
                let files: Vec<usize> = (0..len).filter(|&number| shard.has(number)).collect();
                assert!(files.iter().all(|number| number % count as usize == index));
            }
            assert_eq!(next, len);
        }
    }
    for wrong in ["1/1", "0/0", "2/2", "-1/2", "1", "", "a/b", "0/1/2", "1.0/2"] {
        assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
    }
    let huge: Shard = "4294967293/4294967294".parse().unwrap();
    assert_eq!(huge.range(usize::MAX).end, usize::MAX);
}
