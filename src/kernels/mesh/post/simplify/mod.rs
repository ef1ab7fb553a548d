//! Fewer triangles for nearly the same surface: edge collapses in the order of their quadric error (Garland and
//! Heckbert 1997) that keep the topology, fold no triangle and leave boundaries in place.
//!
//! | module | holds |
//! |---|---|
//! | `simplifier` | the tables of a surface that is being simplified |
//! | `collapse` | the collapses, pass by pass |
//! | `cost` | the error of an edge, which orders the collapses |
//! | `quadric` | sums of squared distances to planes, which errors are made of |
//! | `mesh` | triangles that know their neighbours; the link condition |
//! | `shape` | limits of how a collapse may change a triangle |
//! | `blocks` | large surfaces in blocks, before `collapse` |
//! | `clean` | collapses of edges without a length, alone |
//! | `volume` | keeps the enclosed volume |
//! | `flat` | parts and holes at one place |
//! | `mend` | triangles without an area that are left after all collapses |
//! | `facing` | triangles that face against the original surface |

mod blocks;
mod clean;
mod collapse;
mod cost;
mod facing;
mod flat;
mod mend;
mod mesh;
mod quadric;
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
    distance::{self, Far, distance},
    grid::{self, Grid},
    vertices::drop_unused,
};
use crate::{
    data::surface::Surface,
    util::{error::Result, memory, parallel},
};

/// How far to simplify.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Goal {
    /// What is to be left.
    pub size: Size,
    /// The greatest distance between the surface before and after, in units of the positions.
    pub max_error: Option<f64>,
    /// Whether that distance is also measured if the wanted number of triangles is reached.
    pub measures: bool,
}

/// A number of triangles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub enum Size {
    /// As few as possible.
    #[default]
    Fewest,
    /// A share of those that there are.
    Share(f64),
    /// A number.
    Triangles(usize),
}

impl Goal {
    /// Leaves a share of the triangles.
    pub fn share(share: f64) -> Self {
        Self { size: Size::Share(share), ..Self::default() }
    }

    /// The most memory that it takes, in bytes per vertex and bytes per triangle.
    pub(super) fn bytes(&self) -> [u64; 2] {
        // Grids are made after the tables of collapses are freed.
        let grids = facing::BYTES.max(2 * grid::BYTES + distance::BYTES);
        // Limits, their lowered copies, and the surface without triangles that have no area.
        let within = if self.max_error.is_some() { [12 + 24, 12] } else { [0, 0] };
        let [vertex, triangle] = [0, 1].map(|i| simplifier::BYTES[i] + blocks::BYTES[i]);
        [vertex + 24 + within[0], triangle.max(grids) + 12 + within[1]]
    }
}

/// The outcome of [`simplify`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Simplified {
    /// The wanted number of triangles. More are left if the surface would otherwise be torn, folded or joined, or move
    /// too far.
    pub wanted: usize,
    /// A distance between the surface before and after that no point exceeds. If [`Goal::max_error`] is `None`, it is
    /// the [`distance`](fn@super::distance) between both, if that is measured.
    pub distance: Option<f64>,
    /// How many parts are gone because they had no area.
    pub flat_parts: u64,
}

/// Attempts to stay within the greatest error; and how many of them lower limits only where it was exceeded.
const TRIES: usize = 10;
const LOCAL_TRIES: usize = 6;

/// Leaves fewer triangles; those that matter least go first. Parts stay connected and apart, closed surfaces stay
/// closed, boundaries stay on the box that they lie on, and no vertex leaves the box of the surface. Parts without any
/// area are removed. Collapses end where the root mean square distance of a merged vertex to the planes of the
/// triangles that it represents would exceed 0.5 % of the box's diagonal.
///
/// # Errors
/// [`Kind::Failure`](crate::util::error::Kind::Failure) when there is no memory for the tables,
/// [`Kind::BadInput`](crate::util::error::Kind::BadInput) when more triangles are left than have numbers of 32 bits for their
/// half edges.
pub fn simplify(surface: &mut Surface, goal: &Goal) -> Result<Simplified> {
    let count = surface.triangles.len();
    let wanted = match goal.size {
        Size::Fewest => 0,
        Size::Share(share) => (count as f64 * share).round() as usize,
        Size::Triangles(triangles) => triangles,
    };
    let wanted = wanted.min(count);
    // First of all: errors are not measured from parts that go in any case.
    let flat_before = flat::drop_parts(surface)?;
    if flat_before > 0 {
        drop_unused(surface)?;
    }
    let simplified = match goal.max_error {
        None => {
            let before = copied(surface)?;
            let flat_parts = collapse(surface, &before, wanted, &[], f32::INFINITY)?;
            let is_short = surface.triangles.len() > wanted + 1;
            let measures = goal.measures || is_short;
            let distance = measures.then(|| distance(&before, surface)).transpose()?;
            Simplified { wanted, distance, flat_parts }
        }
        Some(most) => match simplify_cleaned(surface, wanted, most)? {
            Some(simplified) => simplified,
            None => simplify_within(surface, wanted, most)?,
        },
    };
    Ok(Simplified { flat_parts: flat_before + simplified.flat_parts, ..simplified })
}

/// Cleans away triangles without an area, then simplifies by [`simplify_within`]: such triangles, and triangles that
/// only they connect, have no planes that could limit collapses. Returns `None`, and the surface unchanged, where there
/// are no such triangles, or where the two steps together move the surface farther than `most`.
fn simplify_cleaned(surface: &mut Surface, wanted: usize, most: f64) -> Result<Option<Simplified>> {
    if surface.flat_triangles() == 0 {
        return Ok(None);
    }
    let before = copied(surface)?;
    let cleaned = clean_within(surface, (most / 4.0) as f32)?;
    let moved = distance(&before, surface)?;
    if moved <= most / 2.0 {
        let simplified = simplify_within(surface, wanted, most - moved)?;
        let distance = distance(&before, surface)?;
        if distance <= most {
            let flat_parts = cleaned.flat_parts + simplified.flat_parts;
            return Ok(Some(Simplified { wanted, distance: Some(distance), flat_parts }));
        }
    }
    *surface = before;
    Ok(None)
}

/// Leaves as few triangles as possible at a distance of at most `most`, but no fewer than `wanted`.
fn simplify_within(surface: &mut Surface, wanted: usize, most: f64) -> Result<Simplified> {
    let before = copied(surface)?;
    // Collapses are limited by a mean distance, which most places stay well below. So limits start high, fall where the
    // surface has moved too far, and everywhere only in the last attempts.
    let mean = most / 2.0;
    let mut limits = parallel::generated(before.positions.len(), |_| (mean * mean) as f32)?;
    let grid = Grid::new(&before)?;
    for attempt in 0..TRIES {
        // The last attempts leave triangles without an area rather than move vertices beyond the limit.
        let reach = if attempt < LOCAL_TRIES { mean as f32 } else { 0.0 };
        let flat_parts = collapse(surface, &before, wanted, &limits, reach)?;
        let far = Far::of(&grid, surface, most)?;
        if far.distance <= most {
            return Ok(Simplified { wanted, distance: Some(far.distance), flat_parts });
        }
        far.lower(&before, &mut limits)?;
        if attempt >= LOCAL_TRIES {
            let part = (0.9 * (most / far.distance).max(0.1)) as f32;
            parallel::update(&mut limits, |limit| *limit *= part * part);
        }
        *surface = copied(&before)?;
    }
    Ok(Simplified { wanted, distance: Some(0.0), flat_parts: 0 })
}

/// Collapses edges of the surface, which is still equal to `before`, and repairs the result: moves vertices of
/// triangles without an area, by at most `reach` at a time, and turns triangles that face against `before`. Returns how
/// many parts without an area it dropped.
fn collapse(
    surface: &mut Surface,
    before: &Surface,
    wanted: usize,
    limits: &[f32],
    reach: f32,
) -> Result<u64> {
    let scale = Scale::of(surface);
    let mut simplifier = match blocks::thin(surface, wanted, limits, scale)? {
        Some(accumulated) => Simplifier::resume(surface, accumulated, scale)?,
        None => Simplifier::new(surface, memory::copied(limits)?, scale)?,
    };
    if wanted == 0 && !limits.is_empty() {
        simplifier.run_levels()?;
    } else {
        simplifier.run(wanted)?;
    }
    simplifier.mend(reach);
    simplifier.face(before)?;
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
