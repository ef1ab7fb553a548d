//! The native twin: one file a route.

pub mod adjust;
pub mod slots;
mod tally;
pub mod u16_levels;
pub mod u8_levels;
pub mod values;

/// Pixels that a thread takes at a time: few enough for 32-bit counters.
const CHUNK: usize = 1 << 18;
