//! Summed-area tables of u32: one workgroup per row and channel, then one invocation per column.

use crate::{
    data::dtype::Dtype,
    gpu::{Context, Shader},
    kernels::scan::{
        Scannable,
        table::{Axis, BAND_ROWS, Table},
    },
    shader, shader_struct,
    util::{error::Result, memory},
};

/// Sums of u32.
pub static TABLE: Shader = shader!("scan/table").unchecked(
    "pixels are read and written below band.height * band.width * band.channels, which the host \
         keeps within the bound rows; `above` has a place for each column",
);

shader_struct! {
    /// The rows that one pass works on.
    struct Band { width: u32, height: u32, channels: u32, inclusive: u32 }
}

/// Maximum number of rows that fit one binding and one dispatch, a multiple of [`BAND_ROWS`]; `None` if these do not
/// fit, or for other types than u32.
pub fn fits<T: Scannable>(context: &Context, input: &Table<T>) -> Option<usize> {
    let pitch = input.width * input.channels;
    let bound = (context.max_binding() as usize / 4).checked_div(pitch)?;
    // A workgroup scans a channel of a row.
    let dispatched = context.limits.folded_workgroups() as usize / input.channels;
    // An invocation scans a column, and llvmpipe ends loops after 65,535 iterations.
    let rows = bound.min(dispatched).min(1 << 15) / BAND_ROWS * BAND_ROWS;
    (T::DTYPE == Dtype::U32 && rows > 0).then_some(rows)
}

/// Scans `input` in bands of `rows` rows.
pub fn run<T: Scannable>(
    context: &Context,
    input: &Table<T>,
    rows: usize,
    axis: Axis,
    inclusive: bool,
) -> Result<Table<T>> {
    let pitch = input.width * input.channels;
    let data = context.upload("table", &input.values)?;
    let above = context.upload("sums above", &memory::filled(0u32, pitch))?;
    let mut batch = context.batch();
    for first in (0..input.height).step_by(rows) {
        let height = rows.min(input.height - first);
        let bytes = (4 * first * pitch) as u64..(4 * (first + height) * pitch) as u64;
        let data = data.slice(bytes);
        let band = Band {
            width: input.width as u32,
            height: height as u32,
            channels: input.channels as u32,
            inclusive: inclusive.into(),
        };
        let buffers = [("data", &data), ("above", &above)];
        if axis != Axis::Y {
            let groups = context.fold((height * input.channels) as u64)?;
            batch.dispatch("table rows", &TABLE, "rows", &band, &buffers, groups)?;
        }
        if axis != Axis::X {
            batch.dispatch_over("table columns", &TABLE, "columns", &band, &buffers, pitch)?;
        }
    }
    batch.run()?;
    let values = context.read(&data, input.values.len())?;
    Ok(Table { values, ..*input })
}
