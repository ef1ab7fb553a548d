//! The conversions on a GPU: coefficients and pixels are in storage buffers.

mod decode;
mod encode;
mod layout;

pub use self::{
    decode::Decoder,
    encode::{Encoded, Encoder},
    layout::Blocks,
};
use self::{
    decode::{MODELS, inverse},
    encode::{PLANES, forward},
};
use crate::gpu::Shader;

/// All specializations of the shaders that may run.
pub fn variants() -> Vec<Shader> {
    MODELS
        .map(inverse)
        .into_iter()
        .chain(PLANES.map(|(channels, shared)| forward(channels, shared)))
        .collect()
}
