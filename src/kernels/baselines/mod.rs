//! Published algorithms that `gpuproc bench` compares with the program's own kernels. They run on GPUs only: the CPU
//! side of each kernel computes the result that it is checked against. The published scan is
//! [`Algorithm::Blelloch`](super::scan::Algorithm::Blelloch).

mod blur;
mod histogram;
mod mesh;

pub use blur::DirectBlur;
pub use histogram::{CountAlgorithm, CountRgba};
pub use mesh::ClassicCubes;

use crate::gpu::Shader;

/// All shaders of the baselines, in every specialisation.
pub fn variants() -> Vec<Shader> {
    let mut shaders = vec![blur::SHADER.clone(), mesh::SHADER.clone()];
    shaders.extend([1, 4].map(histogram::shader));
    shaders
}
