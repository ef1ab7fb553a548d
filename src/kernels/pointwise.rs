//! Shaders that compute each sample from one sample, over inputs of any size.

use std::sync::Arc;

use crate::{
    gpu::{Context, Pass, Pipeline},
    util::{error::Result, memory},
};

/// Bytes of input on the device at a time.
const BLOCK: u64 = 256 << 20;

/// The bytes that `pipeline` makes of samples of `size` bytes, one for each, four per invocation. `bind` binds what the
/// shader needs besides `data` and `result`; it gets the pass and the number of words of the result.
///
/// # Errors
/// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device fails, [`Kind::Failure`](crate::util::error::Kind::Failure) when
/// there is no memory for the result.
pub fn map_words(
    context: &Context,
    pipeline: &Arc<Pipeline>,
    bytes: &[u8],
    size: usize,
    bind: impl for<'p, 'b> Fn(Pass<'p, 'b>, u32) -> Pass<'p, 'b>,
) -> Result<Vec<u8>> {
    let mut result = memory::zeros(bytes.len() / size)?;
    let step = 4 * size;
    let block = (context.max_binding().min(BLOCK) as usize / step).max(1) * step;
    let block = block.min(bytes.len().next_multiple_of(step)).max(step);
    let data = context.allocate("samples", block as u64)?;
    let made = context.allocate("results", (block / size) as u64)?;
    for (from, to) in bytes.chunks(block).zip(result.chunks_mut(block / size)) {
        context.write(&data, 0, from)?;
        let words = to.len().div_ceil(4) as u32;
        let groups = u64::from(words).div_ceil(u64::from(pipeline.workgroup_size[0]));
        let mut batch = context.batch();
        let pass = batch.pass("map", pipeline).buffer("data", &data).buffer("result", &made);
        bind(pass, words).dispatch(context.fold(groups)?);
        batch.run()?;
        context.read_into(&made, to)?;
    }
    Ok(result)
}
