//! Resampling: the CPU and GPU implementations against a naive reference, and the command on every kind of input.

use std::{f64::consts::PI, fs, path::Path};

use gpuproc::{
    data::{
        dtype::Dtype,
        grid::{Alpha, Grid},
        noise::Noise,
        samples::Samples,
    },
    kernels::{
        filter::Block,
        resize::{Interpolation, Resample, Resize, Size},
    },
};

use crate::common::{assert_same_samples, run, works};

const FILTERS: [Interpolation; 5] = [
    Interpolation::Nearest,
    Interpolation::Area,
    Interpolation::Linear,
    Interpolation::Cubic,
    Interpolation::Lanczos3,
];

/// The filter at a distance from its centre, from the textbooks.
fn kernel(filter: Interpolation, x: f64) -> f64 {
    let a = x.abs();
    let sinc = |x: f64| if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) };
    match filter {
        Interpolation::Linear => f64::max(1.0 - a, 0.0),
        Interpolation::Cubic if a <= 1.0 => 1.5 * a.powi(3) - 2.5 * a.powi(2) + 1.0,
        Interpolation::Cubic if a <= 2.0 => -0.5 * a.powi(3) + 2.5 * a.powi(2) - 4.0 * a + 2.0,
        Interpolation::Lanczos3 if a < 3.0 => sinc(a) * sinc(a / 3.0),
        _ => 0.0,
    }
}

/// Resamples `line`. Every sample is weighed.
fn resampled_line(line: &[f64], count: usize, filter: Interpolation) -> Vec<f64> {
    let scale = line.len() as f64 / count as f64;
    let result = |position: usize| {
        let centre = (position as f64 + 0.5) * scale;
        if filter == Interpolation::Nearest {
            return line[(2 * position + 1) * line.len() / (2 * count)];
        }
        let weight = |at: usize| match filter {
            // The length of the sample that the result covers.
            Interpolation::Area => {
                let (first, end) = (position as f64 * scale, (position + 1) as f64 * scale);
                (end.min(at as f64 + 1.0) - first.max(at as f64)).max(0.0)
            }
            _ => kernel(filter, (at as f64 + 0.5 - centre) / scale.max(1.0)),
        };
        let sum: f64 = (0..line.len()).map(weight).sum();
        (0..line.len()).map(|at| line[at] * (weight(at) / sum)).sum()
    };
    (0..count).map(result).collect()
}

/// Resamples one axis after another, and clamps the result to `range`.
fn resampled(grid: &Grid, dims: [usize; 3], filter: Interpolation, range: [f64; 2]) -> Vec<f64> {
    let Samples::F64(mut values) = grid.samples.converted(Dtype::F64).unwrap() else {
        unreachable!()
    };
    let mut shape = grid.shape();
    for axis in 0..3 {
        if shape.dims[axis] == dims[axis] {
            continue;
        }
        let [outer, length, inner] = shape.along(axis);
        let mut next = vec![0.0; outer * dims[axis] * inner];
        for o in 0..outer {
            for i in 0..inner {
                let line: Vec<f64> =
                    (0..length).map(|at| values[(o * length + at) * inner + i]).collect();
                let line = resampled_line(&line, dims[axis], filter);
                for (at, value) in line.into_iter().enumerate() {
                    next[(o * dims[axis] + at) * inner + i] = value;
                }
            }
        }
        values = next;
        shape.dims[axis] = dims[axis];
    }
    values.into_iter().map(|value| value.clamp(range[0], range[1])).collect()
}

fn noisy(dtype: Dtype, len: usize, seed: u64) -> Samples {
    let mut noise = Noise(seed);
    match dtype {
        Dtype::F32 | Dtype::F64 => {
            let values: Vec<f64> =
                (0..len).map(|_| (noise.next() >> 40) as f64 / 4e6 - 2.0).collect();
            Samples::F64(values).converted(dtype).unwrap()
        }
        _ => {
            let mut samples = Samples::zeros(dtype, len).unwrap();
            let bytes = noise.bytes(len * dtype.size());
            samples.as_bytes_mut().copy_from_slice(&bytes);
            samples
        }
    }
}

/// A resize with default flags.
pub fn plain() -> Resize {
    Resize {
        size: Size::Scale([1.0; 3]),
        axes: 3,
        filter: Interpolation::Lanczos3,
        linear: false,
        shrink_on_load: false,
    }
}

/// The result of the whole grid on the CPU, which every GPU gives, too.
pub fn twins(resize: &Resize, grid: &Grid) -> Samples {
    let shape = grid.shape();
    let axis = if shape.dims[2] > 1 { 2 } else { 1 };
    let output = 0..resize.size.resolve(shape.dims, resize.axes)[axis];
    let block = Block { axis, shape, input: 0..shape.dims[axis], output };
    assert_same_samples(&Resample { resize, block: &block }, grid)
}

fn assert_resized(grid: &Grid, dims: [usize; 3], filter: Interpolation) {
    let resize = Resize { size: Size::Exact(dims.map(Some)), axes: 3, filter, ..plain() };
    let dtype = grid.samples.dtype();
    let range = match dtype {
        Dtype::U8 => [0.0, 255.0],
        Dtype::I8 => [-128.0, 127.0],
        Dtype::U16 => [0.0, 65_535.0],
        Dtype::I16 => [-32_768.0, 32_767.0],
        Dtype::U32 => [0.0, u32::MAX.into()],
        Dtype::I32 => [i32::MIN.into(), i32::MAX.into()],
        _ => [f64::MIN, f64::MAX],
    };
    // Half a sample for the rounding, and the error of integer weights.
    let tolerance = match dtype {
        Dtype::U8 | Dtype::I8 => 0.5 + 0.08,
        Dtype::U16 | Dtype::I16 => 0.5 + 1.0,
        Dtype::F32 => 1e-5,
        Dtype::F64 => 1e-12,
        _ => 0.5 + 1e-5,
    };
    let expected = resampled(grid, dims, filter, range);
    let Samples::F64(found) = twins(&resize, grid).converted(Dtype::F64).unwrap() else {
        unreachable!()
    };
    assert_eq!(found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let is_close = (found - expected).abs() <= tolerance;
        let from = grid.dims;
        assert!(is_close, "{from:?} to {dims:?} {dtype} {filter:?} at {at}: {found} {expected}");
    }
}

#[test]
fn every_type_filter_and_size_agrees_with_the_reference() {
    for (seed, dtype) in Dtype::SAMPLES.into_iter().enumerate() {
        for filter in FILTERS {
            for (from, to) in [
                ([1, 1, 1], [1, 1, 1]),
                ([1, 1, 1], [3, 2, 1]),
                ([9, 7, 1], [1, 1, 1]),
                ([13, 11, 1], [5, 4, 1]),
                ([13, 11, 1], [29, 30, 1]),
                ([5, 40, 1], [5, 3, 1]),
                ([40, 5, 1], [7, 5, 1]),
                ([7, 6, 5], [3, 9, 2]),
                ([3, 4, 9], [3, 4, 4]),
            ] {
                let samples = noisy(dtype, from.iter().product(), seed as u64 + 7);
                let grid = Grid { dims: from, channels: 1, alpha: Alpha::None, samples };
                assert_resized(&grid, to, filter);
            }
        }
        // Colours.
        for channels in [2, 3, 4] {
            let samples = noisy(dtype, 31 * 17 * channels, 3);
            let grid = Grid { dims: [31, 17, 1], channels, alpha: Alpha::None, samples };
            assert_resized(&grid, [12, 40, 1], Interpolation::Lanczos3);
            assert_resized(&grid, [50, 5, 1], Interpolation::Cubic);
        }
    }
}

/// Larger than a tile of the smallest device.
#[test]
fn images_are_divided_into_tiles() {
    for dtype in [Dtype::U8, Dtype::U16, Dtype::F32] {
        let samples = noisy(dtype, 1200 * 900, 2);
        let grid = Grid { dims: [1200, 900, 1], channels: 1, alpha: Alpha::None, samples };
        assert_resized(&grid, [300, 170, 1], Interpolation::Cubic);
        let samples = noisy(dtype, 300 * 50, 2);
        let grid = Grid { dims: [300, 50, 1], channels: 1, alpha: Alpha::None, samples };
        assert_resized(&grid, [1200, 700, 1], Interpolation::Linear);
    }
}

#[test]
fn flat_images_stay_flat_and_colours_under_transparent_pixels_do_not_matter() {
    for value in [0u8, 1, 77, 255] {
        for filter in FILTERS {
            let grid = Grid {
                dims: [37, 23, 1],
                channels: 1,
                alpha: Alpha::None,
                samples: vec![value; 37 * 23].into(),
            };
            let resize = Resize { size: Size::Scale([0.37; 3]), axes: 2, filter, ..plain() };
            assert!(
                twins(&resize, &grid) == Samples::U8(vec![value; 14 * 9]),
                "{value} {filter:?}"
            );
        }
    }
    // White, half of it transparent black.
    let pixels: Vec<u8> =
        (0..64).flat_map(|at| if at % 8 < 4 { [255, 255, 255, 255] } else { [0; 4] }).collect();
    let resize = |linear| Resize {
        size: Size::Exact([Some(3), Some(3), Some(1)]),
        axes: 2,
        filter: Interpolation::Linear,
        linear,
        ..plain()
    };
    for linear in [false, true] {
        let grid = Grid {
            dims: [8, 8, 1],
            channels: 4,
            alpha: Alpha::Straight,
            samples: pixels.clone().into(),
        };
        let Samples::U8(small) = twins(&resize(linear), &grid) else { unreachable!() };
        for pixel in small.as_chunks::<4>().0 {
            assert!(pixel[3] == 0 || pixel[..3] == [255; 3], "{pixel:?}");
        }
        assert!(small.as_chunks::<4>().0.iter().any(|pixel| (1..255).contains(&pixel[3])));
    }
    // The mean of black and white is half of the light.
    let grid =
        Grid { dims: [2, 1, 1], channels: 1, alpha: Alpha::None, samples: vec![0u8, 255].into() };
    let size = Size::Exact([Some(1), Some(1), None]);
    let mean = |linear| {
        let resize =
            Resize { size: size.clone(), axes: 2, filter: Interpolation::Area, linear, ..plain() };
        twins(&resize, &grid)
    };
    assert_eq!(mean(false), Samples::U8(vec![128]));
    assert_eq!(mean(true), Samples::U8(vec![188]));
}

/// Devices convert 8 bits to linear light and multiply them by alpha, in parts.
#[test]
fn working_spaces_are_the_same_on_every_device() {
    for channels in 1..=4 {
        for alpha in [Alpha::None, Alpha::Straight, Alpha::Translucent] {
            if alpha != Alpha::None && channels % 2 == 1 {
                continue;
            }
            let mut bytes = Noise(9).bytes(253 * 131 * channels);
            // In half of the pixels, the last channel is 0, 1, 254 or 255. The grey image with straight alpha is opaque.
            for (at, pixel) in bytes.chunks_exact_mut(channels).enumerate() {
                match (alpha, at % 8) {
                    (Alpha::Straight, _) if channels == 2 => pixel[channels - 1] = 255,
                    (_, special @ 0..4) => pixel[channels - 1] = [0, 1, 254, 255][special],
                    _ => {}
                }
            }
            let grid = Grid { dims: [253, 131, 1], channels, alpha, samples: bytes.into() };
            for (size, filter) in [
                ([600, 401], Interpolation::Lanczos3),
                ([77, 13], Interpolation::Cubic),
                ([253, 300], Interpolation::Linear),
                ([31, 131], Interpolation::Area),
                ([300, 200], Interpolation::Nearest),
            ] {
                let size = Size::Exact([Some(size[0]), Some(size[1]), Some(1)]);
                for linear in [false, true] {
                    twins(
                        &Resize { size: size.clone(), axes: 2, filter, linear, ..plain() },
                        &grid,
                    );
                }
            }
        }
    }
}

#[test]
fn sizes_are_resolved() {
    let resolve = |size: Size, dims, axes| size.resolve(dims, axes);
    assert_eq!(resolve(Size::Longest(1024), [4000, 3000, 1], 2), [1024, 768, 1]);
    assert_eq!(resolve(Size::Longest(1024), [1000, 30, 1], 2), [1000, 30, 1]);
    assert_eq!(resolve(Size::Longest(10), [1000, 30, 1], 2), [10, 1, 1]);
    assert_eq!(resolve(Size::Exact([Some(50), None, None]), [100, 80, 1], 2), [50, 40, 1]);
    assert_eq!(resolve(Size::Exact([None, Some(40), None]), [100, 80, 20], 3), [50, 40, 10]);
    assert_eq!(resolve(Size::Scale([0.5, 2.0, 1.0]), [5, 5, 5], 3), [3, 10, 5]);
}

fn write_volume(folder: &Path) -> Grid {
    let samples = noisy(Dtype::U8, 12 * 10 * 9, 5);
    fs::write(folder.join("v_12x10x9_uint8.raw"), samples.as_bytes()).unwrap();
    Grid { dims: [12, 10, 9], channels: 1, alpha: Alpha::None, samples }
}

/// Blocks, shards and stores give the bytes of the whole.
#[test]
fn resizes_volumes_stores_batches_and_shards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let grid = write_volume(path);
    let volume = "v_12x10x9_uint8.raw";
    works(path, &format!("blur {volume} in.zarr --sigma 0 --levels 1 --chunks 5x4x2"));
    for (size, dims, memory) in [
        ("7x5x4", [7, 5, 4], "40K"),
        ("20x21x22", [20, 21, 22], "170K"),
        ("12x10x3", [12, 10, 3], "40K"),
    ] {
        for filter in ["nearest", "area", "linear", "lanczos3"] {
            let flags = format!("--size {size} --filter {filter}");
            let interpolation =
                FILTERS.into_iter().find(|&own| format!("{own:?}").eq_ignore_ascii_case(filter));
            let resize = Resize {
                size: Size::Exact(dims.map(Some)),
                axes: 3,
                filter: interpolation.unwrap(),
                ..plain()
            };
            let expected = twins(&resize, &grid);
            for (input, more) in [(volume, "300M"), (volume, memory), ("in.zarr", "300K")] {
                works(path, &format!("resize {input} out.raw {flags} --max-memory {more}"));
                let found = fs::read(path.join("out.raw")).unwrap();
                assert!(found == expected.as_bytes(), "{input} {flags} {more}");
            }
            for shard in 0..3 {
                works(path, &format!("resize {volume} shards.raw {flags} --shard {shard}/3"));
            }
            assert!(fs::read(path.join("shards.raw")).unwrap() == expected.as_bytes(), "{flags}");
            fs::remove_file(path.join("shards.raw")).unwrap();
            works(path, &format!("resize {volume} out.zarr {flags} --levels 1"));
            works(path, "blur out.zarr back.raw --sigma 0");
            assert!(fs::read(path.join("back.raw")).unwrap() == expected.as_bytes(), "{flags}");
        }
    }
    // Images in blocks of rows and as a whole.
    let header = b"P5 60 90 255\n".to_vec();
    fs::write(path.join("a.pgm"), [header, Noise(8).bytes(60 * 90)].concat()).unwrap();
    works(path, "blur a.pgm a.png --sigma 0");
    for flags in ["--max 31", "--scale 250%", "--size 20x200"] {
        works(path, &format!("resize a.png whole.tif {flags}"));
        works(path, &format!("resize a.png blocks.tif {flags} --max-memory 400K"));
        works(path, "blur whole.tif whole.pgm --sigma 0");
        works(path, "blur blocks.tif blocks.pgm --sigma 0");
        let [whole, blocks] =
            ["whole.pgm", "blocks.pgm"].map(|name| fs::read(path.join(name)).unwrap());
        assert!(whole == blocks, "{flags}");
    }
    for _ in 0..2 {
        works(path, "resize a.pgm a.png -o small/ --max 45 --resume");
    }
    assert!(fs::read(path.join("small/a.pgm")).unwrap().starts_with(b"P5\n30 45\n255\n"));
}

#[test]
fn corners_stay_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let head = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 4 6 8\nencoding: raw\n\
        space: left-posterior-superior\nspace directions: (2,0,0) (0,3,0) (0,0,5)\n\
        space origin: (10,20,30)\n\n";
    fs::write(path.join("v.nrrd"), [head.as_bytes(), &[7; 192]].concat()).unwrap();
    works(path, "resize v.nrrd half.nrrd --scale 0.5");
    let text = String::from_utf8_lossy(&fs::read(path.join("half.nrrd")).unwrap()).into_owned();
    assert!(text.contains("sizes: 2 3 4\n"), "{text}");
    assert!(text.contains("(4,0,0) (0,6,0) (0,0,10)"), "{text}");
    assert!(text.contains("space origin: (11,21.5,32.5)"), "{text}");
}

#[test]
fn rejects_invalid_sizes() {
    let folder = tempfile::tempdir().unwrap();
    write_volume(folder.path());
    fs::write(folder.path().join("a.pgm"), b"P5 1 1 255\n\x01").unwrap();
    for (line, part) in [
        ("resize a.pgm o.pgm", "--size"),
        ("resize a.pgm o.pgm --size 3x4 --max 5", "--max"),
        ("resize a.pgm o.pgm --size 0x4", "from 1 to"),
        ("resize a.pgm o.pgm --size x", "800x600"),
        ("resize a.pgm o.pgm --size 4x4x4x4", "800x600"),
        ("resize a.pgm o.pgm --size 3x4 --fit 3x4", "--fit"),
        ("resize a.pgm o.pgm --fit 4x4x4", "a.pgm: --fit has 3 sides, but the input has 2 axes"),
        ("resize a.pgm o.pgm --fill 0", "from 1 to"),
        ("resize a.pgm o.pgm --fill 50%", "from 1 to"),
        ("resize a.pgm o.pgm --size 0%", "factors above 0"),
        ("resize a.pgm o.pgm --scale 0", "factors above 0"),
        ("resize a.pgm o.pgm --scale -3%", "-3"),
        ("resize a.pgm o.pgm --size 4x4x4", "a.pgm: --size has 3 sides, but the input has 2 axes"),
        ("resize a.pgm o.pgm --max 0", "a whole number of 1 or more"),
        ("resize a.pgm o.pgm --max 9 --filter sinc", "sinc"),
    ] {
        let (code, message) = run(folder.path(), line);
        assert!(code == 2 && message.contains(part), "{line}: {code} {message}");
    }
}

/// EXIF that states a size: `II` for short numbers, `MM` for long ones.
fn exif(order: &[u8; 2], size: [u16; 2]) -> Vec<u8> {
    let is_little = order == b"II";
    let short = |value: u16| if is_little { value.to_le_bytes() } else { value.to_be_bytes() };
    let long = |value: u32| if is_little { value.to_le_bytes() } else { value.to_be_bytes() };
    let mut block = [b"Exif\0\0", &order[..], &short(42), &long(8)].concat();
    let pointer = [&short(34665)[..], &short(4), &long(1), &long(26)].concat();
    block.extend([&short(1)[..], &pointer, &long(0), &short(2)].concat());
    for (tag, side) in [40962, 40963].into_iter().zip(size) {
        let value = match is_little {
            true => [short(3), short(1), short(0), short(side), short(0)].concat(),
            false => [&short(4)[..], &long(1), &long(side.into())].concat(),
        };
        block.extend([&short(tag)[..], &value].concat());
    }
    block.extend(long(0));
    block
}

/// The size that EXIF states is that of the result.
#[test]
fn exif_states_the_new_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("a.pgm"), [b"P5 40 20 255\n".to_vec(), vec![7; 800]].concat()).unwrap();
    works(path, "blur a.pgm plain.jpg --sigma 0");
    let jpeg = fs::read(path.join("plain.jpg")).unwrap();
    for order in [b"II", b"MM"] {
        let block = exif(order, [40, 20]);
        let head = [0xff, 0xe1, 0, block.len() as u8 + 2];
        fs::write(path.join("a.jpg"), [&jpeg[..2], &head, &block, &jpeg[2..]].concat()).unwrap();
        let holds = |name: &str, block: &[u8]| {
            fs::read(path.join(name)).unwrap().windows(block.len()).any(|bytes| bytes == block)
        };
        works(path, "resize a.jpg small.jpg --max 10");
        assert!(holds("small.jpg", &exif(order, [10, 5])), "{order:?}");
        works(path, "resize a.jpg large.png --size 50x");
        assert!(holds("large.png", &exif(order, [50, 25])[6..]), "{order:?}");
        works(path, "resize a.jpg same.jpg --scale 1");
        assert!(holds("same.jpg", &block), "{order:?}");
    }
}
