//! Marching cubes: the CPU and GPU kernels against a naive reference.

use gpuproc::{
    data::{dtype::Dtype, grid::Grid, samples::Samples, surface::Surface},
    device::Kernel,
    kernels::mesh::{MarchingCubes, Slab},
};

use crate::{
    asserts::assert_near,
    common::{Noise, assert_twins, wait_for_memory},
    mesh_reference::{
        assert_matches_reference, assert_same_surface, byte_noise, gyroid_volume, is_closed, noise,
        volume,
    },
    surface_geometry::enclosed_volume,
};

/// Meshes on every device and checks the surface against the reference.
pub fn mesh_on_all_devices(kernel: &MarchingCubes, volume: Grid) -> Surface {
    let slab = Slab::whole(volume, kernel);
    let surface = assert_twins(kernel, &slab, assert_same_surface);
    assert_matches_reference(&surface, &slab.volume, kernel);
    surface
}

pub fn closing_kernel(iso: f64) -> MarchingCubes {
    MarchingCubes { close: true, ..MarchingCubes::new(iso) }
}

#[test]
fn all_256_cases_match_the_reference_and_close() {
    // Corner indices in the bit order of the case number.
    let corners = [0, 1, 3, 2, 4, 5, 7, 6];
    for case in 0..256u32 {
        let mut values = vec![0u8; 8];
        (0..8).for_each(|i| values[corners[i]] = if case >> i & 1 == 1 { 200 } else { 10 });
        let cell = volume([2; 3], Samples::U8(values));
        mesh_on_all_devices(&MarchingCubes::new(80.0), cell.clone());
        let closed = mesh_on_all_devices(&closing_kernel(80.0), cell);
        assert!(is_closed(&closed), "case {case}");
        assert!(case == 0 || enclosed_volume(&closed) > 0.0, "case {case}");
    }
}

#[test]
fn noise_of_every_sample_type_matches_the_reference() {
    use Dtype::*;
    for (seed, dtype) in [U8, I8, U16, I16, U32, I32, F32, F64].into_iter().enumerate() {
        let (volume, isos) = noise([37, 9, 8], dtype, seed as u64);
        for iso in isos {
            let surface = mesh_on_all_devices(&MarchingCubes::new(iso), volume.clone());
            assert!(!surface.triangles.is_empty(), "{dtype} {iso}");
            assert!(
                is_closed(&mesh_on_all_devices(&closing_kernel(iso), volume.clone())),
                "{dtype} {iso}"
            );
        }
    }
}

#[test]
fn volumes_of_every_size_match_the_reference() {
    let sides = [1, 2, 3, 31, 32, 33, 64, 65];
    for (i, &x) in sides.iter().enumerate() {
        for (j, &y) in [1, 2, 5].iter().enumerate() {
            for z in [1, 2, 3, 7] {
                let volume = byte_noise([x, y, z], (i * 9 + j) as u64);
                let surface = mesh_on_all_devices(&MarchingCubes::new(127.0), volume.clone());
                assert_eq!(surface.positions.is_empty(), x.min(y).min(z) == 1);
                mesh_on_all_devices(&closing_kernel(127.0), volume);
            }
        }
    }
    // More than one workgroup of words, and more than one binding and dispatch on the small device.
    mesh_on_all_devices(&MarchingCubes::new(127.0), gyroid_volume([48, 40, 37]));
    let large = Slab::whole(gyroid_volume([160, 107, 131]), &MarchingCubes::new(127.0));
    assert_twins(&MarchingCubes::new(127.0), &large, assert_same_surface);
}

#[test]
fn slices_larger_than_a_binding_are_identical_on_all_devices() {
    let _turn = wait_for_memory();
    // The small device binds 1 MiB. One slice is more, and is meshed in bands of rows.
    let dims = [1030, 1100, 3];
    let Grid { mut samples, .. } = gyroid_volume([dims[0], dims[1], 1]);
    let Samples::U8(values) = &mut samples else { unreachable!() };
    let slice = values.clone();
    values.extend(slice.iter().map(|v| v.wrapping_mul(3)));
    values.extend(slice.iter().rev());
    let kernel = MarchingCubes { close: true, normals: true, ..MarchingCubes::new(128.0) };
    let surface =
        assert_twins(&kernel, &Slab::whole(volume(dims, samples), &kernel), assert_same_surface);
    assert!(surface.triangles.len() > 100_000, "{}", surface.triangles.len());
}

#[test]
fn samples_equal_to_the_isovalue_leave_no_holes() {
    // Many samples equal the isovalue. All sides match, even those of degenerate triangles.
    let values = Noise(5).bytes(9 * 10 * 11).iter().map(|v| 79 + v % 3).collect();
    let volume = volume([9, 10, 11], Samples::U8(values));
    let surface = mesh_on_all_devices(&closing_kernel(80.0), volume);
    assert!(is_closed(&surface));
}

#[test]
fn only_samples_above_the_isovalue_are_inside() {
    let slab = |value| {
        let mut values = vec![0u8; 27];
        values[13] = value;
        Slab::whole(volume([3; 3], Samples::U8(values)), &MarchingCubes::new(80.0))
    };
    let kernel = MarchingCubes::new(80.0);
    assert!(kernel.cpu(&slab(80)).unwrap().positions.is_empty());
    let octahedron = kernel.cpu(&slab(81)).unwrap();
    assert_eq!((octahedron.positions.len(), octahedron.triangles.len()), (6, 8));
    assert!(enclosed_volume(&octahedron) > 0.0);
    // The sample lies at 1.5, the surface 1/81 of a step from it.
    let low = octahedron.bounds().unwrap()[0][0];
    assert_near(f64::from(low), 1.5 - 1.0 / 81.0, 1e-6);
}

#[test]
fn cells_with_nan_are_skipped() {
    let (mut volume, _) = noise([35, 8, 8], Dtype::F32, 77);
    let Samples::F32(values) = &mut volume.samples else { unreachable!() };
    for i in [0, 31, 32, 300, 777, 35 * 8 * 8 - 1] {
        values[i] = f32::NAN;
    }
    values[900] = f32::INFINITY;
    values[1200] = f32::NEG_INFINITY;
    let surface = mesh_on_all_devices(&MarchingCubes::new(0.5), volume.clone());
    assert!(surface.nan_cells >= 12 && surface.nan_cells < 48, "{}", surface.nan_cells);
    assert!(surface.positions.iter().flatten().all(|v| v.is_finite()));
    mesh_on_all_devices(&closing_kernel(0.5), volume.clone());
    // If most samples are NaN, many crossed edges have no complete adjacent cell.
    let Samples::F32(values) = &mut volume.samples else { unreachable!() };
    let mut noise = Noise(8);
    values.iter_mut().filter(|_| noise.next().is_multiple_of(4)).for_each(|v| *v = f32::NAN);
    for kernel in [MarchingCubes::new(0.5), closing_kernel(0.5)] {
        let surface = mesh_on_all_devices(&kernel, volume.clone());
        let mut used = vec![false; surface.positions.len()];
        surface.triangles.as_flattened().iter().for_each(|&i| used[i as usize] = true);
        assert!(used.len() > 50 && used.iter().all(|&used| used));
        assert_same_for_every_height(&kernel, &volume);
    }
}

#[test]
fn vertices_between_extreme_floats_stay_on_their_edges() {
    let pool = [f32::MAX, f32::MIN, f32::INFINITY, f32::NEG_INFINITY, 1.0, -1.0, 1e-30, -1e-30];
    let mut noise = Noise(3);
    let values = (0..512).map(|_| pool[(noise.next() % 8) as usize]).collect();
    mesh_on_all_devices(&MarchingCubes::new(0.0), volume([8; 3], Samples::F32(values)));
}

#[test]
fn spacing_and_origin_transform_vertices() {
    let kernel = MarchingCubes {
        spacing: [0.7, 1.3, 2.9],
        origin: [-100.5, 3.25, 1e-3],
        ..MarchingCubes::new(100.0)
    };
    mesh_on_all_devices(&kernel, byte_noise([40, 11, 6], 1));
}

#[test]
fn normals_point_down_the_gradient() {
    let kernel =
        MarchingCubes { normals: true, spacing: [1.0, 2.0, 0.5], ..MarchingCubes::new(100.25) };
    for close in [false, true] {
        let kernel = MarchingCubes { close, ..kernel.clone() };
        let volume = gyroid_volume([40, 12, 9]);
        let slab = Slab::whole(volume, &kernel);
        let surface = assert_twins(&kernel, &slab, assert_same_surface);
        assert_matches_reference(&surface, &slab.volume, &kernel);
        assert_eq!(surface.normals.len(), surface.positions.len());
        // Most triangles face in the direction of their vertex normals.
        let facing = surface.triangles.iter().filter(|t| {
            let [a, b, c] = t.map(|i| surface.positions[i as usize]);
            let (u, v): ([f32; 3], [f32; 3]) =
                (std::array::from_fn(|i| b[i] - a[i]), std::array::from_fn(|i| c[i] - a[i]));
            let n =
                [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
            let normal = surface.normals[t[0] as usize];
            (0..3).map(|i| n[i] * normal[i]).sum::<f32>() >= 0.0
        });
        let percent = facing.count() * 100 / surface.triangles.len();
        // The faces that close the surface at the volume border do not follow the gradient.
        assert!(close || percent >= 99, "{percent} % face the right way");
    }
}

#[test]
fn every_slab_height_gives_the_same_surface() {
    for (close, normals) in [(false, false), (true, false), (false, true), (true, true)] {
        let kernel = MarchingCubes { close, normals, ..MarchingCubes::new(127.0) };
        assert_same_for_every_height(&kernel, &byte_noise([34, 7, 9], 4));
    }
}

/// Meshes the volume in slabs of every height and checks that all give the same surface.
fn assert_same_for_every_height(kernel: &MarchingCubes, whole: &Grid) {
    let expected = kernel.cpu(&Slab::whole(whole.clone(), kernel)).unwrap();
    let [width, rows, depth] = whole.dims;
    for height in 1..=kernel.layers(depth) {
        let mut found = Surface::default();
        for start in (0..kernel.layers(depth)).step_by(height) {
            let layers = start..(start + height).min(kernel.layers(depth));
            let slices = kernel.slices(&layers, depth);
            let slice = width * rows;
            let samples = whole.samples.part(slices.start * slice..slices.end * slice);
            let slab = Slab {
                volume: volume([width, rows, slices.len()], samples).into(),
                first_slice: slices.start,
                depth,
                layers,
                first_vertex: found.positions.len() as u64,
            };
            found.append(assert_twins(kernel, &slab, assert_same_surface)).unwrap();
        }
        assert_same_surface(&expected, &found, &format!("height {height}"));
    }
}

/// Where the gradients at the two ends of an edge cancel out, rounding must not reverse the normal. It points outwards
/// along the edge on every device.
#[test]
fn normals_point_along_the_edge_where_gradients_cancel() {
    // From 100 - k to 100 + d - k: at 100, the gradients -k and d - k of the ends have the weights 1 - k / d and k / d.
    let pairs: Vec<[u8; 2]> = (2..30).flat_map(|d| (1..d).map(move |k| [k, d])).collect();
    // Each pair has three equal rows, so that the gradient across the middle row is 0.
    let slice = pairs
        .iter()
        .flat_map(|&[k, d]| [100 + d + k, 100 - k, 100 + d - k, 100 + 2 * d - 3 * k].repeat(3));
    let slice: Vec<u8> = slice.collect();
    let cancelling = volume([4, 3 * pairs.len(), 2], Samples::U8(slice.repeat(2)));
    let kernel = MarchingCubes { normals: true, ..MarchingCubes::new(100.0) };
    let surface = mesh_on_all_devices(&kernel, cancelling);
    let mut seen = 0;
    for ([x, y, _], normal) in surface.positions.iter().zip(&surface.normals) {
        if (1.5..2.5).contains(x) && y % 3.0 == 1.5 {
            assert_eq!(*normal, [-1.0, 0.0, 0.0], "{:?}", pairs[(y / 3.0) as usize]);
            seen += 1;
        }
    }
    assert_eq!(seen, 2 * pairs.len());
}
