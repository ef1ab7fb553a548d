//! Projections: the CPU and GPU implementations against a naive reference, and the command on every kind of input.

use std::{fs, path::Path, sync::Arc};

use gpuproc::{
    data::{
        dtype::Dtype,
        grid::{Alpha, Grid},
        noise::Noise,
        samples::Samples,
    },
    device::Device,
    for_samples,
    kernels::{
        chain::apply,
        project::{Method, Projection, Step},
    },
    util::timings::Timings,
};

use crate::common::{assert_twins, gpuproc, run, works};

const METHODS: [Method; 5] = [Method::Max, Method::Min, Method::Mean, Method::Sum, Method::Std];

/// Random samples, the ends of the type's range among them, and for floats infinities or NaN.
fn noisy(dtype: Dtype, len: usize, seed: u64, special: &[f64]) -> Samples {
    let mut noise = Noise(seed);
    let mut samples = Samples::zeros(dtype, len).unwrap();
    if dtype.is_float() {
        let values: Vec<f64> =
            (0..len).map(|_| (noise.next() >> 40) as f64 / 4e4 - 150.0).collect();
        samples = Samples::F64(values).converted(dtype).unwrap();
    } else {
        let bytes = noise.bytes(len * dtype.size());
        samples.as_bytes_mut().copy_from_slice(&bytes);
        // Whole samples of the lowest and the highest bits.
        for (at, byte) in samples.as_bytes_mut().chunks_mut(dtype.size()).enumerate() {
            match at % 13 {
                3 => byte.fill(0),
                5 => byte.fill(255),
                _ => {}
            }
        }
    }
    if let Samples::F32(values) = &mut samples {
        for (at, &value) in special.iter().enumerate() {
            if let Some(place) = values.get_mut(at * 7 + 2) {
                *place = value as f32;
            }
        }
    }
    samples
}

/// The projection in f64 and i128, line by line.
fn reference(grid: &Grid, Projection { method, axis }: Projection) -> Vec<f64> {
    #[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "one of the types is f64")]
    let all: Vec<f64> = for_samples!(&grid.samples, values => {
        values.iter().map(|&value| value as f64).collect()
    });
    let [width, height, depth] = grid.dims;
    let mut ends = grid.dims;
    ends[axis] = 1;
    let mut results = Vec::new();
    for z in 0..ends[2] {
        for y in 0..ends[1] {
            for x in 0..ends[0] {
                for channel in 0..grid.channels {
                    let line: Vec<f64> = (0..[width, height, depth][axis])
                        .map(|i| {
                            let mut at = [x, y, z];
                            at[axis] = i;
                            let position = (at[2] * height + at[1]) * width + at[0];
                            all[position * grid.channels + channel]
                        })
                        .collect();
                    results.push(of_line(&line, method));
                }
            }
        }
    }
    results
}

fn of_line(line: &[f64], method: Method) -> f64 {
    let count = line.len() as f64;
    let is_nan = line.iter().any(|value| value.is_nan());
    let mean = line.iter().sum::<f64>() / count;
    match method {
        Method::Max | Method::Min if is_nan => f64::NAN,
        Method::Max => line.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Method::Min => line.iter().copied().fold(f64::INFINITY, f64::min),
        Method::Mean => mean,
        Method::Sum => line.iter().sum(),
        Method::Std => {
            (line.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
        }
    }
}

fn assert_projected(grid: &Grid, projection: Projection) {
    let step = Step { projection, before: None };
    let dtype = grid.samples.dtype();
    assert_twins(&step, grid, |cpu, gpu, name| {
        // NaN differs from itself, but not its text.
        let texts = [cpu, gpu].map(|lines| format!("{lines:?}"));
        assert!(texts[0] == texts[1], "{name}: {:?} {dtype} {projection:?}", grid.dims);
    });
    let device = Device::new(&gpuproc::device::DeviceChoice::Cpu, Arc::new(Timings::new(false)));
    let found = apply(&projection, &device, grid).unwrap().samples;
    let expected = reference(grid, projection);
    assert_eq!(found.len(), expected.len());
    let found = found.converted(Dtype::F64).unwrap();
    let Samples::F64(found) = found else { unreachable!() };
    let is_exact = matches!(projection.method, Method::Max | Method::Min)
        || projection.method == Method::Sum && !dtype.is_float();
    for (&found, &expected) in found.iter().zip(&expected) {
        let max = expected.abs().max(1e-3);
        let is_close = match is_exact {
            true => found == expected,
            false => (found - expected).abs() <= 1e-6 * max,
        };
        let is_same = is_close || found.is_nan() && !expected.is_finite() || found == expected;
        assert!(is_same, "{:?} {dtype} {projection:?}: {found} {expected}", grid.dims);
    }
}

#[test]
fn every_type_axis_and_size_agrees_with_the_reference() {
    let sizes = [[1, 1, 1], [1, 7, 5], [9, 1, 3], [5, 6, 1], [13, 11, 17], [67, 3, 2], [2, 130, 4]];
    for (seed, dtype) in Dtype::SAMPLES.into_iter().enumerate() {
        for dims in sizes {
            for method in METHODS {
                for axis in 0..3 {
                    let samples = noisy(
                        dtype,
                        dims.iter().product(),
                        seed as u64 + 3,
                        &[f64::INFINITY, f64::NAN, -0.0],
                    );
                    let grid = Grid { dims, channels: 1, alpha: Alpha::None, samples };
                    assert_projected(&grid, Projection { method, axis });
                }
            }
        }
    }
    // Colours, and lines longer than a dispatch of the shader.
    for (dims, channels) in
        [([31, 9, 1], 3), ([4, 5, 1], 4), ([70_001, 2, 1], 1), ([1, 40_000, 1], 2)]
    {
        for dtype in [Dtype::U8, Dtype::U16, Dtype::F32] {
            let samples = noisy(dtype, dims.iter().product::<usize>() * channels, 1, &[]);
            let grid = Grid { dims, channels, alpha: Alpha::None, samples };
            for method in [Method::Max, Method::Sum, Method::Std] {
                assert_projected(&grid, Projection { method, axis: 0 });
                assert_projected(&grid, Projection { method, axis: 1 });
            }
        }
    }
}

#[test]
fn a_small_deviation_beside_a_large_mean_is_kept() {
    let values: Vec<f32> = (0..64).map(|i| 1e6 + (i % 2) as f32).collect();
    let grid = Grid { dims: [64, 1, 1], channels: 1, alpha: Alpha::None, samples: values.into() };
    let device = Device::new(&gpuproc::device::DeviceChoice::Cpu, Arc::new(Timings::new(false)));
    let deviation = Projection { method: Method::Std, axis: 0 };
    let deviation = apply(&deviation, &device, &grid).unwrap().samples;
    assert_eq!(deviation, Samples::F32(vec![0.5]));
}

/// Writes a volume of 12x10x9 u16 samples and returns them.
fn write_volume(folder: &Path) -> Grid {
    let samples = noisy(Dtype::U16, 12 * 10 * 9, 5, &[]);
    fs::write(folder.join("v_12x10x9_uint16.raw"), samples.as_bytes()).unwrap();
    Grid { dims: [12, 10, 9], channels: 1, alpha: Alpha::None, samples }
}

/// Every kind of input and output gives the result of the naive reference, on every device, however it is divided.
#[test]
fn projects_volumes_stores_images_and_shards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let grid = write_volume(path);
    let volume = "v_12x10x9_uint16.raw";
    works(path, &format!("blur {volume} in.zarr --sigma 0 --levels 1 --chunks 5x4x2"));
    works(path, &format!("blur {volume} in.nii.gz --sigma 0"));
    for (name, method) in [("max", Method::Max), ("sum", Method::Sum), ("std", Method::Std)] {
        for axis in 0..3 {
            let flags = format!("--method {name} --axis {}", ["x", "y", "z"][axis]);
            let projection = Projection { method, axis };
            let expected = reference(&grid, projection);
            works(path, &format!("project {volume} whole.raw {flags}"));
            let whole = fs::read(path.join("whole.raw")).unwrap();
            let found: Vec<f64> = match method {
                Method::Max => bytemuck::pod_collect_to_vec::<u8, u16>(&whole)
                    .into_iter()
                    .map(f64::from)
                    .collect(),
                Method::Sum => bytemuck::pod_collect_to_vec(&whole),
                _ => bytemuck::pod_collect_to_vec::<u8, f32>(&whole)
                    .into_iter()
                    .map(f64::from)
                    .collect(),
            };
            assert_eq!(found.len(), expected.len());
            let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-6 * b.abs();
            assert!(found.iter().zip(&expected).all(is_close), "{flags}");
            for (input, more) in [
                (volume, "--device cpu"),
                (volume, "--max-memory 20K"),
                ("in.zarr", "--max-memory 200K"),
                ("in.nii.gz", ""),
            ] {
                works(path, &format!("project {input} part.raw {flags} {more}"));
                assert!(
                    fs::read(path.join("part.raw")).unwrap() == whole,
                    "{input} {flags} {more}"
                );
            }
            for shard in 0..3 {
                works(path, &format!("project {volume} shards.raw {flags} --shard {shard}/3"));
            }
            assert!(fs::read(path.join("shards.raw")).unwrap() == whole, "{flags} --shard");
            fs::remove_file(path.join("shards.raw")).unwrap();
        }
    }
}

#[test]
fn images_have_the_two_other_axes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let grid = write_volume(path);
    for (axis, size) in [("x", "10 9"), ("y", "12 9"), ("z", "12 10")] {
        works(path, &format!("project v_12x10x9_uint16.raw out.pgm --axis {axis}"));
        let bytes = fs::read(path.join("out.pgm")).unwrap();
        let header = format!("P5\n{size}\n65535\n");
        assert!(bytes.starts_with(header.as_bytes()), "{}", String::from_utf8_lossy(&bytes[..20]));
        let axis = ["x", "y", "z"].iter().position(|&name| name == axis).unwrap();
        let expected = reference(&grid, Projection { method: Method::Max, axis });
        let found = bytes[header.len()..]
            .as_chunks::<2>()
            .0
            .iter()
            .map(|&b| f64::from(u16::from_be_bytes(b)));
        assert!(found.eq(expected), "{axis}");
    }
    // A row or a column of an image; means are rounded where the format has no floats.
    fs::write(path.join("a.pgm"), b"P5 3 2 255\n\x01\x02\x03\x05\x09\xff").unwrap();
    works(path, "project a.pgm row.pgm");
    assert!(fs::read(path.join("row.pgm")).unwrap().ends_with(b"P5\n3 1\n255\n\x05\x09\xff"));
    works(path, "project a.pgm column.pgm --axis x --method mean");
    assert!(fs::read(path.join("column.pgm")).unwrap().ends_with(b"P5\n1 2\n255\n\x02\x5a"));
    works(path, "project a.pgm -o rows/ --method min");
    assert!(fs::read(path.join("rows/a.pgm")).unwrap().ends_with(b"\x01\x02\x03"));
}

#[test]
fn the_projection_keeps_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let head = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 2 3 4\nencoding: raw\n\
        space: left-posterior-superior\nspace directions: (2,0,0) (0,3,0) (0,0,5)\n\
        space origin: (10,20,30)\nspace units: \"mm\" \"mm\" \"mm\"\n\n";
    fs::write(path.join("v.nrrd"), [head.as_bytes(), &[7; 24]].concat()).unwrap();
    works(path, "project v.nrrd z.nrrd");
    let text = String::from_utf8_lossy(&fs::read(path.join("z.nrrd")).unwrap()).into_owned();
    assert!(text.contains("sizes: 2 3 1\n"), "{text}");
    assert!(text.contains("(2,0,0) (0,3,0) (0,0,20)"), "{text}");
    assert!(text.contains("space origin: (10,20,37.5)"), "{text}");
    // 2 mm by 5 mm are 5 and 2 pixels per centimetre.
    works(path, "project v.nrrd y.tif --axis y");
    let output = gpuproc().current_dir(path).args(["info", "y.tif"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("2x4 of u8") && text.contains("5 x 2 per cm"), "{text}");
}

#[test]
fn rejects_invalid_projections() {
    let folder = tempfile::tempdir().unwrap();
    write_volume(folder.path());
    fs::write(folder.path().join("a.pgm"), b"P5 1 1 255\n\x01").unwrap();
    for (line, part) in [
        ("project v_12x10x9_uint16.raw o.raw --method mode", "mode"),
        ("project v_12x10x9_uint16.raw o.raw --axis w", "axis"),
        ("project a.pgm o.pgm --axis z", "--axis z is for volumes"),
        ("project v_12x10x9_uint16.raw o.png --shard 0/2", "sharded"),
    ] {
        let (code, message) = run(folder.path(), line);
        assert!(code == 2 && message.contains(part), "{line}: {code} {message}");
    }
}

/// NaN of either sign wins over every number, wherever it is in the line; -0 is less than 0.
#[test]
fn nan_and_zeros_of_both_signs_have_an_order() {
    let device = Device::new(&gpuproc::device::DeviceChoice::Cpu, Arc::new(Timings::new(false)));
    let others = [-3.0, 5.0, f64::INFINITY, f64::NEG_INFINITY];
    for (special, is_nan) in [(f64::NAN, true), (-f64::NAN, true), (-0.0, false), (0.0, false)] {
        for place in 0..5 {
            for axis in 0..3 {
                let mut line = if is_nan { others.to_vec() } else { vec![-special; 4] };
                line.insert(place, special);
                let mut dims = [1; 3];
                dims[axis] = 5;
                let singles: Vec<f32> = line.iter().map(|&value| value as f32).collect();
                for samples in [Samples::F64(line.clone()), Samples::F32(singles)] {
                    let grid = Grid { dims, channels: 1, alpha: Alpha::None, samples };
                    for method in [Method::Max, Method::Min] {
                        let step = Step { projection: Projection { method, axis }, before: None };
                        assert_twins(&step, &grid, |cpu, gpu, name| {
                            assert_eq!(format!("{cpu:?}"), format!("{gpu:?}"), "{name}");
                        });
                        let found = apply(&step.projection, &device, &grid).unwrap().samples;
                        let Samples::F64(found) = found.converted(Dtype::F64).unwrap() else {
                            unreachable!()
                        };
                        let case = format!("{special} at {place}: {method:?} is {found:?}");
                        assert_eq!(found[0].is_nan(), is_nan, "{case}");
                        let is_negative = found[0].is_sign_negative();
                        assert!(is_nan || is_negative == (method == Method::Min), "{case}");
                    }
                }
            }
        }
    }
}

/// The picture of two projections lies in the plane of the first one.
#[test]
fn a_line_of_samples_lies_in_the_plane_of_the_first_projection() {
    let folder = tempfile::tempdir().unwrap();
    let samples: Vec<u8> = (0..20 * 16 * 8).map(|at| (at * 7 % 251) as u8).collect();
    fs::write(folder.path().join("v_20x16x8_uint8.raw"), &samples).unwrap();
    works(folder.path(), "project v_20x16x8_uint8.raw p.png --then project --axis x");
    let image = image::open(folder.path().join("p.png")).unwrap().into_luma8();
    let line = |y: usize| (0..8 * 20).map(|at| samples[(at / 20 * 16 + y) * 20 + at % 20]).max();
    let expected: Vec<u8> = (0..16).filter_map(line).collect();
    assert_eq!((image.dimensions(), image.into_raw()), ((1, 16), expected));
}
