//! What every command works with.

use std::sync::Arc;

use crate::{device::Device, io::Limits, progress::Progress, timings::Timings};

/// What every command works with: a device, a recorder, and what may be shown and replaced.
#[derive(Debug)]
pub struct Session {
    /// Runs kernels.
    pub device: Device,
    /// Records how long stages take.
    pub timings: Arc<Timings>,
    /// Makes progress bars.
    pub progress: Progress,
    /// Bytes that inputs and results may take.
    pub max_memory: u64,
    /// Pixels or samples that an input may have.
    pub max_pixels: u64,
    /// Whether a lack of an input or an output is an error rather than a warning.
    pub strict: bool,
    /// Whether an existing output is an error.
    pub no_clobber: bool,
}

impl Session {
    /// What an input may take: one of `share` equal parts of the memory.
    pub fn limits(&self, share: u64) -> Limits {
        Limits { bytes: self.max_memory / share, pixels: self.max_pixels, strict: self.strict }
    }
}
