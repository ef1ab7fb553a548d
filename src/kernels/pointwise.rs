//! Shaders that compute each sample from one sample, over inputs of any size.

use crate::{
    gpu::{Buffer, Context, Shader, ShaderStruct},
    util::error::Result,
};

/// Bytes of input on the device at a time.
const BLOCK: u64 = 256 << 20;

/// Writes what the entry point `entry` makes of `data` to `result`: for each sample of `sizes[0]` bytes one of `sizes[1]`,
/// whole pixels of `channels` samples at a time. It reads `table` besides, and a uniform that `job` makes of the number
/// of words of the result.
///
/// # Errors
/// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device fails.
pub fn map_words<T: ShaderStruct>(
    context: &Context,
    (shader, entry): (&Shader, &str),
    (data, result): (&[u8], &mut [u8]),
    (sizes, channels): ([usize; 2], usize),
    table: (&str, &Buffer),
    job: impl Fn(u32) -> T,
) -> Result<()> {
    // Whole pixels and whole words of both.
    let step = 4 * channels;
    let block = (context.max_binding().min(BLOCK) as usize / (step * sizes[0])).max(1) * step;
    let block = block.min((data.len() / sizes[0]).next_multiple_of(step)).max(step);
    let [from_bytes, to_bytes] = sizes.map(|size| block * size);
    let source = context.allocate("samples", from_bytes as u64)?;
    let made = context.allocate("results", to_bytes as u64)?;
    let size = context.pipeline(shader, entry)?.workgroup_size[0];
    for (from, to) in data.chunks(from_bytes).zip(result.chunks_mut(to_bytes)) {
        context.write(&source, 0, from)?;
        let words = to.len().div_ceil(4) as u32;
        let groups = context.fold(words.div_ceil(size).into())?;
        let mut batch = context.batch();
        let buffers = [("data", &source), ("result", &made), table];
        batch.dispatch(entry, (shader, entry), &job(words), &buffers, groups)?;
        batch.run()?;
        context.read_into(&made, to)?;
    }
    Ok(())
}
