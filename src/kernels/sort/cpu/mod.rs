//! The native sort.

mod merge;
mod radix;

pub use merge::merge_runs;
pub use radix::sort;

use super::keys::Key;

/// What is sorted: a key, perhaps with a value. No byte of it is padding.
pub trait Item: bytemuck::Pod + Default + Send + Sync {
    /// What it is sorted by.
    type Key: Key;
    /// The key.
    fn key(self) -> Self::Key;
}

impl<K: Key> Item for K {
    type Key = K;
    fn key(self) -> K {
        self
    }
}

/// A key, then a value of any bits.
impl<K: Key> Item for [K; 2] {
    type Key = K;
    fn key(self) -> K {
        self[0]
    }
}

/// Shorter arrays are not worth another thread.
const SHORT: usize = 1 << 15;
