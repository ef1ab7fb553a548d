//! Unsharp masks: the CPU and GPU implementations against a naive reference, and the command on every kind of input.

use std::{fs, path::Path};

use gpuproc::{
    data::{
        grid::{Alpha, Grid},
        noise::Noise,
    },
    kernels::unsharp::Unsharp,
};

use crate::common::{
    assert_batch_runs, assert_same_in_blocks, assert_same_samples, assert_volume_runs,
    finite_types, numbers, run, type_range,
};

/// The Gaussian of each sample, with alpha as a weight, and the nearest samples outside.
fn blurred(sigma: [f64; 3], grid: &Grid) -> Vec<f64> {
    let input = numbers(&grid.samples);
    let (dims, channels) = (grid.dims, grid.channels);
    let radius = sigma.map(|sigma| (4.0 * sigma + 0.5) as isize);
    let weight = |offset: [isize; 3]| -> f64 {
        let along = |axis: usize| match radius[axis] {
            0 => 1.0,
            _ => (-0.5 * (offset[axis] as f64 / sigma[axis]).powi(2)).exp(),
        };
        (0..3).map(along).product()
    };
    let mut result = Vec::new();
    for index in 0..input.len() {
        let (pixel, channel) = (index / channels, index % channels);
        let center = [pixel % dims[0], pixel / dims[0] % dims[1], pixel / dims[0] / dims[1]];
        let (mut sum, mut total) = (0.0, 0.0);
        for z in -radius[2]..=radius[2] {
            for y in -radius[1]..=radius[1] {
                for x in -radius[0]..=radius[0] {
                    let inside = |axis: usize, offset: isize| {
                        (center[axis] as isize + offset).clamp(0, dims[axis] as isize - 1) as usize
                    };
                    let at = (inside(2, z) * dims[1] + inside(1, y)) * dims[0] + inside(0, x);
                    let coverage =
                        if grid.has_alpha() { input[at * channels + channels - 1] } else { 1.0 };
                    let weight = weight([x, y, z]) * coverage;
                    sum += weight * input[at * channels + channel];
                    total += weight;
                }
            }
        }
        result.push(if total == 0.0 { 0.0 } else { sum / total });
    }
    result
}

/// Compares with the sharpened samples in f64, which may differ from the rounded results by 1e-5 of the largest sample
/// times the amount.
fn assert_is_reference(unsharp: &Unsharp, grid: &Grid) {
    let samples = assert_same_samples(unsharp, grid);
    let (input, blurred) = (numbers(&grid.samples), blurred(unsharp.sigma, grid));
    let largest = input.iter().copied().map(f64::abs).fold(0.0, f64::max);
    let bound = 1e-5 * largest * (unsharp.amount.abs() + 1.0);
    let (low, high) = type_range(samples.dtype());
    let is_float = samples.dtype().is_float();
    for (at, found) in numbers(&samples).into_iter().enumerate() {
        let difference = input[at] - blurred[at];
        let is_alpha = grid.has_alpha() && at % grid.channels == grid.channels - 1;
        let is_threshold = (difference.abs() - unsharp.threshold).abs() <= bound;
        let sharpened = input[at] + unsharp.amount * difference;
        let is_changed = difference.abs() > unsharp.threshold && !is_alpha;
        let expected = if is_changed { sharpened } else { input[at] }.clamp(low, high);
        let rounding = if is_float || !is_changed { 0.0 } else { 0.5 };
        let error = (found - expected).abs();
        assert!(
            error <= rounding + bound || is_threshold && !is_alpha,
            "{unsharp:?} {:?} {} at {at}: {found}, not {expected}",
            grid.dims,
            samples.dtype()
        );
    }
}

fn filters() -> [Unsharp; 5] {
    [
        ([1.0; 3], 1.0, 0.0),
        ([0.6, 1.4, 0.5], 2.5, 7.5),
        ([0.0, 2.0, 0.0], 0.3, 0.0),
        ([0.8; 3], -0.6, 2.0),
        ([0.1; 3], 1.0, 0.0),
    ]
    .map(|(sigma, amount, threshold)| Unsharp { sigma, amount, threshold })
}

#[test]
fn every_sample_type_equals_the_reference() {
    for samples in finite_types(13 * 6 * 5) {
        let volume = Grid { dims: [13, 6, 5], channels: 1, alpha: Alpha::None, samples };
        filters().iter().for_each(|unsharp| assert_is_reference(unsharp, &volume));
        let color = Grid { dims: [13, 10, 1], channels: 3, ..volume };
        filters().iter().for_each(|unsharp| assert_is_reference(unsharp, &color));
    }
}

/// A difference that equals the threshold is not above it.
#[test]
fn differences_equal_to_the_threshold_are_ignored() {
    let samples = vec![0f32, 0.0, 0.0, 100.0, 0.0, 0.0, 0.0];
    let grid = Grid { dims: [7, 1, 1], channels: 1, alpha: Alpha::None, samples: samples.into() };
    let sharpened = |threshold: f64| {
        let unsharp = Unsharp { sigma: [1.0; 3], amount: 1.0, threshold };
        numbers(&assert_same_samples(&unsharp, &grid))[2]
    };
    // The sample is 0, so that the result is the negative mean of its neighbours.
    let difference = -sharpened(0.0);
    assert!(difference > 20.0, "{difference}");
    assert_eq!(sharpened(difference), 0.0);
    assert_eq!(sharpened(f64::from((difference as f32).next_down())), -difference);
}

#[test]
fn transparent_pixels_do_not_count() {
    let mut bytes = Noise(8).bytes(17 * 9 * 4);
    bytes.chunks_exact_mut(8).for_each(|two| two[3] = 0);
    let alpha = Alpha::Translucent;
    let grid = Grid { dims: [17, 9, 1], channels: 4, alpha, samples: bytes.into() };
    filters().iter().for_each(|unsharp| assert_is_reference(unsharp, &grid));
}

#[test]
fn all_sizes_equal_the_reference() {
    for (dims, channels) in [
        ([1, 1, 1], 1),
        ([9, 1, 1], 1),
        ([1, 7, 1], 3),
        ([1, 1, 6], 1),
        ([67, 3, 1], 1),
        ([0, 4, 1], 3),
    ] {
        let samples = Noise(5).bytes(dims.iter().product::<usize>() * channels).into();
        let grid = Grid { dims, channels, alpha: Alpha::None, samples };
        filters().iter().for_each(|unsharp| assert_is_reference(unsharp, &grid));
    }
    // In blocks.
    for samples in finite_types(400 * 301 * 3) {
        let grid = Grid { dims: [400, 301, 1], channels: 3, alpha: Alpha::None, samples };
        filters().iter().for_each(|unsharp| assert_same_in_blocks(unsharp, &grid));
    }
}

/// Writes a volume of 12x10x9 u8 samples and returns the sharpened one.
fn write_volume(folder: &Path) -> Vec<u8> {
    let samples: Vec<u8> = Noise(5).bytes(12 * 10 * 9);
    fs::write(folder.join("v_12x10x9_uint8.raw"), &samples).unwrap();
    let samples = samples.into();
    let grid = Grid { dims: [12, 10, 9], channels: 1, alpha: Alpha::None, samples };
    let blurred = blurred([1.0; 3], &grid);
    let sharpened = numbers(&grid.samples).into_iter().zip(blurred).map(|(a, b)| a + 0.5 * (a - b));
    sharpened.map(|value| value.round() as u8).collect()
}

#[test]
fn sharpens_images_volumes_stores_batches_and_shards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let expected = write_volume(path);
    assert_volume_runs(path, ["unsharp", "--amount 0.5", "36K"], &expected);
    assert_batch_runs(path, ["unsharp", ""], &[]);
}

#[test]
fn rejects_invalid_parameters() {
    let folder = tempfile::tempdir().unwrap();
    write_volume(folder.path());
    for (flags, part) in [
        ("--sigma -1", "--sigma"),
        ("--sigma 501", "500"),
        ("--sigma 1,2", "3 axes"),
        ("--amount 101", "from -100 to 100"),
        ("--amount -100.5", "from -100 to 100"),
        ("--amount x", "from -100 to 100"),
        ("--threshold=-1", "0 or more"),
        ("--threshold inf", "0 or more"),
    ] {
        let (code, message) =
            run(folder.path(), &format!("unsharp v_12x10x9_uint8.raw o.raw {flags}"));
        assert_eq!((code, message.contains(part)), (2, true), "{flags}: {message}");
    }
    assert!(!folder.path().join("o.raw").exists());
}
