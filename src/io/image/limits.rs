//! Checks of the sizes that a file claims, before memory is allocated for them.

use super::error::BoxError;
use crate::{
    io::Limits,
    util::error::{Error, Hint},
};

/// Returns an error for an image of `size` pixels and `bytes` bytes if it has no pixels, exceeds `limits`, or does not
/// fit into memory.
pub fn check_size(
    limits: Limits,
    size @ [width, height]: [usize; 2],
    bytes: u64,
) -> Result<(), BoxError> {
    if width == 0 || height == 0 {
        return Err(format!("the image has no pixels ({width} x {height})").into());
    }
    limits.check(&size)?;
    if bytes > limits.bytes {
        let message = format!(
            "{width} x {height} pixels take {bytes} bytes, more than the {} allowed here",
            limits.bytes
        );
        return Err(Error::bad_input(message).with_hint(Hint::Memory).into());
    }
    // Decoders abort the process if an allocation fails.
    Vec::<u8>::new()
        .try_reserve_exact(bytes.try_into()?)
        .map_err(|_| format!("there is no memory for {width} x {height} pixels").into())
}

/// Maximum memory in bytes for metadata that are read with a header, such as profiles and texts.
pub const MAX_METADATA_BYTES: u64 = 32 << 20;

/// Bytes that a decoder may take in addition to the samples with any limit.
pub const MIN_SCRATCH: u64 = 16 << 20;

/// Returns an error that begins with `subject` if a decoder takes more than the allowed memory in addition to the
/// samples.
pub fn check_scratch(limits: Limits, bytes: u64, subject: &str) -> Result<(), BoxError> {
    let allowed = limits.bytes.max(MIN_SCRATCH);
    if bytes <= allowed {
        return Ok(());
    }
    let message = format!("{subject} {bytes} bytes, more than the {allowed} allowed here");
    Err(Error::bad_input(message).with_hint(Hint::Memory).into())
}
