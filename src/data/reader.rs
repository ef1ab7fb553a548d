//! Inputs that are read in order: the rows of an image, or the slices of a volume.

use crate::{data::samples::Samples, util::error::Result};

/// Reads rows or slices from the position at which it was opened.
pub trait Reader: Send {
    /// The samples `before`, followed by those of the next `count` rows or slices.
    fn read_after(&mut self, before: Option<&Samples>, count: usize) -> Result<Samples>;

    /// Checks that no data follow the last row or slice.
    fn expect_end(&mut self) -> Result<()> {
        Ok(())
    }

    /// Takes back samples that are no longer needed, to use their memory for the next ones.
    fn reuse(&mut self, _done: Samples) {}
}
