//! The kernels: one file a family, beside its WGSL of the same stem in `wgsl/`. Each holds the
//! parameters, the native twin and the GPU host code.

use crate::gpu::Shader;

pub mod mesh;

/// Every shader, so that tests can check each file in `wgsl/`.
pub const SHADERS: &[&Shader] = &[&mesh::gpu::SHADER, &mesh::classic::SHADER];
