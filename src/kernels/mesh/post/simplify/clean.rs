//! Removes triangles without an area, and moves touching vertices apart. Such triangles come from samples that equal
//! the isovalue: all vertices around such a sample lie at its position.
//!
//! The ends of an edge without a length become one vertex, as long as the surface stays closed and manifold. Then parts
//! that lie at a single position are dropped, and vertices of pinched tubes move a little.

use super::{
    flat,
    simplifier::{Scale, Simplifier},
};
use crate::{
    data::surface::Surface,
    kernels::mesh::post::{separate::separate, vertices::drop_unused},
    util::error::Result,
};

/// The outcome of [`clean`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// The number of removed triangles.
    pub triangles: usize,
    /// The number of connected parts that were removed because they had no area.
    pub flat_parts: u64,
}

/// Removes triangles that have two corners at the same position. Then moves vertices apart that still touch, so that
/// readers which merge vertices by position keep them separate. A few such triangles may remain where the surface ends
/// at an edge of its box.
///
/// # Errors
/// [`Kind::Failure`](crate::util::error::Kind::Failure) when there is no memory for the tables.
pub fn clean(surface: &mut Surface) -> Result<Cleaned> {
    let cleaned = clean_within(surface, f32::INFINITY)?;
    separate(surface)?;
    Ok(cleaned)
}

/// As [`clean`], with vertices that move by at most `reach` at a time; may leave triangles without an area.
pub(super) fn clean_within(surface: &mut Surface, reach: f32) -> Result<Cleaned> {
    let before = surface.triangles.len();
    if surface.flat_triangles() == 0 {
        return Ok(Cleaned::default());
    }
    let flat_before = flat::drop_parts(surface)?;
    flat::close_holes(surface)?;
    drop_unused(surface)?;
    let scale = Scale::of(surface);
    let mut simplifier = Simplifier::new(surface, Vec::new(), scale)?;
    simplifier.join();
    simplifier.mend(reach);
    let flat_parts = flat_before + finish(simplifier)?;
    Ok(Cleaned { triangles: before.saturating_sub(surface.triangles.len()), flat_parts })
}

/// Writes the result to the surface. Returns how many parts without an area it dropped.
pub fn finish(simplifier: Simplifier<'_>) -> Result<u64> {
    let surface = simplifier.finish()?;
    let dropped = flat::drop_parts(surface)?;
    drop_unused(surface)?;
    Ok(dropped)
}
