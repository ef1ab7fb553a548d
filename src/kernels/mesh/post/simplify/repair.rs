//! Repairs triangles that are degenerate after all collapses, by moving one of their vertices.

use super::{
    degenerate::min_double_area,
    mesh::{self, prev},
    simplifier::Simplifier,
};
use crate::data::vec3::{dot, triangle_normal};

impl Simplifier<'_> {
    /// Moves vertices of degenerate triangles towards the mean of their neighbours, by at most `reach` at a time. No
    /// collapse could remove these triangles, for example where two parts of the surface touch at a sample that equals
    /// the isovalue.
    pub(super) fn repair_degenerate(&mut self, reach: f32) {
        let min_area = min_double_area(self.surface);
        for number in 0..self.mesh.corners.len() / 3 {
            let corners = self.mesh.corners.as_chunks::<3>().0[number];
            if corners[0] != mesh::NONE && !self.has_area(corners, min_area) {
                // Moves that fold the surface are tried last. A fold is better than a degenerate triangle.
                [false, true].into_iter().any(|may_fold| {
                    let mut spread =
                        |&vertex| self.spread(vertex, corners, min_area, may_fold, reach);
                    corners.iter().any(&mut spread)
                });
            }
        }
    }

    fn has_area(&self, triangle: [u32; 3], min_area: f64) -> bool {
        let normal = triangle_normal(self.surface.corners::<f64>(triangle));
        dot(normal, normal) > min_area * min_area
    }

    /// Moves a vertex of `triangle` so that the triangle gets an area. Fewer triangles around the vertex must be
    /// degenerate afterwards and, unless the surface `may_fold`, all of them must keep their shape. Returns whether the
    /// vertex moved.
    fn spread(
        &mut self,
        vertex: u32,
        triangle: [u32; 3],
        min_area: f64,
        may_fold: bool,
        reach: f32,
    ) -> bool {
        let Some(fan) = self.mesh.fan(vertex) else { return false };
        let at = vertex as usize;
        let ends = fan.ends();
        let ends: Vec<u32> = match fan.is_open {
            true => vec![ends[0], ends[ends.len() - 1]],
            false => ends.to_vec(),
        };
        // A vertex on the boundary stays on the sides of the box that it lies on.
        let sides = if fan.is_open { self.sides[at] } else { 0 };
        let stays = |axis: usize| sides >> axis & 0b1001 != 0;
        let around =
            |edge: &u32| [vertex, self.mesh.end_vertex(*edge), self.mesh.start_vertex(prev(*edge))];
        let around: Vec<[u32; 3]> = fan.edges().iter().map(around).collect();
        let flat = |this: &Self| around.iter().filter(|&&t| !this.has_area(t, min_area)).count();
        let (old, flat_before) = (self.surface.positions[at], flat(self));
        let middle: [f32; 3] = std::array::from_fn(|i| {
            let at = |&end: &u32| self.surface.positions[end as usize][i];
            ends.iter().map(at).sum::<f32>() / ends.len() as f32
        });
        let normal = self.normals[at];
        [0.1f32, 0.3, 0.17].into_iter().any(|fraction| {
            let step: [f32; 3] = std::array::from_fn(|i| match stays(i) {
                true => 0.0,
                false => fraction * (middle[i] - old[i]),
            });
            let position = self.scale.inside(std::array::from_fn(|i| old[i] + step[i]));
            if step.iter().map(|step| step * step).sum::<f32>() > reach * reach {
                return false;
            }
            if !may_fold && !self.keeps_shape(&fan, mesh::NONE, position, Some(normal)) {
                return false;
            }
            self.surface.positions[at] = position;
            let is_better = self.has_area(triangle, min_area) && flat(self) < flat_before;
            if !is_better {
                self.surface.positions[at] = old;
            }
            is_better
        })
    }
}
