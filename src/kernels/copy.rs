//! A copy, which measures the memory bandwidth of a device. `gpuproc bench` compares kernels with it.

use crate::{
    device::Kernel,
    gpu::{Context, Shader},
    shader,
    util::{error::Result, parallel},
};

/// `wgsl/copy/copy.wgsl`.
pub static SHADER: Shader = shader!("copy/copy")
    .unchecked("indices are below the source's length, and the target is as long");

/// Bytes that a workgroup copies: 256 invocations with 4 quads of 16 bytes each.
const BYTES_PER_WORKGROUP: u64 = 256 * 4 * 16;

/// Copies words.
#[derive(Clone, Copy, Debug)]
pub struct CopyWords;

impl Kernel for CopyWords {
    type In = [u32];
    type Out = Vec<u32>;
    const NAME: &'static str = "copy";

    fn cpu(&self, words: &[u32]) -> Result<Vec<u32>> {
        parallel::mapped(words, |&word| word)
    }

    fn gpu(&self, context: &Context, words: &[u32]) -> Result<Vec<u32>> {
        let bytes = (size_of_val(words) as u64).next_multiple_of(16);
        let [source, target] =
            [context.allocate("copy source", bytes)?, context.allocate("copy target", bytes)?];
        context.write(&source, 0, words)?;
        let mut batch = context.batch();
        let groups = context.fold(bytes.div_ceil(BYTES_PER_WORKGROUP))?;
        let buffers = [("source", &source), ("target_", &target)];
        batch.dispatch("copy", &SHADER, "copy", &(), &buffers, groups)?;
        batch.run()?;
        context.read(&target, words.len())
    }
}
