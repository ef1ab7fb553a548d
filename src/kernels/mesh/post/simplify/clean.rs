//! Removes degenerate triangles and moves touching vertices apart. Samples that equal the isovalue cause such
//! triangles, since all vertices around such a sample lie at its position.
//!
//! Edges of zero length are collapsed as long as the surface stays closed and manifold. Then parts that lie at a single
//! position are dropped, and vertices of pinched tubes are moved slightly.

use super::{
    degenerate,
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
    /// Number of removed triangles.
    pub triangles: usize,
    /// Number of connected parts that were removed because they had no area.
    pub flat_parts: u64,
}

/// Removes triangles with two corners at the same position. Then moves vertices apart that still touch, so that readers
/// that merge vertices by position keep them separate. A few degenerate triangles may remain where the surface ends at
/// an edge of its box.
pub fn clean(surface: &mut Surface) -> Result<Cleaned> {
    let cleaned = clean_within(surface, f32::INFINITY)?;
    separate(surface)?;
    Ok(cleaned)
}

/// As [`clean`], but moves vertices by at most `reach` at a time and may leave degenerate triangles.
pub(super) fn clean_within(surface: &mut Surface, reach: f32) -> Result<Cleaned> {
    let before = surface.triangles.len();
    if surface.flat_triangles() == 0 {
        return Ok(Cleaned::default());
    }
    let flat_before = degenerate::drop_parts(surface)?;
    degenerate::close_holes(surface)?;
    drop_unused(surface)?;
    let scale = Scale::new(surface);
    let mut simplifier = Simplifier::new(surface, Vec::new(), scale)?;
    simplifier.collapse_zero_length();
    simplifier.repair_degenerate(reach);
    let flat_parts = flat_before + finish(simplifier)?;
    Ok(Cleaned { triangles: before.saturating_sub(surface.triangles.len()), flat_parts })
}

/// Writes the result to the surface and drops parts without area. Returns their number.
pub fn finish(simplifier: Simplifier<'_>) -> Result<u64> {
    let surface = simplifier.finish()?;
    let dropped = degenerate::drop_parts(surface)?;
    drop_unused(surface)?;
    Ok(dropped)
}
