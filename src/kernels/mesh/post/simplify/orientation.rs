//! Corrects triangles that face against the original surface: those whose normal is opposite to that of the original
//! triangle nearest to their centroid.
//!
//! No collapse turns a triangle over. But the two sides of a wall or a gap that is thinner than the error can pass
//! through each other, and sharp creases can fold. After all collapses, corners of such triangles are moved towards the
//! nearest part of the original surface that faces in their direction.
//!
//! ```text
//! before   -----^-----   up        after   -----v-----        corrected   -----^-----
//!          -----v-----   down              -----^-----                    -----v-----
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

/// Number of attempts. A triangle may succeed after its neighbours have moved.
const ROUNDS: usize = 4;
/// Steps of a corner, in units of the vector from the triangle's centroid to the original surface. The centroid moves
/// by a third of the step.
const STEPS: [f64; 4] = [1.0, 2.0, 4.0, 8.0];
/// Steps of a corner towards the original surface if none of [`STEPS`] helps, in units of its distance.
const BACK: [f32; 3] = [1.0, 0.5, 1.5];
/// Triangles are checked if the mean squared distance of a corner to its planes exceeds this many mean areas of
/// triangles. A corner that moved less cannot have passed through a wall thicker than a fiftieth of a triangle's side.
const MIN_MOVED: f64 = 4e-4;
/// Triangles that a thread checks at a time.
const CHUNK: usize = 1 << 10;

/// Memory in bytes per triangle: the grid and the simplifier's mesh.
pub(super) const BYTES: u64 = grid::BYTES + mesh::BYTES[1];

impl Simplifier<'_> {
    /// Moves corners of triangles that face against `before`, if the triangles around the corner keep their shape and
    /// fewer of them face against it afterwards.
    pub(super) fn correct_orientation(&mut self, before: &Surface) -> Result<()> {
        let mut against = self.moved_triangles()?;
        // Frees memory for the grid. No collapse follows that would need these tables.
        (self.quadrics, self.errors) = (Vec::new(), Vec::new());
        if against.is_empty() {
            return Ok(());
        }
        let original = Original { surface: before, grid: Grid::new(before)? };
        self.retain_against(&mut against, &original);
        for _ in 0..ROUNDS {
            let count = against.len();
            against.retain(|&number| !self.correct_triangle(number, &original));
            if against.len() == count {
                break;
            }
        }
        Ok(())
    }

    /// Indices of the triangles with a corner that has moved far from its planes ([`MIN_MOVED`]).
    fn moved_triangles(&self) -> Result<Vec<u32>> {
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
    fn retain_against(&self, numbers: &mut Vec<u32>, original: &Original<'_>) {
        let triangles = self.mesh.corners.as_chunks::<3>().0;
        let parts = numbers.chunks(CHUNK).par_map(|numbers| {
            let flag = |number: &u32| self.is_against(triangles[*number as usize], original);
            numbers.iter().map(flag).collect::<Vec<bool>>()
        });
        let mut is_against = parts.into_iter().flatten();
        numbers.retain(|_| is_against.next().expect("one flag per triangle"));
    }

    fn is_against(&self, triangle: [u32; 3], original: &Original<'_>) -> bool {
        let corners = self.surface.corners::<f64>(triangle);
        let (_, nearest) = original.grid.nearest(centroid(corners), |_| true);
        dot(triangle_normal(corners), original.normal(nearest)) < 0.0
    }

    /// Moves a corner of a triangle so that the triangle agrees with the original surface and fewer triangles around
    /// the corner face against it. Returns whether the triangle now agrees.
    fn correct_triangle(&mut self, number: u32, original: &Original<'_>) -> bool {
        let triangle = self.mesh.corners.as_chunks::<3>().0[number as usize];
        if !self.is_against(triangle, original) {
            return true;
        }
        let corners = self.surface.corners::<f64>(triangle);
        let (position, normal) = (centroid(corners), triangle_normal(corners));
        let agrees = |number| dot(normal, original.normal(number)) > 0.0;
        let (squared, nearest) = original.grid.nearest(position, agrees);
        if squared.is_infinite() {
            return false;
        }
        let shift = grid::away(position, original.corners(nearest)).map(|v| -v);
        let moved = STEPS.iter().any(|step| {
            let shift = shift.map(|v| (step * v) as f32);
            triangle.iter().any(|&vertex| self.move_by(vertex, shift, triangle, original))
        });
        moved
            || triangle.iter().any(|&vertex| {
                let shift = self.shift_back(vertex, original);
                let shifts = BACK.map(|step| shift.map(|v| step * v));
                shifts.into_iter().any(|shift| self.move_by(vertex, shift, triangle, original))
            })
    }

    /// The vector from a vertex to the nearest original triangle that agrees with the original triangles that the
    /// vertex represents.
    fn shift_back(&self, vertex: u32, original: &Original<'_>) -> [f32; 3] {
        let position = self.surface.positions[vertex as usize].map(f64::from);
        let normal = self.normals[vertex as usize].map(f64::from);
        if normal == [0.0; 3] {
            // Two sheets back to back. No triangle agrees with both, so the search would visit all of them.
            return [0.0; 3];
        }
        let agrees = |number| dot(normal, original.normal(number)) > 0.0;
        let (squared, nearest) = original.grid.nearest(position, agrees);
        if squared.is_infinite() {
            return [0.0; 3];
        }
        grid::away(position, original.corners(nearest)).map(|v| -v as f32)
    }

    /// Moves a vertex by `shift` if `triangle` then agrees with the original surface and fewer triangles around the
    /// vertex face against it. Returns whether it moved.
    fn move_by(
        &mut self,
        vertex: u32,
        shift: [f32; 3],
        triangle: [u32; 3],
        original: &Original<'_>,
    ) -> bool {
        let at = vertex as usize;
        let Some(fan) = self.mesh.fan(vertex).filter(|fan| !fan.is_open) else { return false };
        let old = self.surface.positions[at];
        let position = self.scale.inside(std::array::from_fn(|i| old[i] + shift[i]));
        if !self.keeps_shape(&fan, mesh::NONE, position, None) {
            return false;
        }
        let against = |this: &Self| {
            let around = fan.edges().iter();
            let around =
                around.map(|&e| [vertex, this.mesh.end_vertex(e), this.mesh.start_vertex(prev(e))]);
            around.filter(|&triangle| this.is_against(triangle, original)).count()
        };
        let count = against(self);
        self.surface.positions[at] = position;
        let is_better = !self.is_against(triangle, original) && against(self) < count;
        if !is_better {
            self.surface.positions[at] = old;
        }
        is_better
    }
}

/// The original surface with a grid to search it.
struct Original<'a> {
    surface: &'a Surface,
    grid: Grid<'a>,
}

impl Original<'_> {
    fn corners(&self, number: u32) -> [[f64; 3]; 3] {
        self.surface.corners(self.surface.triangles[number as usize])
    }

    fn normal(&self, number: u32) -> [f64; 3] {
        triangle_normal(self.corners(number))
    }
}

fn centroid([a, b, c]: [[f64; 3]; 3]) -> [f64; 3] {
    std::array::from_fn(|i| (a[i] + b[i] + c[i]) / 3.0)
}
