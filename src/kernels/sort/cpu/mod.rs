//! The sort on the CPU.

mod merge;
mod radix;

pub use merge::merge_runs;
pub use radix::sort;

use super::keys::Key;

/// An item to be sorted: a key, or a key and a value. It has no padding.
pub trait Item: bytemuck::Pod + Default + Send + Sync {
    /// Type of the key.
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

/// A key and a value.
impl<K: Key> Item for [K; 2] {
    type Key = K;
    fn key(self) -> K {
        self[0]
    }
}

/// Up to this many items are sorted by one thread.
const SHORT: usize = 1 << 15;
