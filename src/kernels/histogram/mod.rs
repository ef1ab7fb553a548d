//! Histograms of images and volumes: exact counts of levels and bins, the same on every device.
//!
//! Channels of 8 and 16 bits are counted level by level, and the host sums levels into bins: all numbers of bins take
//! the same time, and statistics are exact. Luminance and 32-bit values are binned while they are counted, by
//! comparison with a table of edges made on the host. `plan.rs` has the list of routes.

mod adjust;
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
pub use bins::{Bins, MAX_BINS, type_range};
pub use counts::{Component, Counts, Pixels, alpha_unit};
pub use exact::{VALUES_BYTES, Values, values};
pub use gpu::{
    u8_levels::{U8Pass, count_made},
    variants,
};
pub use kernel::Histogram;
pub use luma::Luma;
pub use moments::{Moments, moments};
pub use statistics::{Statistics, rank};
