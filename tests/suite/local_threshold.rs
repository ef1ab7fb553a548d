//! Local thresholds: the CPU and GPU implementations against a naive reference, and the command on every kind of input.

use std::{fs, path::Path};

use gpuproc::{
    data::{
        grid::{Alpha, Grid},
        noise::Noise,
        samples::Samples,
    },
    kernels::local_threshold::{LocalMethod, LocalThreshold},
};

use crate::common::{
    assert_batch_runs, assert_same_samples, assert_volume_runs, finite_types, numbers, run,
    type_range,
};

const METHODS: [LocalMethod; 3] = [LocalMethod::Mean, LocalMethod::Gaussian, LocalMethod::Sauvola];

fn local(method: LocalMethod, radius: [usize; 3]) -> LocalThreshold {
    let sigma = radius.map(|radius| radius as f64 / 3.0);
    LocalThreshold { method, radius, sigma, offset: 0.0, k: 0.2, range: None }
}

/// The position of `at` on an axis of `len` samples that continues in reverse order: the last sample is repeated, or,
/// for Sauvola's method, is not.
fn reflected(at: isize, len: usize, is_repeated: bool) -> usize {
    let len = len as isize;
    if len == 1 {
        return 0;
    }
    let period = if is_repeated { 2 * len } else { 2 * len - 2 };
    let at = at.rem_euclid(period);
    at.min(if is_repeated { period - 1 - at } else { period - at }) as usize
}

/// Weighted means of `values` and of their squares over the window of each position.
fn moments(threshold: &LocalThreshold, values: &[f64], dims: [usize; 3]) -> Vec<[f64; 2]> {
    let is_gaussian = threshold.method == LocalMethod::Gaussian;
    let radius: [isize; 3] = std::array::from_fn(|axis| match is_gaussian {
        true => (4.0 * threshold.sigma[axis] + 0.5) as isize,
        false => threshold.radius[axis] as isize,
    });
    let weight = |offset: [isize; 3]| -> f64 {
        let bell =
            |axis: usize| (-0.5 * (offset[axis] as f64 / threshold.sigma[axis]).powi(2)).exp();
        (0..3).map(|axis| if is_gaussian && radius[axis] > 0 { bell(axis) } else { 1.0 }).product()
    };
    let is_repeated = threshold.method != LocalMethod::Sauvola;
    let moments = |pixel: usize| {
        let center = [pixel % dims[0], pixel / dims[0] % dims[1], pixel / dims[0] / dims[1]];
        let (mut sums, mut total) = ([0.0; 2], 0.0);
        for z in -radius[2]..=radius[2] {
            for y in -radius[1]..=radius[1] {
                for x in -radius[0]..=radius[0] {
                    let inside = |axis: usize, offset: isize| {
                        reflected(center[axis] as isize + offset, dims[axis], is_repeated)
                    };
                    let at = (inside(2, z) * dims[1] + inside(1, y)) * dims[0] + inside(0, x);
                    let weight = weight([x, y, z]);
                    sums[0] += weight * values[at];
                    sums[1] += weight * values[at] * values[at];
                    total += weight;
                }
            }
        }
        sums.map(|sum| sum / total)
    };
    (0..values.len()).map(moments).collect()
}

/// The mask; `None` where rounding of the threshold decides.
fn reference(threshold: &LocalThreshold, grid: &Grid) -> Vec<Option<u8>> {
    let values = numbers(&grid.samples);
    let dtype = grid.samples.dtype();
    let (low, high) = type_range(dtype);
    let range = if dtype.is_float() { 1.0 } else { (high - low) / 2.0 };
    let range = threshold.range.unwrap_or(range);
    let is_exact =
        threshold.method != LocalMethod::Gaussian && !dtype.is_float() && dtype.size() < 4;
    let class = |(value, [mean, square]): (&f64, [f64; 2])| {
        let at = match threshold.method {
            LocalMethod::Sauvola => {
                let deviation = (square - mean * mean).max(0.0).sqrt();
                mean * (1.0 + threshold.k * (deviation / range - 1.0))
            }
            _ => mean - threshold.offset,
        };
        let bound = 1e-9 * (value.abs() + mean.abs() + at.abs() + square.abs().sqrt());
        let is_clear = is_exact || (value - at).abs() > bound || at.is_nan();
        is_clear.then_some(if *value > at { 255 } else { 0 })
    };
    values.iter().zip(moments(threshold, &values, grid.dims)).map(class).collect()
}

fn assert_is_reference(threshold: &LocalThreshold, grid: &Grid) {
    let Samples::U8(mask) = assert_same_samples(threshold, grid) else { panic!("a mask is u8") };
    let expected = reference(threshold, grid);
    assert_eq!(mask.len(), expected.len());
    let wrong = mask
        .iter()
        .zip(&expected)
        .position(|(found, expected)| expected.is_some_and(|expected| *found != expected));
    assert_eq!(wrong, None, "{threshold:?} {:?} {}", grid.dims, grid.samples.dtype());
}

fn grid(dims: [usize; 3], samples: Samples) -> Grid {
    Grid { dims, channels: 1, alpha: Alpha::None, samples }
}

#[test]
fn every_sample_type_equals_the_reference() {
    for samples in finite_types(13 * 6 * 5) {
        let volume = grid([13, 6, 5], samples);
        for method in METHODS {
            assert_is_reference(&local(method, [2, 1, 3]), &volume);
            let masks = reference(&local(method, [2, 1, 3]), &volume);
            assert!(masks.iter().flatten().count() > 300, "rounding decides too often");
        }
        let image = Grid { dims: [13, 30, 1], ..volume };
        for method in METHODS {
            assert_is_reference(&local(method, [7, 7, 0]), &image);
            let others = LocalThreshold {
                offset: -3.25,
                k: -0.4,
                range: Some(80.0),
                ..local(method, [3, 2, 0])
            };
            assert_is_reference(&others, &image);
        }
    }
}

#[test]
fn all_sizes_and_windows_equal_the_reference() {
    for dims in [[1, 1, 1], [9, 1, 1], [1, 7, 1], [1, 1, 6], [67, 3, 1], [5, 4, 3], [0, 4, 1]] {
        let bytes = Noise(5).bytes(dims.iter().product());
        let wide: Vec<u16> = bytes.iter().map(|&byte| u16::from(byte) * 257).collect();
        for samples in [Samples::from(bytes), wide.into()] {
            let grid = grid(dims, samples);
            for (method, radius) in METHODS.into_iter().flat_map(|m| [0, 1, 4, 20].map(|r| (m, r)))
            {
                let z = if dims[2] == 1 { 0 } else { radius.min(3) };
                assert_is_reference(&local(method, [radius, radius, z]), &grid);
            }
        }
    }
}

/// Equal samples are not above their mean.
#[test]
fn flat_images_are_background() {
    for value in [0, 7, 201, 255] {
        let flat = grid([40, 30, 1], vec![value; 1200].into());
        for radius in [1, 2, 5, 13] {
            for method in [LocalMethod::Mean, LocalMethod::Gaussian] {
                let mask = assert_same_samples(&local(method, [radius, radius, 0]), &flat);
                assert!(mask.as_bytes().iter().all(|&class| class == 0), "{value} {radius}");
            }
        }
    }
}

/// Sums that do not fit 32 bits are computed in f64.
#[test]
fn large_windows_and_images_are_the_same_on_every_device() {
    let wide: Vec<u16> = (0..90 * 80).map(|at| 65535 - (Noise(at).next() % 999) as u16).collect();
    let image = grid([90, 80, 1], wide.into());
    for (radius, method) in [(128, LocalMethod::Mean), (140, LocalMethod::Sauvola)] {
        assert_is_reference(&local(method, [radius, radius / 8, 0]), &image);
        assert_same_samples(&local(method, [radius, radius, 0]), &image);
    }
    let image = grid([1203, 700, 1], Noise(3).bytes(1203 * 700).into());
    for method in METHODS {
        assert_same_samples(&local(method, [9, 12, 0]), &image);
    }
}

/// Writes a volume of 12x10x9 u8 samples and returns its mask.
fn write_volume(folder: &Path) -> Vec<u8> {
    let samples: Vec<u8> = Noise(5).bytes(12 * 10 * 9);
    fs::write(folder.join("v_12x10x9_uint8.raw"), &samples).unwrap();
    let threshold = LocalThreshold { k: 0.3, ..local(LocalMethod::Sauvola, [2, 1, 3]) };
    reference(&threshold, &grid([12, 10, 9], samples.into())).into_iter().flatten().collect()
}

#[test]
fn thresholds_images_volumes_stores_batches_and_shards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let expected = write_volume(path);
    let flags = "--local sauvola --window 5,3,7 --k 0.3";
    assert_volume_runs(path, ["threshold", flags, "60K"], &expected);
    // Masks of a batch, by a Gaussian of which only the window is given.
    let threshold = LocalThreshold { offset: 2.0, ..local(LocalMethod::Gaussian, [3, 3, 0]) };
    let image = grid([12, 90, 1], Noise(5).bytes(12 * 90).into());
    let expected: Vec<u8> = reference(&threshold, &image).into_iter().flatten().collect();
    let flags = "--local gaussian --window 7 --offset 2";
    assert_batch_runs(path, ["threshold", flags], &expected);
}

#[test]
fn rejects_invalid_parameters() {
    let folder = tempfile::tempdir().unwrap();
    write_volume(folder.path());
    for (flags, part) in [
        ("--local median", "sauvola"),
        ("--local mean --otsu", "cannot be used with"),
        ("--otsu --window 5", "cannot be used with"),
        ("--local mean --window 4", "odd"),
        ("--local mean --window 20003", "20001"),
        ("--local mean --window 3,3", "3 axes"),
        ("--local gaussian --sigma 501", "500"),
        ("--local mean --offset nan", "number"),
    ] {
        let (code, message) =
            run(folder.path(), &format!("threshold v_12x10x9_uint8.raw o.raw {flags}"));
        assert_eq!((code, message.contains(part)), (2, true), "{flags}: {message}");
    }
    assert!(!folder.path().join("o.raw").exists());
}

/// Sums over windows of as many samples as 32 bits hold at the largest value, and of a few more.
#[test]
fn windows_at_the_limit_of_exact_sums_equal_the_reference() {
    let wide: Vec<u16> = (0..20).map(|at| 65_535 - (Noise(at).next() % 3) as u16).collect();
    let bytes: Vec<u8> = (0..20).map(|at| 255 - (Noise(at).next() % 3) as u8).collect();
    for (samples, method, radii) in [
        // 65,537 samples of 65,535 fit; 255 x 257 are fewer, 257 x 257 are more.
        (Samples::from(wide), LocalMethod::Mean, [[127, 128], [128, 128]]),
        // 66,051 squares of 255 fit: 257 x 257, but not 257 x 259.
        (bytes.into(), LocalMethod::Sauvola, [[128, 128], [128, 129]]),
    ] {
        for [x, y] in radii {
            let threshold = LocalThreshold { offset: 1.0, k: 1e-4, ..local(method, [x, y, 0]) };
            assert_is_reference(&threshold, &grid([5, 4, 1], samples.clone()));
        }
    }
}
