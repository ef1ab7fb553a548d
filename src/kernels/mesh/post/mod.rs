//! Operations that need the whole surface.
//!
//! | module | does |
//! |---|---|
//! | `stats` | area, volume, connected parts, whether the surface is closed |
//! | `components` | filters connected parts |
//! | `smooth` | Taubin's smoothing |
//! | `simplify` | edge collapses; removal of degenerate triangles |
//! | `distance` | Hausdorff distance of two surfaces |
//! | `grid` | uniform grid to find the triangle nearest to a point |
//! | `separate` | moves vertices at equal positions apart |
//! | `vertices` | drops unused vertices |
//! | `half_edges` | sorted list of the edges of all triangles |

mod components;
mod distance;
mod grid;
mod half_edges;
mod separate;
mod simplify;
mod smooth;
mod stats;
mod vertices;

pub use components::{PartFilter, keep_parts};
pub use distance::distance;
pub use separate::separate;
pub use simplify::{Cleaned, Goal, Simplified, Size, clean, simplify};
pub use smooth::smooth;
pub use stats::{Stats, has_boundary};

use crate::data::surface::Surface;

/// An operation that needs the whole surface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// [`keep_parts`].
    Parts,
    /// [`smooth`](fn@smooth).
    Smooth,
    /// [`clean`](fn@clean). It takes little memory if no triangle is degenerate.
    Clean,
    /// [`simplify`](fn@simplify).
    Simplify(Goal),
    /// [`Stats::measure`].
    Stats,
}

impl Step {
    /// Maximum bytes that the step takes in addition to `surface`.
    pub fn bytes(self, surface: &Surface) -> u64 {
        let [vertices, triangles] =
            [surface.positions.len() as u64, surface.triangles.len() as u64];
        // Tables by vertex and by triangle. A half edge takes 12 bytes; a triangle has three.
        let [vertex, triangle] = match self {
            Self::Parts => [56, 0],
            Self::Smooth => [84, 36 + 72 + 12],
            Self::Clean if surface.flat_triangles() == 0 => [32, 0],
            Self::Clean => Goal::default().bytes(),
            Self::Simplify(goal) => goal.bytes(),
            Self::Stats => [6, 36],
        };
        vertex * vertices + triangle * triangles
    }
}
