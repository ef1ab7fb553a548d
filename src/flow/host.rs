//! What a run has at hand.

use crate::{
    device::Device,
    util::{error::Result, spill::Workspace},
};

/// The device, the memory and the progress of a run: those of a session, or of a call of the library.
pub trait Host: Sync {
    /// The device that kernels take.
    fn device(&self) -> &Device;

    /// Memory for the tables of a filter, of the `spare` bytes that everything else leaves.
    fn workspace(&self, spare: u64) -> Workspace;

    /// Shows that work on `bytes` bytes begins.
    fn start<'a>(&'a self, title: &str, bytes: u64) -> Box<dyn Advance + 'a>;
}

/// Progress of work.
pub trait Advance {
    /// Shows that `bytes` more bytes are done.
    ///
    /// # Errors
    /// [`Kind::Cancelled`](crate::util::error::Kind::Cancelled) if the work should stop.
    fn advance(&mut self, bytes: u64) -> Result<()>;
}
