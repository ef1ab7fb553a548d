//! The Hausdorff distance of two surfaces: the maximum distance of any point of either surface to the other.
//!
//! The distance to a triangle is a convex function, so over another triangle it is maximal at a corner. Therefore, each
//! triangle is split until every piece has one triangle of the other surface that is near enough to all of its corners.

use std::array::from_fn;

use super::grid::Grid;
use crate::{
    data::{
        surface::Surface,
        vec3::{dot, sub},
    },
    util::{
        error::Result,
        memory,
        parallel::{self, Parallel},
    },
};

/// Maximum ratio of the result to the true distance.
const PRECISION: f64 = 1.01;
/// Pieces are not split if their sides are shorter than these shares of the distance and of the longest side of the
/// surface's box.
const SHORT: [f64; 2] = [1e-3, 1e-7];
/// From this number of splits on, pieces are split in the middle of their longest side.
const BISECTED: u32 = 12;
/// Additional factor by which limits are lowered where the distance is too large.
const LOWER: f64 = 0.5;
/// Triangles that a thread takes at a time.
const CHUNK: usize = 256;

/// Memory in addition to grids, in bytes per triangle: the nearest triangles to the centres of the triangles of both
/// surfaces, and the farthest points of the triangles of one surface.
pub(super) const BYTES: u64 = 3 * size_of::<Nearest>() as u64;

/// The Hausdorff distance of two surfaces in units of the positions, or up to 1 % more: no point of either surface is
/// farther from the other. 0 for two empty surfaces, infinite for an empty and a nonempty one. Degenerate triangles are
/// not measured. There must be fewer than 2^32 triangles.
pub fn distance(one: &Surface, other: &Surface) -> Result<f64> {
    Ok(Deviation::measure(&Grid::new(one)?, other, f64::INFINITY)?.distance)
}

/// The deviation of a simplified surface from the original.
pub(super) struct Deviation {
    /// The [`distance`](fn@distance) of both surfaces. If it exceeds the limit, the distance of some point beyond the
    /// limit.
    pub(super) distance: f64,
    /// Vertices of the original near points beyond the limit, each with the limit divided by the distance there, below
    /// 1.
    exceeded: Vec<(u32, f64)>,
}

impl Deviation {
    /// Compares the surface `after` with the original, whose grid is given. The limit is `max`.
    pub(super) fn measure(grid: &Grid<'_>, after: &Surface, max: f64) -> Result<Self> {
        let before = grid.surface;
        if before.triangles.is_empty() || after.triangles.is_empty() {
            let both_are = before.triangles.is_empty() && after.triangles.is_empty();
            let distance = if both_are { 0.0 } else { f64::INFINITY };
            return Ok(Self { distance, exceeded: Vec::new() });
        }
        let after_grid = Grid::new(after)?;
        let directions = [(before, &after_grid), (after, grid)];
        let [there, back] = directions.map(|(surface, grid)| NearestTriangles::new(surface, grid));
        let nearest = [there?, back?];
        let mut deviation = Self { distance: 0.0, exceeded: Vec::new() };
        // The original vertices near a point of a triangle: those of the triangle itself if it is an original triangle,
        // otherwise those of the nearest original triangle.
        let vertices = |surface: &Surface, triangle: [u32; 3], near: Nearest| match std::ptr::eq(
            surface, before,
        ) {
            true => triangle,
            false => before.triangles[near.triangle as usize],
        };
        for ((surface, _), nearest) in directions.iter().zip(&nearest) {
            for (vertex, &near) in (0..).zip(&nearest.to_vertices) {
                deviation.add(near, max, || vertices(surface, [vertex; 3], near))?;
            }
            for (&triangle, &near) in surface.triangles.iter().zip(&nearest.to_centers) {
                deviation.add(near, max, || vertices(surface, triangle, near))?;
            }
        }
        if deviation.distance > max {
            return Ok(deviation);
        }
        let squared = deviation.distance * deviation.distance;
        for ((surface, grid), nearest) in directions.into_iter().zip(nearest) {
            let measurement =
                Measurement { surface, grid, nearest, max_squared: max * max, squared };
            let starts = (0..surface.triangles.len()).step_by(CHUNK);
            let farthest = starts.par_map(|first| {
                let end = (first + CHUNK).min(surface.triangles.len());
                (first..end).map(|number| measurement.farthest(number)).collect::<Vec<Nearest>>()
            });
            for (&triangle, near) in surface.triangles.iter().zip(farthest.into_iter().flatten()) {
                deviation.add(near, max, || vertices(surface, triangle, near))?;
            }
        }
        Ok(deviation)
    }

    /// Records a distance and, if it exceeds `max`, the original vertices around the point.
    fn add(&mut self, near: Nearest, max: f64, vertices: impl Fn() -> [u32; 3]) -> Result<()> {
        let distance = near.squared.sqrt();
        self.distance = self.distance.max(distance);
        if distance > max {
            let exceeded = vertices().map(|vertex| (vertex, max / distance));
            memory::append(&mut self.exceeded, &mut Vec::from(exceeded))?;
        }
        Ok(())
    }

    /// Lowers the `limits` of squared distances for the vertices near points beyond the limit, and for their
    /// neighbours.
    pub(super) fn lower_limits(&self, before: &Surface, limits: &mut [f32]) -> Result<()> {
        let mut factors = memory::filled(1.0f32, limits.len());
        for &(vertex, factor) in &self.exceeded {
            let factor = (LOWER * factor) as f32;
            factors[vertex as usize] = factors[vertex as usize].min(factor * factor);
        }
        // Each triangle passes its minimum factor on to all of its corners.
        let mut wider = memory::copied(&factors)?;
        for triangle in &before.triangles {
            let min = triangle.iter().map(|&v| factors[v as usize]).fold(1.0, f32::min);
            triangle.iter().for_each(|&v| wider[v as usize] = wider[v as usize].min(min));
        }
        limits.iter_mut().zip(wider).for_each(|(limit, factor)| *limit *= factor);
        Ok(())
    }
}

/// The triangle nearest to a point, and the squared distance to it.
#[derive(Clone, Copy, Default)]
struct Nearest {
    squared: f64,
    triangle: u32,
}

impl Nearest {
    fn to(position: [f64; 3], grid: &Grid<'_>) -> Self {
        let (squared, triangle) = grid.nearest(position, |_| true);
        Self { squared, triangle }
    }
}

/// The nearest triangles of another surface to the vertices and to the centres of the triangles of a surface. For
/// degenerate triangles, and for vertices that only these use, the distance is 0.
struct NearestTriangles {
    to_vertices: Vec<Nearest>,
    to_centers: Vec<Nearest>,
}

impl NearestTriangles {
    fn new(surface: &Surface, grid: &Grid<'_>) -> Result<Self> {
        let mut is_used = memory::zeros::<bool>(surface.positions.len())?;
        let whole = surface.triangles.iter().filter(|&&triangle| !surface.is_flat(triangle));
        whole.flatten().for_each(|&vertex| is_used[vertex as usize] = true);
        let to_vertices = parallel::generated(is_used.len(), |vertex| match is_used[vertex] {
            true => Nearest::to(surface.positions[vertex].map(f64::from), grid),
            false => Nearest::default(),
        })?;
        let to_centers = parallel::mapped(&surface.triangles, |&triangle| {
            let corners = surface.corners::<f64>(triangle);
            match surface.is_flat(triangle) {
                true => Nearest::default(),
                false => {
                    Nearest::to(from_fn(|i| corners.iter().map(|p| p[i]).sum::<f64>() / 3.0), grid)
                }
            }
        })?;
        Ok(Self { to_vertices, to_centers })
    }
}

/// A corner of a piece of a triangle.
#[derive(Clone, Copy)]
struct Corner {
    position: [f64; 3],
    near: Nearest,
}

/// A measurement of the distance of one surface to another.
struct Measurement<'a> {
    surface: &'a Surface,
    /// The other surface.
    grid: &'a Grid<'a>,
    nearest: NearestTriangles,
    /// The square of the limit.
    max_squared: f64,
    /// The square of the maximum distance found so far.
    squared: f64,
}

impl Measurement<'_> {
    /// An upper bound of the distance of a triangle's points to the other surface. It exceeds the maximum distance by
    /// at most [`PRECISION`], unless it is below the limit or a distance found before. If some point is beyond the
    /// limit, the distance of that point.
    fn farthest(&self, number: usize) -> Nearest {
        let triangle = self.surface.triangles[number];
        if self.surface.is_flat(triangle) {
            return Nearest::default();
        }
        let corners = self.surface.corners::<f64>(triangle);
        let corner = |i: usize| Corner {
            position: corners[i],
            near: self.nearest.to_vertices[triangle[i] as usize],
        };
        let first = Piece::new(from_fn(corner), self.grid);
        let center = self.nearest.to_centers[number];
        // The distance of some point, and an upper bound of all distances.
        let mut known = farther(first.worst(), center);
        let mut upper = known;
        // Most triangles are near the triangle that is nearest to their centre.
        let below = first.squared_distance_to(center.triangle, self.grid);
        if below <= self.enough(known) {
            return farther(upper, Nearest { squared: below, ..center });
        }
        let mut pieces = vec![first];
        while let Some(piece) = pieces.pop() {
            if known.squared > self.max_squared {
                return known;
            }
            let enough = self.enough(known);
            let bound = piece.bound();
            let [ratio, floor] = SHORT.map(|short| short * short);
            let short = (ratio * enough).max(floor * self.grid.extent());
            if bound <= enough || piece.longest_squared() <= short {
                upper = farther(upper, Nearest { squared: bound, ..piece.worst() });
                continue;
            }
            let (side, position) = piece.split();
            let (mut middle, squared) = piece.nearest_of_corners(position, self.grid);
            if middle.near.squared > enough / 4.0 {
                middle.near = Nearest::to(position, self.grid);
                known = farther(known, middle.near);
            }
            pieces.extend(piece.halves(side, middle, squared, self.grid));
        }
        upper
    }

    /// The square of a distance up to which points need not be measured precisely.
    fn enough(&self, known: Nearest) -> f64 {
        match self.max_squared.is_finite() {
            true => self.max_squared,
            false => PRECISION * PRECISION * self.squared.max(known.squared),
        }
    }
}

struct Piece {
    corners: [Corner; 3],
    /// The squared distance of each corner to the triangle nearest to each corner.
    squared: [[f64; 3]; 3],
    /// Number of splits that made it.
    depth: u32,
}

impl Piece {
    /// A whole triangle.
    fn new(corners: [Corner; 3], grid: &Grid<'_>) -> Self {
        let squared = corners.map(|Corner { position, near }| {
            corners.map(|other| match other.near.triangle == near.triangle {
                true => near.squared,
                false => grid.squared_distance(position, other.near.triangle),
            })
        });
        Self { corners, squared, depth: 0 }
    }

    /// The two pieces on both sides of the line from `middle`, a point on `side`, to the opposite corner. `to_nearest`
    /// holds the squared distances of `middle` to the triangles nearest to the corners.
    fn halves(
        &self,
        side: usize,
        middle: Corner,
        to_nearest: [f64; 3],
        grid: &Grid<'_>,
    ) -> [Self; 2] {
        let Self { corners, squared, depth } = self;
        let [a, b, c] = from_fn(|i| (side + i) % 3);
        let known = corners.iter().position(|corner| corner.near.triangle == middle.near.triangle);
        // Squared distance of each corner to the triangle nearest to `middle`.
        let to_middle: [f64; 3] = from_fn(|i| match known {
            Some(j) => squared[i][j],
            None => grid.squared_distance(corners[i].position, middle.near.triangle),
        });
        // `middle` replaces one end of the side, or the other.
        [[a, c], [b, c]].map(|[i, j]| Self {
            corners: [corners[i], corners[j], middle],
            squared: [
                [squared[i][i], squared[i][j], to_middle[i]],
                [squared[j][i], squared[j][j], to_middle[j]],
                [to_nearest[i], to_nearest[j], middle.near.squared],
            ],
            depth: depth + 1,
        })
    }

    /// The corner with the maximum distance.
    fn worst(&self) -> Nearest {
        self.corners.iter().map(|corner| corner.near).fold(Nearest::default(), farther)
    }

    /// An upper bound of the squared distance of all points.
    fn bound(&self) -> f64 {
        let to = |i: usize| self.squared.iter().map(|squared| squared[i]).fold(0.0, f64::max);
        // Each point is within this distance of a corner.
        let reach = self.worst().squared.sqrt() + (self.longest_squared() / 3.0).sqrt();
        (0..3).map(to).fold(reach * reach, f64::min)
    }

    /// Maximum squared distance of the points of the piece to `triangle` of the other surface.
    fn squared_distance_to(&self, triangle: u32, grid: &Grid<'_>) -> f64 {
        let squared = |corner: &Corner| grid.squared_distance(corner.position, triangle);
        self.corners.iter().map(squared).fold(0.0, f64::max)
    }

    /// The squared length of the longest side.
    fn longest_squared(&self) -> f64 {
        (0..3).map(|side| self.squared_length(side)).fold(0.0, f64::max)
    }

    fn squared_length(&self, side: usize) -> f64 {
        let along = sub(self.corners[(side + 1) % 3].position, self.corners[side].position);
        dot(along, along)
    }

    /// The side to split, and the point: approximately where the triangles nearest to both ends are equally near.
    fn split(&self) -> (usize, [f64; 3]) {
        // By how much each end is farther from the triangle nearest to the other end than from its own.
        let excess = |side: usize| {
            let (from, to) = (side, (side + 1) % 3);
            [(from, to), (to, from)].map(|(i, j)| self.squared[i][j] - self.squared[i][i])
        };
        let min_excess = |side: usize| excess(side)[0].min(excess(side)[1]);
        let best = (0..3)
            .max_by(|&one, &other| min_excess(one).total_cmp(&min_excess(other)))
            .unwrap_or(0);
        let longest = (0..3)
            .max_by(|&one, &other| self.squared_length(one).total_cmp(&self.squared_length(other)));
        let (side, ratio) = match self.depth < BISECTED && min_excess(best) > 0.05 * self.bound() {
            true => {
                let [at, rest] = excess(best).map(f64::sqrt);
                (best, (at / (at + rest)).clamp(0.05, 0.95))
            }
            false => (longest.unwrap_or(0), 0.5),
        };
        let [from, to] = [side, (side + 1) % 3].map(|i| self.corners[i].position);
        (side, from_fn(|i| from[i] + ratio * (to[i] - from[i])))
    }

    /// A point with the nearest one of the triangles nearest to the corners, and its squared distances to these three
    /// triangles.
    fn nearest_of_corners(&self, position: [f64; 3], grid: &Grid<'_>) -> (Corner, [f64; 3]) {
        let nearest = self.corners.map(|corner| corner.near.triangle);
        let squared = nearest.map(|triangle| grid.squared_distance(position, triangle));
        let near = nearest
            .into_iter()
            .zip(squared)
            .map(|(triangle, squared)| Nearest { squared, triangle });
        let near = near.min_by(|one, other| one.squared.total_cmp(&other.squared));
        (Corner { position, near: near.unwrap_or_default() }, squared)
    }
}

fn farther(one: Nearest, other: Nearest) -> Nearest {
    if other.squared > one.squared { other } else { one }
}
