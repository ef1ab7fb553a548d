//! Triangles that face against the original surface: their normal is opposite to that of the original triangle nearest
//! to their middle.
//!
//! No collapse turns a triangle over. But the two sides of a wall or a gap that is thinner than the error can pass
//! through each other, and sharp creases can fold. After all collapses, corners of such triangles move towards the
//! nearest part of the original surface that faces the same way.
//!
//! ```text
//! before   -----^-----   up        after   -----v-----        mended   -----^-----
//!          -----v-----   down              -----^-----                 -----v-----
//! ```

use super::{
    mesh::{self, prev},
    simplifier::Simplifier,
};
use crate::{
    data::{
        surface::Surface,
        vec3::{dot, triangle_normal},
    },
    kernels::mesh::post::grid::{self, Grid},
    util::{error::Result, memory, parallel::Parallel},
};

/// Attempts for triangles that are still against: their neighbours may have moved meanwhile.
const ROUNDS: usize = 4;
/// How far one corner moves, in units of the way that its triangle's middle lacks; the middle moves a third of that.
const STEPS: [f64; 4] = [1.0, 2.0, 4.0, 8.0];
/// How far one corner moves towards the original surface where no step above helps, in units of its distance.
const BACK: [f32; 3] = [1.0, 0.5, 1.5];
/// Triangles are checked where a corner's mean squared distance to its planes exceeds this, in mean areas of triangles.
/// A corner that moved less cannot have passed through a wall thicker than a fiftieth of a triangle's side.
const MIN_MOVED: f64 = 4e-4;
/// Triangles that a thread looks at together.
const CHUNK: usize = 1 << 10;

/// Memory in bytes per triangle: the grid, and what the simplifier's mesh still takes.
pub(super) const BYTES: u64 = grid::BYTES + mesh::BYTES[1];

impl Simplifier<'_> {
    /// Moves corners of triangles that face against `before`, where the triangles around the corner keep their shape
    /// and fewer of them face against it then.
    ///
    /// # Errors
    /// [`Kind::Failure`](crate::util::error::Kind::Failure) when there is no memory for the tables.
    pub(super) fn face(&mut self, before: &Surface) -> Result<()> {
        let mut against = self.moved()?;
        // Makes room for the grid; no collapse follows that would need these tables.
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

    /// The numbers of the triangles with a corner that has moved far from its planes ([`MIN_MOVED`]).
    fn moved(&self) -> Result<Vec<u32>> {
        let is_far = |vertex: u32| {
            self.quadrics[vertex as usize].mean() > MIN_MOVED * self.scale.mean_area()
        };
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

    /// Keeps the triangles that face against the original surface.
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

    /// Moves a corner of a triangle so that the triangle faces as the original surface does, and fewer around that
    /// corner face against it. Returns whether the triangle now faces the right way.
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
        let way = grid::away(place, before.corners(nearest)).map(|v| -v);
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

    /// The way from a vertex to the nearest original triangle that faces as the vertex's own original triangles do.
    fn way_back(&self, vertex: u32, before: &Before<'_>) -> [f32; 3] {
        let place = self.surface.positions[vertex as usize].map(f64::from);
        let normal = self.normals[vertex as usize].map(f64::from);
        if normal == [0.0; 3] {
            // Two sheets back to back: no triangle agrees with both, and all would be looked at.
            return [0.0; 3];
        }
        let agrees = |number| dot(normal, before.normal(number)) > 0.0;
        let (squared, nearest) = before.grid.nearest(place, agrees);
        if squared.is_infinite() {
            return [0.0; 3];
        }
        grid::away(place, before.corners(nearest)).map(|v| -v as f32)
    }

    /// Moves a vertex by `way` if `triangle` then faces as the original surface does and fewer triangles around the
    /// vertex face against it. Returns whether it did.
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
        let place = self.scale.inside(std::array::from_fn(|i| old[i] + way[i]));
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

/// The original surface with a grid to search it.
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
