//! Extreme samples: NaN, infinity, the largest floats, and 32-bit and 64-bit numbers that f32 cannot represent. The
//! reference is a naive sum in f64.

use std::{fs, path::Path, sync::Arc};

use gpuproc::{
    data::{
        grid::{Alpha, Grid},
        samples::Samples,
    },
    device::{Device, DeviceChoice},
    kernels::{
        blur::{Blur, Edge, Method, Taps},
        mesh::{MarchingCubes, Slab},
    },
    util::timings::Timings,
};

use crate::common::{Noise, assert_same_samples, assert_twins, gpuproc};

fn blur(method: Method, radius: usize, edge: Edge) -> Blur {
    let taps = match method {
        Method::Gaussian => Taps::gaussian(radius as f64 / 3.0, radius),
        Method::Box => Taps::box_filter(radius),
    };
    Blur { method, axes: [taps, taps, Taps::NONE], iterations: 1, edge, linear: false }
}

#[test]
fn nan_and_infinity_affect_only_their_window() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for method in [Method::Gaussian, Method::Box] {
            // Radii with all remainders modulo 4, and windows longer than a block.
            for radius in [1, 2, 3, 4, 5, 6, 9, 31, 32, 50, 131] {
                let [width, height] = if radius > 60 { [307, 295] } else { [137, 129] };
                let mut values = vec![1.0f32; width * height];
                let (x, y) = (width / 2 - 8, height / 2 - 3);
                values[y * width + x] = value;
                let samples = Samples::F32(values);
                let raster =
                    Grid { dims: [width, height, 1], channels: 1, alpha: Alpha::None, samples };
                let blur = blur(method, radius, Edge::Clamp);
                let Samples::F32(blurred) = assert_same_samples(&blur, &raster) else {
                    panic!("the type changed")
                };
                for (i, found) in blurred.iter().enumerate() {
                    let far = (i % width).abs_diff(x).max((i / width).abs_diff(y));
                    assert_eq!(
                        found.is_finite(),
                        far > radius,
                        "{found} at {far} of {value}, {method:?} of radius {radius}"
                    );
                    assert!(far <= radius || (found - 1.0).abs() < 1e-5, "{found}");
                }
            }
        }
    }
}

#[test]
fn blur_of_largest_f32_stays_finite() {
    for value in [3e38f32, -3e38] {
        for method in [Method::Gaussian, Method::Box] {
            let samples = Samples::F32(vec![value; 90 * 70]);
            let raster = Grid { dims: [90, 70, 1], channels: 1, alpha: Alpha::None, samples };
            for radius in [6, 50, 700] {
                let blur = blur(method, radius, Edge::Reflect);
                let Samples::F32(blurred) = assert_same_samples(&blur, &raster) else {
                    panic!("the type changed")
                };
                let near = |found: &f32| (found / value - 1.0).abs() < 1e-5;
                assert!(blurred.iter().all(near), "{:?}", blurred.iter().find(|v| !near(v)));
            }
        }
    }
}

/// Filters along x, y and z in f64.
fn reference(dims: [usize; 3], values: &[f64], blur: &Blur) -> Vec<f64> {
    let mut values = values.to_vec();
    let step = [1, dims[0], dims[0] * dims[1]];
    for axis in 0..3 {
        let weights = blur.axes[axis].half_weights(blur.method);
        let radius = blur.axes[axis].radius as isize;
        let from = values.clone();
        for (i, value) in values.iter_mut().enumerate() {
            let at = i / step[axis] % dims[axis];
            *value = (-radius..=radius)
                .map(|tap| {
                    let inside = blur.edge.map(at as isize + tap, dims[axis]).expect("no constant");
                    weights[tap.unsigned_abs()] * from[i - at * step[axis] + inside * step[axis]]
                })
                .sum();
        }
    }
    values
}

#[test]
fn f64_and_32_bit_integers_are_blurred_in_f64() {
    let dims = [19, 14, 11];
    let mut noise = Noise(5);
    let unit: Vec<f64> = (0..19 * 14 * 11).map(|_| noise.unit()).collect();
    let device = Device::new(&DeviceChoice::Cpu, Arc::new(Timings::new(false)));
    for edge in [Edge::Clamp, Edge::Mirror, Edge::Wrap] {
        let axes = [Taps::gaussian(1.0, 3), Taps::gaussian(2.0, 6), Taps::gaussian(0.7, 2)];
        let gaussian = Blur { method: Method::Gaussian, axes, iterations: 1, edge, linear: false };
        let axes = [Taps::box_filter(40), Taps::box_filter(3), Taps::box_filter(33)];
        let boxes = Blur { method: Method::Box, axes, ..gaussian };
        for blur in [gaussian, boxes] {
            let run = |samples: Samples| device.run(&blur, &Grid::volume(dims, samples)).unwrap();
            let values: Vec<f64> = unit.iter().map(|unit| 1e6 + unit).collect();
            let expected = reference(dims, &values, &blur);
            let Samples::F64(found) = run(Samples::F64(values)) else { panic!("f64 stays f64") };
            for (a, b) in found.iter().zip(&expected) {
                // The reference is rounded, too.
                assert!((a - b).abs() < 5e-9, "{a}, expected {b}");
            }
            let values: Vec<u32> = unit.iter().map(|v| (v * f64::from(u32::MAX)) as u32).collect();
            let expected =
                reference(dims, &values.iter().map(|&v| v.into()).collect::<Vec<_>>(), &blur);
            let Samples::U32(found) = run(Samples::U32(values)) else { panic!("u32 stays u32") };
            assert!(found.iter().zip(&expected).all(|(&a, b)| a == b.round() as u32));
            let values: Vec<i32> = unit.iter().map(|v| ((v - 0.5) * 4e9) as i32).collect();
            let expected =
                reference(dims, &values.iter().map(|&v| v.into()).collect::<Vec<_>>(), &blur);
            let Samples::I32(found) = run(Samples::I32(values)) else { panic!("i32 stays i32") };
            assert!(found.iter().zip(&expected).all(|(&a, b)| a == b.round() as i32));
        }
    }
}

#[test]
fn blur_of_largest_f64_stays_finite() {
    let device = Device::new(&DeviceChoice::Cpu, Arc::new(Timings::new(false)));
    let dims = [40, 30, 20];
    let samples = Samples::F64(vec![1.7e308; 40 * 30 * 20]);
    let axes = [Taps::box_filter(32), Taps::box_filter(100), Taps::box_filter(40)];
    let blur = Blur { axes, ..blur(Method::Box, 1, Edge::Mirror) };
    let Samples::F64(found) = device.run(&blur, &Grid::volume(dims, samples)).unwrap() else {
        panic!("f64 stays f64")
    };
    assert!(found.iter().all(|value| (value / 1.7e308 - 1.0).abs() < 1e-12));
}

#[test]
fn subnormal_samples_give_the_same_mesh_on_every_device() {
    let mut noise = Noise(9);
    let pool = [0.0f32, -0.0, 1e-40, -1e-40, 1e-45, 1.3e-38, 1.2e-38, -1.2e-38, 2e-38, 1e-30, -1.0];
    let values: Vec<f32> =
        (0..40 * 30 * 20).map(|_| pool[noise.next() as usize % pool.len()]).collect();
    for iso in [0.0, 1e-40, -1e-40, -1e-300, 1.25e-38, 1e-31] {
        for samples in [
            Samples::F32(values.clone()),
            Samples::F64(values.iter().map(|&value| value.into()).collect()),
        ] {
            let kernel = MarchingCubes { normals: true, ..MarchingCubes::new(iso) };
            let slab = Slab::whole(Grid::volume([40, 30, 20], samples), &kernel);
            let surface = assert_twins(&kernel, &slab, |cpu, gpu, device| {
                assert!(cpu.triangles == gpu.triangles, "{device} at {iso}");
                assert!(cpu.positions == gpu.positions, "{device} at {iso}");
                assert!(cpu.normals == gpu.normals, "{device} at {iso}");
            });
            assert!(!surface.triangles.is_empty(), "{iso}");
        }
    }
}

/// Runs the program in `folder`, which must succeed, and returns its standard output.
fn run_stdout(folder: &Path, line: &str) -> String {
    let output = gpuproc()
        .current_dir(folder)
        .args(["--device", "cpu"])
        .args(line.split_whitespace())
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{line}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn zero_sigma_keeps_every_bit_of_wide_types() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut noise = Noise(6);
    for (dtype, size) in [("u32", 4), ("i32", 4), ("f64", 8), ("f32", 4)] {
        let bytes = match dtype {
            // Random bits; the first sample is NaN.
            "f32" | "f64" => {
                let mut bytes = noise.bytes(5 * 4 * 3 * size);
                bytes[size - 2..size].fill(0xff);
                bytes
            }
            _ => noise.bytes(5 * 4 * 3 * size),
        };
        let name = format!("v_5x4x3_{dtype}.raw");
        fs::write(folder.join(&name), &bytes).unwrap();
        for output in [format!("o_5x4x3_{dtype}.raw"), "o.nrrd".into(), "o.nii".into()] {
            run_stdout(folder, &format!("blur {name} {output} --sigma 0 --strict"));
            let written = fs::read(folder.join(&output)).unwrap();
            assert!(written.ends_with(&bytes), "{dtype} to {output}");
        }
        run_stdout(folder, &format!("blur {name} o.nrrd --sigma 1 --strict"));
    }
    // Values 1e6 + k / 60 differ as f64, but many are equal as f32.
    let values: Vec<f64> = (0..60).map(|k| 1e6 + f64::from(k) / 60.0).collect();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    fs::write(folder.join("w_5x4x3_f64.raw"), bytes).unwrap();
    run_stdout(folder, "histogram w_5x4x3_f64.raw --bins 60 -o h.csv");
    let table = fs::read_to_string(folder.join("h.csv")).unwrap();
    let rows = table.lines().filter(|line| line.ends_with(",1")).count();
    assert!(rows >= 58, "{table}");
    let text = run_stdout(folder, "info w_5x4x3_f64.raw --range");
    assert!(text.contains("1000000 to 1000000.983"), "{text}");
}
