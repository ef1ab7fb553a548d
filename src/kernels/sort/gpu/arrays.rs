//! The buffers of a sort.

use crate::gpu::Buffer;

/// The buffers of a sort.
#[derive(Clone, Copy, Debug)]
pub struct Arrays<'a> {
    /// The keys, and a second buffer of the same length for passes: a multiple of four keys. Each fits one binding.
    pub keys: &'a [Buffer; 2],
    /// At most two arrays of a word for each key that move along, each with a second buffer.
    pub moved: &'a [&'a [Buffer; 2]],
    /// How many keys there are, at most 2^30 - 4.
    pub len: usize,
    /// Bits in which keys differ; all other bits are equal in all keys.
    pub differing: u32,
}
