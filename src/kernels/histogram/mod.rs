//! Histograms of images and volumes: exact counts of levels and bins, the same on every device.
//!
//! 8-bit and 16-bit channels are counted level by level, and the host sorts the levels into bins:
//! so any bins cost the same, and statistics are exact. Luminance and 32-bit values are binned
//! where they are counted, by comparison with a table of edges made on the host. `plan.rs` has the list
//! of routes.

mod adjust;
mod bench;
mod bins;
mod counts;
mod cpu;
mod exact;
mod gpu;
mod kernel;
mod luma;
mod moments;
mod plan;
mod statistics;

pub use adjust::{Adjust, luminance_levels};
pub use bench::{cases, cases_of};
pub use bins::{Bins, MAX_BINS, type_range};
pub use counts::{Component, Counts, Pixels, alpha_unit};
pub use exact::{Values, values};
pub use gpu::{
    u8_levels::{U8Pass, count_made},
    variants,
};
pub use kernel::Histogram;
pub use luma::Luma;
pub use moments::{Moments, moments};
pub use statistics::Statistics;
