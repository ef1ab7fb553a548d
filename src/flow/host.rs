//! Device, memory and progress of a run.

use crate::{
    device::Device,
    util::{error::Result, spill::Workspace},
};

/// Provides the device and the memory of a run, and shows its progress. A session of the command line is a host, and so
/// is a call of the library.
pub trait Host: Sync {
    /// The device that runs the kernels.
    fn device(&self) -> &Device;

    /// Memory for the tables of a filter. Everything else leaves `spare` bytes of the limit.
    fn workspace(&self, spare: u64) -> Workspace;

    /// Shows that work on `bytes` bytes begins.
    fn start<'a>(&'a self, title: &str, bytes: u64) -> Box<dyn Advance + 'a>;
}

/// Progress of one piece of work, such as a progress bar.
pub trait Advance {
    /// Shows that `bytes` more bytes are done.
    ///
    /// # Errors
    /// [`Kind::Cancelled`](crate::util::error::Kind::Cancelled) if the work should stop.
    fn advance(&mut self, bytes: u64) -> Result<()>;
}
