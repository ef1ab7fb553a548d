//! Emits the faces of the layers that are meshed: a quad for each crossed edge.

use pulp::NullaryFnOnce;

use super::{
    super::{
        super::cpu::simd_ops::SimdOps,
        params::NetGrid,
        sheets::{FACE, SHEETS},
    },
    Label,
    edges::EdgePlanes,
    net::Net,
};
use crate::{
    data::label_mesh::Quad,
    util::{error::Result, memory, parallel::Parallel},
};

/// The four cells around an edge from a point along each axis, counter-clockwise as seen from the upper end of the
/// edge, as steps back from the point along x, y and z.
const AROUND: [[[usize; 3]; 4]; 3] = [
    [[0, 1, 1], [0, 0, 1], [0, 0, 0], [0, 1, 0]],
    [[1, 0, 1], [1, 0, 0], [0, 0, 0], [0, 0, 1]],
    [[1, 1, 0], [0, 1, 0], [0, 0, 0], [1, 0, 0]],
];

pub(super) fn emit<T: Label, S: SimdOps>(
    simd: S,
    planes: &EdgePlanes,
    net: &Net,
    samples: &[T],
    first_vertex: u64,
) -> Result<Vec<Quad>> {
    let mut quads = memory::zeros::<Quad>(net.quads() as usize)?;
    let mut rest = &mut quads[..];
    let first = planes.grid.layers.start - planes.grid.reach.start;
    let layers = net.quad_counts.iter().enumerate().map(|(layer, &count)| {
        (first + layer, rest.split_off_mut(..count).expect("counted before"))
    });
    // May wrap around: vertices of the previous slab have numbers below `first_vertex`.
    let base = (first_vertex as u32).wrapping_sub(net.core.start as u32);
    layers.collect::<Vec<_>>().into_iter().par_each(|(z, out)| {
        simd.vectorize(EmitQuads {
            planes,
            net,
            labels: Labels::new(planes, samples),
            z,
            base,
            out,
        });
    });
    Ok(quads)
}

#[derive(Clone, Copy)]
struct Labels<'a, T> {
    grid: &'a NetGrid,
    samples: &'a [T],
}

impl<'a, T: Label> Labels<'a, T> {
    fn new(planes: &'a EdgePlanes, samples: &'a [T]) -> Self {
        Self { grid: &planes.grid, samples }
    }

    #[inline(always)]
    fn label_at(&self, [x, y, z]: [usize; 3]) -> u32 {
        match self.grid.row(y, z) {
            Some(row) if x > 0 && x <= self.grid.width => self.samples[row + x - 1].into(),
            _ => 0,
        }
    }

    /// The set of corners of a cell that have the label.
    fn mask(&self, label: u32, [x, y, z]: [usize; 3]) -> usize {
        (0..8).fold(0, |mask, corner| {
            let point = [x + (corner & 1), y + (corner >> 1 & 1), z + (corner >> 2)];
            mask | usize::from(self.label_at(point) == label) << corner
        })
    }

    /// The sheet of `label` in `cell` that crosses edge `edge` of the cell.
    fn sheet(&self, label: u32, cell: [usize; 3], edge: usize) -> u32 {
        if label == 0 {
            return 0;
        }
        let mask = self.mask(label, cell);
        let mut sheets = SHEETS.cut[mask];
        if let Some(face) = (sheets >> FACE).checked_sub(1) {
            // The face joins corners only if it may do so in both of its cells.
            let (axis, end) = (face as usize / 2, face & 1);
            let mut other = cell;
            other[axis] = if end == 1 { other[axis] + 1 } else { other[axis] - 1 };
            if SHEETS.cut[self.mask(label, other)] >> FACE == (face ^ 1) + 1 {
                sheets = SHEETS.joined[mask];
            }
        }
        sheets >> (2 * edge) & 3
    }
}

/// Emits the quads of one layer.
struct EmitQuads<'a, T> {
    planes: &'a EdgePlanes,
    net: &'a Net,
    labels: Labels<'a, T>,
    z: usize,
    base: u32,
    out: &'a mut [Quad],
}

impl<T: Label> NullaryFnOnce for EmitQuads<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { planes, net, labels, z, base, out } = self;
        let (words, slice, grid) = (planes.words, planes.slice(), &planes.grid);
        let mut out = out.iter_mut();
        for y in 0..grid.cells[1] {
            for word in 0..words {
                let at = z * slice + y * words + word;
                let along = planes.along.each_ref().map(|plane| plane[at]);
                let mut left = along[0] | along[1] | along[2];
                while left != 0 {
                    let bit = left.trailing_zeros();
                    left &= left - 1;
                    let point = [64 * word + bit as usize, y, z + grid.reach.start];
                    let here = labels.label_at(point);
                    // This row and the rows before it. Beyond the grid, no crossed edge has cells, so any row will do.
                    let (before, below) = (at.saturating_sub(words), at.saturating_sub(slice));
                    let row = [at, before, below, below.saturating_sub(words)];
                    let number = row.map(|at| base.wrapping_add(net.rank(at, bit)));
                    let folds = row.map(|at| {
                        let last = (net.folds[at] << 1 | carried(net, at, word)) >> bit & 1;
                        [net.folds[at] >> bit & 1, last]
                    });
                    for axis in 0..3 {
                        if along[axis] >> bit & 1 == 0 {
                            continue;
                        }
                        let mut end = point;
                        end[axis] += 1;
                        let ends = [here, labels.label_at(end)];
                        let cells = AROUND[axis];
                        let mut quad = Quad { labels: ends, ..Quad::default() };
                        let mut may_fold = 0;
                        for (corner, [dx, dy, dz]) in cells.into_iter().enumerate() {
                            let row = dy + 2 * dz;
                            quad.vertices[corner] = number[row].wrapping_sub(dx as u32);
                            may_fold |= folds[row][dx];
                        }
                        if may_fold != 0 {
                            quad.sheets = sheets(&labels, ends, point, axis);
                        }
                        if ends[0] == 0 || (ends[1] != 0 && ends[1] < ends[0]) {
                            quad = turned(&quad);
                        }
                        if let Some(out) = out.next() {
                            *out = quad;
                        }
                    }
                }
            }
        }
    }
}

/// The last bit of the previous word of the same row.
#[inline(always)]
fn carried(net: &Net, at: usize, word: usize) -> u64 {
    // Beyond the grid, `at` is any row.
    if word == 0 || at == 0 { 0 } else { net.folds[at - 1] >> 63 }
}

/// Sheets of both labels at the four corners of a quad.
#[cold]
fn sheets<T: Label>(labels: &Labels<'_, T>, ends: [u32; 2], point: [usize; 3], axis: usize) -> u32 {
    let mut all = 0;
    for (corner, before) in AROUND[axis].into_iter().enumerate() {
        let cell: [usize; 3] = std::array::from_fn(|i| point[i] - before[i]);
        let [dx, dy, dz] = before;
        let edge = match axis {
            0 => dy + 2 * dz,
            1 => 4 + dx + 2 * dz,
            _ => 8 + dx + 2 * dy,
        };
        for (side, label) in ends.into_iter().enumerate() {
            all |= labels.sheet(label, cell, edge) << (8 * side + 2 * corner);
        }
    }
    all
}

/// The quad as seen from its other side.
fn turned(quad: &Quad) -> Quad {
    let [a, b, c, d] = quad.vertices;
    let [first, second] = quad.labels;
    // Swaps corners 1 and 3, and the sides.
    let swapped = |sheets: u32| sheets & 0x33 | (sheets & 0x0c) << 4 | (sheets & 0xc0) >> 4;
    let sheets = swapped(quad.sheets >> 8) | swapped(quad.sheets & 0xff) << 8;
    Quad { vertices: [a, d, c, b], labels: [second, first], sheets }
}
