//! Statistics of `histogram`, compared with statistics computed from the sorted samples: on every device, in shards,
//! and summed over several files.

use std::{fs, path::Path};

use gpuproc::data::{dtype::Dtype, samples::Samples};
use image::ColorType;
use serde_json::Value;

use crate::{
    common::{Noise, device_names, gpuproc, works},
    serve::Server,
    shard_runs::run_shards,
};

/// Count, mean, deviation, median, mode, entropy, and the percentiles 7, 25, 75 and 99.5 of weighted values, in two
/// passes. For the entropy, values with the same `level` count as equal.
fn reference_statistics(values: &[(f64, u64)], level: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut sorted: Vec<f64> =
        values.iter().flat_map(|&(value, n)| vec![value; n as usize]).collect();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    // Differences from one of the values, because the mean itself is rounded.
    let differences: Vec<f64> = sorted.iter().map(|value| value - sorted[0]).collect();
    let mean = differences.iter().sum::<f64>() / count;
    let variance = differences.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    let mean = sorted[0] + mean;
    let mode = sorted.chunk_by(|a, b| a == b).rev().max_by_key(|equal| equal.len()).unwrap()[0];
    let groups =
        sorted.chunk_by(|a, b| level(*a) == level(*b)).map(|group| group.len() as f64 / count);
    let entropy: f64 = groups.map(|p| -p * p.log2()).sum();
    let percentile = |percent: f64| sorted[(percent * count / 100.0).ceil().max(1.0) as usize - 1];
    let mut all = vec![count, mean, variance.sqrt(), percentile(50.0), mode, entropy];
    all.extend([7.0, 25.0, 75.0, 99.5].map(percentile));
    all
}

/// The same statistics from a JSON file, for channel number `channel`.
fn read_statistics(folder: &Path, name: &str, channel: usize) -> Vec<f64> {
    let text = fs::read(folder.join(name)).unwrap();
    let json: Value = serde_json::from_slice(&text).unwrap();
    let statistics = &json[0]["channels"][channel]["statistics"];
    let names = ["count", "mean", "deviation", "median", "mode", "entropy"];
    let mut all: Vec<f64> = names.map(|name| statistics[name].as_f64().unwrap()).to_vec();
    let percentiles = statistics["percentiles"].as_array().unwrap();
    all.extend(percentiles.iter().map(|pair| pair[1].as_f64().unwrap()));
    all
}

/// Mean, deviation and entropy may differ by rounding. The other numbers are exact up to JSON parsing.
fn assert_close(found: &[f64], expected: &[f64], context: &str) {
    let deviation = expected[2];
    for (number, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let error = match number {
            // The mean may be a small sum of large numbers.
            1 | 2 => 1e-11 * expected.abs().max(deviation),
            5 => 1e-11 * expected,
            _ => 1e-15 * expected.abs(),
        };
        assert!(
            (found - expected).abs() <= error,
            "{context}, number {number}: {found} {expected}"
        );
    }
    assert_eq!(found.len(), expected.len(), "{context}");
}

const FLAGS: &str = "--percentiles 7,25,75,99.5";

/// Volumes of 8000 samples, many of them far from the lower end of the range compared with their spread, and options
/// for the range.
fn volumes() -> Vec<(Dtype, Vec<f64>, &'static str)> {
    let mut noise = Noise(3);
    let mut bell = |width: f64| {
        let sum: u64 = (0..12).map(|_| noise.next() >> 40).sum();
        (sum as f64 / f64::from(1 << 24) - 6.0) * width
    };
    let mut generate = |value: &mut dyn FnMut(usize, f64) -> f64| -> Vec<f64> {
        (0..8000).map(|i| value(i, bell(1.0))).collect()
    };
    vec![
        (Dtype::I32, generate(&mut |i, _| (i % 5) as f64), ""),
        (Dtype::I32, generate(&mut |_, n| (n * 30.0).round()), ""),
        (Dtype::I32, generate(&mut |_, n| (n * 30.0).round() - 2e9), "--range=-2100000000,0"),
        (Dtype::U32, generate(&mut |_, n| (4e9 + n * 30.0).round()), ""),
        (Dtype::F32, generate(&mut |_, n| f64::from(n as f32)), "--range=-1000000000,1000000000"),
        (Dtype::F32, generate(&mut |_, n| f64::from((1e6 + n) as f32)), ""),
        (Dtype::F64, generate(&mut |_, n| 1e12 + n), "--range=0,1e13"),
        (Dtype::F64, generate(&mut |i, n| if i % 3 == 0 { -0.0 } else { n * 1e-20 }), ""),
        (Dtype::I16, generate(&mut |_, n| (n * 30.0).round()), ""),
    ]
}

#[test]
fn volume_statistics_equal_those_of_the_sorted_samples() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (dtype, values, range) in volumes() {
        let samples = Samples::F64(values.clone()).converted(dtype).unwrap();
        let (kind, bits) = dtype.name().split_at(1);
        let suffix = match kind {
            "u" => format!("uint{bits}"),
            "i" => format!("int{bits}"),
            _ => format!("float{bits}"),
        };
        let name = format!("v_20x20x20_{suffix}.raw");
        fs::write(path.join(&name), samples.as_bytes()).unwrap();
        let halves = samples.as_bytes().chunks(samples.as_bytes().len() / 2);
        for (half, part) in ["a", "b"].into_iter().zip(halves) {
            fs::write(path.join(format!("{half}_20x20x10_{suffix}.raw")), part).unwrap();
        }
        let pairs: Vec<(f64, u64)> = values.iter().map(|&value| (value + 0.0, 1)).collect();
        let expected = reference_statistics(&pairs, |value| value);
        let line = format!("histogram {name} {FLAGS} {range}");
        for device in device_names() {
            let mut server = Server::start(path, device);
            for (line, output) in [
                (line.clone(), "whole.json"),
                (
                    line.replace(
                        &name,
                        &format!("a_20x20x10_{suffix}.raw b_20x20x10_{suffix}.raw --sum"),
                    ),
                    "sum.json",
                ),
            ] {
                // Without an explicit range, each float file would have its own.
                if output == "sum.json" && range.is_empty() && dtype.is_float() {
                    continue;
                }
                let answer = server.run_job(&format!("{line} -o {output}"));
                assert_eq!(answer["code"], 0, "{answer}");
                let context = format!("{output} of {dtype} {range} on {device}");
                assert_close(&read_statistics(path, output, 0), &expected, &context);
            }
            server.shut_down();
        }
        run_shards(path, &format!("{} --shard {{}} -o {{i}}.part", line.trim()), 3, "cpu", false);
        works(path, "merge 2.part 0.part 1.part -o joined.json");
        let read = |name: &str| fs::read(path.join(name)).unwrap();
        assert!(read("whole.json") == read("joined.json"), "{dtype} {range}");
    }
}

#[test]
fn statistics_of_float_images_are_accurate_with_a_wide_range() {
    let folder = tempfile::tempdir().unwrap();
    let mut noise = Noise(8);
    let samples: Vec<f32> =
        (0..3 * 50 * 40).map(|_| (noise.next() >> 40) as f32 / 16_777_216.0).collect();
    let header = b"PF\n50 40\n-1.0\n".to_vec();
    let bytes = [header, bytemuck::cast_slice(&samples).to_vec()].concat();
    fs::write(folder.path().join("a.pfm"), bytes).unwrap();
    for device in device_names() {
        let line = format!("histogram a.pfm -o h.json {FLAGS} --range=-1000000000,1000000000");
        let mut server = Server::start(folder.path(), device);
        assert_eq!(server.run_job(&line)["code"], 0);
        server.shut_down();
        for channel in 0..3 {
            let values: Vec<(f64, u64)> =
                samples.iter().skip(channel).step_by(3).map(|&value| (value.into(), 1)).collect();
            let expected = reference_statistics(&values, |value| value);
            assert_close(&read_statistics(folder.path(), "h.json", channel), &expected, device);
        }
    }
}

/// Luminances of pixels, each weighted by its alpha or by 1.
fn luminances(samples: &[u16], channels: usize, weighted: bool) -> Vec<(f64, u64)> {
    let pixels = samples.chunks_exact(channels);
    let luminance = |pixel: &[u16]| {
        let sum: u64 = [1063, 3576, 361].iter().zip(pixel).map(|(w, &v)| w * u64::from(v)).sum();
        (sum as f64 / 5000.0, if weighted { pixel[3].into() } else { 1 })
    };
    pixels.map(luminance).filter(|&(_, n)| n > 0).collect()
}

/// More than half of the pixels are black, as around a scanned object. The lower quartile, median and mode are then
/// exactly 0, which bins alone would not show.
#[test]
fn luminance_statistics_are_independent_of_the_bins() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (number, (color, channels)) in
        [(ColorType::Rgb8, 3), (ColorType::Rgb16, 3), (ColorType::Rgba8, 4)].into_iter().enumerate()
    {
        let mut noise = Noise(number as u64);
        let is_wide = color == ColorType::Rgb16;
        let samples: Vec<u16> = (0..60 * 50)
            .flat_map(|_| {
                let is_black = noise.next() % 10 < 6;
                let mut pixel = [0u16; 4];
                pixel.iter_mut().take(3).for_each(|value| {
                    let bits = noise.next() as u16;
                    *value = if is_black {
                        0
                    } else if is_wide {
                        bits
                    } else {
                        bits >> 8
                    };
                });
                pixel[3] = (noise.next() >> 58) as u16;
                pixel.into_iter().take(channels)
            })
            .collect();
        let bytes: Vec<u8> = match is_wide {
            true => bytemuck::cast_slice(&samples).to_vec(),
            false => samples.iter().map(|&value| value as u8).collect(),
        };
        image::save_buffer(path.join("a.png"), &bytes, 60, 50, color).unwrap();
        let weighted = channels == 4;
        let how = if weighted { "--alpha weight" } else { "" };
        let values = luminances(&samples, channels, weighted);
        let mut expected = reference_statistics(&values, |value| (value + 0.5).floor());
        assert!(weighted || expected[3..5] == [0.0, 0.0]);
        // Weighted counts are reported in pixels.
        expected[0] /= if weighted { 255.0 } else { 1.0 };
        for device in device_names() {
            let mut server = Server::start(path, device);
            for bins in [1, 16, 256, 512, 65_536] {
                let line = format!("histogram a.png -o h.json {FLAGS} --bins {bins} {how}");
                assert_eq!(server.run_job(&line)["code"], 0);
                let context = format!("{color:?}, {bins} bins on {device}");
                assert_close(&read_statistics(path, "h.json", 3), &expected, &context);
            }
            server.shut_down();
        }
    }
}

#[test]
fn sum_covers_all_pixels_of_grey_and_colour_images() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let (grey, color) = (Noise(1).bytes(40 * 30), Noise(2).bytes(3 * 50 * 20));
    image::save_buffer(path.join("grey.png"), &grey, 40, 30, ColorType::L8).unwrap();
    image::save_buffer(path.join("color.png"), &color, 50, 20, ColorType::Rgb8).unwrap();
    works(path, &format!("histogram grey.png color.png --sum --channels luma {FLAGS} -o h.json"));
    let wide: Vec<u16> = color.iter().map(|&value| value.into()).collect();
    let mut values = luminances(&wide, 3, false);
    values.extend(grey.iter().map(|&value| (value.into(), 1)));
    let expected = reference_statistics(&values, |value| (value + 0.5).floor());
    assert_close(&read_statistics(path, "h.json", 0), &expected, "sum");
}

/// Otherwise, 65,536 counters would be updated for each page.
#[test]
fn small_pages_are_counted_in_one_stage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let samples = Noise(4).bytes(2 * 9 * 7 * 40);
    fs::write(path.join("v_9x7x40_uint16.raw"), &samples).unwrap();
    works(path, "blur v_9x7x40_uint16.raw pages.tif --sigma 0");
    let mut command = gpuproc();
    command.current_dir(path).args(["--device", "cpu", "--timings=json", "histogram", "pages.tif"]);
    command.args(["-o", "h.json"]).args(FLAGS.split(' '));
    let stderr = command.assert().success().get_output().stderr.clone();
    let timings: Value = serde_json::from_slice(&stderr).unwrap();
    let stages = timings["stages"].as_array().unwrap();
    let stage = stages.iter().find(|stage| stage["stage"] == "histogram").unwrap();
    assert_eq!(stage["count"], 1, "{timings}");
    let samples: Vec<u16> = bytemuck::pod_collect_to_vec(&samples);
    let values: Vec<(f64, u64)> = samples.iter().map(|&value| (value.into(), 1)).collect();
    assert_close(
        &read_statistics(path, "h.json", 0),
        &reference_statistics(&values, |value| value),
        "pages",
    );
}
