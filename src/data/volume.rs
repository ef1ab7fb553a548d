//! A volume in memory.

use super::samples::Samples;

/// A volume in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Volume {
    /// Samples along x, y and z.
    pub dims: [usize; 3],
    /// `x * y * z` samples, x fastest.
    pub samples: Samples,
}
