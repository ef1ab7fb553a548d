//! The CPU routes, one file each.

pub mod adjust;
pub mod slots;
mod tally;
pub mod u16_levels;
pub mod u8_levels;
pub mod values;

/// Number of pixels that a thread counts at a time: few enough for 32-bit counters.
const CHUNK: usize = 1 << 18;
