//! Blelloch's scan, block by block and level by level: reads and writes each number twice. Kept for comparison.

use super::{
    arrays::{BoundRange, ScanBuffers},
    spec::ScanSpec,
};
use crate::{
    gpu::{Batch, Buffer, Context, Shader},
    shader, shader_struct,
    util::error::Result,
};

shader_struct! {
    /// The range of a level that a pass works on.
    struct Level { len: u32, blocks: u32, first_block: u32, inclusive: u32, root: u32 }
}

/// Scan of blocks, and adding back the scanned sums of blocks.
pub static BLELLOCH: Shader = shader!("scan/blelloch").unchecked(
    "numbers are read and written below level.len, which the host keeps within the bound ranges; \
     apart(511) is 526; sums are indexed below the count of all blocks",
);

/// Numbers that are scanned in blocks. The sums of the blocks are the source of the next level.
struct Row {
    source: Buffer,
    result: Buffer,
    len: usize,
}

/// Records the scan.
pub fn record(
    spec: &ScanSpec,
    context: &Context,
    batch: &mut Batch<'_>,
    ScanBuffers { source, result, len, carry }: ScanBuffers<'_>,
) -> Result<()> {
    let shader = spec.specialise(&BLELLOCH);
    let block = BLELLOCH.constant("BLOCK") as usize;
    let level = |range: &BoundRange, depth: usize, root: bool| Level {
        len: range.len as u32,
        blocks: range.len.div_ceil(block) as u32,
        first_block: (range.first / block) as u32,
        inclusive: (depth == 0 && spec.inclusive).into(),
        root: root.into(),
    };
    let mut rows = vec![Row { source: source.clone(), result: result.clone(), len }];
    while let Some(row) = rows.last() {
        let (blocks, depth) = (row.len.div_ceil(block), rows.len() - 1);
        let root = blocks <= 1;
        // A multiple of four numbers, as in all buffers that are bound in ranges.
        let bytes = (blocks.next_multiple_of(4) * spec.dtype.size()) as u64;
        let sums = context.allocate("block sums", bytes)?;
        for range in spec.bound_ranges(context, row.len) {
            let level = level(&range, depth, root);
            let (source, result) = (range.slice(&row.source), range.slice(&row.result));
            let buffers =
                [("source", &source), ("result", &result), ("sums", &sums), ("carry", carry)];
            let groups = context.fold(level.blocks.into())?;
            batch.dispatch("scan blocks", &shader, "scan_block", &level, &buffers, groups)?;
        }
        if root {
            break;
        }
        let result = context.allocate("block sums, scanned", bytes)?;
        rows.push(Row { source: sums, result, len: blocks });
    }
    for (depth, pair) in rows.windows(2).enumerate().rev() {
        for range in spec.bound_ranges(context, pair[0].len) {
            let level = level(&range, depth, false);
            let buffers = [("result", &range.slice(&pair[0].result)), ("sums", &pair[1].result)];
            let groups = context.fold(level.blocks.into())?;
            batch.dispatch("scan add back", &shader, "add_back", &level, &buffers, groups)?;
        }
    }
    Ok(())
}
