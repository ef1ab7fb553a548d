//! Grids of any size on a device with limits.

use crate::{
    data::{blocks::Blocks, grid::Shape, samples::Samples},
    gpu::Context,
    util::error::Result,
};

/// Calls `run` with blocks of the grid that fit on the device, the bytes of their samples, and room for those of their
/// results. A result depends on samples within `halo` along each axis. Workgroups compute `group` words each. `None` if no
/// block fits.
///
/// # Errors
/// Those of `run`.
pub fn in_blocks(
    context: &Context,
    samples: &Samples,
    shape: Shape,
    (halo, group): ([usize; 3], u32),
    run: impl Fn(Shape, &[u8], &mut [u8]) -> Result<()>,
) -> Result<Option<Samples>> {
    let size = shape.channels * samples.dtype().size();
    let max_groups = u64::from(context.limits.workgroups).pow(2) / 2;
    let blocks = Blocks::fitting(shape.dims, halo, false, |dims| {
        let bytes = (dims.iter().product::<usize>() * size) as u64;
        let groups = bytes.div_ceil(4 * u64::from(group));
        bytes <= context.max_binding() && bytes < 1 << 31 && groups <= max_groups
    });
    let Some(blocks) = blocks else { return Ok(None) };
    let mut result = Samples::zeros(samples.dtype(), samples.len())?;
    blocks.map((samples.as_bytes(), result.as_bytes_mut()), [size; 2], |dims, from, to| {
        run(Shape { dims, ..shape }, from, to)
    })?;
    Ok(Some(result))
}
