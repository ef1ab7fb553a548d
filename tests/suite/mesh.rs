//! Mesh: both twins against naive references, and the command line.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::{Path, PathBuf},
};

use assert_cmd::Command;
use gpuproc::{
    device::Kernel,
    for_samples,
    io::volume::Volume,
    kernels::mesh::{MarchingCubes, Slab, Surface},
    samples::{Dtype, Samples},
};
use ply_rs_bw::{parser::Parser, ply::DefaultElement};

use crate::common::{Noise, assert_twins};

// ---- the naive reference ----

/// A point of the grid.
type Point = [i64; 3];
/// An edge of the grid: its lower point and its axis.
type Edge = (Point, usize);

/// A volume as the reference sees it: f64 values, and nothing beyond.
struct Naive<'a> {
    dims: [i64; 3],
    values: &'a [f64],
    kernel: &'a MarchingCubes,
}

impl Naive<'_> {
    /// The value at a point; nothing beyond the samples.
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

    fn is_point(&self, p: Point) -> bool {
        let (first, n) = self.grid();
        (0..3).all(|axis| p[axis] >= first && p[axis] < first + n[axis])
    }

    /// Crossed edges in the canonical order, and where the surface passes them.
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
        let b = step(a, axis);
        let is_crossed = self.is_point(b)
            && self.is_inside(a) != self.is_inside(b)
            && !self.is_nan(a)
            && !self.is_nan(b);
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

    /// For every face of the grid, the sides that the surface must have there and how many cells,
    /// one or two, must each have them. An alternating face has its two outside corners cut off.
    fn sides(&self) -> BTreeMap<[Edge; 2], u32> {
        let mut sides = BTreeMap::new();
        for p in self.points() {
            for axis in 0..3 {
                let (u, v) = ((axis + 1) % 3, (axis + 2) % 3);
                let ring = [p, step(p, u), step(step(p, u), v), step(p, v)];
                if !ring.iter().all(|&q| self.is_point(q)) {
                    continue;
                }
                let below = std::array::from_fn(|i| p[i] - i64::from(i == axis));
                let cells = [below, p].iter().filter(|&&cell| self.has_surface(cell)).count();
                let edges = [(p, u), (step(p, u), v), (step(p, v), u), (p, v)];
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

    /// Whether a cell exists and all its corners are numbers.
    fn has_surface(&self, cell: Point) -> bool {
        let corners =
            (0..8).map(|i| [cell[0] + (i & 1), cell[1] + (i >> 1 & 1), cell[2] + (i >> 2)]);
        corners.into_iter().all(|p| self.is_point(p) && !self.is_nan(p))
    }
}

fn step(mut p: Point, axis: usize) -> Point {
    p[axis] += 1;
    p
}

/// Holds `surface` against the naive reference: the vertices one by one, and the triangles' sides
/// face by face.
fn check(surface: &Surface, volume: &Volume, kernel: &MarchingCubes) {
    let values: Vec<f64> = match &volume.samples {
        Samples::F32(v) => v.iter().map(|&v| v.into()).collect(),
        Samples::F64(v) => v.clone(),
        other => integers(other).iter().map(|&v| v as f64).collect(),
    };
    let naive = Naive { dims: volume.dims.map(|n| n as i64), values: &values, kernel };
    let expected = naive.vertices();
    assert_eq!(surface.positions.len(), expected.len());
    for (found, (edge, expected)) in surface.positions.iter().zip(&expected) {
        for axis in 0..3 {
            let error = (f64::from(found[axis]) - expected[axis]).abs() / kernel.spacing[axis];
            let allowed = 1e-5f64.max(expected[axis].abs() * 2e-7 / kernel.spacing[axis]);
            assert!(error <= allowed, "{edge:?}: {found:?} is not {expected:?}");
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
    // Every other side is a cut inside a cell, and every side of two cells runs once in each
    // direction, or winding is not consistent.
    for (&[a, b], &count) in &sides {
        assert_eq!(count, 1, "two triangles run along one side in one direction");
        let mut pair = [expected[a].0, expected[b].0];
        pair.sort();
        let reverse = sides.get(&[b, a]).copied().unwrap_or_default();
        assert_eq!(reverse, i32::from(expected_sides.get(&pair) != Some(&1)));
    }
}

fn integers(samples: &Samples) -> Vec<i64> {
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

/// Six times the enclosed volume, positive when normals point outwards.
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

fn bytes(dims: [usize; 3], seed: u64) -> Volume {
    volume(dims, Samples::U8(Noise(seed).bytes(dims.iter().product())))
}

/// A smooth field of bytes around 128 with surfaces everywhere.
fn waves(dims: [usize; 3]) -> Volume {
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

/// Noise of any type, with the extremes of the type and repeated values among it.
fn noise(dims: [usize; 3], dtype: Dtype, seed: u64) -> (Volume, Vec<f64>) {
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
            // The least value now and then, so that it can be an isovalue, too.
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
    };
    (volume(dims, samples), isos)
}

// ---- twins ----

fn same(expected: &Surface, found: &Surface, name: &str) {
    assert_eq!(expected.triangles.len(), found.triangles.len(), "{name}");
    assert!(expected.triangles == found.triangles, "{name}: other triangles");
    assert_eq!(expected.positions.len(), found.positions.len(), "{name}");
    for (i, (a, b)) in expected.positions.iter().zip(&found.positions).enumerate() {
        assert_eq!(a.map(f32::to_bits), b.map(f32::to_bits), "{name}: vertex {i}: {a:?} {b:?}");
    }
    assert_eq!(expected.normals.len(), found.normals.len(), "{name}");
    for (a, b) in expected.normals.iter().flatten().zip(found.normals.iter().flatten()) {
        assert!((a - b).abs() <= 1e-5, "{name}: {a} {b}");
    }
    assert_eq!(expected.nan_cells, found.nan_cells, "{name}");
}

/// Meshes on every device, and checks the result.
fn mesh(kernel: &MarchingCubes, volume: Volume) -> Surface {
    let slab = Slab::whole(volume, kernel);
    let surface = assert_twins(kernel, &slab, same);
    check(&surface, &slab.volume, kernel);
    surface
}

fn closing(iso: f64) -> MarchingCubes {
    MarchingCubes { close: true, ..MarchingCubes::new(iso) }
}

#[test]
fn all_256_cases_are_right_and_close() {
    // The corners in the order of the cases' bits.
    let corners = [0, 1, 3, 2, 4, 5, 7, 6];
    for case in 0..256u32 {
        let mut values = vec![0u8; 8];
        (0..8).for_each(|i| values[corners[i]] = if case >> i & 1 == 1 { 200 } else { 10 });
        let cell = volume([2; 3], Samples::U8(values));
        mesh(&MarchingCubes::new(80.0), cell.clone());
        let closed = mesh(&closing(80.0), cell);
        assert!(is_closed(&closed), "case {case}");
        assert!(case == 0 || signed_volume(&closed) > 0.0, "case {case}");
    }
}

#[test]
fn noise_of_every_type_is_right() {
    use Dtype::*;
    for (seed, dtype) in [U8, I8, U16, I16, U32, I32, F32, F64].into_iter().enumerate() {
        let (volume, isos) = noise([37, 9, 8], dtype, seed as u64);
        for iso in isos {
            let surface = mesh(&MarchingCubes::new(iso), volume.clone());
            assert!(!surface.triangles.is_empty(), "{dtype} {iso}");
            assert!(is_closed(&mesh(&closing(iso), volume.clone())), "{dtype} {iso}");
        }
    }
}

#[test]
fn all_sizes_work() {
    let sides = [1, 2, 3, 31, 32, 33, 64, 65];
    for (i, &x) in sides.iter().enumerate() {
        for (j, &y) in [1, 2, 5].iter().enumerate() {
            for z in [1, 2, 3, 7] {
                let volume = bytes([x, y, z], (i * 9 + j) as u64);
                let surface = mesh(&MarchingCubes::new(127.0), volume.clone());
                assert_eq!(surface.positions.is_empty(), x.min(y).min(z) == 1);
                mesh(&closing(127.0), volume);
            }
        }
    }
    // More than a workgroup of words, more than one of the small device's bindings and dispatches.
    mesh(&MarchingCubes::new(127.0), waves([48, 40, 37]));
    let large = Slab::whole(waves([160, 107, 131]), &MarchingCubes::new(127.0));
    assert_twins(&MarchingCubes::new(127.0), &large, same);
}

#[test]
fn ties_leave_no_holes() {
    // Many samples equal the isovalue; all sides match, whatever area the triangles have.
    let values = Noise(5).bytes(9 * 10 * 11).iter().map(|v| 79 + v % 3).collect();
    let volume = volume([9, 10, 11], Samples::U8(values));
    let surface = mesh(&closing(80.0), volume);
    assert!(is_closed(&surface));
}

#[test]
fn only_greater_is_inside() {
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
    // The sample sits at 1.5, the surface 1/81 of a step from it.
    let low = octahedron.bounds().unwrap()[0][0];
    assert!((f64::from(low) - (1.5 - 1.0 / 81.0)).abs() < 1e-6);
}

#[test]
fn cells_with_nan_emit_nothing() {
    let (mut volume, _) = noise([35, 8, 8], Dtype::F32, 77);
    let Samples::F32(values) = &mut volume.samples else { unreachable!() };
    for i in [0, 31, 32, 300, 777, 35 * 8 * 8 - 1] {
        values[i] = f32::NAN;
    }
    values[900] = f32::INFINITY;
    values[1200] = f32::NEG_INFINITY;
    let surface = mesh(&MarchingCubes::new(0.5), volume.clone());
    assert!(surface.nan_cells >= 12 && surface.nan_cells < 48, "{}", surface.nan_cells);
    assert!(surface.positions.iter().flatten().all(|v| v.is_finite()));
    mesh(&closing(0.5), volume);
}

#[test]
fn extreme_floats_stay_on_their_edges() {
    let pool = [f32::MAX, f32::MIN, f32::INFINITY, f32::NEG_INFINITY, 1.0, -1.0, 1e-30, -1e-30];
    let mut noise = Noise(3);
    let values = (0..512).map(|_| pool[(noise.next() % 8) as usize]).collect();
    mesh(&MarchingCubes::new(0.0), volume([8; 3], Samples::F32(values)));
}

#[test]
fn spacing_and_origin_move_vertices() {
    let kernel = MarchingCubes {
        spacing: [0.7, 1.3, 2.9],
        origin: [-100.5, 3.25, 1e-3],
        ..MarchingCubes::new(100.0)
    };
    mesh(&kernel, bytes([40, 11, 6], 1));
}

#[test]
fn normals_point_down_the_gradient() {
    let kernel =
        MarchingCubes { normals: true, spacing: [1.0, 2.0, 0.5], ..MarchingCubes::new(100.25) };
    for close in [false, true] {
        let kernel = MarchingCubes { close, ..kernel.clone() };
        let volume = waves([40, 12, 9]);
        let slab = Slab::whole(volume, &kernel);
        let surface = assert_twins(&kernel, &slab, same);
        assert_eq!(surface.normals.len(), surface.positions.len());
        for normal in &surface.normals {
            let length: f32 = normal.iter().map(|v| v * v).sum();
            assert!((length - 1.0).abs() < 1e-5);
        }
        // Most triangles face the way of their vertices' normals.
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
        // The lid that closes the volume has no gradient of its own.
        assert!(close || percent >= 99, "{percent} % face the right way");
    }
}

#[test]
fn every_slab_height_gives_the_same_surface() {
    for (close, normals) in [(false, false), (true, false), (false, true), (true, true)] {
        let kernel = MarchingCubes { close, normals, ..MarchingCubes::new(127.0) };
        let whole = Slab::whole(bytes([34, 7, 9], 4), &kernel);
        let expected = kernel.cpu(&whole).unwrap();
        let (dims, depth) = (whole.volume.dims, 9);
        for height in 1..=kernel.layers(depth) {
            let mut found = Surface::default();
            for start in (0..kernel.layers(depth)).step_by(height) {
                let layers = start..(start + height).min(kernel.layers(depth));
                let slices = kernel.slices(&layers, depth);
                let slice = dims[0] * dims[1];
                let samples = for_samples!(&whole.volume.samples, v => {
                    let held = &v[slices.start * slice..slices.end * slice];
                    let mut samples = Samples::zeros(whole.volume.samples.dtype(), held.len()).unwrap();
                    samples.as_bytes_mut().copy_from_slice(bytemuck::cast_slice(held));
                    samples
                });
                let slab = Slab {
                    volume: volume([dims[0], dims[1], slices.len()], samples),
                    first_slice: slices.start,
                    depth,
                    layers,
                    first_vertex: found.positions.len() as u64,
                };
                let part = assert_twins(&kernel, &slab, same);
                found.positions.extend(part.positions);
                found.normals.extend(part.normals);
                found.triangles.extend(part.triangles);
            }
            same(&expected, &found, &format!("height {height}"));
        }
    }
}

#[test]
#[should_panic(expected = "other triangles")]
fn a_planted_difference_is_found() {
    let kernel = MarchingCubes::new(127.0);
    let good = kernel.cpu(&Slab::whole(bytes([8; 3], 1), &kernel)).unwrap();
    let mut bad = good.clone();
    bad.triangles.swap(3, 4);
    same(&good, &bad, "planted");
}

#[test]
#[should_panic]
fn the_reference_finds_a_missing_triangle() {
    let kernel = MarchingCubes::new(127.0);
    let slab = Slab::whole(bytes([8; 3], 1), &kernel);
    let mut surface = kernel.cpu(&slab).unwrap();
    surface.triangles.remove(5);
    check(&surface, &slab.volume, &kernel);
}

// ---- the fixture ----

/// A skull from a few smooth shapes, x to its left, y backwards, z up; 64 samples a side, 80 on its
/// surface, brighter inside.
fn skull() -> Vec<u8> {
    let mut values = Vec::with_capacity(1 << 18);
    for i in 0..1usize << 18 {
        let [x, y, z] = [i & 63, i >> 6 & 63, i >> 12].map(|v| (v as f64 - 31.5) / 32.0);
        // Half a unit of brightness a hundredth of the volume's half side.
        let value = 80.0 - skull_distance([x.abs(), y, z]) * 32.0 * 24.0;
        values.push(value.round().clamp(0.0, 255.0) as u8);
    }
    values
}

/// Roughly the signed distance from the skull's surface, negative inside.
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
    let cranium = ellipsoid([0.0, 0.10, 0.28], [0.60, 0.74, 0.58]);
    let brow = ellipsoid([0.20, -0.56, 0.16], [0.26, 0.12, 0.09]);
    let cheek = ellipsoid([0.40, -0.46, -0.17], [0.17, 0.18, 0.11]);
    let arch = ellipsoid([0.53, -0.16, -0.15], [0.07, 0.36, 0.06]);
    let face = ellipsoid([0.0, -0.40, -0.26], [0.33, 0.29, 0.36]);
    let bone = [brow, cheek, face].into_iter().fold(cranium, |bone, part| join(bone, part, 0.10));
    let bone = join(bone, arch, 0.05);
    // The upper teeth stand on the face's lower rim; the lower jaw is a horseshoe with its own.
    let ring = |centre: f64, radius: f64| {
        let (along, across) = (y + 0.40, x * 1.12);
        let around = (along * along + across * across).sqrt() - radius;
        let height = z - centre;
        (around, height, along)
    };
    let teeth = |centre: f64| {
        let (around, height, along) = ring(centre, 0.27);
        let angle = x.atan2(-along);
        let gap = 0.018 * (1.0 - (angle * 13.0).cos().abs().sqrt());
        let bar = (around.abs() - 0.045 + gap).max(height.abs() - 0.072 + gap);
        if along > 0.12 { bar.max(along - 0.12) } else { bar }
    };
    let bone = bone.min(teeth(-0.60));
    let jaw = {
        let (around, height, along) = ring(-0.83, 0.29);
        let body = ((around / 0.07).powi(2) + (height / 0.11).powi(2)).sqrt() - 1.0;
        let body = (body * 0.07).max(along - 0.16);
        let ramus = ellipsoid([0.36, -0.17, -0.52], [0.06, 0.12, 0.36]);
        let chin = ellipsoid([0.0, -0.68, -0.87], [0.14, 0.08, 0.09]);
        join(join(body, ramus, 0.08), chin, 0.08)
    };
    let bone = bone.min(jaw.min(teeth(-0.715)));
    let eye = ellipsoid([0.225, -0.66, -0.03], [0.155, 0.30, 0.135]);
    let nose_width = 0.055 + 0.35 * (-0.16 - z).clamp(0.0, 0.20);
    let nose = (x - nose_width).max(y + 0.42).max((z + 0.27).abs() - 0.13);
    let temple = ellipsoid([0.66, -0.34, 0.06], [0.14, 0.26, 0.24]);
    let inside = ellipsoid([0.0, 0.10, 0.28], [0.52, 0.66, 0.50]);
    let mouth = ellipsoid([0.0, -0.26, -0.62], [0.20, 0.26, 0.16]);
    let holes = [(eye, 0.05), (nose, 0.04), (temple, 0.08), (inside, 0.02), (mouth, 0.04)];
    holes.into_iter().fold(bone, |bone, (hole, width)| cut(bone, hole, width))
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

#[test]
fn the_skull_fixture_is_what_this_test_makes() {
    let path = fixture("skull_64x64x64_uint8.raw");
    let values = skull();
    if std::env::var_os("GPUPROC_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &values).unwrap();
    }
    assert!(fs::read(&path).unwrap() == values, "bless it with GPUPROC_BLESS=1");
}
