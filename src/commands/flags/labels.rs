//! Outputs of labels, known from their names.

use crate::{
    data::{
        description::{Description, Kind},
        dtype::Dtype,
        grid::{GridType, Shape},
    },
    io::{
        Sink,
        image::ImageFormat,
        volume::{self, is_zarr_path},
    },
    kernels::filter::Filter,
    util::error::Result,
};

/// Refuses an output whose name shows that it cannot hold the labels that `filter` makes.
///
/// # Errors
/// `Kind::Usage`.
pub fn check_labels(
    filter: &dyn Filter,
    sink: &Sink,
    format: Option<ImageFormat>,
    is_volume: bool,
) -> Result<()> {
    // The size of a typical input, whose type does not matter.
    let shape = Shape { dims: [64, 64, if is_volume { 64 } else { 1 }], channels: 1 };
    let dtype = match filter.describe(GridType { shape, dtype: Dtype::U8 }.into()) {
        Ok(Description { kind: Kind::Labels, grid, .. }) => grid.dtype,
        _ => return Ok(()),
    };
    match (format, is_volume && !is_zarr_path(sink)) {
        (Some(format), _) => format.check_labels(sink, dtype),
        (None, true) => volume::check_labels(sink, dtype),
        (None, false) => Ok(()),
    }
}
