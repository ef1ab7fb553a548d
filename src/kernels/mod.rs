//! The kernels: one file or folder a family, beside its WGSL in `wgsl/`. Each holds the parameters, the
//! native twin and the GPU host code.

pub mod baselines;
pub mod blur;
mod blur_filter;
pub mod channel_mask;
pub mod copy;
pub mod filter;
pub mod histogram;
pub mod jpeg;
pub mod jpeg_blur;
pub mod jpeg_histogram;
pub mod mesh;
pub mod otsu;
mod pointwise;
pub mod quantile;
pub mod render;
pub mod scan;
pub mod sort;
pub mod threshold;

use crate::gpu::Shader;

/// Every shader in every specialisation that can run, so that a test can validate each; some may occur twice. A family
/// whose shaders are specialised lists them in a function `variants` of its own, by the function that its kernels
/// specialise them with. Where constants may have any value (radii, bins), the list has some.
pub fn variants() -> Vec<Shader> {
    [
        baselines::variants(),
        blur::variants(),
        vec![copy::SHADER.clone()],
        histogram::variants(),
        jpeg::variants(),
        mesh::gpu::variants(),
        render::variants(),
        scan::variants(),
        sort::variants(),
        threshold::variants(),
    ]
    .concat()
}
