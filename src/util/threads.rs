//! Starts threads, also if the system grants only a few: the number of processes (RLIMIT_NPROC), the tasks of a
//! container or memory may be limited.
//!
//! `std::thread::spawn` panics if the system grants no thread. These functions return an error instead.

use std::{
    io,
    thread::{Builder, JoinHandle, Scope, ScopedJoinHandle},
};

use crate::util::error::{Error, Kind, Result};

/// Error if the system grants no thread.
pub(super) fn spawn_error(cause: io::Error) -> Error {
    Error::new(Kind::Failure, "the system grants no further thread").caused_by(cause)
}

/// Starts a thread.
pub fn spawn<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    Builder::new().spawn(work).map_err(spawn_error)
}

/// Starts a thread in `scope`.
pub fn spawn_in<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).map_err(spawn_error)
}
