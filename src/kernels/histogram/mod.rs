//! Histograms of images and volumes: exact counts of levels and bins, the same on every device.
//!
//! Channels of 8 and 16 bits are counted by level, and the host sums levels into bins. So the time does not depend on
//! the number of bins, and statistics are exact. Luminance and 32-bit values are binned while they are counted, by
//! comparison with a table of edges that the host computes. `route.rs` has the list of routes.

mod adjust;
mod bins;
mod counts;
mod cpu;
mod gpu;
mod kernel;
mod luma;
mod moments;
mod route;
mod statistics;
mod value_counts;

pub use adjust::{LookupTable, luminance_histogram};
pub use bins::{Bins, MAX_BINS, type_range};
pub use counts::{Component, Counts, Pixels, alpha_unit};
pub use gpu::{
    u8_levels::{U8Pass, count_on_device},
    variants,
};
pub use kernel::Histogram;
pub use luma::Luma;
pub use moments::{Moments, moments};
pub use statistics::{Statistics, rank};
pub use value_counts::{VALUE_COUNTS_BYTES, ValueCounts, count_values};
