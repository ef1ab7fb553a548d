//! The numbered vertices of all cells within reach.

use std::ops::Range;

use pulp::NullaryFnOnce;

use super::{super::super::cpu::simd_ops::SimdOps, cells::CellEdges, edges::EdgePlanes};
use crate::{
    data::label_mesh::UNIT,
    util::{error::Result, memory, parallel::Parallel},
};

/// The cells with vertices, of all layers within reach. Words and rows are those of the [`EdgePlanes`].
pub(super) struct Net {
    /// One bit per cell, set if it has a vertex.
    pub(super) active: Vec<u64>,
    /// One bit per cell, set if a label may have several sheets there.
    pub(super) folds: Vec<u64>,
    /// Number of the first vertex of each word, counted from the first layer within reach.
    pub(super) starts: Vec<u32>,
    /// Vertices of each layer within reach.
    pub(super) layers: Vec<Range<usize>>,
    /// Vertices of the layers that are meshed.
    pub(super) core: Range<usize>,
    /// Number of quads of each layer that is meshed.
    pub(super) quad_counts: Vec<usize>,
}

/// Number of vertices and quads of a layer.
#[derive(Clone, Copy)]
struct Counts {
    vertices: usize,
    quads: usize,
}

impl Net {
    pub(super) fn new<S: SimdOps>(simd: S, planes: &EdgePlanes) -> Result<Self> {
        let (grid, slice) = (&planes.grid, planes.slice());
        let len = grid.reach.len() * slice;
        let mut active = memory::zeros::<u64>(len)?;
        let mut folds = memory::zeros::<u64>(len)?;
        let mut starts = memory::zeros::<u32>(len)?;
        let layers = active.chunks_exact_mut(slice).zip(folds.chunks_exact_mut(slice));
        let layers = layers.zip(starts.chunks_exact_mut(slice)).enumerate();
        let counts = layers.par_map(|(z, ((active, folds), starts))| {
            simd.vectorize(FindCells { planes, z, active, folds, starts })
        });
        let mut first = 0;
        let mut number = |counts: &Counts| {
            let range = first..first + counts.vertices;
            first = range.end;
            range
        };
        let layers: Vec<Range<usize>> = counts.iter().map(&mut number).collect();
        super::check_count(0, first as u64)?;
        starts.chunks_exact_mut(slice).zip(&layers).par_each(|(starts, layer)| {
            starts.iter_mut().for_each(|start| *start += layer.start as u32);
        });
        let from = grid.layers.start - grid.reach.start;
        let core = from..from + grid.layers.len();
        Ok(Self {
            active,
            folds,
            starts,
            core: layers[core.start].start..layers[core.end - 1].end,
            quad_counts: counts[core].iter().map(|layer| layer.quads).collect(),
            layers,
        })
    }

    /// Number of vertices of all layers within reach.
    pub(super) fn count(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.end)
    }

    /// Number of quads of all layers that are meshed.
    pub(super) fn quads(&self) -> u64 {
        self.quad_counts.iter().map(|&count| count as u64).sum()
    }

    /// Number of vertices before bit `bit` of word `at`.
    #[inline(always)]
    pub(super) fn rank(&self, at: usize, bit: u32) -> u32 {
        self.starts[at] + (self.active[at] & ((1 << bit) - 1)).count_ones()
    }

    /// Coordinates of the vertices of the layers that are meshed, given their `offsets` in their cells.
    pub(super) fn vertices(&self, planes: &EdgePlanes, offsets: &[u64]) -> Result<Vec<[u32; 3]>> {
        let (grid, slice) = (&planes.grid, planes.slice());
        let mut vertices = memory::zeros::<[u32; 3]>(self.core.len())?;
        let mut rest = &mut vertices[..];
        let layers = grid.layers.clone().map(|layer| {
            let z = layer - grid.reach.start;
            let len = self.layers[z].len();
            (layer, z, rest.split_off_mut(..len).expect("counted before"))
        });
        layers.collect::<Vec<_>>().into_iter().par_each(|(layer, z, out)| {
            let mut out = out.iter_mut();
            let mut next = self.layers[z].start;
            for (at, &word) in self.active[z * slice..][..slice].iter().enumerate() {
                let (y, x) = (at / planes.words, at % planes.words * 64);
                let mut left = word;
                while left != 0 {
                    let cell = [x + left.trailing_zeros() as usize, y, layer];
                    left &= left - 1;
                    // Vertex i has index i + 1 in `offsets`.
                    let offset = lanes(offsets[next + 1]);
                    next += 1;
                    if let Some(vertex) = out.next() {
                        *vertex = std::array::from_fn(|axis| {
                            cell[axis] as u32 * UNIT + u32::from(offset[axis]) - UNIT / 2
                        });
                    }
                }
            }
        });
        Ok(vertices)
    }
}

/// x, y and z of an offset in a cell, from 1 to `UNIT` - 1, and an unused lane.
pub(super) fn lanes(offset: u64) -> [u16; 4] {
    bytemuck::cast(offset)
}

/// Finds the cells of one layer.
struct FindCells<'a> {
    planes: &'a EdgePlanes,
    z: usize,
    active: &'a mut [u64],
    folds: &'a mut [u64],
    starts: &'a mut [u32],
}

impl NullaryFnOnce for FindCells<'_> {
    type Output = Counts;

    #[inline(always)]
    fn call(self) -> Counts {
        let Self { planes, z, active, folds, starts } = self;
        let mut counts = Counts { vertices: 0, quads: 0 };
        for y in 0..planes.grid.cells[1] {
            for word in 0..planes.words {
                let at = y * planes.words + word;
                let edges = CellEdges::load(planes, word, y, z);
                starts[at] = counts.vertices as u32;
                active[at] = edges.any_crossed();
                if active[at] == 0 {
                    continue;
                }
                folds[at] = edges.may_fold();
                counts.vertices += active[at].count_ones() as usize;
                let first = z * planes.slice() + at;
                for plane in &planes.along {
                    counts.quads += plane[first].count_ones() as usize;
                }
            }
        }
        counts
    }
}
