//! Preserves the enclosed volume: after a collapse, the merged vertex moves in the direction that raises its error
//! least until the volume is as before (Lindstrom and Turk, "Fast and memory efficient polygonal simplification",
//! 1998). Otherwise, triangles would cut off convex regions and fill concave ones, and small parts would vanish.

use super::{
    cost::Collapse,
    mesh::{Fan, prev},
    simplifier::Simplifier,
};
use crate::data::vec3::{cross, dot, sub};

/// Maximum distance that the vertex moves to preserve the volume, in lengths of the edge.
const REACH: f64 = 0.3;

impl Simplifier<'_> {
    /// The collapse of `edge`, whose ends have the fans `from` and `to`. It preserves the volume as far as a move by
    /// [`REACH`] inside the surface's box can. If an end is on the boundary, the volume is not considered.
    pub(super) fn collapse_keeping_volume(&self, edge: u32, from: &Fan, to: &Fan) -> Collapse {
        let mut collapse = self.collapse(edge);
        if from.is_open || to.is_open {
            return collapse;
        }
        let (kept, gone) = (self.mesh.start_vertex(edge), self.mesh.end_vertex(edge));
        let at = |vertex: u32| self.surface.positions[vertex as usize].map(f64::from);
        // Six times the volume between a triangle and `kept` is the dot product of its first corner with the `area` of
        // the other two. It is 0 for triangles at `kept`.
        let origin = at(kept);
        let (mut area, mut before) = ([0.0; 3], 0.0);
        for (fan, other) in [(from, gone), (to, kept)] {
            for &edge in fan.edges() {
                let (b, c) = (self.mesh.end_vertex(edge), self.mesh.start_vertex(prev(edge)));
                if b != other && c != other {
                    let part = cross(sub(at(b), origin), sub(at(c), origin));
                    area = std::array::from_fn(|i| area[i] + part[i]);
                    before += if other == kept { dot(sub(at(gone), origin), part) } else { 0.0 };
                }
            }
        }
        let edge_vector = sub(at(gone), origin);
        let position = collapse.position.map(f64::from);
        let lacking = before - dot(sub(position, origin), area);
        let max = REACH * dot(edge_vector, edge_vector).sqrt();
        let step = collapse.sum.step_along(area, lacking, max, self.scale.steady());
        let moved = std::array::from_fn(|i| (position[i] + step[i]) as f32);
        collapse.position = self.scale.inside(moved);
        let step = sub(collapse.position.map(f64::from), position);
        collapse.offset = std::array::from_fn(|i| collapse.offset[i] + step[i]);
        collapse
    }
}
