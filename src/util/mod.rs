//! Helpers of all floors.
//!
//! | module | holds |
//! |---|---|
//! | `error` | the error of all functions, its kinds and exit codes |
//! | `memory` | large allocations that fail as errors, and huge pages |
//! | `threads` | starts threads where the system may grant only a few |
//! | `parallel` | loops over all threads |
//! | `cache` | prefetching, and writes past the caches |
//! | `simd` | which instructions of the processor are used |
//! | `timings` | how long each stage of a job takes |

pub(crate) mod cache;
pub mod error;
pub mod memory;
pub mod parallel;
pub mod simd;
#[cfg(feature = "cli")]
pub(crate) mod threads;
pub mod timings;
