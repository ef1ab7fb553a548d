//! The edges of all triangles, sorted so that those between the same two vertices follow each other.

use std::ops::Range;

use rayon::slice::ParallelSliceMut;

use crate::{
    data::surface::Surface,
    util::{error::Result, parallel},
};

/// An edge of one triangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HalfEdge {
    /// The lower of its vertices.
    pub(super) low: u32,
    pub(super) high: u32,
    /// Whether it runs from `high` to `low`.
    pub(super) backwards: bool,
}

/// The half edges of all triangles, sorted by their vertices.
pub(super) fn half_edges(surface: &Surface) -> Result<Vec<HalfEdge>> {
    let half_edge = |number: usize| {
        let triangle = surface.triangles[number / 3];
        let (a, b) = (triangle[number % 3], triangle[(number + 1) % 3]);
        HalfEdge { low: a.min(b), high: a.max(b), backwards: a > b }
    };
    let count = 3 * surface.triangles.len();
    let mut half_edges = parallel::generated(count, half_edge)?;
    half_edges.par_sort_unstable();
    Ok(half_edges)
}

/// Ranges of [`half_edges`] between the same two vertices, one per edge of the surface.
pub(super) fn edges(half_edges: &[HalfEdge]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    let is_same = |a: &HalfEdge, b: &HalfEdge| (a.low, a.high) == (b.low, b.high);
    half_edges.chunk_by(is_same).map(move |same| {
        let range = start..start + same.len();
        start = range.end;
        range
    })
}
