//! The surface of a single label, extracted from the mesh of all labels.

use std::{collections::HashMap, ops::Range};

use crate::{
    data::{
        label_mesh::{LabelMesh, Quad, UNIT},
        surface::Surface,
    },
    util::{error::Result, memory, parallel},
};

/// The faces of a mesh, sorted by label.
#[derive(Debug)]
pub struct LabelSurfaces<'a> {
    mesh: &'a LabelMesh,
    positions: &'a [[f32; 3]],
    /// The labels in ascending order, each with its range of `sides`.
    labels: Vec<(u32, Range<usize>)>,
    /// Twice the index of a quad, plus the label's side of it (0 or 1).
    sides: Vec<u64>,
}

/// Tables of [`LabelSurfaces::surface`] that are reused for the next surface: the vertices that the surface has so far.
#[derive(Debug, Default)]
pub struct Scratch {
    /// For each vertex, the last surface that used it, and its number there.
    seen: Vec<(u32, u32)>,
    /// The same for sheets other than the first.
    folded: HashMap<u64, u32>,
    surfaces: u32,
}

impl<'a> LabelSurfaces<'a> {
    /// Sorts the faces of a whole `mesh`, whose vertices are at `positions`, by label.
    pub fn new(mesh: &'a LabelMesh, positions: &'a [[f32; 3]]) -> Result<Self> {
        // Number of sides of each label; later the index of its next side in `sides`.
        let mut counts: HashMap<u32, usize> = HashMap::new();
        for_each_run(&mesh.quads, |label, run| *counts.entry(label).or_default() += run.len());
        let mut order: Vec<u32> = memory::collected(counts.keys().copied());
        order.sort_unstable();
        let mut end = 0;
        let mut range = |label: &u32| {
            let start = end;
            end += counts[label];
            (*label, start..end)
        };
        let labels: Vec<(u32, Range<usize>)> = memory::collected(order.iter().map(&mut range));
        for (label, range) in &labels {
            counts.insert(*label, range.start);
        }
        let mut sides = memory::zeros::<u64>(end)?;
        for_each_run(&mesh.quads, |label, run| {
            let next = counts.get_mut(&label).expect("counted before");
            sides[*next..][..run.len()].copy_from_slice(run);
            *next += run.len();
        });
        Ok(Self { mesh, positions, labels, sides })
    }

    /// The labels in ascending order.
    pub fn labels(&self) -> impl ExactSizeIterator<Item = u32> {
        self.labels.iter().map(|(label, _)| *label)
    }

    /// Upper bound of the bytes of the surface of label `index`, with its part of `scratch`.
    pub fn bytes(&self, index: usize) -> u64 {
        // A quad has two triangles and at most two vertices.
        (2 * 12 + 2 * 12 + 16) * self.labels[index].1.len() as u64
    }

    fn quads(&self, index: usize) -> impl Iterator<Item = (&Quad, usize)> {
        let sides = &self.sides[self.labels[index].1.clone()];
        sides.iter().map(|&side| (&self.mesh.quads[(side / 2) as usize], (side % 2) as usize))
    }

    /// The surface of label `index`.
    pub fn surface(&self, index: usize, scratch: &mut Scratch) -> Result<Surface> {
        let Scratch { seen, folded, surfaces } = scratch;
        if seen.len() != self.positions.len() || *surfaces == u32::MAX {
            *seen = memory::zeros(self.positions.len())?;
            *surfaces = 0;
        }
        *surfaces += 1;
        folded.clear();
        let mut surface = Surface::default();
        let count = self.labels[index].1.len();
        surface.triangles = memory::room(2 * count)?;
        surface.positions = memory::room(count + count / 8)?;
        for (quad, side) in self.quads(index) {
            let own = quad.side(side).map(|key| {
                let vertex = (key >> 2) as usize;
                let next = surface.positions.len() as u32;
                let number = match key & 3 {
                    0 => match &mut seen[vertex] {
                        (last, number) if last == surfaces => *number,
                        first => {
                            *first = (*surfaces, next);
                            next
                        }
                    },
                    _ => *folded.entry(key).or_insert(next),
                };
                if number == next {
                    surface.positions.push(self.positions[vertex]);
                }
                number
            });
            let [a, b, c, d] = own;
            surface.triangles.extend(match quad.splits_from_first(&self.mesh.vertices) {
                true => [[a, b, c], [a, c, d]],
                false => [[b, c, d], [b, d, a]],
            });
        }
        Ok(surface)
    }

    /// Number of samples with label `index`: the volume that its faces would enclose without smoothing.
    pub fn samples(&self, index: usize) -> u64 {
        let faces = self.quads(index).filter_map(|(quad, side)| {
            // By the divergence theorem, the volume is the sum of the faces across x, times their x. Smoothing leaves a
            // vertex in its cell.
            let cells = quad.vertices.map(|vertex| {
                self.mesh.vertices[vertex as usize]
                    .map(|v| i64::from(v + UNIT / 2) / i64::from(UNIT))
            });
            let x = cells[0][0];
            let is_across = cells.iter().all(|cell| cell[0] == x);
            // Counter-clockwise as seen from larger x, y turns to z.
            let turn = |i: usize, j: usize, k: usize| {
                (cells[j][1] - cells[i][1]) * (cells[k][2] - cells[j][2])
                    - (cells[j][2] - cells[i][2]) * (cells[k][1] - cells[j][1])
            };
            let outwards = if side == 0 { 1 } else { -1 };
            is_across.then(|| outwards * turn(0, 1, 2) * x)
        });
        faces.sum::<i64>().unsigned_abs()
    }
}

/// Calls `each` for every run of consecutive quads with the same label on one side, with the label and the entries of
/// [`LabelSurfaces::sides`].
fn for_each_run(quads: &[Quad], mut each: impl FnMut(u32, &[u64])) {
    for side in 0..2 {
        let mut run = Vec::new();
        let mut last = 0;
        for (number, quad) in quads.iter().enumerate() {
            let label = quad.labels[side];
            if label != last {
                if last != 0 {
                    each(last, &run);
                }
                run.clear();
                last = label;
            }
            run.push(2 * number as u64 + side as u64);
        }
        if last != 0 {
            each(last, &run);
        }
    }
}

/// Positions of the vertices of a mesh: `to_world` of their grid coordinates, where the box of sample i extends from i
/// to i + 1.
pub fn world_positions(
    vertices: &[[u32; 3]],
    to_world: impl Fn([f64; 3]) -> [f32; 3] + Sync,
) -> Result<Vec<[f32; 3]>> {
    parallel::mapped(vertices, |vertex| to_world(vertex.map(|v| f64::from(v) / f64::from(UNIT))))
}
