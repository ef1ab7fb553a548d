//! Fewer triangles for nearly the same surface.

use super::{
    collapse::collapse,
    manifold::repair,
    vertices::{drop_unused, weld},
};
use crate::{data::surface::Surface, error::Result};

/// Leaves about `ratio` of the triangles, those that matter least gone first.
///
/// # Errors
/// [`Kind::Failure`](crate::error::Kind::Failure) when there is no memory for the tables.
pub fn simplify(surface: &mut Surface, ratio: f64) -> Result<()> {
    let target = (surface.triangles.len() as f64 * ratio).round() as usize;
    // Vertices at one place would count as an open boundary.
    weld(surface)?;
    surface.triangles = collapse(surface, target.min(surface.triangles.len()))?;
    repair(surface)?;
    drop_unused(surface)
}
