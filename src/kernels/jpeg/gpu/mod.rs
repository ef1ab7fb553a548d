//! The GPU twins: coefficients and pixels are in storage buffers.

mod decode;
mod encode;
mod layout;

pub use self::{
    decode::Decoder,
    encode::{Encoded, Encoder},
};
use self::{
    decode::{MODELS, inverse},
    encode::{PLANES, forward},
};
use crate::gpu::{Buffer, Shader};

/// Why the shaders need no bounds checks.
const IN_RANGE: &str = "blocks, entries, planes and rows are indexed below the numbers that the host sizes the buffers by; \
    columns and rows are limited to the last of a plane";

/// All specializations of the shaders that may run.
pub fn variants() -> Vec<Shader> {
    MODELS.map(inverse).into_iter().chain(PLANES.map(forward)).collect()
}

/// Coefficients on a device.
#[derive(Debug)]
pub struct Blocks {
    blocks: Buffer,
    entries: Buffer,
}
