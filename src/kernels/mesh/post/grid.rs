//! A uniform grid of the triangles of a surface, to find the triangle nearest to a point.

use std::array::from_fn;

use crate::{
    data::{
        surface::Surface,
        vec3::{dot, sub},
    },
    util::{
        error::{Error, Result},
        memory,
        parallel::Parallel,
    },
};

/// Maximum number of cells that the box of a triangle covers on average. Cells are enlarged until this holds.
const COVERED: usize = 16;
/// Maximum number of cells of a grid, per triangle.
const CELLS: usize = 4;
/// Triangles that a thread takes at a time.
const CHUNK: usize = 1 << 10;

/// Memory of a grid, in bytes per triangle: ends of its cells, and the triangle numbers in them.
pub(super) const BYTES: u64 = 4 * (CELLS + COVERED) as u64;

/// The triangles of a surface by cell, in compressed sparse rows.
pub(super) struct Grid<'a> {
    pub(super) surface: &'a Surface,
    low: [f64; 3],
    /// The longest side of the box.
    longest: f64,
    /// The side of a cell.
    size: f64,
    /// Its reciprocal: cells per unit of length.
    cells: f64,
    dims: [usize; 3],
    /// End of the row of each cell in `triangles`.
    ends: Vec<u32>,
    triangles: Vec<u32>,
}

impl<'a> Grid<'a> {
    /// The grid of `surface`, with at most [`CELLS`] cells per triangle. There must be fewer than 2^32 triangles.
    pub(super) fn new(surface: &'a Surface) -> Result<Self> {
        let [low, high] =
            surface.bounds().unwrap_or_default().map(|position| position.map(f64::from));
        let extent = sub(high, low);
        let longest = extent.into_iter().fold(f64::MIN_POSITIVE, f64::max);
        let max_cells = (CELLS * surface.triangles.len().max(16)) as f64;
        let cells = |size: f64| extent.map(|side| (side / size).floor() + 1.0);
        // Starts with 10^6 cells along the longest axis and enlarges cells until they are few enough.
        let mut size = longest / 1e6;
        while cells(size).iter().product::<f64>() > max_cells {
            size *= 1.25;
        }
        loop {
            let dims = cells(size).map(|n| n as usize);
            let mut grid = Self {
                surface,
                low,
                longest,
                size,
                cells: 1.0 / size,
                dims,
                ends: Vec::new(),
                triangles: Vec::new(),
            };
            let covered = |chunk: &[[u32; 3]]| {
                let count = |triangle: &[u32; 3]| {
                    let [low, high] = grid.box_of(*triangle);
                    (0..3).map(|i| high[i] - low[i] + 1).product::<usize>()
                };
                chunk.iter().map(count).sum::<usize>()
            };
            let total = surface.triangles.chunks(CHUNK).par_map(covered).iter().sum();
            // Entries are numbered in 32 bits, which a single cell allows for less than 2^32 triangles.
            if total <= COVERED * surface.triangles.len() && u32::try_from(total).is_ok() {
                grid.fill(total)?;
                return Ok(grid);
            }
            if dims == [1; 3] {
                return Err(Error::bad_input(
                    "a mesh of 2^32 triangles or more is too large to measure",
                ));
            }
            size *= 1.5;
        }
    }

    /// The square of the longest side of the surface's box.
    pub(super) fn extent(&self) -> f64 {
        self.longest * self.longest
    }

    fn fill(&mut self, total: usize) -> Result<()> {
        let mut starts = memory::zeros::<u32>(self.dims.iter().product::<usize>() + 1)?;
        for &triangle in &self.surface.triangles {
            self.for_cells(self.box_of(triangle), |cell| starts[cell + 1] += 1);
        }
        for cell in 1..starts.len() {
            starts[cell] += starts[cell - 1];
        }
        let mut triangles = memory::zeros::<u32>(total)?;
        for (number, &triangle) in (0..).zip(&self.surface.triangles) {
            self.for_cells(self.box_of(triangle), |cell| {
                triangles[starts[cell] as usize] = number;
                starts[cell] += 1;
            });
        }
        // Filling moved each entry of `starts` to the end of its row.
        (self.ends, self.triangles) = (starts, triangles);
        Ok(())
    }

    /// First and last cell, along each axis, of the box of a triangle.
    fn box_of(&self, triangle: [u32; 3]) -> [[usize; 3]; 2] {
        let corners = self.surface.corners::<f64>(triangle);
        let [a, b, c] = corners;
        [
            self.cell(from_fn(|i| a[i].min(b[i]).min(c[i]))),
            self.cell(from_fn(|i| a[i].max(b[i]).max(c[i]))),
        ]
    }

    /// The cell of a point, or the nearest cell if the point is outside the grid.
    fn cell(&self, position: [f64; 3]) -> [usize; 3] {
        from_fn(|i| (((position[i] - self.low[i]) * self.cells) as usize).min(self.dims[i] - 1))
    }

    fn for_cells(&self, [low, high]: [[usize; 3]; 2], mut work: impl FnMut(usize)) {
        for z in low[2]..=high[2] {
            for y in low[1]..=high[1] {
                let row = (z * self.dims[1] + y) * self.dims[0];
                (low[0]..=high[0]).for_each(|x| work(row + x));
            }
        }
    }

    /// The squared distance of a point to the triangle `number`.
    pub(super) fn squared_distance(&self, position: [f64; 3], number: u32) -> f64 {
        let away = away(position, self.surface.corners(self.surface.triangles[number as usize]));
        dot(away, away)
    }

    /// The squared distance of a point to the nearest triangle for which `counts` is true, and the number of that
    /// triangle. The distance is infinite if no triangle counts.
    #[inline]
    pub(super) fn nearest(&self, position: [f64; 3], counts: impl Fn(u32) -> bool) -> (f64, u32) {
        let center = self.cell(position);
        let mut best = (f64::INFINITY, 0);
        let to_side = |i: usize| {
            let at = position[i] - self.low[i] - center[i] as f64 * self.size;
            at.min(self.size - at)
        };
        // Squared distance, along one axis, to the cells at one coordinate.
        let to_slab = |axis: usize, cell: usize| {
            let at = position[axis] - self.low[axis] - cell as f64 * self.size;
            let away = (-at).max(at - self.size).max(0.0);
            away * away
        };
        let margin = (0..3).map(to_side).fold(f64::INFINITY, f64::min).max(0.0);
        // Visits cells in rings. The maximum distance along an axis to the cells of a ring is `ring` cells.
        for ring in 0..*self.dims.iter().max().unwrap_or(&1) {
            let low: [usize; 3] = from_fn(|i| center[i].saturating_sub(ring));
            let high: [usize; 3] = from_fn(|i| (center[i] + ring).min(self.dims[i] - 1));
            for z in low[2]..=high[2] {
                let away_z = to_slab(2, z);
                for y in low[1]..=high[1] {
                    let away_row = away_z + to_slab(1, y);
                    if away_row >= best.0 {
                        continue;
                    }
                    let row = (z * self.dims[1] + y) * self.dims[0];
                    let is_face = z.abs_diff(center[2]) == ring || y.abs_diff(center[1]) == ring;
                    let mut look = |x: usize| {
                        if away_row + to_slab(0, x) < best.0 {
                            self.search_cell(row + x, position, &counts, &mut best);
                        }
                    };
                    if is_face {
                        (low[0]..=high[0]).for_each(look);
                    } else {
                        // Only the two ends of this row belong to the ring.
                        if let Some(x) = center[0].checked_sub(ring) {
                            look(x);
                        }
                        if center[0] + ring < self.dims[0] {
                            look(center[0] + ring);
                        }
                    }
                }
            }
            // The distance of cells in the next rings is at least `ring` cells plus the margin in the point's own cell.
            let beyond = ring as f64 * self.size + margin;
            if best.0 <= beyond * beyond {
                break;
            }
        }
        best
    }

    fn search_cell(
        &self,
        cell: usize,
        position: [f64; 3],
        counts: impl Fn(u32) -> bool,
        best: &mut (f64, u32),
    ) {
        let start = if cell == 0 { 0 } else { self.ends[cell - 1] };
        for &triangle in &self.triangles[start as usize..self.ends[cell] as usize] {
            let corners = self.surface.corners::<f64>(self.surface.triangles[triangle as usize]);
            if to_box(position, corners) >= best.0 {
                continue;
            }
            let away = away(position, corners);
            let squared = dot(away, away);
            if squared < best.0 && counts(triangle) {
                *best = (squared, triangle);
            }
        }
    }
}

/// Squared distance of a point to the box of a triangle: a cheap lower bound of the distance to the triangle.
#[inline]
fn to_box(position: [f64; 3], [a, b, c]: [[f64; 3]; 3]) -> f64 {
    let outside = |i: usize| {
        let (low, high) = (a[i].min(b[i]).min(c[i]), a[i].max(b[i]).max(c[i]));
        (low - position[i]).max(position[i] - high).max(0.0)
    };
    let outside = [outside(0), outside(1), outside(2)];
    dot(outside, outside)
}

/// The vector to a point from the nearest point of a triangle (Ericson, "Real-time collision detection", 2005, 5.1.5).
pub(super) fn away(position: [f64; 3], [a, b, c]: [[f64; 3]; 3]) -> [f64; 3] {
    let (ab, ac) = (sub(b, a), sub(c, a));
    let [ap, bp, cp] = [a, b, c].map(|corner| sub(position, corner));
    let [d1, d2, d3] = [dot(ab, ap), dot(ac, ap), dot(ab, bp)];
    let [d4, d5, d6] = [dot(ac, bp), dot(ab, cp), dot(ac, cp)];
    // Barycentric coordinates of the projected point, times `total`.
    let [va, vb, vc] = [d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2];
    let total = va + vb + vc;
    if va > 0.0 && vb > 0.0 && vc > 0.0 {
        let (v, w) = (vb / total, vc / total);
        return from_fn(|i| ap[i] - v * ab[i] - w * ac[i]);
    }
    let to_side = |from_end: [f64; 3], along: [f64; 3]| {
        let fraction = dot(from_end, along) / dot(along, along);
        let fraction = if fraction.is_finite() { fraction.clamp(0.0, 1.0) } else { 0.0 };
        let rest: [f64; 3] = from_fn(|i| from_end[i] - fraction * along[i]);
        (dot(rest, rest), rest)
    };
    let nearer = |one: (f64, [f64; 3]), other: (f64, [f64; 3])| {
        if other.0 < one.0 { other } else { one }
    };
    nearer(nearer(to_side(ap, ab), to_side(ap, ac)), to_side(bp, sub(c, b))).1
}
