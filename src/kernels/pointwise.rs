//! Shaders that compute each sample of the result from one sample of the input, of any size.

use crate::{
    gpu::{Buffer, Context, Shader, ShaderStruct},
    util::error::Result,
};

/// Bytes of input on the device at a time.
const BLOCK: u64 = 256 << 20;

/// Runs an entry point over `data`, block by block, and stores the results in `result`. Samples have `sizes[0]` bytes,
/// results `sizes[1]`, and blocks whole pixels of `channels` samples. The entry point also reads `table`, and the
/// uniform that `params` returns for the number of words of a block's result.
///
/// # Errors
/// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device fails.
pub fn map_words<T: ShaderStruct>(
    context: &Context,
    (shader, entry): (&Shader, &str),
    (data, result): (&[u8], &mut [u8]),
    (sizes, channels): ([usize; 2], usize),
    table: (&str, &Buffer),
    params: impl Fn(u32) -> T,
) -> Result<()> {
    // Whole pixels and whole words of both.
    let step = 4 * channels;
    let block = (context.max_binding().min(BLOCK) as usize / (step * sizes[0])).max(1) * step;
    let block = block.min((data.len() / sizes[0]).next_multiple_of(step)).max(step);
    let [from_bytes, to_bytes] = sizes.map(|size| block * size);
    let source = context.allocate("samples", from_bytes as u64)?;
    let target = context.allocate("results", to_bytes as u64)?;
    let size = context.pipeline(shader, entry)?.workgroup_size[0];
    for (from, to) in data.chunks(from_bytes).zip(result.chunks_mut(to_bytes)) {
        context.write(&source, 0, from)?;
        let words = to.len().div_ceil(4) as u32;
        let groups = context.fold(words.div_ceil(size).into())?;
        let mut batch = context.batch();
        let buffers = [("data", &source), ("result", &target), table];
        batch.dispatch(entry, (shader, entry), &params(words), &buffers, groups)?;
        batch.run()?;
        context.read_into(&target, to)?;
    }
    Ok(())
}
