//! Percentile filters: the CPU and GPU implementations against a naive reference, and the command on every kind of input.

use std::{fs, path::Path};

use gpuproc::{
    data::{
        grid::{Alpha, Grid},
        noise::Noise,
        samples::Samples,
    },
    for_samples,
    kernels::median::Median,
};

use crate::common::{assert_batch_runs, assert_same_samples, assert_volume_runs, run};

/// Samples of all types as f64; all NaN are the same.
fn numbers(samples: &Samples) -> Vec<f64> {
    #[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "one of the types is f64")]
    let all: Vec<f64> = for_samples!(samples, samples => {
        samples.iter().map(|&value| value as f64).collect()
    });
    all.into_iter().map(|value| if value.is_nan() { f64::NAN } else { value }).collect()
}

/// The percentile of each sorted window.
fn reference(grid: &Grid, percentile: f64, radius: [usize; 3]) -> Vec<f64> {
    let (values, [nx, ny, nz], channels) = (numbers(&grid.samples), grid.dims, grid.channels);
    let around = |at: usize, radius: usize, len: usize| {
        let (at, radius, last) = (at as isize, radius as isize, len as isize - 1);
        (at - radius..=at + radius).map(move |to| to.clamp(0, last) as usize)
    };
    let at = |index: usize| {
        let (channel, pixel) = (index % channels, index / channels);
        let [x, y, z] = [pixel % nx, pixel / nx % ny, pixel / nx / ny];
        let mut window = Vec::new();
        for z in around(z, radius[2], nz) {
            for y in around(y, radius[1], ny) {
                let row = around(x, radius[0], nx);
                window.extend(row.map(|x| values[((z * ny + y) * nx + x) * channels + channel]));
            }
        }
        window.sort_by(f64::total_cmp);
        let rank = (window.len() as f64 * percentile / 100.0).floor() as usize;
        window[rank.min(window.len() - 1)]
    };
    (0..values.len()).map(at).collect()
}

/// Noise of every type: few different values, and the ends of the range; of floats, NaN, infinity and both zeros.
fn all_types(len: usize) -> [Samples; 8] {
    let mut noise = Noise(len as u64);
    let words: Vec<u64> = (0..len).map(|_| noise.next() >> 16).collect();
    let special = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1e-42, -1.5];
    let float = |word: u64| match word % 11 {
        index @ 0..8 => special[index as usize],
        _ => (word % 1000) as f64 / 8.0 - 60.0,
    };
    let floats: Vec<f64> = words.iter().map(|&word| float(word)).collect();
    [
        Samples::U8(words.iter().map(|&word| word as u8).collect()),
        Samples::I8(words.iter().map(|&word| word as i8).collect()),
        Samples::U16(words.iter().map(|&word| word as u16).collect()),
        Samples::I16(words.iter().map(|&word| word as i16 % 9).collect()),
        Samples::U32(words.iter().map(|&word| word as u32).collect()),
        Samples::I32(words.iter().map(|&word| word as i32).collect()),
        Samples::F32(floats.iter().map(|&value| value as f32).collect()),
        Samples::F64(floats),
    ]
}

fn grid(dims: [usize; 3], channels: usize, samples: Samples) -> Grid {
    Grid { dims, channels, alpha: Alpha::None, samples }
}

fn assert_is_reference(grid: &Grid, percentile: f64, radius: [usize; 3]) {
    let median = Median::new(percentile, radius);
    let found = numbers(&assert_same_samples(&median, grid));
    let expected = reference(grid, percentile, radius);
    let wrong = found.iter().zip(&expected).position(|(a, b)| a.to_bits() != b.to_bits());
    let dtype = grid.samples.dtype();
    assert_eq!(wrong, None, "{percentile} {radius:?} {:?} {dtype}", grid.dims);
}

#[test]
fn every_sample_type_equals_the_reference() {
    for samples in all_types(14 * 6 * 5) {
        let volume = grid([14, 6, 5], 1, samples);
        for (percentile, radius) in
            [(50.0, [1; 3]), (10.0, [2, 1, 1]), (73.5, [2, 2, 1]), (50.0, [3, 2, 2])]
        {
            assert_is_reference(&volume, percentile, radius);
        }
        let image = Grid { dims: [14, 10, 1], channels: 3, ..volume };
        for (percentile, radius) in
            [(50.0, [1, 1, 0]), (90.0, [2, 2, 0]), (50.0, [3, 3, 0]), (30.0, [5, 4, 0])]
        {
            assert_is_reference(&image, percentile, radius);
        }
    }
}

#[test]
fn all_sizes_radii_and_percentiles_equal_the_reference() {
    let sizes = [
        ([1, 1, 1], 1),
        ([1, 1, 1], 4),
        ([9, 1, 1], 1),
        ([1, 7, 1], 2),
        ([7, 9, 1], 1),
        ([1, 1, 6], 1),
        ([5, 4, 3], 1),
        ([300, 3, 1], 1),
        ([530, 3, 1], 1),
    ];
    for (dims, channels) in sizes {
        let samples = Noise(5).bytes(dims.iter().product::<usize>() * channels);
        let grid = grid(dims, channels, samples.into());
        for radius in [[1, 1, 0], [2, 2, 0], [3, 3, 0], [0, 4, 0], [13, 0, 0], [1, 0, 1], [7, 7, 0]]
        {
            for percentile in [0.0, 1.0, 50.0, 99.9, 100.0] {
                assert_is_reference(&grid, percentile, radius);
            }
        }
        assert_is_reference(&grid, 50.0, [50, 1, 1]);
    }
}

/// Rows are divided into pieces, and images and volumes into strips, bands and blocks.
#[test]
fn large_grids_equal_the_reference() {
    let [bytes, _, wide, .., floats, _] = all_types(700 * 90);
    for samples in [bytes, wide, floats] {
        let image = grid([700, 90, 1], 1, samples);
        for (percentile, radius) in [(50.0, 1), (50.0, 2), (40.0, 4)] {
            assert_is_reference(&image, percentile, [radius, radius, 0]);
        }
        let strip = grid([700, 12, 1], 1, image.samples.part(0..700 * 12));
        assert_is_reference(&strip, 50.0, [6, 6, 0]);
        let image = Grid { dims: [225, 70, 1], channels: 4, ..image };
        for radius in [1, 2] {
            assert_is_reference(&image, 50.0, [radius, radius, 0]);
        }
        let volume = Grid { dims: [600, 7, 5], channels: 3, ..image };
        for radius in [[1, 1, 0], [1, 0, 1], [1, 1, 1], [2, 0, 2]] {
            assert_is_reference(&volume, 50.0, radius);
        }
    }
}

/// Images that exceed a binding are computed in blocks.
#[test]
fn large_images_are_the_same_on_every_device() {
    let image = grid([803, 700, 1], 2, Noise(3).bytes(803 * 700 * 2).into());
    let median = Median::new(50.0, [2, 2, 0]);
    assert_same_samples(&median, &image);
}

/// Writes a volume of 12x10x9 u8 samples and returns its median.
fn write_volume(folder: &Path) -> Vec<u8> {
    let samples: Vec<u8> = Noise(5).bytes(12 * 10 * 9);
    fs::write(folder.join("v_12x10x9_uint8.raw"), &samples).unwrap();
    let filtered = reference(&grid([12, 10, 9], 1, samples.into()), 50.0, [1; 3]);
    filtered.into_iter().map(|value| value as u8).collect()
}

#[test]
fn filters_images_volumes_stores_batches_and_shards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let expected = write_volume(path);
    assert_volume_runs(path, ["median", "", "20K"], &expected);
    // A batch of images, resumed.
    let image = grid([12, 90, 1], 1, Noise(5).bytes(12 * 90).into());
    let filtered = reference(&image, 25.0, [1, 2, 0]);
    let filtered: Vec<u8> = filtered.into_iter().map(|value| value as u8).collect();
    assert_batch_runs(path, ["median", "--percentile 25 --radius 1,2"], &filtered);
}

#[test]
fn rejects_invalid_radii_and_percentiles() {
    let folder = tempfile::tempdir().unwrap();
    write_volume(folder.path());
    for (flags, part) in [
        ("--radius x", "whole numbers"),
        ("--radius 51", "50"),
        ("--radius 1,2", "3 axes"),
        ("--percentile 101", "0 to 100"),
        ("--percentile=-1", "0 to 100"),
    ] {
        let line = format!("median v_12x10x9_uint8.raw o.raw {flags}");
        let (code, message) = run(folder.path(), &line);
        assert_eq!((code, message.contains(part)), (2, true), "{flags}: {message}");
    }
    assert!(!folder.path().join("o.raw").exists());
}
