//! Triangles that face against the surface before: their normal is opposite to that of the triangle before that is
//! nearest to their middle.
//!
//! No collapse turns a triangle over. But a wall or a gap that is thinner than the error can be pushed through itself,
//! one side through the other, and sharp creases can fold. Once all collapses are done, corners of such triangles move
//! towards the nearest part of the surface before that faces as they do.
//!
//! ```text
//! before   -----^-----   up        after   -----v-----        mended   -----^-----
//!          -----v-----   down              -----^-----                 -----v-----
//! ```

use super::{
    collapse::Simplifier,
    mesh::{self, prev},
};
use crate::{
    data::{
        surface::Surface,
        vec3::{dot, triangle_normal},
    },
    error::Result,
    kernels::mesh::post::distance::{self, Grid},
    memory,
    parallel::Parallel,
};

/// Times that those are tried which are left, as their neighbours may have moved.
const ROUNDS: usize = 4;
/// Ways that a corner is moved, in ways of its triangle's middle, which goes a third as far.
const STEPS: [f64; 4] = [1.0, 2.0, 4.0, 8.0];
/// Ways of a corner back to the surface before, tried where those do not help.
const BACK: [f32; 3] = [1.0, 0.5, 1.5];
/// Mean of a vertex's squared distances to its planes, in mean triangles' areas, from which on the triangles around it
/// are looked at: it may have gone through walls of a fiftieth of a triangle's side.
const LEAST: f64 = 4e-4;
/// Triangles that a thread looks at together.
const CHUNK: usize = 1 << 10;

/// Bytes that it takes a triangle: the grid, and what is left of the simplifier's mesh.
pub(super) const BYTES: u64 = distance::BYTES + mesh::BYTES[1];

impl Simplifier<'_> {
    /// Moves corners of triangles that face against `before`, as far as the others around keep their shape and no more
    /// of them face against it.
    ///
    /// # Errors
    /// [`Kind::Failure`](crate::error::Kind::Failure) when there is no memory for the tables.
    pub(super) fn face(&mut self, before: &Surface) -> Result<()> {
        let mut against = self.moved()?;
        // Room for the grid: no collapse follows.
        (self.quadrics, self.errors) = (Vec::new(), Vec::new());
        if against.is_empty() {
            return Ok(());
        }
        let before = Before { surface: before, grid: Grid::new(before)? };
        self.retain_against(&mut against, &before);
        for _ in 0..ROUNDS {
            let count = against.len();
            against.retain(|&number| !self.turn(number, &before));
            if against.len() == count {
                break;
            }
        }
        Ok(())
    }

    /// The numbers of the triangles with a corner so far from the planes it stands for that a wall may lie between.
    fn moved(&self) -> Result<Vec<u32>> {
        let is_far =
            |vertex: u32| self.quadrics[vertex as usize].mean() > LEAST * self.scale.mean_area();
        let triangles = self.mesh.corners.as_chunks::<3>().0;
        let parts = triangles.chunks(CHUNK).enumerate().par_map(|(chunk, triangles)| {
            let numbered = ((chunk * CHUNK) as u32..).zip(triangles);
            let far = numbered.filter(|(_, corners)| {
                corners[0] != mesh::NONE && corners.iter().any(|&vertex| is_far(vertex))
            });
            far.map(|(number, _)| number).collect::<Vec<u32>>()
        });
        let mut all = memory::room(parts.iter().map(Vec::len).sum())?;
        parts.iter().for_each(|part| all.extend_from_slice(part));
        Ok(all)
    }

    /// Leaves of these triangles those that face against the surface before.
    fn retain_against(&self, numbers: &mut Vec<u32>, before: &Before<'_>) {
        let triangles = self.mesh.corners.as_chunks::<3>().0;
        let parts = numbers.chunks(CHUNK).par_map(|numbers| {
            let of = |number: &u32| self.is_against(triangles[*number as usize], before);
            numbers.iter().map(of).collect::<Vec<bool>>()
        });
        let mut is_against = parts.into_iter().flatten();
        numbers.retain(|_| is_against.next().expect("one a triangle"));
    }

    fn is_against(&self, triangle: [u32; 3], before: &Before<'_>) -> bool {
        let corners = self.surface.corners::<f64>(triangle);
        let (_, nearest) = before.grid.nearest(middle(corners), |_| true);
        dot(triangle_normal(corners), before.normal(nearest)) < 0.0
    }

    /// Moves a corner of a triangle so that it and more than before around that corner face as the surface before.
    /// Returns whether the triangle does.
    fn turn(&mut self, number: u32, before: &Before<'_>) -> bool {
        let triangle = self.mesh.corners.as_chunks::<3>().0[number as usize];
        if !self.is_against(triangle, before) {
            return true;
        }
        let corners = self.surface.corners::<f64>(triangle);
        let (place, normal) = (middle(corners), triangle_normal(corners));
        let agrees = |number| dot(normal, before.normal(number)) > 0.0;
        let (squared, nearest) = before.grid.nearest(place, agrees);
        if squared.is_infinite() {
            return false;
        }
        let way = distance::away(place, before.corners(nearest)).map(|v| -v);
        let moved = STEPS.iter().any(|step| {
            let way = way.map(|v| (step * v) as f32);
            triangle.iter().any(|&vertex| self.move_by(vertex, way, triangle, before))
        });
        moved
            || triangle.iter().any(|&vertex| {
                let way = self.way_back(vertex, before);
                let ways = BACK.map(|step| way.map(|v| step * v));
                ways.into_iter().any(|way| self.move_by(vertex, way, triangle, before))
            })
    }

    /// The way from a vertex to the surface before, where that faces as the triangles that the vertex stands for.
    fn way_back(&self, vertex: u32, before: &Before<'_>) -> [f32; 3] {
        let place = self.surface.positions[vertex as usize].map(f64::from);
        let normal = self.normals[vertex as usize].map(f64::from);
        let agrees = |number| dot(normal, before.normal(number)) > 0.0;
        let (squared, nearest) = before.grid.nearest(place, agrees);
        if squared.is_infinite() {
            return [0.0; 3];
        }
        distance::away(place, before.corners(nearest)).map(|v| -v as f32)
    }

    /// Moves a vertex if `triangle` then faces as the surface before and fewer around the vertex face against it.
    fn move_by(
        &mut self,
        vertex: u32,
        way: [f32; 3],
        triangle: [u32; 3],
        before: &Before<'_>,
    ) -> bool {
        let at = vertex as usize;
        let Some(fan) = self.mesh.fan(vertex).filter(|fan| !fan.is_open) else { return false };
        let old = self.surface.positions[at];
        let place = std::array::from_fn(|i| old[i] + way[i]);
        if !self.keeps_shape(&fan, mesh::NONE, place, None) {
            return false;
        }
        let against = |this: &Self| {
            let around = fan.edges().iter();
            let around = around.map(|&e| [vertex, this.mesh.to(e), this.mesh.from(prev(e))]);
            around.filter(|&triangle| this.is_against(triangle, before)).count()
        };
        let count = against(self);
        self.surface.positions[at] = place;
        let is_better = !self.is_against(triangle, before) && against(self) < count;
        if !is_better {
            self.surface.positions[at] = old;
        }
        is_better
    }
}

/// The surface before, in cells.
struct Before<'a> {
    surface: &'a Surface,
    grid: Grid<'a>,
}

impl Before<'_> {
    fn corners(&self, number: u32) -> [[f64; 3]; 3] {
        self.surface.corners(self.surface.triangles[number as usize])
    }

    fn normal(&self, number: u32) -> [f64; 3] {
        triangle_normal(self.corners(number))
    }
}

fn middle([a, b, c]: [[f64; 3]; 3]) -> [f64; 3] {
    std::array::from_fn(|i| (a[i] + b[i] + c[i]) / 3.0)
}
