//! Sizes that a file claims, checked before memory is allocated for them.

use super::codec::BoxError;
use crate::{
    error::{Error, Hint},
    io::Limits,
};

/// Refuses an image of `size` whose samples take `bytes` when it has no pixels, when it has more
/// pixels or bytes than `limits` allow, or when there is no memory for it.
pub fn check_size(
    limits: Limits,
    size @ [width, height]: [usize; 2],
    bytes: u64,
) -> Result<(), BoxError> {
    if width == 0 || height == 0 {
        return Err(format!("{width} x {height} pixels are no picture").into());
    }
    limits.check(&size)?;
    if bytes > limits.bytes {
        let message = format!(
            "{width} x {height} pixels take {bytes} bytes, more than the {} allowed here",
            limits.bytes
        );
        return Err(Error::bad_input(message).with_hint(Hint::Memory).into());
    }
    // Decoders abort the process where an allocation fails.
    Vec::<u8>::new()
        .try_reserve_exact(bytes.try_into()?)
        .map_err(|_| format!("there is no memory for {width} x {height} pixels").into())
}

/// Memory that a decoder may take beside the samples, whatever the limit.
pub const LEAST_SCRATCH: u64 = 16 << 20;

/// Refuses a file that a decoder needs more than `bytes` for, beside its samples; `what` takes them.
pub fn check_scratch(limits: Limits, bytes: u64, what: &str) -> Result<(), BoxError> {
    let allowed = limits.bytes.max(LEAST_SCRATCH);
    match bytes <= allowed {
        true => Ok(()),
        false => {
            let message = format!("{what} {bytes} bytes, more than the {allowed} allowed here");
            Err(Error::bad_input(message).with_hint(Hint::Memory).into())
        }
    }
}
