//! Marching cubes over f64 values, volumes of noise, and the comparison of surfaces.

use std::{
    collections::{BTreeMap, HashMap},
    panic::catch_unwind,
};

use gpuproc::{
    data::{dtype::Dtype, grid::Grid, samples::Samples, surface::Surface},
    device::Kernel,
    kernels::mesh::{MarchingCubes, Slab},
};

use crate::{asserts::assert_contains, common::Noise};

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
pub fn assert_matches_reference(surface: &Surface, volume: &Grid, kernel: &MarchingCubes) {
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

pub fn is_closed(surface: &Surface) -> bool {
    let mut balance: HashMap<[u32; 2], i32> = HashMap::new();
    for [a, b, c] in &surface.triangles {
        for (a, b) in [(a, b), (b, c), (c, a)] {
            *balance.entry([*a.min(b), *a.max(b)]).or_default() += if a < b { 1 } else { -1 };
        }
    }
    balance.values().all(|&n| n == 0)
}

// ---- volumes ----

pub fn volume(dims: [usize; 3], samples: Samples) -> Grid {
    Grid::volume(dims, samples)
}

pub fn byte_noise(dims: [usize; 3], seed: u64) -> Grid {
    volume(dims, Samples::U8(Noise(seed).bytes(dims.iter().product())))
}

/// A gyroid of bytes around 128, with surfaces everywhere.
pub fn gyroid_volume(dims: [usize; 3]) -> Grid {
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
pub fn noise(dims: [usize; 3], dtype: Dtype, seed: u64) -> (Grid, Vec<f64>) {
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
            let min: &[u8] = match dtype {
                Dtype::I8 => &[0x80],
                Dtype::I16 => &[0, 0x80],
                _ => &[0; 2][..dtype.size()],
            };
            let values = other.as_bytes_mut().chunks_exact_mut(min.len());
            values.step_by(7).for_each(|value| value.copy_from_slice(min));
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

#[test]
fn comparison_detects_swapped_triangles() {
    let kernel = MarchingCubes::new(127.0);
    let good = kernel.cpu(&Slab::whole(byte_noise([8; 3], 1), &kernel)).unwrap();
    let mut bad = good.clone();
    bad.triangles.swap(3, 4);
    let panic = catch_unwind(|| assert_same_surface(&good, &bad, "swapped")).unwrap_err();
    assert_contains(panic.downcast_ref::<String>().unwrap(), "the triangles differ");
}

#[test]
fn reference_detects_a_missing_triangle() {
    let kernel = MarchingCubes::new(127.0);
    let slab = Slab::whole(byte_noise([8; 3], 1), &kernel);
    let mut surface = kernel.cpu(&slab).unwrap();
    surface.triangles.remove(5);
    assert!(catch_unwind(|| assert_matches_reference(&surface, &slab.volume, &kernel)).is_err());
}
