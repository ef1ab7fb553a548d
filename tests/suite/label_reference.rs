//! Surface nets computed cell by cell, and volumes of labels.

use std::collections::{BTreeMap, HashMap};

use gpuproc::data::{
    grid::Grid,
    label_mesh::{LabelMesh, Quad, UNIT},
    samples::Samples,
};

use crate::common::Noise;

// ---- volumes ----

/// A volume with the given label at each sample.
fn volume(dims: [usize; 3], label: impl Fn([usize; 3]) -> u32) -> Grid {
    let [nx, ny, nz] = dims;
    let at = |i: usize| label([i % nx, i / nx % ny, i / nx / ny]);
    Grid::volume(dims, Samples::U32((0..nx * ny * nz).map(at).collect()))
}

pub fn noise(dims: [usize; 3], labels: u64, seed: u64) -> Grid {
    let mut noise = Noise(seed);
    let [x, y, z] = dims;
    let values = (0..x * y * z).map(|_| (noise.next() % labels) as u32).collect();
    Grid::volume(dims, Samples::U32(values))
}

/// Voronoi cells of random points, labelled by the index of the point. Label 0 is the background.
pub fn voronoi(dims: [usize; 3], count: u32, seed: u64) -> Grid {
    let mut noise = Noise(seed);
    let points: Vec<[i64; 3]> =
        (0..count).map(|_| dims.map(|n| (noise.next() % n as u64) as i64)).collect();
    let squared_distance = |p: [usize; 3], q: &[i64; 3]| -> i64 {
        (0..3).map(|axis| (p[axis] as i64 - q[axis]).pow(2)).sum()
    };
    volume(dims, |p| (0..count).min_by_key(|&i| squared_distance(p, &points[i as usize])).unwrap())
}

fn shells(side: usize) -> Grid {
    let middle = (side as f64 - 1.0) / 2.0;
    volume([side; 3], |p| {
        let radius = p.map(|v| (v as f64 - middle).powi(2)).iter().sum::<f64>().sqrt();
        [7, 3, 0, 9].get((radius / 3.0) as usize).copied().unwrap_or(0)
    })
}

pub fn cases() -> Vec<(&'static str, Grid)> {
    let one = |p: [usize; 3]| u32::from(p == [1, 2, 1]) * 5;
    vec![
        ("one sample", volume([1, 1, 1], |_| 4)),
        ("outside only", volume([3, 2, 2], |_| 0)),
        ("a voxel", volume([4, 5, 3], one)),
        ("a full box", volume([5, 4, 3], |_| 8)),
        ("checkerboard", volume([5, 5, 5], |p| (p.iter().sum::<usize>() % 2) as u32)),
        ("two checkerboards", volume([4, 5, 6], |p| (p.iter().sum::<usize>() % 2) as u32 + 1)),
        ("bits", noise([9, 8, 7], 2, 1)),
        ("three labels", noise([8, 9, 10], 3, 2)),
        ("many labels", noise([6, 7, 8], 40, 3)),
        ("cells", voronoi([20, 18, 16], 12, 4)),
        ("words", voronoi([131, 5, 6], 30, 5)),
        ("wide noise", noise([70, 6, 4], 3, 6)),
        ("shells", shells(22)),
    ]
}

// ---- the naive reference ----

type Cell = [i64; 3];

/// Surface nets computed cell by cell.
pub struct NaiveSurfaceNets<'a> {
    pub dims: [i64; 3],
    pub volume: &'a Grid,
}

impl<'a> NaiveSurfaceNets<'a> {
    pub fn new(volume: &'a Grid) -> Self {
        Self { dims: volume.dims.map(|n| n as i64), volume }
    }

    /// The label of sample `p`; 0 outside of the volume.
    fn label(&self, p: Cell) -> u32 {
        let Samples::U32(labels) = &self.volume.samples else { panic!("u32 only") };
        let inside = (0..3).all(|axis| (0..self.dims[axis]).contains(&p[axis]));
        if inside {
            labels[(p[0] + self.dims[0] * (p[1] + self.dims[1] * p[2])) as usize]
        } else {
            0
        }
    }

    /// All cells. Cell `c` lies between the samples `c - 1` and `c`.
    fn cells(&self) -> impl Iterator<Item = Cell> {
        let [nx, ny, nz] = self.dims.map(|n| n + 1);
        (0..nx * ny * nz).map(move |i| [i % nx, i / nx % ny, i / nx / ny])
    }

    /// The labels of the corners of a cell, in the order x + 2 y + 4 z.
    fn corners(&self, cell: Cell) -> [u32; 8] {
        std::array::from_fn(|i| {
            self.label([
                cell[0] - 1 + (i as i64 & 1),
                cell[1] - 1 + (i as i64 >> 1 & 1),
                cell[2] - 1 + (i as i64 >> 2),
            ])
        })
    }

    /// The number of edges of a cell face whose ends have different labels.
    fn crossed_sides(&self, cell: Cell, axis: usize, end: usize) -> usize {
        let corners = self.corners(cell);
        let on_face: Vec<usize> = (0..8).filter(|corner| corner >> axis & 1 == end).collect();
        let pairs = on_face.iter().flat_map(|&a| on_face.iter().map(move |&b| (a, b)));
        pairs
            .filter(|(a, b)| a < b && (a ^ b).count_ones() == 1 && corners[*a] != corners[*b])
            .count()
    }

    /// The offsets of all vertices from the centres of their cells after `steps` smoothing steps, by (z, y, x).
    fn offsets(&self, steps: u32) -> BTreeMap<[i64; 3], [i64; 3]> {
        let has_vertex =
            |cell: &Cell| self.corners(*cell).iter().any(|&l| l != self.corners(*cell)[0]);
        let cells: Vec<Cell> = self.cells().filter(has_vertex).collect();
        let mut neighbours: HashMap<Cell, Vec<Cell>> = HashMap::new();
        for &cell in &cells {
            let faces: Vec<(usize, usize, usize)> = (0..6)
                .map(|face| (face / 2, face % 2, self.crossed_sides(cell, face / 2, face % 2)))
                .collect();
            let is_line = faces.iter().any(|face| face.2 > 2);
            let linked = faces.iter().filter(|face| face.2 > if is_line { 2 } else { 0 });
            let there = linked.map(|&(axis, end, _)| {
                let mut other = cell;
                other[axis] += 2 * end as i64 - 1;
                other
            });
            neighbours.insert(cell, there.collect());
        }
        let unit = i64::from(UNIT);
        let mut offsets: BTreeMap<Cell, [i64; 3]> =
            cells.iter().map(|&[x, y, z]| ([z, y, x], [0; 3])).collect();
        for _ in 0..steps {
            let before = offsets.clone();
            for (&[z, y, x], offset) in &mut offsets {
                let cell = [x, y, z];
                let own = before[&[z, y, x]];
                let near = &neighbours[&cell];
                let count = near.len() as i64;
                for axis in 0..3 {
                    let offset_sum: i64 = near
                        .iter()
                        .map(|other| {
                            let there = before[&[other[2], other[1], other[0]]][axis];
                            there + unit * (other[axis] - cell[axis]) - own[axis]
                        })
                        .sum();
                    // Three quarters of the mean, rounded to the nearest.
                    let share = ((3 << 13) + count / 2) / count;
                    let moved = own[axis] + (offset_sum * share + (1 << 14)).div_euclid(1 << 15);
                    let is_on_box = cell[axis] == 0 || cell[axis] == self.dims[axis];
                    let limit = unit / 2 - 1;
                    offset[axis] = if is_on_box { 0 } else { moved.clamp(-limit, limit) };
                }
            }
        }
        offsets
    }

    /// The mesh, without separate vertices for sheets.
    pub fn mesh(&self, steps: u32) -> LabelMesh {
        let offsets = self.offsets(steps);
        let numbers: HashMap<[i64; 3], u32> = offsets.keys().copied().zip(0..).collect();
        let vertices = offsets.iter().map(|(&[z, y, x], offset)| {
            let cell = [x, y, z];
            std::array::from_fn(|axis| (cell[axis] * i64::from(UNIT) + offset[axis]) as u32)
        });
        let mut quads = Vec::new();
        for cell in self.cells() {
            for axis in 0..3 {
                let low = cell.map(|v| v - 1);
                let mut high = low;
                high[axis] += 1;
                let labels = [self.label(low), self.label(high)];
                if labels[0] == labels[1] {
                    continue;
                }
                let (u, v) = ((axis + 1) % 3, (axis + 2) % 3);
                let around = [[1, 1], [0, 1], [0, 0], [1, 0]].map(|[du, dv]| {
                    let mut other = cell;
                    other[u] -= du;
                    other[v] -= dv;
                    numbers[&[other[2], other[1], other[0]]]
                });
                let [a, b, c, d] = around;
                let [first, second] = labels;
                quads.push(match first == 0 || (second != 0 && second < first) {
                    true => Quad { vertices: [a, d, c, b], labels: [second, first], sheets: 0 },
                    false => Quad { vertices: around, labels, sheets: 0 },
                });
            }
        }
        LabelMesh { vertices: vertices.collect(), quads }
    }

    /// The number of samples of each label.
    pub fn counts(&self) -> BTreeMap<u32, i64> {
        let Samples::U32(labels) = &self.volume.samples else { panic!("u32 only") };
        let mut counts = BTreeMap::new();
        labels
            .iter()
            .filter(|&&label| label != 0)
            .for_each(|&l| *counts.entry(l).or_default() += 1);
        counts
    }
}
