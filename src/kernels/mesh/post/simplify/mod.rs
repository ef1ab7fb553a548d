//! Simplification of surfaces: edge collapses in the order of their quadric error (Garland and Heckbert 1997). They
//! preserve the topology, fold no triangle and leave boundaries in place.
//!
//! | module | holds |
//! |---|---|
//! | `simplifier` | tables of a surface that is being simplified |
//! | `collapse` | the collapses, pass by pass |
//! | `cost` | error of an edge, which orders the collapses |
//! | `quadric` | sums of squared distances to planes |
//! | `mesh` | half-edge mesh; the link condition |
//! | `shape` | limits on the change of a triangle by a collapse |
//! | `blocks` | simplifies large surfaces block by block before `collapse` |
//! | `volume` | preserves the enclosed volume |
//! | `clean` | removes degenerate triangles only |
//! | `degenerate` | parts and holes whose vertices have one position |
//! | `repair` | moves vertices of degenerate triangles that are left after all collapses |
//! | `orientation` | corrects triangles that face against the original surface |

mod blocks;
mod clean;
mod collapse;
mod cost;
mod degenerate;
mod mesh;
mod orientation;
mod quadric;
mod repair;
mod shape;
mod simplifier;
mod volume;

use serde::Serialize;

pub use self::clean::{Cleaned, clean};
use self::{
    clean::{clean_within, finish},
    simplifier::{Scale, Simplifier},
};
use super::{
    distance::{self, Deviation, distance},
    grid::{self, Grid},
    vertices::drop_unused,
};
use crate::{
    data::surface::Surface,
    util::{error::Result, memory, parallel},
};

/// The goal of a simplification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Goal {
    /// Wanted number of triangles.
    pub size: Size,
    /// Maximum distance between the surface before and after, in units of the positions.
    pub max_error: Option<f64>,
    /// Whether the distance is also measured if the wanted number of triangles is reached.
    pub measures: bool,
}

/// A number of triangles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub enum Size {
    /// As few as possible.
    #[default]
    Fewest,
    /// A share of the triangles.
    Share(f64),
    /// This number.
    Triangles(usize),
}

impl Goal {
    /// Keeps a share of the triangles.
    pub fn share(share: f64) -> Self {
        Self { size: Size::Share(share), ..Self::default() }
    }

    /// Maximum memory, in bytes per vertex and bytes per triangle.
    pub(super) fn bytes(&self) -> [u64; 2] {
        // Grids are created after the tables of collapses are freed.
        let grids = orientation::BYTES.max(2 * grid::BYTES + distance::BYTES);
        // Limits, their lowered copies, and the surface without degenerate triangles.
        let within = if self.max_error.is_some() { [12 + 24, 12] } else { [0, 0] };
        let [vertex, triangle] = [0, 1].map(|i| simplifier::BYTES[i] + blocks::BYTES[i]);
        [vertex + 24 + within[0], triangle.max(grids) + 12 + within[1]]
    }
}

/// The outcome of [`simplify`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Simplified {
    /// The wanted number of triangles. More are left if the surface would otherwise be torn, folded or joined, or
    /// deviate too much.
    pub wanted: usize,
    /// Upper bound of the distance between the surface before and after. If [`Goal::max_error`] is `None`, the
    /// [`distance`](fn@super::distance) of both, if it is measured.
    pub distance: Option<f64>,
    /// Number of parts that were removed because they had no area.
    pub flat_parts: u64,
}

/// Maximum number of attempts to stay within the maximum error. The first [`MAX_LOCAL_ATTEMPTS`] lower the limits only
/// where the error was exceeded.
const MAX_ATTEMPTS: usize = 10;
const MAX_LOCAL_ATTEMPTS: usize = 6;

/// Reduces the number of triangles. Parts stay connected and separate, closed surfaces stay closed, boundaries stay on
/// the sides of the box that they lie on, and no vertex leaves the box of the surface. Parts without area are removed.
/// No collapse may make the root mean square distance of a merged vertex to the planes of the triangles that it
/// represents exceed 0.5 % of the box's diagonal. Fails if the half edges of the triangles cannot be numbered in 32
/// bits.
pub fn simplify(surface: &mut Surface, goal: &Goal) -> Result<Simplified> {
    let count = surface.triangles.len();
    let wanted = match goal.size {
        Size::Fewest => 0,
        Size::Share(share) => (count as f64 * share).round() as usize,
        Size::Triangles(triangles) => triangles,
    };
    let wanted = wanted.min(count);
    // Parts without area are dropped first, so that errors are not measured from them.
    let flat_before = degenerate::drop_parts(surface)?;
    if flat_before > 0 {
        drop_unused(surface)?;
    }
    let simplified = match goal.max_error {
        None => {
            let before = copied(surface)?;
            let flat_parts = collapse_edges(surface, &before, wanted, &[], f32::INFINITY)?;
            let is_short = surface.triangles.len() > wanted + 1;
            let measures = goal.measures || is_short;
            let distance = measures.then(|| distance(&before, surface)).transpose()?;
            Simplified { wanted, distance, flat_parts }
        }
        Some(max) => match simplify_cleaned(surface, wanted, max)? {
            Some(simplified) => simplified,
            None => simplify_within(surface, wanted, max)?,
        },
    };
    Ok(Simplified { flat_parts: flat_before + simplified.flat_parts, ..simplified })
}

/// Removes degenerate triangles, then simplifies by [`simplify_within`]. Degenerate triangles, and triangles that only
/// they connect, have no planes that could limit collapses. Returns `None` and leaves the surface unchanged if there
/// are no such triangles, or if the two steps together move the surface farther than `max`.
fn simplify_cleaned(surface: &mut Surface, wanted: usize, max: f64) -> Result<Option<Simplified>> {
    if surface.flat_triangles() == 0 {
        return Ok(None);
    }
    let before = copied(surface)?;
    let cleaned = clean_within(surface, (max / 4.0) as f32)?;
    let moved = distance(&before, surface)?;
    if moved <= max / 2.0 {
        let simplified = simplify_within(surface, wanted, max - moved)?;
        let distance = distance(&before, surface)?;
        if distance <= max {
            let flat_parts = cleaned.flat_parts + simplified.flat_parts;
            return Ok(Some(Simplified { wanted, distance: Some(distance), flat_parts }));
        }
    }
    *surface = before;
    Ok(None)
}

/// Leaves as few triangles as possible at a distance of at most `max`, but no fewer than `wanted`.
fn simplify_within(surface: &mut Surface, wanted: usize, max: f64) -> Result<Simplified> {
    let before = copied(surface)?;
    // Limits are mean distances, which most vertices stay well below. Therefore, limits start high and are lowered
    // where the surface has moved too far; only the last attempts lower them everywhere.
    let mean = max / 2.0;
    let mut limits = parallel::generated(before.positions.len(), |_| (mean * mean) as f32)?;
    let grid = Grid::new(&before)?;
    for attempt in 0..MAX_ATTEMPTS {
        // The last attempts leave degenerate triangles rather than move vertices beyond the limit.
        let reach = if attempt < MAX_LOCAL_ATTEMPTS { mean as f32 } else { 0.0 };
        let flat_parts = collapse_edges(surface, &before, wanted, &limits, reach)?;
        let deviation = Deviation::measure(&grid, surface, max)?;
        if deviation.distance <= max {
            return Ok(Simplified { wanted, distance: Some(deviation.distance), flat_parts });
        }
        deviation.lower_limits(&before, &mut limits)?;
        if attempt >= MAX_LOCAL_ATTEMPTS {
            let factor = (0.9 * (max / deviation.distance).max(0.1)) as f32;
            parallel::update(&mut limits, |limit| *limit *= factor * factor);
        }
        *surface = copied(&before)?;
    }
    Ok(Simplified { wanted, distance: Some(0.0), flat_parts: 0 })
}

/// Collapses edges of the surface, which is still equal to `before`, and repairs the result: moves vertices of
/// degenerate triangles by at most `reach` at a time, and corrects triangles that face against `before`. Returns the
/// number of parts that were dropped because they had no area.
fn collapse_edges(
    surface: &mut Surface,
    before: &Surface,
    wanted: usize,
    limits: &[f32],
    reach: f32,
) -> Result<u64> {
    let scale = Scale::new(surface);
    let mut simplifier = match blocks::decimate(surface, wanted, limits, scale)? {
        Some(accumulated) => Simplifier::resume(surface, accumulated, scale)?,
        None => Simplifier::new(surface, memory::copied(limits)?, scale)?,
    };
    if wanted == 0 && !limits.is_empty() {
        simplifier.collapse_levels()?;
    } else {
        simplifier.collapse_to(wanted)?;
    }
    simplifier.repair_degenerate(reach);
    simplifier.correct_orientation(before)?;
    finish(simplifier)
}

fn copied(surface: &Surface) -> Result<Surface> {
    Ok(Surface {
        positions: memory::copied(&surface.positions)?,
        normals: memory::copied(&surface.normals)?,
        triangles: memory::copied(&surface.triangles)?,
        ..Surface::default()
    })
}
