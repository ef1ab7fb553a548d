//! Errors and panics of decoders.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::util::memory;

/// Message for a file on which a decoder panics.
pub const DECODER_PANICKED: &str = "the file is damaged: its decoder crashed";

/// Runs `decode` and returns a panic as an error. Some decoders panic on broken files.
pub fn catch_panic<T>(decode: impl FnOnce() -> Result<T, BoxError>) -> Result<T, BoxError> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|panic| {
        Err(match memory::raised(panic) {
            Ok(error) => error.into(),
            Err(_) => DECODER_PANICKED.into(),
        })
    })
}

pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
