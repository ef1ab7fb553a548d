//! Counting of pixels in blocks that fit a binding, and the number of invocations, for all counting routes.

use crate::{
    gpu::{Batch, Buffer, Context, DeviceLimits},
    util::{error::Result, memory},
};

/// Maximum number of bytes of input on the device at a time.
const BLOCK: u64 = 256 << 20;

/// Counts `bytes`, pixels of `pixel_bytes` bytes, block by block, and sums the `counters` counters of all blocks in 64
/// bits. `record` records the passes over a block: it gets the pixels, their number, and counters that are zero.
pub fn count_blocks(
    context: &Context,
    bytes: &[u8],
    pixel_bytes: usize,
    counters: usize,
    record: impl Fn(&mut Batch<'_>, &Buffer, u32, &Buffer) -> Result<()>,
) -> Result<Vec<u64>> {
    let mut sums = memory::filled(0u64, counters);
    if bytes.is_empty() {
        return Ok(sums);
    }
    let max = context.max_binding().min(BLOCK) / 16 * 16 / pixel_bytes as u64 * pixel_bytes as u64;
    let block_bytes = (bytes.len() as u64).min(max);
    // Shaders read whole vectors of 16 bytes.
    let data = context.allocate("pixels", block_bytes.next_multiple_of(16))?;
    let counts = context.allocate("counts", counters as u64 * 4)?;
    for block in bytes.chunks(block_bytes as usize) {
        context.write(&data, 0, block)?;
        let mut batch = context.batch();
        batch.clear(&counts);
        record(&mut batch, &data, (block.len() / pixel_bytes) as u32, &counts)?;
        batch.run()?;
        let counted: Vec<u32> = context.read(&counts, counters)?;
        sums.iter_mut().zip(counted).for_each(|(sum, more)| *sum += u64::from(more));
    }
    Ok(sums)
}

/// Invocations per workgroup: `wanted` if the limits of the device allow it, else 256, which every device supports. All
/// invocations of a workgroup share its counters.
pub fn workgroup_size(limits: &DeviceLimits, wanted: u32) -> u32 {
    if has_little_memory(limits) || limits.workgroup_size < wanted { 256 } else { wanted }
}

/// Whether workgroup memory has no room for 8192 counters.
pub fn has_little_memory(limits: &DeviceLimits) -> bool {
    limits.workgroup_bytes < 32 << 10
}

/// Maximum number of workgroups that stride over the pixels: enough for large GPUs, but each one has to add its
/// counters to the result.
pub fn max_workgroups(context: &Context) -> u64 {
    u64::from(context.limits.workgroups).min(528)
}
