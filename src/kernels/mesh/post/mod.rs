//! What can be done with a whole surface, one subject a file.
//!
//! | module | does |
//! |---|---|
//! | `stats` | measures: area, volume, connected parts, whether it is closed |
//! | `components` | keeps the largest connected part |
//! | `smooth` | Taubin's smoothing |
//! | `simplify` | fewer triangles: welds, collapses edges, repairs |
//! | `collapse` | the edge collapses themselves, by meshoptimizer |
//! | `manifold` | leaves no edge to more than two triangles |
//! | `vertices` | welds vertices at one place, drops vertices without a triangle |
//! | `half_edges` | the edges of all triangles, sorted, so that equal ones are neighbours |

mod collapse;
mod components;
mod half_edges;
mod manifold;
mod simplify;
mod smooth;
mod stats;
mod vertices;

pub use components::keep_largest;
pub use simplify::simplify;
pub use smooth::smooth;
pub use stats::Stats;

use crate::data::surface::Surface;

/// A step that needs the whole surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// [`keep_largest`].
    Largest,
    /// [`smooth`](fn@smooth).
    Smooth,
    /// [`simplify`](fn@simplify).
    Simplify,
    /// [`Stats::of`].
    Stats,
}

impl Step {
    /// Bytes that the step takes beside `surface`, at most.
    pub fn bytes(self, surface: &Surface) -> u64 {
        let [vertices, triangles] =
            [surface.positions.len() as u64, surface.triangles.len() as u64];
        // Tables by vertex and by triangle. A half edge takes 12 bytes; a triangle has three.
        let [vertex, triangle] = match self {
            Self::Largest => [9, 0],
            Self::Smooth => [52, 36 + 72 + 12],
            Self::Simplify => collapse::BYTES,
            Self::Stats => [5, 36],
        };
        vertex * vertices + triangle * triangles
    }
}
