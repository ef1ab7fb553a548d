//! The kernels: one file a family, beside its WGSL of the same stem in `wgsl/`. Each holds the
//! parameters, the native twin and the GPU host code.

pub mod histogram;

use crate::gpu::Shader;

/// Every shader, so that tests can check each file in `wgsl/`.
pub const SHADERS: &[&Shader] =
    &[histogram::SHADERS[0], histogram::SHADERS[1], histogram::SHADERS[2], histogram::SHADERS[3]];
