//! Checks of the sizes that a file claims, before memory is allocated for them.

use super::error::BoxError;
use crate::{io::Limits, util::memory};

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
    if bytes > limits.bytes() {
        let what = format_args!("an image of {width} x {height} pixels");
        return Err(limits.exceeded(what, bytes).into());
    }
    // Decoders abort the process if an allocation fails.
    Vec::<u8>::new()
        .try_reserve_exact(bytes.try_into()?)
        .map_err(|_| format!("out of memory for {width} x {height} pixels").into())
}

/// Maximum memory in bytes for metadata that are read with a header, such as profiles and texts.
pub const MAX_METADATA_BYTES: u64 = 32 << 20;

/// Bytes that a decoder may take in addition to the samples with any limit.
pub const MIN_SCRATCH: u64 = 16 << 20;

/// Returns an error if `what`, a step of a decoder, takes too much memory in addition to the samples. While the file is
/// decoded, there is one copy of the samples.
pub fn check_scratch(limits: Limits, bytes: u64, what: &str) -> Result<(), BoxError> {
    let others = limits.copies.saturating_sub(1);
    let needed = bytes.saturating_add(bytes.checked_div(others).unwrap_or(0));
    if bytes <= MIN_SCRATCH || needed <= limits.memory {
        return Ok(());
    }
    Err(memory::exceeds_limit(what, needed, limits.memory).into())
}
