//! Exact topology: surfaces are compared with a reference that finds the topology of the trilinear field without face
//! or interior deciders. It subdivides cells into eight boxes until the corners of each box determine the topology
//! within it.

use std::collections::HashMap;

use gpuproc::{
    data::{dtype::Dtype, grid::Grid, samples::Samples, surface::Surface},
    kernels::mesh::{MarchingCubes, Slab, Topology},
};

use crate::{
    common::{Noise, assert_twins},
    mesh_reference::{assert_same_surface, noise},
};

// ---- the reference ----

/// Topological invariants of a level set.
#[derive(Debug, PartialEq, Eq)]
struct Invariants {
    euler: i64,
    parts: i64,
}

/// Fixed-point units per half step of the sample values. The level lies one unit above the isovalue, and values at the
/// points of the subdivision are multiples of three units, so no value equals the level.
const UNITS_PER_HALF_STEP: i128 = 3 << 20;

/// Maximum number of subdivisions: deeper corner values would exceed i128.
const MAX_DEPTH: u32 = 21;

/// Ratio of the two parts of the first subdivision of a cell. It is uneven, so that no cut meets a degenerate slice.
/// Later subdivisions are in halves.
const FIRST_CUT: [i128; 2] = [503, 1009 - 503];

/// The level set of the trilinear interpolation of the samples, slightly above `iso`. Outside the volume, values are
/// far below the level.
struct Reference {
    euler: i64,
    /// The index of each point by its position in units of 2^-MAX_DEPTH. At this index, `joined` has the parent of the
    /// point (union-find), and `inside` whether the point is inside.
    numbers: HashMap<[u64; 3], usize>,
    joined: Vec<usize>,
    inside: Vec<bool>,
}

/// The values at the corners of a box. Corner i is at (i & 1, i >> 1 & 1, i >> 2).
type Corners = [i128; 8];

const FACES: [[usize; 4]; 6] =
    [[0, 1, 3, 2], [4, 5, 7, 6], [0, 1, 5, 4], [2, 3, 7, 6], [0, 2, 6, 4], [1, 3, 7, 5]];

impl Reference {
    fn invariants(dims: [usize; 3], samples: &[u8], twice_iso: i128) -> Invariants {
        let points = dims.map(|n| n + 2);
        let value = |point: [usize; 3]| {
            if (0..3).any(|i| point[i] == 0 || point[i] > dims[i]) {
                return -2000 * UNITS_PER_HALF_STEP - 1;
            }
            let at = ((point[2] - 1) * dims[1] + point[1] - 1) * dims[0] + point[0] - 1;
            (2 * i128::from(samples[at]) - twice_iso) * UNITS_PER_HALF_STEP - 1
        };
        let (numbers, joined, inside) = Default::default();
        let mut all = Self { euler: 0, numbers, joined, inside };
        let is_inside = |point| value(point) > 0;
        for i in 0..points.iter().product() {
            let point = [i % points[0], i / points[0] % points[1], i / points[0] / points[1]];
            let step = |point: [usize; 3], axis: usize| {
                let mut to = point;
                to[axis] += 1;
                (to[axis] < points[axis]).then_some(to)
            };
            for axis in 0..3 {
                // Crossings of grid edges count 1, arcs on faces -1.
                let Some(end) = step(point, axis) else { continue };
                all.euler += i64::from(is_inside(point) != is_inside(end));
                let side = (axis + 1) % 3;
                if let (Some(beside), Some(far)) = (step(point, side), step(end, side)) {
                    all.euler -= count_arcs([point, end, far, beside].map(is_inside));
                }
            }
            if (0..3).all(|axis| point[axis] + 1 < points[axis]) {
                let corners = std::array::from_fn(|corner| {
                    value(std::array::from_fn(|i| point[i] + (corner >> i & 1)))
                });
                all.cut(&corners, point.map(|at| (at as u64) << MAX_DEPTH), 0);
            }
        }
        let mut roots: Vec<usize> = (0..all.joined.len()).map(|i| all.root(i)).collect();
        roots.sort_unstable();
        roots.dedup();
        // A closed surface of n parts divides space into n + 1 regions.
        Invariants { euler: all.euler, parts: roots.len() as i64 - 1 }
    }

    /// Adds the level set within the box at `place`: 1 if the corners show that it is a single disc, otherwise the sum
    /// over the eight sub-boxes and the faces and edges between them.
    fn cut(&mut self, corners: &Corners, point: [u64; 3], depth: u32) {
        let inside = corners.map(|value| value > 0);
        let alternates = FACES.iter().any(|face| {
            let [a, b, c, d] = face.map(|corner| inside[corner]);
            a == c && b == d && a != b
        });
        let is_lone =
            |corner: usize| [1, 2, 4].iter().all(|i| inside[corner ^ i] != inside[corner]);
        let are_lone = (0..4).any(|i| is_lone(i) && is_lone(7 - i) && inside[i] == inside[7 - i]);
        if !alternates && !are_lone {
            self.euler += i64::from(inside.contains(&true) && inside.contains(&false));
            let side = 1 << (MAX_DEPTH - depth);
            let numbers: [usize; 8] = std::array::from_fn(|corner| {
                let at = std::array::from_fn(|i| point[i] + side * (corner >> i & 1) as u64);
                self.number(at, inside[corner])
            });
            for (i, j) in (0..8).flat_map(|i| (0..i).map(move |j| (i, j))) {
                if inside[i] == inside[j] {
                    let (a, b) = (self.root(numbers[i]), self.root(numbers[j]));
                    self.joined[a.max(b)] = a.min(b);
                }
            }
            return;
        }
        assert!(depth < MAX_DEPTH, "the field is too close to a degenerate one");
        // The values at the 27 corners of the sub-boxes, times a common factor.
        let [left, right] = if depth == 0 { FIRST_CUT } else { [1, 1] };
        let fine: [i128; 27] = std::array::from_fn(|i| {
            let at = [i % 3, i / 3 % 3, i / 9];
            let weight = |corner: usize| -> i128 {
                let along = |axis: usize| {
                    [[left + right, right, 0], [0, left, left + right]][corner >> axis & 1]
                        [at[axis]]
                };
                along(0) * along(1) * along(2)
            };
            (0..8).map(|corner| weight(corner) * corners[corner]).sum()
        });
        let is_inside = |at: [usize; 3]| fine[at[0] + 3 * at[1] + 9 * at[2]] > 0;
        for axis in 0..3 {
            let (u, v) = ((axis + 1) % 3, (axis + 2) % 3);
            let at = |a: usize, b: usize, c: usize| {
                let mut at = [0; 3];
                (at[axis], at[u], at[v]) = (a, b, c);
                at
            };
            for i in 0..2 {
                // The edges between four sub-boxes, and the faces between two.
                self.euler += i64::from(is_inside(at(i, 1, 1)) != is_inside(at(i + 1, 1, 1)));
                for j in 0..2 {
                    let face = [at(1, i, j), at(1, i + 1, j), at(1, i + 1, j + 1), at(1, i, j + 1)];
                    self.euler -= count_arcs(face.map(is_inside));
                }
            }
        }
        let half = 1 << (MAX_DEPTH - depth - 1);
        for eighth in 0..8 {
            let first: [usize; 3] = std::array::from_fn(|i| eighth >> i & 1);
            let corners = std::array::from_fn(|corner| {
                let at: [usize; 3] = std::array::from_fn(|i| first[i] + (corner >> i & 1));
                fine[at[0] + 3 * at[1] + 9 * at[2]]
            });
            self.cut(
                &corners,
                std::array::from_fn(|i| point[i] + half * first[i] as u64),
                depth + 1,
            );
        }
    }

    fn number(&mut self, point: [u64; 3], inside: bool) -> usize {
        let next = self.joined.len();
        let number = *self.numbers.entry(point).or_insert(next);
        if number == next {
            self.joined.push(next);
            self.inside.push(inside);
        }
        assert_eq!(self.inside[number], inside);
        number
    }

    fn root(&mut self, mut number: usize) -> usize {
        while self.joined[number] != number {
            self.joined[number] = self.joined[self.joined[number]];
            number = self.joined[number];
        }
        number
    }
}

/// The number of arcs of the level set on a face. The field is linear along each side, so the level set crosses each
/// side at most once.
fn count_arcs(inside: [bool; 4]) -> i64 {
    (0..4).filter(|&i| inside[i] != inside[(i + 1) % 4]).count() as i64 / 2
}

/// The invariants of a mesh. Checks that it is closed and manifold at edges and vertices.
fn invariants_of(surface: &Surface) -> Invariants {
    let mut next: HashMap<[u32; 2], u32> = HashMap::new();
    for &[a, b, c] in &surface.triangles {
        for (from, to, apex) in [(a, b, c), (b, c, a), (c, a, b)] {
            assert!(next.insert([from, to], apex).is_none(), "an edge has three triangles");
        }
    }
    let mut at: Vec<u32> = vec![0; surface.positions.len()];
    surface.triangles.as_flattened().iter().for_each(|&vertex| at[vertex as usize] += 1);
    assert!(at.iter().all(|&triangles| triangles > 0), "a vertex without a triangle");
    for &[a, b, c] in &surface.triangles {
        for (vertex, from) in [(a, b), (b, c), (c, a)] {
            assert!(next.contains_key(&[from, vertex]), "an open edge");
            // The triangles around a vertex form one fan.
            let (mut count, mut to) = (0, from);
            loop {
                (count, to) = (count + 1, next[&[vertex, to]]);
                if to == from {
                    break;
                }
            }
            assert_eq!(count, at[vertex as usize], "a vertex has two fans");
        }
    }
    let mut parts: Vec<usize> = (0..at.len()).collect();
    fn root(parts: &mut [usize], mut i: usize) -> usize {
        while parts[i] != i {
            parts[i] = parts[parts[i]];
            i = parts[i];
        }
        i
    }
    for &[a, b, c] in &surface.triangles {
        for other in [b, c] {
            let (a, b) = (root(&mut parts, a as usize), root(&mut parts, other as usize));
            parts[a.max(b)] = a.min(b);
        }
    }
    let roots = (0..parts.len()).filter(|&i| parts[i] == i).count() as i64;
    let [vertices, sides, faces] = [at.len(), next.len() / 2, surface.triangles.len()];
    Invariants { euler: vertices as i64 - sides as i64 + faces as i64, parts: roots }
}

// ---- volumes ----

/// A small volume with few different values around the isovalue, for ambiguous faces, tunnels and ties, and that
/// isovalue.
fn small_volume(seed: u64) -> (Grid, f64) {
    let mut noise = Noise(seed);
    let mut below = |n: u64| (noise.next() % n) as usize;
    let dims = [3 + below(4), 3 + below(4), 3 + below(4)];
    let range = [2, 3, 4, 6, 9, 17, 40, 256][below(8)];
    // Samples that alternate from point to point make every face ambiguous; isolated samples do so, too.
    let kind = below(4);
    let iso = 100.0 + [0.0, 0.0, 0.5][below(3)];
    let samples = (0..dims.iter().product()).map(|i: usize| {
        let point = [i % dims[0], i / dims[0] % dims[1], i / dims[0] / dims[1]];
        let is_even = point.iter().sum::<usize>().is_multiple_of(2);
        let amount = below(range);
        let value = match kind {
            0 if range == 256 => amount,
            0 => 100 + amount - range as usize / 2,
            1 if is_even => 100 + amount.min(155),
            1 => 100usize.saturating_sub(amount),
            2 if below(5) > 0 => 100 - amount.min(100),
            2 => (100 + 3 * amount).min(255),
            _ if is_even != (below(4) == 0) => 100 + amount.min(155),
            _ => 100usize.saturating_sub(amount),
        };
        value as u8
    });
    let samples = Samples::U8(samples.collect());
    (Grid::volume(dims, samples), iso)
}

fn exact_kernel(iso: f64, close: bool) -> MarchingCubes {
    MarchingCubes { close, topology: Topology::Exact, ..MarchingCubes::new(iso) }
}

/// Number of random volumes; `GPUPROC_TOPOLOGY=10000` sets it.
fn volume_count() -> u64 {
    std::env::var("GPUPROC_TOPOLOGY").map_or(150, |count| count.parse().unwrap())
}

#[test]
fn surfaces_have_the_topology_of_the_trilinear_field() {
    let (mut differ, mut handles) = (0, 0);
    for seed in 0..volume_count() {
        let (volume, iso) = small_volume(seed);
        let Samples::U8(samples) = &volume.samples else { unreachable!() };
        let expected = Reference::invariants(volume.dims, samples, (2.0 * iso) as i128);
        let kernel = exact_kernel(iso, true);
        let slab = Slab::whole(volume.clone(), &kernel);
        let surface = match seed % 10 {
            0 => assert_twins(&kernel, &slab, assert_same_surface),
            _ => gpuproc::device::Kernel::cpu(&kernel, &slab).unwrap(),
        };
        assert_eq!(invariants_of(&surface), expected, "volume {seed}");
        let classic = MarchingCubes { topology: Topology::Classic, ..kernel };
        let classic = gpuproc::device::Kernel::cpu(&classic, &slab).unwrap();
        assert_eq!(surface.positions, classic.positions);
        differ += u64::from(invariants_of(&classic) != expected);
        handles += expected.parts - expected.euler / 2;
    }
    // The classic table often gives another topology on these volumes, and many surfaces have handles.
    assert!(
        differ > volume_count() / 4 && handles > volume_count() as i64,
        "{differ} differ, {handles} handles"
    );
}

#[test]
fn slabs_give_the_same_surface() {
    let (dims, iso) = ([70, 9, 12], 100.0);
    let samples = Noise(8).bytes(dims.iter().product()).iter().map(|v| 90 + v % 21).collect();
    let volume = std::sync::Arc::new(Grid::volume(dims, Samples::U8(samples)));
    for close in [false, true] {
        let kernel = exact_kernel(iso, close);
        let whole = Slab::whole(volume.clone(), &kernel);
        let expected = assert_twins(&kernel, &whole, assert_same_surface);
        let mut joined = Surface::default();
        for first in 0..whole.layers.end {
            let layers = first..first + 1;
            let slab =
                Slab { layers, first_vertex: joined.positions.len() as u64, ..whole.clone() };
            joined.append(assert_twins(&kernel, &slab, assert_same_surface)).unwrap();
        }
        assert_eq!(joined, expected);
        assert!(!close || invariants_of(&joined).parts > 1);
    }
}

#[test]
fn slices_larger_than_a_binding_are_identical_on_all_devices() {
    // The small device binds 1 MiB, so the volume is meshed in blocks of rows.
    let dims = [500, 400, 2];
    let mut noise = Noise(3);
    let samples = (0..dims.iter().product()).map(|_| 90.0 + (noise.next() % 21) as f32);
    let samples: Vec<f32> = samples.collect();
    let kernel = exact_kernel(100.0, true);
    let volume = Grid::volume(dims, Samples::F32(samples));
    assert_twins(&kernel, &Slab::whole(volume, &kernel), assert_same_surface);
}

/// Checks that all devices give the same surface, and that a closed one is a manifold.
fn assert_devices_agree(kernel: &MarchingCubes, volume: &Grid) {
    let slab = Slab::whole(volume.clone(), kernel);
    let surface = assert_twins(kernel, &slab, assert_same_surface);
    if kernel.close {
        invariants_of(&surface);
    }
}

/// Corners alternate everywhere, so all 32 cells of a bit mask word are ambiguous.
#[test]
fn devices_agree_where_every_cell_is_ambiguous() {
    let dims = [67, 20, 9];
    let mut noise = Noise(5);
    let points = (0..dims[2]).flat_map(|z| (0..dims[1]).map(move |y| y + z));
    let values = points.flat_map(|row| (0..dims[0]).map(move |x| (x + row) % 2 == 1));
    let samples =
        values.map(|is_inside| (noise.next() % 128) as u8 + 128 * u8::from(is_inside)).collect();
    let volume = Grid::volume(dims, Samples::U8(samples));
    for kernel in [false, true].map(|close| exact_kernel(127.0, close)) {
        assert_devices_agree(&kernel, &volume);
    }
}

#[test]
fn devices_agree_on_noise_of_every_type() {
    use Dtype::*;
    for (seed, dtype) in [U8, I8, U16, I16, U32, I32, F32, F64].into_iter().enumerate() {
        let (volume, isos) = noise([37, 9, 8], dtype, seed as u64);
        for iso in isos {
            let kernel = exact_kernel(iso, seed % 2 == 0);
            assert_devices_agree(&kernel, &volume);
        }
    }
}
