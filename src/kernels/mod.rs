//! The kernels, with a file or a folder for each family: parameters, CPU code, and host code for its shaders in
//! `wgsl/`.

pub mod baselines;
pub mod blur;
mod blur_filter;
pub mod chain;
pub mod channel_mask;
pub mod convert;
pub mod copy;
mod device_blocks;
pub mod filter;
pub mod gpu_chain;
pub mod gpu_step;
pub mod gradient;
pub mod histogram;
pub mod hysteresis;
pub mod jpeg;
pub mod jpeg_histogram;
pub mod label;
pub mod local_threshold;
pub mod math;
pub mod median;
pub mod mesh;
pub mod morph;
mod ordered_keys;
pub mod otsu;
mod pointwise;
pub mod project;
pub mod quantile;
pub mod rearrange;
pub mod render;
pub mod resize;
pub mod scan;
pub mod sort;
pub mod threshold;
pub mod unsharp;

use crate::gpu::Shader;

/// All specialisations of all shaders, for a test that validates them; some may occur twice. Families list theirs by
/// the functions with which kernels specialise the shaders. Of constants with any value (radii, bins), some values
/// occur.
pub fn variants() -> Vec<Shader> {
    [
        baselines::variants(),
        blur::variants(),
        vec![copy::SHADER.clone()],
        histogram::variants(),
        jpeg::variants(),
        label::variants(),
        median::variants(),
        mesh::gpu::variants(),
        morph::variants(),
        project::variants(),
        resize::variants(),
        render::variants(),
        scan::variants(),
        sort::variants(),
        threshold::variants(),
    ]
    .concat()
}
