//! The buffers of a sort.

use crate::gpu::Buffer;

/// The buffers of a sort.
#[derive(Clone, Copy, Debug)]
pub struct SortBuffers<'a> {
    /// The keys, and a second buffer for passes. Both have the length of a multiple of four keys, and fit one binding.
    pub keys: &'a [Buffer; 2],
    /// At most two arrays of a word per key that move along with the keys, each with a second buffer.
    pub moved: &'a [&'a [Buffer; 2]],
    /// Number of keys, at most 2^30 - 4.
    pub len: usize,
    /// Mask of the bits in which keys differ.
    pub differing: u32,
}
