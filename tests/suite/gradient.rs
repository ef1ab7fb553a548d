//! Gradient magnitudes: the CPU and GPU implementations against a naive reference, and the command on every kind of
//! input.

use std::{fs, path::Path};

use gpuproc::{
    data::{
        grid::{Alpha, Grid},
        noise::Noise,
        samples::Samples,
    },
    kernels::gradient::Gradient,
};

use crate::common::{
    assert_batch_runs, assert_same_in_blocks, assert_same_samples, assert_volume_runs,
    finite_types, numbers, run, type_range, works,
};

/// The weights of the derivative, or of the smoothing, along an axis, from the first tap to the last.
fn weights(sigma: Option<f64>, is_derivative: bool) -> Vec<f64> {
    let Some(sigma) = sigma else {
        return if is_derivative { vec![-1.0, 0.0, 1.0] } else { vec![1.0, 2.0, 1.0] };
    };
    let radius = (4.0 * sigma + 0.5) as i32;
    let bell = |at: i32| (-0.5 * f64::from(at * at) / (sigma * sigma)).exp();
    let sum: f64 = (-radius..=radius).map(bell).sum();
    let slope = |at: i32| if is_derivative { f64::from(at) / (sigma * sigma) } else { 1.0 };
    (-radius..=radius).map(|at| bell(at) / sum * slope(at)).collect()
}

/// Weighted sums along `axis` of `[values, dims, channels]`, with the nearest samples outside.
fn correlate(
    values: &[f64],
    (dims, channels): ([usize; 3], usize),
    axis: usize,
    weights: &[f64],
) -> Vec<f64> {
    let stride = dims[..axis].iter().product::<usize>() * channels;
    let (len, radius) = (dims[axis] as isize, weights.len() as isize / 2);
    let sum = |index: usize| {
        let center = (index / stride) as isize % len;
        let tap = |(tap, weight): (isize, &f64)| {
            let at = (center + tap - radius).clamp(0, len - 1);
            weight * values[index.wrapping_add_signed((at - center) * stride as isize)]
        };
        (0..).zip(weights).map(tap).sum()
    };
    (0..values.len()).map(sum).collect()
}

/// The magnitudes in f64, neither rounded nor clamped, and alpha.
fn reference(gradient: &Gradient, grid: &Grid) -> Vec<f64> {
    let size = (grid.dims, grid.channels);
    let input = numbers(&grid.samples);
    let mut sums = vec![0.0; input.len()];
    for along in 0..gradient.axes {
        let mut derivative = input.clone();
        for axis in 0..gradient.axes {
            let weights = weights(gradient.sigma.map(|sigma| sigma[axis]), axis == along);
            derivative = correlate(&derivative, size, axis, &weights);
        }
        sums.iter_mut().zip(derivative).for_each(|(sum, value)| *sum += value * value);
    }
    let is_alpha = |index: usize| grid.has_alpha() && index % grid.channels == grid.channels - 1;
    let value =
        |(index, sum): (usize, f64)| if is_alpha(index) { input[index] } else { sum.sqrt() };
    sums.into_iter().enumerate().map(value).collect()
}

/// Compares with the reference. Roots of sums of integers up to 16 bits by Sobel's filter are exact; others have an
/// error of at most 1e-6 of the largest sample.
fn assert_is_reference(gradient: &Gradient, grid: &Grid) {
    let samples = assert_same_samples(gradient, grid);
    let expected = reference(gradient, grid);
    let input = grid.samples.dtype();
    let largest = numbers(&grid.samples).into_iter().map(f64::abs).fold(0.0, f64::max);
    let is_exact = gradient.sigma.is_none() && !input.is_float() && input.size() < 4;
    let bound = if is_exact { 0.0 } else { 3e-6 * largest };
    let (low, high) = type_range(samples.dtype());
    for (at, (found, expected)) in numbers(&samples).into_iter().zip(expected).enumerate() {
        let nearest = if samples.dtype().is_float() { expected } else { expected.round() };
        let error = (found - nearest.clamp(low, high)).abs();
        // An error moves a value over the middle between two integers.
        let is_near = error <= bound
            || error <= 1.0 && bound > 0.0 && (expected.fract() - 0.5).abs() <= bound.max(1e-9)
            || samples.dtype().is_float() && error <= 1e-6 * largest.max(expected);
        assert!(is_near, "{gradient:?} {:?} {input} at {at}: {found}, not {expected}", grid.dims);
    }
}

fn operators(axes: usize) -> impl Iterator<Item = Gradient> {
    let sigmas = [None, Some([0.2, 0.8, 1.7]), Some([1.5; 3]), Some([6.0, 0.4, 2.0])];
    let all = move |sigma| [false, true].map(|is_float| Gradient { axes, sigma, is_float });
    sigmas.into_iter().flat_map(all)
}

/// One of [`operators`] for each sigma: integer and float results in turn, beginning by the parity of `first`.
fn half_of_operators(axes: usize, first: usize) -> impl Iterator<Item = Gradient> {
    operators(axes)
        .enumerate()
        .filter(move |(at, _)| (at + at / 2 + first).is_multiple_of(2))
        .map(|(_, gradient)| gradient)
}

#[test]
fn every_sample_type_equals_the_reference() {
    for samples in finite_types(13 * 6 * 5) {
        let volume = Grid { dims: [13, 6, 5], channels: 1, alpha: Alpha::None, samples };
        operators(3).for_each(|gradient| assert_is_reference(&gradient, &volume));
        let color = Grid { dims: [13, 10, 1], channels: 3, ..volume };
        half_of_operators(2, 0).for_each(|gradient| assert_is_reference(&gradient, &color));
        let alpha = Grid { dims: [13, 15, 1], channels: 2, alpha: Alpha::Straight, ..color };
        half_of_operators(2, 1).for_each(|gradient| assert_is_reference(&gradient, &alpha));
    }
}

#[test]
fn all_sizes_equal_the_reference() {
    for (number, (dims, channels)) in [
        ([1, 1, 1], 1),
        ([1, 1, 1], 4),
        ([9, 1, 1], 1),
        ([1, 7, 1], 2),
        ([1, 1, 6], 1),
        ([67, 3, 1], 1),
        ([5, 4, 3], 1),
        ([0, 4, 1], 3),
    ]
    .into_iter()
    .enumerate()
    {
        let len = dims.iter().product::<usize>() * channels;
        let axes = if dims[2] == 1 { 2 } else { 3 };
        let bytes =
            Grid { dims, channels, alpha: Alpha::None, samples: Noise(5).bytes(len).into() };
        let some = half_of_operators(axes, number);
        some.for_each(|gradient| assert_is_reference(&gradient, &bytes));
        let wide: Vec<u16> =
            Noise(6).bytes(len).iter().map(|&byte| u16::from(byte) * 257).collect();
        let wide = Grid { samples: wide.into(), ..bytes };
        let others = half_of_operators(axes, number + 1);
        others.for_each(|gradient| assert_is_reference(&gradient, &wide));
    }
}

/// Edges of all heights have the exact root of the sum of squares.
#[test]
fn roots_are_rounded_exactly() {
    let sobel = Gradient { axes: 2, sigma: None, is_float: false };
    let pixels = |at: u64| Noise(at).next();
    let samples: Vec<u16> =
        (0..200 * 300).map(|at| (pixels(at) % (at / 7 + 2).min(65536)) as u16).collect();
    let grid = |samples| Grid { dims: [200, 300, 1], channels: 1, alpha: Alpha::None, samples };
    assert_is_reference(&sobel, &grid(samples.into()));
}

/// Images and volumes larger than a binding are computed in blocks. Devices with f64 also combine the derivatives of 8- and
/// 16-bit samples.
#[test]
fn large_grids_are_the_same_on_every_device() {
    for (dims, channels, alpha) in
        [([601, 350, 1], 2, Alpha::Straight), ([61, 83, 31], 1, Alpha::None)]
    {
        let axes = if dims[2] == 1 { 2 } else { 3 };
        for samples in finite_types(dims.iter().product::<usize>() * channels) {
            let grid = Grid { dims, channels, alpha, samples };
            for sigma in [None, Some([3.0, 2.0, 0.5])] {
                assert_same_in_blocks(&Gradient { axes, sigma, is_float: false }, &grid);
            }
        }
    }
}

/// Writes a volume of 12x10x9 u8 samples and returns its gradient, rounded and clamped.
fn write_volume(folder: &Path, gradient: &Gradient) -> Vec<u8> {
    let samples: Vec<u8> = Noise(5).bytes(12 * 10 * 9).iter().map(|byte| byte / 8).collect();
    fs::write(folder.join("v_12x10x9_uint8.raw"), &samples).unwrap();
    let grid = Grid { dims: [12, 10, 9], channels: 1, alpha: Alpha::None, samples: samples.into() };
    reference(gradient, &grid).into_iter().map(|value| value.round() as u8).collect()
}

#[test]
fn filters_images_volumes_stores_batches_and_shards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let gradient = Gradient { axes: 3, sigma: Some([1.0, 0.8, 1.2]), is_float: false };
    let expected = write_volume(path, &gradient);
    assert_volume_runs(path, ["gradient", "--sigma 1,0.8,1.2", "52K"], &expected);
    works(path, "gradient v_12x10x9_uint8.raw floats.npy --float");
    let floats = fs::read(path.join("floats.npy")).unwrap();
    assert_eq!(floats.len(), 128 + 4 * expected.len());
    // A batch of images, resumed.
    let samples = Samples::from(Noise(5).bytes(12 * 90));
    let grid = Grid { dims: [12, 90, 1], channels: 1, alpha: Alpha::None, samples };
    let sobel = reference(&Gradient { axes: 2, sigma: None, is_float: false }, &grid);
    let sobel: Vec<u8> = sobel.into_iter().map(|value| value.round() as u8).collect();
    assert_batch_runs(path, ["gradient", ""], &sobel);
}

#[test]
fn rejects_invalid_sigmas() {
    let folder = tempfile::tempdir().unwrap();
    write_volume(folder.path(), &Gradient { axes: 3, sigma: None, is_float: false });
    for (flags, part) in [
        ("--sigma 0", "above 0"),
        ("--sigma x", "numbers"),
        ("--sigma 1,2", "3 axes"),
        ("--sigma 501", "500"),
    ] {
        let (code, message) =
            run(folder.path(), &format!("gradient v_12x10x9_uint8.raw o.raw {flags}"));
        assert_eq!((code, message.contains(part)), (2, true), "{flags}: {message}");
    }
    assert!(!folder.path().join("o.raw").exists());
}
