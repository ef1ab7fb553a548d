//! The native sort.

mod merge;
mod radix;

pub use merge::merge_runs;
pub use radix::sort;

/// What is sorted: a key, perhaps with a value.
pub trait Item: Copy + bytemuck::Zeroable + Default + Send + Sync {
    /// What it is sorted by.
    fn key(self) -> u32;
}

impl Item for u32 {
    fn key(self) -> u32 {
        self
    }
}

impl Item for (u32, u32) {
    fn key(self) -> u32 {
        self.0
    }
}

/// Shorter arrays are not worth another thread.
const SHORT: usize = 1 << 15;
