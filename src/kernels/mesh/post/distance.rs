//! The Hausdorff distance between two surfaces: the greatest distance of any point of either to the other surface.
//!
//! The distance to a triangle is a convex function, so over another triangle it is greatest at a corner. Therefore each
//! triangle is split until every piece has one triangle of the other surface that is near enough to all its corners.

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

/// Maximum ratio of the result to the distance.
const PRECISION: f64 = 1.01;
/// Pieces are not split if their sides are shorter than these shares of the distance and of the longest side of the
/// surface's box.
const SHORT: [f64; 2] = [1e-3, 1e-7];
/// From this number of splits on, pieces are split in the middle of their longest side.
const BISECTED: u32 = 12;
/// Where a distance is too large by some factor, the limit of distances falls by this factor more.
const LOWER: f64 = 0.5;
/// Triangles that a thread takes at a time.
const CHUNK: usize = 256;

/// Memory besides grids, in bytes per triangle: the nearest triangles to the centres of the triangles of both surfaces,
/// and the farthest points of the triangles of one surface.
pub(super) const BYTES: u64 = 3 * size_of::<Near>() as u64;

/// The Hausdorff distance between two surfaces, in units of the positions, or up to 1 % more: no point of either
/// surface is farther from the other. 0 between two empty surfaces, infinite between an empty and another one.
/// Triangles with two corners at the same position are not measured.
///
/// # Errors
/// [`Kind::Failure`](crate::util::error::Kind::Failure) when there is no memory for the tables,
/// [`Kind::BadInput`](crate::util::error::Kind::BadInput) for 2^32 triangles and more.
pub fn distance(one: &Surface, other: &Surface) -> Result<f64> {
    Ok(Far::of(&Grid::new(one)?, other, f64::INFINITY)?.distance)
}

/// The places where a simplified surface is farther from the original than allowed.
pub(super) struct Far {
    /// The [`distance`](fn@distance) between both. If it exceeds the allowed one, the distance of some point that is
    /// too far.
    pub(super) distance: f64,
    /// Vertices of the original near such places, each with the allowed distance over the distance there, below 1.
    places: Vec<(u32, f64)>,
}

impl Far {
    /// Compares a simplified surface with the original, whose grid this is, and an allowed distance of `most`.
    ///
    /// # Errors
    /// [`Kind::Failure`](crate::util::error::Kind::Failure) when there is no memory for the tables.
    pub(super) fn of(grid: &Grid<'_>, after: &Surface, most: f64) -> Result<Self> {
        let before = grid.surface;
        if before.triangles.is_empty() || after.triangles.is_empty() {
            let both_are = before.triangles.is_empty() && after.triangles.is_empty();
            let distance = if both_are { 0.0 } else { f64::INFINITY };
            return Ok(Self { distance, places: Vec::new() });
        }
        let after_grid = Grid::new(after)?;
        let ways = [(before, &after_grid), (after, grid)];
        let [there, back] = ways.map(|(surface, grid)| Nearest::of(surface, grid));
        let nearest = [there?, back?];
        let mut far = Self { distance: 0.0, places: Vec::new() };
        // The original vertices near a point of a triangle: those of the triangle itself if it is an original one, else
        // those of the nearest original triangle.
        let vertices =
            |surface: &Surface, triangle: [u32; 3], near: Near| match std::ptr::eq(surface, before)
            {
                true => triangle,
                false => before.triangles[near.nearest as usize],
            };
        for ((surface, _), nearest) in ways.iter().zip(&nearest) {
            for (vertex, &near) in (0..).zip(&nearest.to_vertices) {
                far.add(near, most, || vertices(surface, [vertex; 3], near))?;
            }
            for (&triangle, &near) in surface.triangles.iter().zip(&nearest.to_centers) {
                far.add(near, most, || vertices(surface, triangle, near))?;
            }
        }
        if far.distance > most {
            return Ok(far);
        }
        let squared = far.distance * far.distance;
        for ((surface, grid), nearest) in ways.into_iter().zip(nearest) {
            let measure = Measure { surface, grid, nearest, most: most * most, squared };
            let starts = (0..surface.triangles.len()).step_by(CHUNK);
            let farthest = starts.par_map(|first| {
                let end = (first + CHUNK).min(surface.triangles.len());
                (first..end).map(|number| measure.farthest(number)).collect::<Vec<Near>>()
            });
            for (&triangle, near) in surface.triangles.iter().zip(farthest.into_iter().flatten()) {
                far.add(near, most, || vertices(surface, triangle, near))?;
            }
        }
        Ok(far)
    }

    /// Records a distance and, if it exceeds `most`, the original vertices around it.
    fn add(&mut self, near: Near, most: f64, vertices: impl Fn() -> [u32; 3]) -> Result<()> {
        let distance = near.squared.sqrt();
        self.distance = self.distance.max(distance);
        if distance > most {
            let places = vertices().map(|vertex| (vertex, most / distance));
            memory::append(&mut self.places, &mut Vec::from(places))?;
        }
        Ok(())
    }

    /// Lowers the `limits` of squared distances for the vertices near these places, and for their neighbours.
    pub(super) fn lower(&self, before: &Surface, limits: &mut [f32]) -> Result<()> {
        let mut parts = memory::room::<f32>(limits.len())?;
        parts.resize(limits.len(), 1.0);
        for &(vertex, part) in &self.places {
            let part = (LOWER * part) as f32;
            parts[vertex as usize] = parts[vertex as usize].min(part * part);
        }
        // Each triangle passes its least factor on to all of its corners.
        let mut wider = memory::copied(&parts)?;
        for triangle in &before.triangles {
            let least = triangle.iter().map(|&v| parts[v as usize]).fold(1.0, f32::min);
            triangle.iter().for_each(|&v| wider[v as usize] = wider[v as usize].min(least));
        }
        limits.iter_mut().zip(wider).for_each(|(limit, part)| *limit *= part);
        Ok(())
    }
}

/// The triangle nearest to a point, and the squared distance to it.
#[derive(Clone, Copy, Default)]
struct Near {
    squared: f64,
    nearest: u32,
}

impl Near {
    fn to(place: [f64; 3], grid: &Grid<'_>) -> Self {
        let (squared, nearest) = grid.nearest(place, |_| true);
        Self { squared, nearest }
    }
}

/// The nearest triangles of another surface to the vertices and to the centres of the triangles of a surface. For
/// triangles with two corners at the same position, and for vertices of no other triangle, the distance is 0.
struct Nearest {
    to_vertices: Vec<Near>,
    to_centers: Vec<Near>,
}

impl Nearest {
    fn of(surface: &Surface, grid: &Grid<'_>) -> Result<Self> {
        let mut is_used = memory::zeros::<bool>(surface.positions.len())?;
        let whole = surface.triangles.iter().filter(|&&triangle| !surface.is_flat(triangle));
        whole.flatten().for_each(|&vertex| is_used[vertex as usize] = true);
        let to_vertices = parallel::generated(is_used.len(), |vertex| match is_used[vertex] {
            true => Near::to(surface.positions[vertex].map(f64::from), grid),
            false => Near::default(),
        })?;
        let to_centers = parallel::mapped(&surface.triangles, |&triangle| {
            let corners = surface.corners::<f64>(triangle);
            match surface.is_flat(triangle) {
                true => Near::default(),
                false => {
                    Near::to(from_fn(|i| corners.iter().map(|p| p[i]).sum::<f64>() / 3.0), grid)
                }
            }
        })?;
        Ok(Self { to_vertices, to_centers })
    }
}

/// A corner of a piece of a triangle.
#[derive(Clone, Copy)]
struct Corner {
    place: [f64; 3],
    near: Near,
}

/// Measures the distance of one surface to another.
struct Measure<'a> {
    surface: &'a Surface,
    /// The other surface.
    grid: &'a Grid<'a>,
    nearest: Nearest,
    /// The square of the allowed distance.
    most: f64,
    /// The square of the greatest distance found so far.
    squared: f64,
}

impl Measure<'_> {
    /// An upper bound of the distance of a triangle's points to the other surface. It exceeds the greatest distance by
    /// at most [`PRECISION`], unless it is below the allowed distance or a distance found before. If some point is
    /// farther than allowed, the distance of that point.
    fn farthest(&self, number: usize) -> Near {
        let triangle = self.surface.triangles[number];
        if self.surface.is_flat(triangle) {
            return Near::default();
        }
        let corners = self.surface.corners::<f64>(triangle);
        let corner = |i: usize| Corner {
            place: corners[i],
            near: self.nearest.to_vertices[triangle[i] as usize],
        };
        let first = Piece::new(from_fn(corner), self.grid);
        let center = self.nearest.to_centers[number];
        // The distance of some point, and a distance that no point exceeds.
        let mut known = farther(first.worst(), center);
        let mut upper = known;
        // Most triangles are near the triangle that is nearest to their centre.
        let below = first.squared_distance_to(center.nearest, self.grid);
        if below <= self.enough(known) {
            return farther(upper, Near { squared: below, ..center });
        }
        let mut pieces = vec![first];
        while let Some(piece) = pieces.pop() {
            if known.squared > self.most {
                return known;
            }
            let enough = self.enough(known);
            let bound = piece.bound();
            let [part, floor] = SHORT.map(|short| short * short);
            let short = (part * enough).max(floor * self.grid.extent());
            if bound <= enough || piece.longest() <= short {
                upper = farther(upper, Near { squared: bound, ..piece.worst() });
                continue;
            }
            let (side, place) = piece.split();
            let (mut middle, squared) = piece.nearest_of_corners(place, self.grid);
            if middle.near.squared > enough / 4.0 {
                middle.near = Near::to(place, self.grid);
                known = farther(known, middle.near);
            }
            pieces.extend(piece.halves(side, middle, squared, self.grid));
        }
        upper
    }

    /// The square of a distance up to which points need not be measured precisely.
    fn enough(&self, known: Near) -> f64 {
        match self.most.is_finite() {
            true => self.most,
            false => PRECISION * PRECISION * self.squared.max(known.squared),
        }
    }
}

/// A piece of a triangle.
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
        let squared = corners.map(|Corner { place, near }| {
            corners.map(|other| match other.near.nearest == near.nearest {
                true => near.squared,
                false => grid.squared_distance(place, other.near.nearest),
            })
        });
        Self { corners, squared, depth: 0 }
    }

    /// The halves on both sides of a line from `middle`, a point on a side, to the opposite corner. `to_nearest` are
    /// the squared distances of `middle` to the triangles nearest to the corners.
    fn halves(
        &self,
        side: usize,
        middle: Corner,
        to_nearest: [f64; 3],
        grid: &Grid<'_>,
    ) -> [Self; 2] {
        let Self { corners, squared, depth } = self;
        let [a, b, c] = from_fn(|i| (side + i) % 3);
        let known = corners.iter().position(|corner| corner.near.nearest == middle.near.nearest);
        // Squared distance of each corner to the triangle nearest to the middle.
        let to_middle: [f64; 3] = from_fn(|i| match known {
            Some(j) => squared[i][j],
            None => grid.squared_distance(corners[i].place, middle.near.nearest),
        });
        // The middle replaces one end of the side, or the other.
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

    /// The greatest distance of a corner.
    fn worst(&self) -> Near {
        self.corners.iter().map(|corner| corner.near).fold(Near::default(), farther)
    }

    /// The square of a distance that no point exceeds.
    fn bound(&self) -> f64 {
        let to = |i: usize| self.squared.iter().map(|squared| squared[i]).fold(0.0, f64::max);
        // Each point is within this distance of a corner.
        let reach = self.worst().squared.sqrt() + (self.longest() / 3.0).sqrt();
        (0..3).map(to).fold(reach * reach, f64::min)
    }

    /// The greatest squared distance of any point of the piece to a triangle of the other surface.
    fn squared_distance_to(&self, triangle: u32, grid: &Grid<'_>) -> f64 {
        let of = |corner: &Corner| grid.squared_distance(corner.place, triangle);
        self.corners.iter().map(of).fold(0.0, f64::max)
    }

    /// The squared length of the longest side.
    fn longest(&self) -> f64 {
        (0..3).map(|side| self.length(side)).fold(0.0, f64::max)
    }

    fn length(&self, side: usize) -> f64 {
        let way = sub(self.corners[(side + 1) % 3].place, self.corners[side].place);
        dot(way, way)
    }

    /// The side to split, and the point: about where the triangles nearest to its ends are equally near.
    fn split(&self) -> (usize, [f64; 3]) {
        // How much farther each end is from the triangle nearest to the other end.
        let excess = |side: usize| {
            let (from, to) = (side, (side + 1) % 3);
            [(from, to), (to, from)].map(|(i, j)| self.squared[i][j] - self.squared[i][i])
        };
        let least = |side: usize| excess(side)[0].min(excess(side)[1]);
        let best = (0..3).max_by(|&one, &other| least(one).total_cmp(&least(other))).unwrap_or(0);
        let longest = (0..3).max_by(|&one, &other| self.length(one).total_cmp(&self.length(other)));
        let (side, part) = match self.depth < BISECTED && least(best) > 0.05 * self.bound() {
            true => {
                let [at, rest] = excess(best).map(f64::sqrt);
                (best, (at / (at + rest)).clamp(0.05, 0.95))
            }
            false => (longest.unwrap_or(0), 0.5),
        };
        let [from, to] = [side, (side + 1) % 3].map(|i| self.corners[i].place);
        (side, from_fn(|i| from[i] + part * (to[i] - from[i])))
    }

    /// A point with the nearest of the triangles that are nearest to the corners, and its squared distances to all
    /// three.
    fn nearest_of_corners(&self, place: [f64; 3], grid: &Grid<'_>) -> (Corner, [f64; 3]) {
        let nearest = self.corners.map(|corner| corner.near.nearest);
        let squared = nearest.map(|triangle| grid.squared_distance(place, triangle));
        let near =
            nearest.into_iter().zip(squared).map(|(nearest, squared)| Near { squared, nearest });
        let near = near.min_by(|one, other| one.squared.total_cmp(&other.squared));
        (Corner { place, near: near.unwrap_or_default() }, squared)
    }
}

fn farther(one: Near, other: Near) -> Near {
    if other.squared > one.squared { other } else { one }
}
