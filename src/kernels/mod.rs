//! The kernels: one file or folder a family, beside its WGSL in `wgsl/`. Each holds the parameters, the
//! native twin and the GPU host code.

#[forbid(unsafe_code)]
pub mod baselines;
#[forbid(unsafe_code)]
pub mod blur;
#[forbid(unsafe_code)]
mod blur_filter;
#[forbid(unsafe_code)]
pub mod channel_mask;
#[forbid(unsafe_code)]
pub mod copy;
#[forbid(unsafe_code)]
pub mod filter;
#[forbid(unsafe_code)]
pub mod histogram;
#[forbid(unsafe_code)]
pub mod jpeg;
#[forbid(unsafe_code)]
pub mod jpeg_blur;
#[forbid(unsafe_code)]
pub mod jpeg_histogram;
#[forbid(unsafe_code)]
pub mod mesh;
#[forbid(unsafe_code)]
pub mod otsu;
#[forbid(unsafe_code)]
mod pointwise;
#[forbid(unsafe_code)]
pub mod quantile;
#[forbid(unsafe_code)]
pub mod render;
#[forbid(unsafe_code)]
pub mod scan;
#[forbid(unsafe_code)]
pub mod sort;
#[forbid(unsafe_code)]
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
