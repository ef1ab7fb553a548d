//! The native sort.

mod merge;
mod radix;

pub use merge::merge_runs;
pub use radix::sort;

use super::keys::Key;

/// An item to be sorted: a key, perhaps with a value. No byte of it is padding.
pub trait Item: bytemuck::Pod + Default + Send + Sync {
    /// The type of its key.
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

/// Arrays of up to this many items are left to one thread.
const SHORT: usize = 1 << 15;
