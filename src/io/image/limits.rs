//! Checks of the sizes that a file claims, before memory is allocated for them.

use super::error::BoxError;
use crate::{
    io::Limits,
    util::error::{Error, Hint},
};

/// Refuses an image of `size` pixels whose samples take `bytes`: if it has no pixels, if it has more pixels or bytes
/// than `limits` allow, or if there is no memory for it.
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
    // Decoders abort the process if an allocation fails.
    Vec::<u8>::new()
        .try_reserve_exact(bytes.try_into()?)
        .map_err(|_| format!("there is no memory for {width} x {height} pixels").into())
}

/// Maximum memory in bytes for what is read with a header, such as profiles and texts.
pub const MAX_METADATA_BYTES: u64 = 32 << 20;

/// Bytes that a decoder may always take beside the samples, however low the limit.
pub const MIN_SCRATCH: u64 = 16 << 20;

/// Refuses a file for which a decoder takes more than the allowed memory beside the samples: `bytes`. `what` begins the
/// message.
pub fn check_scratch(limits: Limits, bytes: u64, what: &str) -> Result<(), BoxError> {
    let allowed = limits.bytes.max(MIN_SCRATCH);
    match bytes <= allowed {
        true => Ok(()),
        false => {
            let message = format!("{what} {bytes} bytes, more than the {allowed} allowed here");
            Err(Error::bad_input(message).with_hint(Hint::Memory).into())
        }
    }
}
