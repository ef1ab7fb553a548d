//! The kernels: one file a family, beside its WGSL of the same stem in `wgsl/`. Each holds the
//! parameters, the native twin and the GPU host code.

use crate::gpu::Shader;

pub mod blur;

/// Every shader, so that tests can check each file in `wgsl/`.
pub const SHADERS: &[&Shader] = &[
    blur::SHADERS[0],
    blur::SHADERS[1],
    blur::SHADERS[2],
    blur::SHADERS[3],
    blur::SHADERS[4],
    blur::SHADERS[5],
    blur::SHADERS[6],
];
