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
