//! Grids of any size on a device with limits.

use crate::{
    data::{
        blocks::Blocks,
        grid::{GridType, Shape},
        samples::Samples,
    },
    gpu::{Batch, Buffer, Context},
    kernels::gpu_step::GpuLayout,
    util::error::Result,
};

/// Whether a grid of `bytes` bytes fits on the device as a whole. Workgroups compute `group` words each.
pub fn fits(context: &Context, bytes: u64, group: u32) -> bool {
    let max_groups = u64::from(context.limits.workgroups).pow(2) / 2;
    let groups = bytes.div_ceil(4 * u64::from(group));
    bytes <= context.max_binding() && bytes < 1 << 31 && groups <= max_groups
}

/// Runs the passes that `record` records on blocks of the grid that fit on the device. A result depends on samples within
/// `halo` along each axis. Workgroups compute `group` words each. `None` if no block fits.
pub fn in_blocks<'c>(
    context: &'c Context,
    samples: &Samples,
    shape: Shape,
    halo: [usize; 3],
    group: u32,
    record: impl Fn(&mut Batch<'c>, GpuLayout, Buffer) -> Result<Buffer>,
) -> Result<Option<Samples>> {
    let run = |shape: Shape, from: &[u8], to: &mut [u8]| {
        let input = context.upload("samples", from)?;
        let mut batch = context.batch();
        let grid = GridType { shape, dtype: samples.dtype() };
        let result = record(&mut batch, GpuLayout::packed(grid), input)?;
        batch.run()?;
        context.read_into(&result, to)
    };
    let size = shape.channels * samples.dtype().size();
    let blocks = Blocks::fitting(shape.dims, halo, false, |dims| {
        fits(context, (dims.iter().product::<usize>() * size) as u64, group)
    });
    let Some(blocks) = blocks else { return Ok(None) };
    let mut result = Samples::zeros(samples.dtype(), samples.len())?;
    blocks.run_each(samples.as_bytes(), result.as_bytes_mut(), [size; 2], |dims, from, to| {
        run(Shape { dims, ..shape }, from, to)
    })?;
    Ok(Some(result))
}
