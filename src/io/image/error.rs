//! Errors and panics of decoders.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::util::memory;

/// Error message for a file on which a decoder panics.
pub const DECODER_PANICKED: &str = "it is damaged, and its decoder failed on the damage";

/// Runs `decode` and turns a panic into an error: decoders panic on some broken files.
pub fn catch_panic<T>(decode: impl FnOnce() -> Result<T, BoxError>) -> Result<T, BoxError> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|panic| {
        Err(match memory::raised(panic) {
            Ok(error) => error.into(),
            Err(_) => DECODER_PANICKED.into(),
        })
    })
}

/// Any error of a decoder or encoder.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
