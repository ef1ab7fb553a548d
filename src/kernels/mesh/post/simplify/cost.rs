//! The error of an edge: the position that it would collapse to, and its distance to the planes of the original
//! triangles.

use std::sync::atomic::Ordering::Relaxed;

use super::{
    mesh::{Fan, next, prev},
    quadric::Sum,
    shape::Shape,
    simplifier::{LOCKED, NEVER, Simplifier, add},
};
use crate::{
    data::vec3::{dot, sub},
    util::parallel::Parallel,
};

/// Maximum distance of a merged vertex from the middle of its edge, in lengths of the edge.
const REACH: f64 = 0.6;
/// Share of the weight times the squared length of an edge that is added to its error, so that short edges collapse
/// first where the surface is flat.
const LENGTH: f64 = 1e-7;
/// Half edges whose errors a thread computes at a time.
const CHUNK: usize = 1 << 12;

/// The result of an edge's collapse, before it is made.
pub(super) struct Collapse {
    /// Position of the merged vertex.
    pub(super) position: [f32; 3],
    /// Sum of the quadrics of both ends.
    pub(super) sum: Sum,
    /// `position` relative to the origin of `sum`.
    pub(super) offset: [f64; 3],
    /// Error, which orders the collapses; [`NEVER`] if the edge must not collapse.
    error: f32,
}

impl Simplifier<'_> {
    /// Computes the errors of all edges.
    pub(super) fn find_errors(&self) {
        (0..self.errors.len()).step_by(CHUNK).par_each(|start| {
            let end = (start + CHUNK).min(self.errors.len());
            (start..end).for_each(|half_edge| self.find_error(half_edge as u32));
        });
    }

    /// Stores the error of an edge at its first half edge, or [`NEVER`] at other half edges.
    pub(super) fn find_error(&self, half_edge: u32) {
        let error = match self.mesh.is_first_of_edge(half_edge) {
            true => self.collapse(half_edge).error,
            false => NEVER,
        };
        self.errors[half_edge as usize].store(error.to_bits(), Relaxed);
    }

    /// Whether the triangles of a fan [keep their shape](Shape::is_kept) if the vertex of the fan moves to `position`,
    /// except for triangles at the vertex `but`. If `normal`, the sum of normals that the vertex will represent, is
    /// given, triangles are also compared with the normals that their corners represent.
    pub(super) fn keeps_shape(
        &self,
        fan: &Fan,
        but: u32,
        position: [f32; 3],
        normal: Option<[f32; 3]>,
    ) -> bool {
        let position = position.map(f64::from);
        let at = |vertex: u32| self.surface.positions[vertex as usize].map(f64::from);
        fan.edges().iter().all(|&edge| {
            let (b, c) = (self.mesh.end_vertex(edge), self.mesh.start_vertex(prev(edge)));
            if b == but || c == but {
                return true;
            }
            let expected = normal.map(|normal| {
                let side = add(self.normals[b as usize], self.normals[c as usize]);
                add(normal, side).map(f64::from)
            });
            let shape = Shape {
                before: at(self.mesh.start_vertex(edge)),
                after: position,
                side: [at(b), at(c)],
                expected: expected.unwrap_or_default(),
            };
            let beyond = || {
                let twin = self.mesh.twin(next(edge))?;
                Some(at(self.mesh.start_vertex(prev(twin))))
            };
            shape.is_kept(beyond)
        })
    }

    /// The position that an edge collapses to, and its error.
    ///
    /// ```text
    /// edge                           becomes a vertex
    /// inside the surface             at the position of the minimum error near its middle
    /// with one end on the boundary   at that end
    /// on the boundary                at the position of the minimum error on the edge; or at the end
    ///                                that lies on more sides of the boundary's box
    /// between two boundaries         never
    /// ```
    pub(super) fn collapse(&self, edge: u32) -> Collapse {
        let (from, to) = (self.mesh.start_vertex(edge), self.mesh.end_vertex(edge));
        let [a, b] = [from, to].map(|end| self.surface.positions[end as usize]);
        let [start, end] = [a, b].map(|position| position.map(f64::from));
        let edge_vector = sub(end, start);
        let length = dot(edge_vector, edge_vector);
        let [is_open, end_is_open] = [from, to].map(|end| self.mesh.is_open(end));
        let [sides, end_sides] = [from, to].map(|end| self.sides[end as usize]);
        let along = |fraction: f64| std::array::from_fn(|i| start[i] + fraction * edge_vector[i]);
        let sum_at = |origin: [f64; 3]| {
            let mut sum = Sum::default();
            sum.add(&self.quadrics[from as usize], a, origin);
            sum.add(&self.quadrics[to as usize], b, origin);
            sum
        };
        let (origin, sum, position) = match (is_open, end_is_open) {
            (false, false) => {
                let middle = along(0.5);
                let sum = sum_at(middle);
                let offset = sum.best(REACH * length.sqrt(), self.scale.steady());
                (middle, sum, std::array::from_fn(|i| middle[i] + offset[i]))
            }
            (true, false) => (start, sum_at(start), start),
            (false, true) => (end, sum_at(end), end),
            (true, true) if sides == end_sides => {
                let sum = sum_at(start);
                (start, sum, along(sum.best_along(edge_vector)))
            }
            (true, true) if sides & end_sides == end_sides => (start, sum_at(start), start),
            (true, true) => (end, sum_at(end), end),
        };
        let position = self.scale.inside(position.map(|v| v as f32));
        let offset = sub(position.map(f64::from), origin);
        let distances = sum.error(offset).max(0.0);
        let both = sides | end_sides;
        let limit = f64::from(self.limit(from).min(self.limit(to)));
        let stays = both & LOCKED != 0
            || distances > limit * sum.weight
            || is_open
                && end_is_open
                && (self.mesh.twin(edge).is_some() || (sides != both && end_sides != both));
        let error = if stays { NEVER } else { (distances + LENGTH * sum.weight * length) as f32 };
        Collapse { position, sum, offset, error }
    }
}
