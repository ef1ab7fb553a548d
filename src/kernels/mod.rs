//! The kernels: one file or folder a family, beside its WGSL in `wgsl/`. Each holds the parameters, the
//! native twin and the GPU host code.

#[forbid(unsafe_code)]
pub mod blur;
#[forbid(unsafe_code)]
mod blur_filter;
#[forbid(unsafe_code)]
pub mod case;
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

use self::case::{Case, Sweep};
use crate::gpu::Shader;

/// Every shader in every specialisation that can run, so that a test can validate each; some may occur twice. A family
/// whose shaders are specialised lists them in a function `variants` of its own, by the function that its kernels
/// specialise them with. Where constants may have any value (radii, bins), the list has some.
pub fn variants() -> Vec<Shader> {
    [
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

/// Everything that `gpuproc bench` can measure, at small or at `full` sizes.
pub fn cases(full: bool) -> Vec<Case> {
    let families =
        [blur::cases, histogram::cases, scan::cases, sort::cases, mesh::cases, copy::cases];
    families.iter().flat_map(|cases| cases(full)).collect()
}

/// The lines that `gpuproc bench --sweep` draws, of small or of `full` sizes.
pub fn sweeps(full: bool) -> Vec<Sweep> {
    let points = blur::sweep(full).into_iter().map(|(radius, case)| (radius as f64, case));
    vec![Sweep { along: "radius (pixels)", points: points.collect() }]
}
