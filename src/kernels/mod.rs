//! The kernels: one file a family, beside its WGSL of the same stem in `wgsl/`. Each holds the
//! parameters, the native twin and the GPU host code.

pub mod scan;
pub mod sort;

use crate::gpu::Shader;

/// Every shader, so that tests can check each file in `wgsl/`.
pub const SHADERS: &[&Shader] =
    &[&scan::OPS, &scan::REDUCE, &scan::LOOKBACK, &scan::BLELLOCH, &scan::TABLE, &sort::SORT];
