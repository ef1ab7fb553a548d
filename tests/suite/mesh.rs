//! Marching cubes: the CPU and GPU implementations against naive references, and the command line.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    panic::catch_unwind,
    path::{Path, PathBuf},
};

use gpuproc::{
    data::{dtype::Dtype, samples::Samples, surface::Surface, volume::Volume},
    device::Kernel,
    kernels::mesh::{
        MarchingCubes, Slab,
        post::{Goal, PartFilter, Stats, keep_parts, simplify, smooth},
    },
};
use ply_rs_bw::{parser::Parser, ply::DefaultElement};

use crate::common::{Noise, assert_twins, subjects};

// ---- the naive reference ----

/// A point of the grid.
type Point = [i64; 3];
/// An edge of the grid: its lower point and its axis.
type Edge = (Point, usize);

/// Marching cubes over f64 values, one grid edge at a time.
struct NaiveMarchingCubes<'a> {
    dims: [i64; 3],
    values: &'a [f64],
    kernel: &'a MarchingCubes,
}

impl NaiveMarchingCubes<'_> {
    /// The value at a point; `None` outside the volume.
    fn value(&self, p: Point) -> Option<f64> {
        let inside = (0..3).all(|axis| (0..self.dims[axis]).contains(&p[axis]));
        let [x, y, _] = self.dims;
        inside.then(|| self.values[(p[0] + x * (p[1] + y * p[2])) as usize])
    }

    fn is_inside(&self, p: Point) -> bool {
        self.value(p).is_some_and(|value| value > self.kernel.iso)
    }

    fn is_nan(&self, p: Point) -> bool {
        self.value(p).is_some_and(f64::is_nan)
    }

    /// The first point, and the number of points along each axis.
    fn grid(&self) -> (i64, [i64; 3]) {
        let pad = i64::from(self.kernel.close);
        (-pad, self.dims.map(|n| n + 2 * pad))
    }

    fn points(&self) -> impl Iterator<Item = Point> {
        let (first, [nx, ny, nz]) = self.grid();
        let flat = nx < 2 || ny < 2 || nz < 2;
        let count = if flat { 0 } else { nx * ny * nz };
        (0..count).map(move |i| [first + i % nx, first + i / nx % ny, first + i / nx / ny])
    }

    fn is_in_grid(&self, p: Point) -> bool {
        let (first, n) = self.grid();
        (0..3).all(|axis| p[axis] >= first && p[axis] < first + n[axis])
    }

    /// Crossed edges in the canonical order, and the points where the surface crosses them.
    fn vertices(&self) -> Vec<(Edge, [f64; 3])> {
        let (first, _) = self.grid();
        let mut found: Vec<_> = self
            .points()
            .flat_map(|p| (0..3).map(move |axis| (p, axis)))
            .filter_map(|edge| Some((edge, self.crossing(edge)?)))
            .collect();
        found.sort_by_key(|(([x, y, z], axis), _)| (*z, *y, (x - first) / 32, *axis, *x));
        found
    }

    fn crossing(&self, (a, axis): Edge) -> Option<[f64; 3]> {
        let b = next_point(a, axis);
        let is_crossed = self.is_in_grid(b)
            && self.is_inside(a) != self.is_inside(b)
            && self.cells_around(a, axis).iter().any(|&cell| self.has_surface(cell));
        is_crossed.then(|| {
            let t = match (self.value(a), self.value(b)) {
                (Some(a), Some(b)) if a.is_infinite() && b.is_infinite() => 0.5,
                (Some(a), Some(_)) if a.is_infinite() => 1.0,
                (Some(_), Some(b)) if b.is_infinite() => 0.0,
                (Some(a), Some(b)) => (self.kernel.iso - a) / (b - a),
                _ => 0.5,
            };
            std::array::from_fn(|i| {
                let along = a[i] as f64 + 0.5 + if i == axis { t } else { 0.0 };
                along * self.kernel.spacing[i] + self.kernel.origin[i]
            })
        })
    }

    /// The unit vector down the gradient where an edge is crossed, by central differences at both ends, and the
    /// tolerance for an f32 normal; `None` where rounding determines the direction.
    fn normal(&self, (a, axis): Edge) -> Option<([f64; 3], f64)> {
        let b = next_point(a, axis);
        let near = |p: Point| -> Point { std::array::from_fn(|i| p[i].clamp(0, self.dims[i] - 1)) };
        let value = |p: Point| self.value(near(p)).unwrap();
        let gradient = |p: Point| -> [f64; 3] {
            std::array::from_fn(|i| {
                let [low, high] = [-1, 1].map(|by| {
                    let mut p = p;
                    p[i] += by;
                    near(p)
                });
                let steps = (high[i] - low[i]).max(1) as f64;
                (value(high) - value(low)) / (steps * self.kernel.spacing[i])
            })
        };
        let length = |v: [f64; 3]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let t = match (self.value(a), self.value(b)) {
            (Some(a), Some(b)) => (self.kernel.iso - a) / (b - a),
            _ => 0.5,
        };
        let (from, to) = (gradient(a), gradient(b));
        let down: [f64; 3] = std::array::from_fn(|i| -(from[i] + (to[i] - from[i]) * t));
        let size = length(down);
        let lost = (length(from) + length(to)) / size;
        let is_clear = lost < 1e4 && (1e-12..1e15).contains(&size);
        is_clear.then(|| (down.map(|v| v / size), 1e-6 * lost))
    }

    /// The four cells around the edge along `axis` from `a`.
    fn cells_around(&self, a: Point, axis: usize) -> [Point; 4] {
        let (u, v) = ((axis + 1) % 3, (axis + 2) % 3);
        [[0, 0], [1, 0], [0, 1], [1, 1]].map(|[du, dv]| {
            std::array::from_fn(|i| {
                a[i] - if i == u {
                    du
                } else if i == v {
                    dv
                } else {
                    0
                }
            })
        })
    }

    /// The triangle sides that the surface must have on each face of the grid, with the number of cells (one or two)
    /// that share the face. On a face whose corners alternate, the two outside corners are cut off.
    fn sides(&self) -> BTreeMap<[Edge; 2], u32> {
        let mut sides = BTreeMap::new();
        for p in self.points() {
            for axis in 0..3 {
                let (u, v) = ((axis + 1) % 3, (axis + 2) % 3);
                let ring = [p, next_point(p, u), next_point(next_point(p, u), v), next_point(p, v)];
                if !ring.iter().all(|&q| self.is_in_grid(q)) {
                    continue;
                }
                let below = std::array::from_fn(|i| p[i] - i64::from(i == axis));
                let cells = [below, p].iter().filter(|&&cell| self.has_surface(cell)).count();
                let edges = [(p, u), (next_point(p, u), v), (next_point(p, v), u), (p, v)];
                let crossed: Vec<Edge> = (0..4)
                    .filter(|&i| self.is_inside(ring[i]) != self.is_inside(ring[(i + 1) % 4]))
                    .map(|i| edges[i])
                    .collect();
                let mut add = |mut pair: [Edge; 2]| {
                    pair.sort();
                    *sides.entry(pair).or_default() += cells as u32;
                };
                match crossed.len() {
                    0 => {}
                    2 => add([crossed[0], crossed[1]]),
                    _ => (0..4).filter(|&i| !self.is_inside(ring[i])).for_each(|i| {
                        add([edges[(i + 3) % 4], edges[i]]);
                    }),
                }
            }
        }
        sides.retain(|_, cells| *cells > 0);
        sides
    }

    /// Whether a cell exists and none of its corners is NaN.
    fn has_surface(&self, cell: Point) -> bool {
        let corners =
            (0..8).map(|i| [cell[0] + (i & 1), cell[1] + (i >> 1 & 1), cell[2] + (i >> 2)]);
        corners.into_iter().all(|p| self.is_in_grid(p) && !self.is_nan(p))
    }
}

fn next_point(mut p: Point, axis: usize) -> Point {
    p[axis] += 1;
    p
}

/// Compares `surface` with the naive reference: the vertices one by one, and the triangle sides face by face.
pub fn assert_matches_reference(surface: &Surface, volume: &Volume, kernel: &MarchingCubes) {
    let values: Vec<f64> = match &volume.samples {
        Samples::F32(v) => v.iter().map(|&v| v.into()).collect(),
        Samples::F64(v) => v.clone(),
        other => integer_samples(other).iter().map(|&v| v as f64).collect(),
    };
    let naive = NaiveMarchingCubes { dims: volume.dims.map(|n| n as i64), values: &values, kernel };
    let expected = naive.vertices();
    assert_eq!(surface.positions.len(), expected.len());
    for (found, (edge, expected)) in surface.positions.iter().zip(&expected) {
        for axis in 0..3 {
            let error = (f64::from(found[axis]) - expected[axis]).abs() / kernel.spacing[axis];
            let allowed = 1e-5f64.max(expected[axis].abs() * 2e-7 / kernel.spacing[axis]);
            assert!(error <= allowed, "{edge:?}: {found:?} instead of {expected:?}");
        }
    }
    // Samples of the other types are rounded before they are subtracted.
    if !matches!(volume.samples, Samples::U32(_) | Samples::I32(_) | Samples::F64(_)) {
        for (found, (edge, _)) in surface.normals.iter().zip(&expected) {
            let Some((expected, allowed)) = naive.normal(*edge) else { continue };
            let is_near = |axis: usize| (f64::from(found[axis]) - expected[axis]).abs() <= allowed;
            assert!((0..3).all(is_near), "{edge:?}: normal {found:?} instead of {expected:?}");
        }
    }
    let mut sides: HashMap<[usize; 2], i32> = HashMap::new();
    let mut uses: BTreeMap<[Edge; 2], u32> = BTreeMap::new();
    let expected_sides = naive.sides();
    for triangle in &surface.triangles {
        let [a, b, c] = triangle.map(|i| i as usize);
        assert!(a != b && b != c && c != a);
        for (a, b) in [(a, b), (b, c), (c, a)] {
            *sides.entry([a, b]).or_default() += 1;
            let mut pair = [expected[a].0, expected[b].0];
            pair.sort();
            if expected_sides.contains_key(&pair) {
                *uses.entry(pair).or_default() += 1;
            }
        }
    }
    assert_eq!(uses, expected_sides);
    // All other sides lie inside a cell. A side that two triangles share occurs once in each direction, or the winding
    // is inconsistent.
    for (&[a, b], &count) in &sides {
        assert_eq!(count, 1, "two triangles share a side in the same direction");
        let mut pair = [expected[a].0, expected[b].0];
        pair.sort();
        let reverse = sides.get(&[b, a]).copied().unwrap_or_default();
        assert_eq!(reverse, i32::from(expected_sides.get(&pair) != Some(&1)));
    }
}

fn integer_samples(samples: &Samples) -> Vec<i64> {
    match samples {
        Samples::U8(v) => v.iter().map(|&v| v.into()).collect(),
        Samples::I8(v) => v.iter().map(|&v| v.into()).collect(),
        Samples::U16(v) => v.iter().map(|&v| v.into()).collect(),
        Samples::I16(v) => v.iter().map(|&v| v.into()).collect(),
        Samples::U32(v) => v.iter().map(|&v| v.into()).collect(),
        Samples::I32(v) => v.iter().map(|&v| v.into()).collect(),
        Samples::F32(_) | Samples::F64(_) => unreachable!("not integers"),
    }
}

fn is_closed(surface: &Surface) -> bool {
    let mut balance: HashMap<[u32; 2], i32> = HashMap::new();
    for [a, b, c] in &surface.triangles {
        for (a, b) in [(a, b), (b, c), (c, a)] {
            *balance.entry([*a.min(b), *a.max(b)]).or_default() += if a < b { 1 } else { -1 };
        }
    }
    balance.values().all(|&n| n == 0)
}

/// The enclosed volume, positive if the triangles face outwards.
fn signed_volume(surface: &Surface) -> f64 {
    let at = |i: u32| surface.positions[i as usize].map(f64::from);
    let parts = surface.triangles.iter().map(|t| {
        let [a, b, c] = t.map(at);
        a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0])
            + a[2] * (b[0] * c[1] - b[1] * c[0])
    });
    parts.sum::<f64>() / 6.0
}

// ---- volumes ----

fn volume(dims: [usize; 3], samples: Samples) -> Volume {
    Volume { dims, samples }
}

fn byte_noise(dims: [usize; 3], seed: u64) -> Volume {
    volume(dims, Samples::U8(Noise(seed).bytes(dims.iter().product())))
}

/// A gyroid of bytes around 128, with surfaces everywhere.
fn gyroid_volume(dims: [usize; 3]) -> Volume {
    let [nx, ny, nz] = dims;
    let mut values = Vec::with_capacity(nx * ny * nz);
    for (z, y, x) in
        (0..nz).flat_map(|z| (0..ny).flat_map(move |y| (0..nx).map(move |x| (z, y, x))))
    {
        let [x, y, z] = [x, y, z].map(|v| v as f64 * 0.31);
        let gyroid = x.sin() * y.cos() + y.sin() * z.cos() + z.sin() * x.cos();
        values.push((128.0 + 60.0 * gyroid).clamp(0.0, 255.0) as u8);
    }
    volume(dims, Samples::U8(values))
}

/// Noise of any sample type, with repeated values and the minimum of the type, and isovalues for it.
pub fn noise(dims: [usize; 3], dtype: Dtype, seed: u64) -> (Volume, Vec<f64>) {
    let len = dims.iter().product();
    let mut noise = Noise(seed);
    let mut samples = Samples::zeros(dtype, len).unwrap();
    match &mut samples {
        Samples::F32(values) => values.fill_with(|| (noise.unit() * 20.0 - 10.0) as f32),
        Samples::F64(values) => values.fill_with(|| noise.unit() * 2e-6 + 1e6),
        Samples::U32(values) => values.fill_with(|| 0x8000_0000 + (noise.next() % 9) as u32),
        Samples::I32(values) => values.fill_with(|| (noise.next() % 9) as i32 - 0x7fff_fff0),
        other => {
            let bytes = noise.bytes(len * dtype.size());
            other.as_bytes_mut().copy_from_slice(&bytes);
            // Every seventh sample is the minimum of the type, so that the minimum can be an isovalue.
            let least: &[u8] = match dtype {
                Dtype::I8 => &[0x80],
                Dtype::I16 => &[0, 0x80],
                _ => &[0; 2][..dtype.size()],
            };
            let values = other.as_bytes_mut().chunks_exact_mut(least.len());
            values.step_by(7).for_each(|value| value.copy_from_slice(least));
        }
    }
    let isos = match dtype {
        Dtype::U8 => vec![0.0, 80.0, 127.5, 254.0, 254.5],
        Dtype::I8 => vec![-128.0, -1.0, 3.25],
        Dtype::U16 => vec![0.0, 30_000.0, 40_000.25],
        Dtype::I16 => vec![-32_768.0, -7.0, 12_345.5],
        Dtype::U32 => vec![2_147_483_652.0, 2_147_483_652.5],
        Dtype::I32 => vec![-2_147_483_628.0],
        Dtype::F32 => vec![0.1, -3.0],
        Dtype::F64 => vec![1e6 + 1e-6],
        Dtype::U64 | Dtype::I64 => unreachable!("volumes hold no {dtype}"),
    };
    (volume(dims, samples), isos)
}

// ---- comparisons ----

pub fn assert_same_surface(expected: &Surface, found: &Surface, name: &str) {
    assert_eq!(expected.triangles.len(), found.triangles.len(), "{name}");
    assert!(expected.triangles == found.triangles, "{name}: the triangles differ");
    assert_eq!(expected.positions.len(), found.positions.len(), "{name}");
    for (i, (a, b)) in expected.positions.iter().zip(&found.positions).enumerate() {
        assert_eq!(a.map(f32::to_bits), b.map(f32::to_bits), "{name}: vertex {i}: {a:?} {b:?}");
    }
    assert_eq!(expected.normals.len(), found.normals.len(), "{name}");
    for (i, (a, b)) in expected.normals.iter().zip(&found.normals).enumerate() {
        assert_eq!(a.map(f32::to_bits), b.map(f32::to_bits), "{name}: normal {i}: {a:?} {b:?}");
    }
    assert_eq!(expected.nan_cells, found.nan_cells, "{name}");
}

/// Meshes on every device and checks the surface against the reference.
fn mesh_on_all_devices(kernel: &MarchingCubes, volume: Volume) -> Surface {
    let slab = Slab::whole(volume, kernel);
    let surface = assert_twins(kernel, &slab, assert_same_surface);
    assert_matches_reference(&surface, &slab.volume, kernel);
    surface
}

fn closing_kernel(iso: f64) -> MarchingCubes {
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
        assert!(case == 0 || signed_volume(&closed) > 0.0, "case {case}");
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
    // The small device binds 1 MiB. One slice is more, and is meshed in bands of rows.
    let dims = [1030, 1100, 3];
    let Volume { mut samples, .. } = gyroid_volume([dims[0], dims[1], 1]);
    let Samples::U8(values) = &mut samples else { unreachable!() };
    let slice = values.clone();
    values.extend(slice.iter().map(|v| v.wrapping_mul(3)));
    values.extend(slice.iter().rev());
    for (close, normals) in [(false, true), (true, false)] {
        let kernel = MarchingCubes { close, normals, ..MarchingCubes::new(128.0) };
        let slab = Slab::whole(volume(dims, samples.clone()), &kernel);
        let surface = assert_twins(&kernel, &slab, assert_same_surface);
        assert!(surface.triangles.len() > 100_000);
    }
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
    assert!(signed_volume(&octahedron) > 0.0);
    // The sample lies at 1.5, the surface 1/81 of a step from it.
    let low = octahedron.bounds().unwrap()[0][0];
    assert!((f64::from(low) - (1.5 - 1.0 / 81.0)).abs() < 1e-6);
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
fn assert_same_for_every_height(kernel: &MarchingCubes, whole: &Volume) {
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

#[test]
fn comparison_detects_swapped_triangles() {
    let kernel = MarchingCubes::new(127.0);
    let good = kernel.cpu(&Slab::whole(byte_noise([8; 3], 1), &kernel)).unwrap();
    let mut bad = good.clone();
    bad.triangles.swap(3, 4);
    let panic = catch_unwind(|| assert_same_surface(&good, &bad, "swapped")).unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().contains("the triangles differ"));
}

#[test]
fn reference_detects_a_missing_triangle() {
    let kernel = MarchingCubes::new(127.0);
    let slab = Slab::whole(byte_noise([8; 3], 1), &kernel);
    let mut surface = kernel.cpu(&slab).unwrap();
    surface.triangles.remove(5);
    assert!(catch_unwind(|| assert_matches_reference(&surface, &slab.volume, &kernel)).is_err());
}

// ---- the fixture ----

/// A skull built from a few smooth shapes, with x to its left, y backwards and z up. It has 64 samples along each axis,
/// the value 80 on its surface, and larger values inside.
fn skull() -> Vec<u8> {
    let mut values = Vec::with_capacity(1 << 18);
    for i in 0..1usize << 18 {
        let [x, y, z] = [i & 63, i >> 6 & 63, i >> 12].map(|v| (v as f64 - 31.5) / 32.0);
        // The value changes by 24 per sample step.
        let value = 80.0 - skull_distance([x.abs(), y, z]) * 32.0 * 24.0;
        values.push(value.round().clamp(0.0, 255.0) as u8);
    }
    values
}

/// Approximate signed distance from the skull's surface, negative inside.
fn skull_distance(p: [f64; 3]) -> f64 {
    let [x, y, z] = p;
    let ellipsoid = |centre: [f64; 3], radii: [f64; 3]| {
        let scaled: [f64; 3] = std::array::from_fn(|i| (p[i] - centre[i]) / radii[i]);
        let length = scaled.iter().map(|v| v * v).sum::<f64>().sqrt();
        (length - 1.0) * radii.iter().copied().fold(f64::MAX, f64::min)
    };
    let join = |a: f64, b: f64, width: f64| {
        let h = (0.5 + 0.5 * (b - a) / width).clamp(0.0, 1.0);
        b + (a - b) * h - width * h * (1.0 - h)
    };
    let cut = |a: f64, b: f64, width: f64| -join(-a, b, width);
    let cranium = ellipsoid([0.0, 0.12, 0.28], [0.60, 0.72, 0.58]);
    let brow = ellipsoid([0.21, -0.50, 0.13], [0.25, 0.12, 0.08]);
    let cheek = ellipsoid([0.37, -0.44, -0.17], [0.15, 0.16, 0.11]);
    let arch = ellipsoid([0.49, -0.14, -0.15], [0.06, 0.36, 0.06]);
    let face = ellipsoid([0.0, -0.35, -0.20], [0.37, 0.31, 0.38]);
    let bone = [brow, cheek, face].into_iter().fold(cranium, |bone, part| join(bone, part, 0.12));
    let palate = ellipsoid([0.0, -0.40, -0.47], [0.27, 0.25, 0.10]);
    let bone = join(join(bone, arch, 0.05), palate, 0.10);
    // The distance outwards from a horseshoe that is open at the back.
    let across = x * 1.12;
    let along = y + 0.38;
    let horseshoe = |radius: f64| (along.min(0.0).powi(2) + across * across).sqrt() - radius;
    let teeth = |centre: f64| {
        let gap = 0.045 * (1.0 - (across.atan2(-along.min(0.0)) * 11.0).cos().abs().sqrt());
        let thick = horseshoe(0.265).abs() - 0.055 + gap;
        let high = (z - centre).abs() - 0.07 + gap;
        thick.max(high).max(along - 0.10)
    };
    let jaw = {
        let body = (horseshoe(0.29) / 0.075).hypot((z + 0.85) / 0.105) - 1.0;
        let body = (body * 0.075).max(along - 0.34);
        let t = ((z + 0.84) / 0.62).clamp(0.0, 1.0);
        let behind = (y + 0.10 - 0.10 * t) / 0.10;
        let beside = (x - 0.30 - 0.13 * t) / 0.055;
        let beyond = (z + 0.84 - 0.62 * t) / 0.08;
        let ramus = ((beside * beside + behind * behind + beyond * beyond).sqrt() - 1.0) * 0.055;
        let chin = ellipsoid([0.0, -0.66, -0.87], [0.16, 0.08, 0.09]);
        join(join(body, ramus, 0.08), chin, 0.08)
    };
    let eye = ellipsoid([0.215, -0.66, -0.03], [0.165, 0.30, 0.145]);
    let nose_width = 0.045 + 0.40 * (-0.15 - z).clamp(0.0, 0.19);
    let nose = (x - nose_width).max(y + 0.40).max((z + 0.25).abs() - 0.13);
    let temple = ellipsoid([0.66, -0.34, 0.06], [0.14, 0.26, 0.24]);
    let inside = ellipsoid([0.0, 0.16, 0.30], [0.50, 0.60, 0.46]);
    let mouth = ellipsoid([0.0, -0.20, -0.64], [0.18, 0.28, 0.14]);
    let holes = [(eye, 0.05), (nose, 0.04), (temple, 0.08), (inside, 0.02), (mouth, 0.04)];
    let skull = holes.into_iter().fold(bone, |bone, (hole, width)| cut(bone, hole, width));
    skull.min(teeth(-0.575)).min(teeth(-0.735)).min(jaw)
}

/// A temporary folder in which the program runs.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    /// Runs `gpuproc mesh` with these arguments. Returns exit code, stdout and stderr.
    fn mesh(&self, arguments: &str) -> (i32, Vec<u8>, String) {
        let mut command = crate::common::gpuproc();
        command.current_dir(&self.0).env_remove("GPUPROC_DEVICE").arg("mesh");
        if !arguments.contains("--device") {
            command.args(["--device", "cpu"]);
        }
        let output = command.args(arguments.split_whitespace()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), output.stdout, stderr)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// Reads a PLY independently of gpuproc.
pub fn read_ply(bytes: &[u8]) -> Surface {
    let ply = Parser::<DefaultElement>::new().read_ply(&mut &bytes[..]).unwrap();
    let float = |element: &DefaultElement, name: &str| element[name].to_f32_lossy().unwrap();
    let vertices = &ply.payload["vertex"];
    let has_normals = vertices.first().is_some_and(|vertex| vertex.contains_key("nx"));
    let triple = |names: [&str; 3]| -> Vec<[f32; 3]> {
        vertices.iter().map(|vertex| names.map(|name| float(vertex, name))).collect()
    };
    Surface {
        positions: triple(["x", "y", "z"]),
        normals: if has_normals { triple(["nx", "ny", "nz"]) } else { Vec::new() },
        triangles: ply.payload["face"]
            .iter()
            .map(|face| face["vertex_indices"].to_u32_list().unwrap().try_into().unwrap())
            .collect(),
        ..Surface::default()
    }
}

#[test]
fn writes_the_skull_as_ply() {
    let folder = Folder::new();
    let skull = fixture("skull_64x64x64_uint8.raw");
    let (code, stdout, stderr) = folder.mesh(&format!("{} --iso 80", skull.display()));
    assert_eq!((code, stdout.len()), (0, 0), "{stderr}");
    assert!(stderr.contains("17920 vertices, 35884 triangles"), "{stderr}");
    let kernel = MarchingCubes::new(80.0);
    let volume = volume([64; 3], Samples::U8(fs::read(&skull).unwrap()));
    let expected = mesh_on_all_devices(&kernel, volume);
    assert!(is_closed(&expected));
    assert_same_surface(
        &expected,
        &read_ply(&fs::read(folder.path("skull_64x64x64_uint8.ply")).unwrap()),
        "ply",
    );
    let (code, _, stderr) = folder.mesh(&format!("{} --iso 80 a.ply --ascii", skull.display()));
    assert_eq!(code, 0, "{stderr}");
    assert_same_surface(&expected, &read_ply(&fs::read(folder.path("a.ply")).unwrap()), "ascii");
    assert_eq!(folder.names(), ["a.ply", "skull_64x64x64_uint8.ply"]);
}

#[test]
fn writes_normals_to_ply() {
    let folder = Folder::new();
    let volume = gyroid_volume([20, 9, 8]);
    folder.write("w_20x9x8_uint8.raw", volume.samples.as_bytes());
    let arguments = "w_20x9x8_uint8.raw --iso 128 --normals --spacing 1,2,3 --origin=-5,0,7";
    let (code, _, stderr) = folder.mesh(arguments);
    assert_eq!(code, 0, "{stderr}");
    let kernel = MarchingCubes {
        normals: true,
        spacing: [1.0, 2.0, 3.0],
        origin: [-5.0, 0.0, 7.0],
        ..MarchingCubes::new(128.0)
    };
    let expected = kernel.cpu(&Slab::whole(volume, &kernel)).unwrap();
    assert_same_surface(
        &expected,
        &read_ply(&fs::read(folder.path("w_20x9x8_uint8.ply")).unwrap()),
        "ply",
    );
    if !subjects().is_empty() {
        let (code, _, stderr) = folder.mesh(&format!("{arguments} gpu.ply --device gpu"));
        assert_eq!(code, 0, "{stderr}");
        assert_same_surface(
            &expected,
            &read_ply(&fs::read(folder.path("gpu.ply")).unwrap()),
            "gpu",
        );
    }
}

#[test]
fn isovalue_outside_the_data_writes_an_empty_mesh_with_a_message() {
    let folder = Folder::new();
    folder.write("v_4x4x4_uint8.raw", &[7; 64]);
    for iso in ["255", "-1", "7", "6.5"] {
        let (code, _, stderr) = folder.mesh(&format!("v_4x4x4_uint8.raw o.ply --iso {iso}"));
        assert_eq!(code, 0, "{stderr}");
        assert!(stderr.contains("empty"), "{stderr}");
        let surface = read_ply(&fs::read(folder.path("o.ply")).unwrap());
        assert_eq!(surface, Surface::default());
    }
}

#[test]
fn file_is_independent_of_the_slab_height() {
    let folder = Folder::new();
    let volume = gyroid_volume([33, 20, 41]);
    folder.write("v_33x20x41_uint8.raw", volume.samples.as_bytes());
    for flags in ["", "--close --normals", "--ascii"] {
        let base = format!("v_33x20x41_uint8.raw --iso 128 {flags}");
        assert_eq!(folder.mesh(&format!("{base} whole.ply")).0, 0);
        let whole = fs::read(folder.path("whole.ply")).unwrap();
        // A slice takes 660 bytes, so slabs have from one to dozens of layers, with and without temporary files.
        for memory in ["1K", "30K", "60K", "100K"] {
            let (code, _, stderr) = folder.mesh(&format!("{base} part.ply --max-memory {memory}"));
            assert_eq!(code, 0, "{stderr}");
            assert!(fs::read(folder.path("part.ply")).unwrap() == whole, "{flags} {memory}");
        }
        let stdin = "- - --dims 33x20x41 --iso 128 --max-memory 30K";
        let mut command = crate::common::gpuproc();
        command.arg("mesh").args(stdin.split_whitespace()).args(flags.split_whitespace());
        command.args(["--device", "cpu"]).write_stdin(volume.samples.as_bytes());
        let output = command.output().unwrap();
        assert!(output.stdout == whole, "{flags}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(folder.names(), ["part.ply", "v_33x20x41_uint8.raw", "whole.ply"]);
}

/// Triangles by the bits of their corner positions, for formats that renumber vertices.
fn corners(surface: &Surface) -> Vec<[[u32; 3]; 3]> {
    let bits = |i: u32| surface.positions[i as usize].map(|v| (v + 0.0).to_bits());
    surface.triangles.iter().map(|triangle| triangle.map(bits)).collect()
}

#[test]
fn stl_obj_and_glb_store_the_same_surface() {
    let folder = Folder::new();
    let volume = gyroid_volume([30, 12, 11]);
    folder.write("v_30x12x11_uint8.raw", volume.samples.as_bytes());
    let kernel = MarchingCubes { normals: true, ..MarchingCubes::new(128.5) };
    let expected = kernel.cpu(&Slab::whole(volume, &kernel)).unwrap();
    for extension in ["stl", "obj", "glb"] {
        let base = "v_30x12x11_uint8.raw --iso 128.5 --normals";
        let (code, _, stderr) = folder.mesh(&format!("{base} m.{extension}"));
        assert_eq!(code, 0, "{stderr}");
        let bytes = fs::read(folder.path(&format!("m.{extension}"))).unwrap();
        let (_, stdout, _) = folder.mesh(&format!("{base} - --format {extension}"));
        assert!(stdout == bytes, "{extension} on standard output");
    }
    let file = |name: &str| fs::File::open(folder.path(name)).unwrap();
    let stl = stl_io::read_stl(&mut std::io::BufReader::new(file("m.stl"))).unwrap();
    let stl = Surface {
        positions: stl.vertices.iter().map(|v| v.0).collect(),
        triangles: stl.faces.iter().map(|face| face.vertices.map(|i| i as u32)).collect(),
        ..Surface::default()
    };
    assert!(corners(&stl) == corners(&expected));
    let (models, _) = tobj::load_obj(folder.path("m.obj"), &tobj::LoadOptions::default()).unwrap();
    let obj = &models[0].mesh;
    let obj_surface = Surface {
        positions: obj.positions.as_chunks().0.to_vec(),
        triangles: obj.indices.as_chunks().0.to_vec(),
        ..Surface::default()
    };
    assert!(corners(&obj_surface) == corners(&expected));
    let obj_normals = obj.indices.iter().map(|&i| &obj.normals[3 * i as usize..][..3]);
    let normals = expected.triangles.as_flattened().iter().map(|&i| &expected.normals[i as usize]);
    assert!(obj_normals.eq(normals));
    let glb = gltf::Gltf::from_slice(&fs::read(folder.path("m.glb")).unwrap()).unwrap();
    let primitive = glb.meshes().next().unwrap().primitives().next().unwrap();
    let reader = primitive.reader(|_| glb.blob.as_deref());
    let found = Surface {
        positions: reader.read_positions().unwrap().collect(),
        normals: reader.read_normals().unwrap().collect(),
        triangles: reader
            .read_indices()
            .unwrap()
            .into_u32()
            .collect::<Vec<_>>()
            .as_chunks::<3>()
            .0
            .to_vec(),
        ..Surface::default()
    };
    assert_same_surface(&expected, &found, "glb");
    let (code, _, stderr) = folder.mesh("v_30x12x11_uint8.raw --iso 300 empty.glb");
    assert_eq!(code, 0, "{stderr}");
    let empty = fs::read(folder.path("empty.glb")).unwrap();
    assert_eq!(gltf::Gltf::from_slice(&empty).unwrap().meshes().count(), 0);
}

#[test]
fn reads_raw_volumes_of_any_byte_order_header_and_compression() {
    let folder = Folder::new();
    let (volume, _) = noise([9, 8, 7], Dtype::U16, 9);
    let little = volume.samples.as_bytes().to_vec();
    let mut big = volume.samples.clone();
    big.swap_bytes();
    folder.write("v_9x8x7_uint16.raw", &little);
    folder.write("big_9x8x7_ushort.raw", big.as_bytes());
    folder.write("head.bin", &[b"header!".as_slice(), &little].concat());
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gz, &little).unwrap();
    folder.write("packed_9x8x7_uint16.raw.gz", &gz.finish().unwrap());
    assert_eq!(folder.mesh("v_9x8x7_uint16.raw --iso 30000 v.ply").0, 0);
    let expected = fs::read(folder.path("v.ply")).unwrap();
    for arguments in [
        "big_9x8x7_ushort.raw --endian big",
        "head.bin --dims 9x8x7 --dtype u16 --header-bytes 7",
        "packed_9x8x7_uint16.raw.gz",
        "packed_9x8x7_uint16.raw.gz --max-memory 1K",
    ] {
        let (code, _, stderr) = folder.mesh(&format!("{arguments} --iso 30000 o.ply"));
        assert_eq!(code, 0, "{arguments}: {stderr}");
        assert!(fs::read(folder.path("o.ply")).unwrap() == expected, "{arguments}");
    }
    // The default output name drops both extensions.
    assert_eq!(folder.mesh("packed_9x8x7_uint16.raw.gz --iso 30000").0, 0);
    assert!(folder.names().contains(&"packed_9x8x7_uint16.ply".to_owned()));
}

#[test]
fn writes_one_file_per_isovalue() {
    let folder = Folder::new();
    folder.write("v_30x12x11_uint8.raw", gyroid_volume([30, 12, 11]).samples.as_bytes());
    for iso in ["100", "150"] {
        assert_eq!(folder.mesh(&format!("v_30x12x11_uint8.raw --iso {iso} one{iso}.ply")).0, 0);
    }
    let (code, _, stderr) = folder.mesh("v_30x12x11_uint8.raw --iso 100,150 m-{iso}.ply");
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(folder.mesh("v_30x12x11_uint8.raw --iso 100,150 --max-memory 2K").0, 0);
    let read = |name: &str| fs::read(folder.path(name)).unwrap();
    for (one, named, numbered) in [
        ("one100.ply", "m-100.ply", "v_30x12x11_uint8-100.ply"),
        ("one150.ply", "m-150.ply", "v_30x12x11_uint8-150.ply"),
    ] {
        assert!(read(one) == read(named) && read(one) == read(numbered));
    }
    assert_eq!(folder.mesh("v_30x12x11_uint8.raw --iso 1,2 -").0, 2);
}

#[test]
fn automatic_isovalue_separates_two_classes() {
    let folder = Folder::new();
    // 400 samples of 10 and 112 of 50: all thresholds in between are equally good, so the middle one is chosen.
    let bytes: Vec<u8> = (0..512).map(|i| if i < 400 { 10 } else { 50 }).collect();
    folder.write("v_8x8x8_uint8.raw", &bytes);
    let floats: Vec<f32> = bytes.iter().map(|&v| f32::from(v) / 100.0).collect();
    folder.write("f_8x8x8_float32.raw", bytemuck::cast_slice(&floats));
    for (arguments, expected) in [
        ("v_8x8x8_uint8.raw", 30.0),
        ("v_8x8x8_uint8.raw --max-memory 1K", 30.0),
        ("f_8x8x8_float32.raw", 0.3),
        ("f_8x8x8_float32.raw --max-memory 1K", 0.3),
    ] {
        let (code, _, stderr) = folder.mesh(&format!("{arguments} --iso auto"));
        assert_eq!(code, 0, "{stderr}");
        let line = stderr.lines().find_map(|line| line.strip_prefix("--iso auto: ")).unwrap();
        let found: f64 = line.parse().unwrap();
        assert!((found - expected).abs() < 1e-4, "{arguments}: {found}");
    }
    folder.write("same_4x4x4_uint8.raw", &[3; 64]);
    assert_eq!(folder.mesh("same_4x4x4_uint8.raw --iso auto").0, 4);
}

/// Balls in a box with `n` samples along each side. The value falls by 10 per step, and is 100 on the surface.
fn balls(n: usize, balls: &[([f64; 3], f64)]) -> Volume {
    let value = |i: usize| {
        let p = [i % n, i / n % n, i / n / n].map(|v| v as f64 + 0.5);
        let inside = balls.iter().map(|(centre, radius)| {
            let squares = (0..3).map(|axis| (p[axis] - centre[axis]).powi(2));
            radius - squares.sum::<f64>().sqrt()
        });
        (100.0 + 10.0 * inside.fold(f64::MIN, f64::max)) as f32
    };
    volume([n; 3], Samples::F32((0..n * n * n).map(value).collect()))
}

#[test]
fn measuring_filtering_smoothing_and_simplifying_are_accurate() {
    let kernel = MarchingCubes::new(100.0);
    let two = balls(48, &[([17.0; 3], 13.0), ([39.0; 3], 5.0)]);
    let two = kernel.cpu(&Slab::whole(two, &kernel)).unwrap();
    let stats = Stats::measure(&two).unwrap();
    let sphere =
        |r: f64| [4.0 * std::f64::consts::PI * r * r, 4.0 / 3.0 * std::f64::consts::PI * r.powi(3)];
    let [area, enclosed] = [0, 1].map(|i| sphere(13.0)[i] + sphere(5.0)[i]);
    assert!((stats.area / area - 1.0).abs() < 0.01, "{stats:?}");
    assert!((stats.volume / enclosed - 1.0).abs() < 0.02, "{stats:?}");
    assert!((stats.volume - signed_volume(&two)).abs() < 1e-3);
    assert_eq!((stats.components, stats.closed), (2, true));

    let one = balls(48, &[([17.0; 3], 13.0)]);
    let one = kernel.cpu(&Slab::whole(one, &kernel)).unwrap();
    let mut largest = two.clone();
    keep_parts(&mut largest, &PartFilter::largest()).unwrap();
    assert_eq!(
        (largest.positions.len(), largest.triangles.len()),
        (one.positions.len(), one.triangles.len())
    );
    assert_eq!(Stats::measure(&largest).unwrap().components, 1);

    // Each filter keeps both balls, the larger one, or none.
    let count = |parts: PartFilter| {
        let mut kept = two.clone();
        keep_parts(&mut kept, &parts).unwrap();
        Stats::measure(&kept).unwrap().components
    };
    let all = PartFilter::default();
    let most = largest.triangles.len() as u32;
    for (parts, expected) in [
        (all, 2),
        (PartFilter { largest: Some(2), ..all }, 2),
        (PartFilter { min_triangles: most, ..all }, 1),
        (PartFilter { min_triangles: most + 1, ..all }, 0),
        (PartFilter { min_volume: 500.0, ..all }, 2),
        (PartFilter { min_volume: 550.0, ..all }, 1),
        (PartFilter { min_volume: 9300.0, largest: Some(2), ..all }, 0),
    ] {
        assert_eq!(count(parts), expected, "{parts:?}");
    }

    let mut smoothed = one.clone();
    smooth(&mut smoothed, 20).unwrap();
    let (before, after) = (Stats::measure(&one).unwrap(), Stats::measure(&smoothed).unwrap());
    assert!((after.volume / before.volume - 1.0).abs() < 0.01, "no shrinking: {after:?}");
    assert!(after.closed && (after.area / before.area - 1.0).abs() < 0.02);
    let mut smoothed = one.clone();
    smooth(&mut smoothed, 100).unwrap();
    let after = Stats::measure(&smoothed).unwrap();
    assert!(
        (after.volume / before.volume - 1.0).abs() < 1e-4,
        "neither shrinks nor grows: {after:?}"
    );

    // Small and thin parts also keep their volumes: balls, a shell, and a part of one voxel.
    let mut small = balls(40, &[([8.3; 3], 2.0), ([20.2; 3], 1.2), ([30.1; 3], 3.0)]);
    if let Samples::F32(values) = &mut small.samples {
        let shell = |i: usize| {
            let p = [i % 40, i / 40 % 40, i / 1600].map(|v| v as f64 - 19.5);
            (100.0 + 10.0 * (1.1 - (p.iter().map(|v| v * v).sum::<f64>().sqrt() - 18.0).abs()))
                as f32
        };
        values.iter_mut().enumerate().for_each(|(i, value)| *value = value.max(shell(i)));
    }
    let small = kernel.cpu(&Slab::whole(small, &kernel)).unwrap();
    let parts = |surface: &Surface| {
        (1..=4)
            .map(|largest| {
                let mut kept = surface.clone();
                keep_parts(&mut kept, &PartFilter { largest: Some(largest), ..all }).unwrap();
                signed_volume(&kept)
            })
            .collect::<Vec<f64>>()
    };
    for pairs in [1, 10, 33] {
        let mut smoothed = small.clone();
        smooth(&mut smoothed, pairs).unwrap();
        for (before, after) in parts(&small).into_iter().zip(parts(&smoothed)) {
            assert!((after / before - 1.0).abs() < 1e-3, "{pairs}: {before} {after}");
        }
        assert!(Stats::measure(&smoothed).unwrap().closed);
    }
    let mut speck = balls(12, &[([6.5; 3], 0.8)]);
    if let Samples::F32(values) = &mut speck.samples {
        values.iter_mut().for_each(|value| *value = value.max(0.0));
    }
    let mut speck = kernel.cpu(&Slab::whole(speck, &kernel)).unwrap();
    let before = Stats::measure(&speck).unwrap();
    smooth(&mut speck, 200).unwrap();
    let ratio = Stats::measure(&speck).unwrap().volume / before.volume;
    assert!((ratio - 1.0).abs() < 1e-3 && before.closed, "{ratio}");

    let mut simple = two.clone();
    simplify(&mut simple, &Goal::share(0.25)).unwrap();
    let ratio = simple.triangles.len() as f64 / two.triangles.len() as f64;
    assert!((0.2..=0.27).contains(&ratio), "{ratio}");
    assert!((Stats::measure(&simple).unwrap().volume / stats.volume - 1.0).abs() < 0.02);
    assert!(simple.triangles.iter().flatten().all(|&i| (i as usize) < simple.positions.len()));

    let mut open = one.clone();
    open.triangles.pop();
    assert!(!Stats::measure(&open).unwrap().closed);
    let mut empty = Surface::default();
    keep_parts(&mut empty, &PartFilter::largest()).unwrap();
    smooth(&mut empty, 3).unwrap();
    simplify(&mut empty, &Goal::share(0.5)).unwrap();
    assert_eq!(
        Stats::measure(&empty).unwrap(),
        Stats { closed: true, genus: Some(0), ..Default::default() }
    );
}

#[test]
fn writes_the_filtered_smoothed_and_simplified_mesh() {
    let folder = Folder::new();
    folder.write(
        "b_48x48x48_float32.raw",
        balls(48, &[([17.0; 3], 13.0), ([39.0; 3], 5.0)]).samples.as_bytes(),
    );
    let flags = "--iso 100 --largest --smooth 3 --simplify 0.5 --normals --stats";
    let (code, _, stderr) = folder.mesh(&format!("b_48x48x48_float32.raw {flags}"));
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("1 connected part, Euler number 2, genus 0, closed"), "{stderr}");
    let surface = read_ply(&fs::read(folder.path("b_48x48x48_float32.ply")).unwrap());
    assert_eq!(Stats::measure(&surface).unwrap().components, 1);
    assert_eq!(surface.normals.len(), surface.positions.len());
}

#[test]
fn bad_input_prints_one_line_and_writes_no_output() {
    let folder = Folder::new();
    folder.write("short_4x4x4_uint8.raw", &[7; 63]);
    folder.write("plain.raw", &[7; 65]);
    folder.write("good_4x4x4_uint8.raw", &[7; 64]);
    let far =
        "NRRD0004\ntype: uchar\ndimension: 3\nsizes: 4 4 4\nspacings: 1 1 1e39\nencoding: raw\n\n";
    folder.write("far.nrrd", &[far.as_bytes(), &[7; 64]].concat());
    let before = folder.names();
    for (arguments, code, message) in [
        ("missing_4x4x4_uint8.raw --iso 1", 7, "cannot read"),
        (". --iso 1", 4, "no image slices"),
        ("short_4x4x4_uint8.raw --iso 1", 4, "64 bytes, but the file has 63"),
        ("plain.raw --iso 1", 4, "--dims"),
        ("plain.raw --iso 1 --dims 0x1x1", 2, "0x1x1"),
        ("plain.raw --iso 1 --dims 99999999999x99999999999x9", 4, "too large"),
        ("good_4x4x4_uint8.raw --iso nan", 2, "--iso"),
        ("good_4x4x4_uint8.raw --iso 1 --spacing 0,1,1", 2, "--spacing"),
        ("good_4x4x4_uint8.raw --iso 1 --spacing 1e308,1,1", 2, "--spacing or --origin"),
        ("good_4x4x4_uint8.raw --iso 1 --spacing 1,1e-44,1", 2, "--spacing or --origin"),
        ("good_4x4x4_uint8.raw --iso 1 --origin 1e39,0,0", 2, "--spacing or --origin"),
        ("good_4x4x4_uint8.raw --iso 1 --origin=0,0,-1e38 --spacing 1,1,1e38", 2, "--origin"),
        ("far.nrrd --iso 1", 4, "out of range for 32-bit coordinates"),
        ("good_4x4x4_uint8.raw --iso 1 none/o.ply", 7, "none/o.ply"),
        ("good_4x4x4_uint8.raw --iso 1 o.xyz", 2, "xyz"),
        ("good_4x4x4_uint8.raw --iso 1 --simplify 0", 2, "greater than 0"),
        ("- --dims 4x4x4 --iso 1", 2, "name an output"),
        ("good_4x4x4_uint8.raw --iso 1 o.ply --dims 4x4x5", 4, "80 bytes, but the file has 64"),
    ] {
        let (found, stdout, stderr) = folder.mesh(arguments);
        assert_eq!(found, code, "{arguments}: {stderr}");
        assert!(stdout.is_empty() && stderr.contains(message), "{arguments}: {stderr}");
        assert!(code == 2 || stderr.trim_end().lines().count() == 1, "{stderr}");
        assert_eq!(folder.names(), before, "{arguments}");
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

#[test]
fn skull_fixture_is_up_to_date() {
    let path = fixture("skull_64x64x64_uint8.raw");
    let values = skull();
    if std::env::var_os("GPUPROC_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &values).unwrap();
    }
    assert!(fs::read(&path).unwrap() == values, "outdated: run this test with GPUPROC_BLESS=1");
}

#[test]
fn json_timings_list_stages_and_mesh_statistics() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/skull_64x64x64_uint8.raw");
    let output = crate::common::gpuproc()
        .current_dir(&folder)
        .args(["mesh", "--iso", "80", "--stats", "--timings=json", "--device", "cpu", "-q"])
        .arg(fixture)
        .args(["skull.ply", "--preview", "skull.png", "--size", "64x48", "--background", "#336699"])
        .assert()
        .success();
    let json: serde_json::Value = serde_json::from_slice(&output.get_output().stderr).unwrap();
    assert_eq!(json["device"], "CPU");
    let result = &json["results"][0];
    assert_eq!((&result["vertices"], &result["triangles"]), (&17_920.into(), &35_884.into()));
    assert_eq!(result["stats"]["closed"], true);
    let stages: Vec<_> =
        json["stages"].as_array().unwrap().iter().map(|s| s["stage"].as_str().unwrap()).collect();
    for stage in ["read", "marching cubes", "render", "encode", "write"] {
        assert!(stages.contains(&stage), "no {stage} in {stages:?}");
    }
    let picture = image::open(folder.path().join("skull.png")).unwrap().to_rgba8();
    assert_eq!(picture.dimensions(), (64, 48));
    assert_eq!(picture.get_pixel(0, 0).0, [0x33, 0x66, 0x99, 255]);
    assert_ne!(picture.get_pixel(32, 20).0, [0x33, 0x66, 0x99, 255]);
}

#[test]
fn rejects_invalid_previews_before_meshing() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/skull_64x64x64_uint8.raw");
    let cases = [("80", "p.doc", 2), ("80,90", "p.png", 2), ("80", "no/p.png", 7)];
    for (iso, picture, code) in cases {
        let mut command = crate::common::gpuproc();
        command.current_dir(&folder).arg("mesh").arg(&fixture).args([
            "--iso",
            iso,
            "--preview",
            picture,
        ]);
        command.args(["--device", "cpu"]).assert().code(code);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "{picture}");
    }
    let mut command = crate::common::gpuproc();
    command.current_dir(&folder).arg("mesh").arg(&fixture);
    command.args(["p.png", "--format", "ply", "--iso", "80", "--preview", "./p.png"]);
    let twice = predicates::str::contains("p.png would be the mesh and its preview");
    command.args(["--device", "cpu"]).assert().code(2).stderr(twice);
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

/// Whether each edge has exactly two triangles, in opposite directions.
fn is_closed_manifold(surface: &Surface) -> bool {
    let mut sides: HashMap<[u32; 2], [u32; 2]> = HashMap::new();
    for &[a, b, c] in &surface.triangles {
        for (a, b) in [(a, b), (b, c), (c, a)] {
            sides.entry([a.min(b), a.max(b)]).or_default()[usize::from(a < b)] += 1;
        }
    }
    sides.values().all(|&counts| counts == [1, 1])
}

/// On noise, edge collapses could leave triangles back to back and edges with four triangles.
#[test]
fn simplified_noise_is_a_closed_manifold() {
    let mut noise = Noise(5);
    for (n, iso, ratio) in [(8, 127.5, 0.5), (12, 180.5, 0.2), (12, 127.5, 0.5)] {
        let kernel = closing_kernel(iso);
        let samples = Samples::U8(noise.bytes(n * n * n));
        let whole = kernel.cpu(&Slab::whole(volume([n; 3], samples), &kernel)).unwrap();
        let mut simple = whole.clone();
        simplify(&mut simple, &Goal::share(ratio)).unwrap();
        assert!(
            is_closed_manifold(&simple) && Stats::measure(&simple).unwrap().closed,
            "{n} {iso} {ratio}"
        );
        assert!(simple.triangles.len() > whole.triangles.len() / 20, "{n} {iso} {ratio}");
        assert!(simple.triangles.iter().flatten().all(|&i| (i as usize) < simple.positions.len()));
        let mut again = whole;
        simplify(&mut again, &Goal::share(ratio)).unwrap();
        assert!(again.triangles == simple.triangles, "simplifying twice gives different triangles");
    }
    // Two tetrahedra that share an edge are closed but not a manifold.
    let corners = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]];
    let touching = Surface {
        positions: (0..6u8).map(|i| [i, i * i, i * i * i].map(f32::from)).collect(),
        triangles: [[0, 1, 2, 3], [0, 1, 4, 5]]
            .iter()
            .flat_map(|own: &[u32; 4]| corners.map(|corner| corner.map(|i: usize| own[i])))
            .collect(),
        ..Surface::default()
    };
    assert!(!Stats::measure(&touching).unwrap().closed && is_closed(&touching));
}
