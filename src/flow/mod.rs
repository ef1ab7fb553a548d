//! Moves samples from a source through filters, block by block, within the memory limit.
//!
//! | module | holds |
//! |---|---|
//! | `host` | the device, memory and progress of a run |
//! | `blocks` | the loop: read a block with its halo, work on it, write it; three threads |
//! | `filtering` | a filter, or the steps of a chain, on the blocks of a source |
//! | `grid_source` | a grid in memory as a source |
//! | `cost` | the size of blocks, within the memory limit |

pub mod blocks;
pub mod cost;
pub mod filtering;
pub mod grid_source;
pub mod host;

pub use blocks::{BlockSource, Blocks, read_ahead, read_blocks, write_behind};
pub use cost::FilterCost;
pub use filtering::{Division, Prepared, filter_blocks};
pub use host::Host;
