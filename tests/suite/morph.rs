//! Morphology: the CPU and GPU implementations against a naive reference, and the command on every kind of input.

use std::{fs, path::Path};

use gpuproc::{
    data::{
        grid::{Alpha, Grid},
        noise::Noise,
        samples::Samples,
    },
    kernels::morph::{ElementShape, Morph, Operation},
};

use crate::common::{
    all_types, assert_batch_runs, assert_same_samples, assert_volume_runs, number, numbers, run,
    type_range,
};

const OPERATIONS: [Operation; 7] = [
    Operation::Erode,
    Operation::Dilate,
    Operation::Open,
    Operation::Close,
    Operation::Gradient,
    Operation::TopHat,
    Operation::BlackHat,
];

const SHAPES: [ElementShape; 3] = [ElementShape::Box, ElementShape::Cross, ElementShape::Ball];

/// Whether an offset is in the element.
fn is_in(shape: ElementShape, [rx, ry, rz]: [isize; 3], [x, y, z]: [isize; 3]) -> bool {
    let is_in_box = x.abs() <= rx && y.abs() <= ry && z.abs() <= rz;
    is_in_box
        && match shape {
            ElementShape::Box => true,
            ElementShape::Cross => [x, y, z].iter().filter(|&&at| at != 0).count() <= 1,
            ElementShape::Ball => x * x + y * y + z * z <= rx * rx,
        }
}

/// The extremum under the element, sample by sample.
fn extremum(
    values: &[f64],
    (dims, channels): ([usize; 3], usize),
    (shape, radius): (ElementShape, [usize; 3]),
    is_max: bool,
) -> Vec<f64> {
    let [nx, ny, nz] = dims;
    let positions =
        || (0..nz).flat_map(move |z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [x, y, z])));
    let index = |[x, y, z]: [usize; 3], channel| ((z * ny + y) * nx + x) * channels + channel;
    let at = |center: [usize; 3], channel: usize| {
        let offset = |to: [usize; 3]| std::array::from_fn(|i| to[i] as isize - center[i] as isize);
        let radius = radius.map(|radius| radius as isize);
        let under = positions().filter(|&to| is_in(shape, radius, offset(to)));
        let under = under.map(|to| values[index(to, channel)]);
        let found =
            if is_max { under.max_by(f64::total_cmp) } else { under.min_by(f64::total_cmp) };
        found.unwrap()
    };
    positions()
        .flat_map(|center| (0..channels).map(move |channel| (center, channel)))
        .map(|(center, channel)| at(center, channel))
        .collect()
}

fn reference(operation: Operation, grid: &Grid, element: (ElementShape, [usize; 3])) -> Vec<f64> {
    let size = (grid.dims, grid.channels);
    let input = numbers(&grid.samples);
    let erode = |values: &[f64]| extremum(values, size, element, false);
    let dilate = |values: &[f64]| extremum(values, size, element, true);
    let (low, high) = type_range(grid.samples.dtype());
    let is_single = matches!(grid.samples, Samples::F32(_));
    let minus = |a: Vec<f64>, b: Vec<f64>| {
        let differences = a.into_iter().zip(b).map(|(a, b)| number((a - b).clamp(low, high)));
        differences.map(|d| if is_single { number(f64::from(d as f32)) } else { d }).collect()
    };
    match operation {
        Operation::Erode => erode(&input),
        Operation::Dilate => dilate(&input),
        Operation::Open => dilate(&erode(&input)),
        Operation::Close => erode(&dilate(&input)),
        Operation::Gradient => minus(dilate(&input), erode(&input)),
        Operation::TopHat => minus(input.clone(), dilate(&erode(&input))),
        Operation::BlackHat => minus(erode(&dilate(&input)), input.clone()),
    }
}

fn grid(dims: [usize; 3], channels: usize, samples: Samples) -> Grid {
    Grid { dims, channels, alpha: Alpha::None, samples }
}

fn assert_is_reference(operation: Operation, grid: &Grid, element: (ElementShape, [usize; 3])) {
    let morph = Morph::new(operation, element.0, element.1);
    let found = numbers(&assert_same_samples(&morph, grid));
    let expected = reference(operation, grid, element);
    let differs = |(a, b): (&f64, &f64)| a.to_bits() != b.to_bits();
    let wrong = found.iter().zip(&expected).position(differs);
    assert_eq!(wrong, None, "{operation:?} {element:?} {:?} {}", grid.dims, grid.samples.dtype());
}

#[test]
fn every_sample_type_equals_the_reference() {
    for samples in all_types(13 * 6 * 5) {
        let volume = grid([13, 6, 5], 1, samples);
        for (operation, shape) in OPERATIONS.into_iter().zip(SHAPES.into_iter().cycle()) {
            assert_is_reference(operation, &volume, (shape, [2; 3]));
        }
        let image = Grid { dims: [13, 10, 1], channels: 3, ..volume };
        for (operation, shape) in OPERATIONS.into_iter().rev().zip(SHAPES.into_iter().cycle()) {
            assert_is_reference(operation, &image, (shape, [1, 1, 0]));
        }
    }
}

#[test]
fn all_sizes_and_radii_equal_the_reference() {
    let sizes = [
        ([1, 1, 1], 1),
        ([1, 1, 1], 4),
        ([9, 1, 1], 1),
        ([1, 7, 1], 2),
        ([7, 9, 1], 1),
        ([1, 1, 6], 1),
        ([5, 4, 3], 1),
        ([67, 3, 1], 1),
    ];
    for (dims, channels) in sizes {
        let samples = Noise(5).bytes(dims.iter().product::<usize>() * channels);
        let grid = grid(dims, channels, samples.into());
        for shape in SHAPES {
            for radius in [0, 1, 2, 3, 12, 100] {
                let z = if dims[2] == 1 { 0 } else { radius };
                assert_is_reference(Operation::Close, &grid, (shape, [radius, radius, z]));
            }
        }
        for radius in [[0, 2, 0], [3, 0, 1], [1, 20, 0]] {
            assert_is_reference(Operation::Open, &grid, (ElementShape::Box, radius));
            assert_is_reference(Operation::Erode, &grid, (ElementShape::Cross, radius));
        }
        assert_is_reference(Operation::Dilate, &grid, (ElementShape::Box, [10_000, 10_000, 0]));
    }
}

/// Large boxes are computed along one axis after the other, in bands and strips of columns.
#[test]
fn large_boxes_equal_passes_along_each_axis() {
    let lines = |grid: &Grid, radius: [usize; 3]| {
        let mut values = numbers(&grid.samples);
        for axis in 0..3 {
            let stride = grid.dims[..axis].iter().product::<usize>() * grid.channels;
            let (len, radius) = (grid.dims[axis] as isize, radius[axis] as isize);
            let at = |index: usize| {
                let center = (index / stride) as isize % len;
                let range = (center - radius).max(0)..=(center + radius).min(len - 1);
                let neighbours = range
                    .map(|to| values[index.wrapping_add_signed((to - center) * stride as isize)]);
                neighbours.min_by(f64::total_cmp).unwrap()
            };
            values = (0..values.len()).map(at).collect();
        }
        values
    };
    for (dims, channels, radius) in [
        ([500, 150, 1], 3, [20, 30, 0]),
        ([40, 401, 1], 1, [0, 13, 0]),
        ([33, 300, 1], 1, [16, 299, 0]),
        ([20, 31, 40], 1, [3, 4, 9]),
        ([9, 8, 50], 1, [1, 1, 45]),
    ] {
        let len = dims.iter().product::<usize>() * channels;
        for samples in all_types(len) {
            let grid = grid(dims, channels, samples);
            let morph = Morph::new(Operation::Erode, ElementShape::Box, radius);
            let found = numbers(&assert_same_samples(&morph, &grid));
            let is_same =
                found.iter().zip(lines(&grid, radius)).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(is_same, "{dims:?} {radius:?} {}", grid.samples.dtype());
        }
    }
}

/// Images that exceed a binding are computed in blocks.
#[test]
fn large_images_are_the_same_on_every_device() {
    let image = grid([803, 700, 1], 2, Noise(3).bytes(803 * 700 * 2).into());
    for (shape, radius) in [(ElementShape::Box, 9), (ElementShape::Ball, 3)] {
        let morph = Morph::new(Operation::Open, shape, [radius, radius, 0]);
        assert_same_samples(&morph, &image);
    }
}

/// Writes a volume of 12x10x9 u8 samples and returns its opening by a cross.
fn write_volume(folder: &Path) -> Vec<u8> {
    let samples: Vec<u8> = Noise(5).bytes(12 * 10 * 9);
    fs::write(folder.join("v_12x10x9_uint8.raw"), &samples).unwrap();
    let grid = grid([12, 10, 9], 1, samples.into());
    let opened = reference(Operation::Open, &grid, (ElementShape::Cross, [1; 3]));
    opened.into_iter().map(|value| value as u8).collect()
}

#[test]
fn opens_images_volumes_stores_batches_and_shards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let expected = write_volume(path);
    assert_volume_runs(path, ["morph", "--op open --element cross", "10K"], &expected);
    // A batch of images, resumed.
    let grid = grid([12, 90, 1], 1, Noise(5).bytes(12 * 90).into());
    let closed = reference(Operation::Close, &grid, (ElementShape::Box, [1, 2, 0]));
    let closed: Vec<u8> = closed.into_iter().map(|value| value as u8).collect();
    assert_batch_runs(path, ["morph", "--op close --radius 1,2"], &closed);
}

#[test]
fn rejects_invalid_elements() {
    let folder = tempfile::tempdir().unwrap();
    write_volume(folder.path());
    for (flags, part) in [
        ("", "--op"),
        ("--op fill", "erode"),
        ("--op open --radius x", "whole numbers"),
        ("--op open --radius 10001", "10000"),
        ("--op open --radius 101 --element cross", "expected 0 to 100"),
        ("--op open --radius 1,2", "3 axes"),
        ("--op open --radius 2,1,1 --element ball", "one radius"),
    ] {
        let (code, message) =
            run(folder.path(), &format!("morph v_12x10x9_uint8.raw o.raw {flags}"));
        assert_eq!((code, message.contains(part)), (2, true), "{flags}: {message}");
    }
    assert!(!folder.path().join("o.raw").exists());
}
