//! Published algorithms that `gpuproc bench` measures for comparison with the program's own kernels. They run only on
//! GPUs: the CPU side of each kernel here is the result that it is checked against. The published scan is
//! [`Algorithm::Blelloch`](super::scan::Algorithm::Blelloch).

mod blur;
mod histogram;
mod mesh;

pub use blur::DirectBlur;
pub use histogram::{CountRgba, Counting};
pub use mesh::ClassicCubes;

use crate::gpu::Shader;

/// Every shader of the baselines that can run.
pub fn variants() -> Vec<Shader> {
    let mut shaders = vec![blur::SHADER.clone(), mesh::SHADER.clone()];
    shaders.extend([1, 4].map(histogram::shader));
    shaders
}
