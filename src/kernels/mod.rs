//! The kernels: one file a family, beside its WGSL of the same stem in `wgsl/`. Each holds the
//! parameters, the native twin and the GPU host code.

pub mod blur;
pub mod copy;
pub mod histogram;
pub mod mesh;
pub mod render;
pub mod scan;
pub mod sort;

use crate::{bench::Case, gpu::Shader};

/// Every shader, so that tests can check each file in `wgsl/`.
pub const SHADERS: &[&[&Shader]] = &[
    &blur::SHADERS,
    &[&copy::SHADER],
    &histogram::SHADERS,
    &[&mesh::gpu::SHADER],
    &[&render::SHADER],
    &[&scan::OPS, &scan::REDUCE, &scan::LOOKBACK, &scan::BLELLOCH],
    &[&sort::SORT],
];

/// Everything that `gpuproc bench` can measure, at small or at `full` sizes.
pub fn cases(full: bool) -> Vec<Case> {
    let families = [blur::cases, copy::cases, scan::cases, sort::cases];
    families.iter().flat_map(|cases| cases(full)).collect()
}
