//! Helpers for all other modules.
//!
//! | module | holds |
//! |---|---|
//! | `error` | the error of all functions, its kinds and exit codes |
//! | `memory` | large allocations that fail as errors, and huge pages |
//! | `threads` | starts threads, also if the system grants only a few |
//! | `thread_pool` | the threads of the parallel loops |
//! | `parallel` | loops over all threads |
//! | `program` | the command line, and how the program is started again |
//! | `cache` | prefetching, and stores that bypass the caches |
//! | `simd` | the SIMD level of the processor |
//! | `spill` | tables that move to a temporary file when they exceed a limit |
//! | `timings` | how long each stage of a job takes |

pub(crate) mod cache;
pub mod error;
pub mod memory;
pub mod parallel;
#[cfg(feature = "files")]
pub(crate) mod program;
pub mod simd;
pub mod spill;
#[cfg(feature = "cli")]
pub(crate) mod thread_pool;
pub(crate) mod threads;
pub mod timings;
