//! Images and volumes as the inputs and results of filters.

use super::{
    device::Device,
    sample::{Sample, sealed::Stored as SampleType},
};
use crate::{
    kernels::filter::{Filter, apply},
    util::{
        error::{Error, Result},
        memory,
    },
};

/// Input of a filter: an [`Image`](crate::Image) or a [`Volume`](crate::Volume).
pub trait Raster: sealed::Stored {
    /// The type of the samples.
    type Sample: Sample;
    /// An image or a volume with samples of another type.
    type Of<U: Sample>: Raster<Sample = U>;
}

pub(super) mod sealed {
    use crate::data::grid::Grid;

    /// Conversion to and from a [`Grid`], which holds samples of any type.
    pub trait Stored: Sized {
        /// Number of axes.
        const AXES: usize;

        fn grid(&self) -> &Grid;

        fn from_grid(grid: Grid) -> Self;
    }
}

/// The result of `filter`, whose samples are of the type that `O` has.
pub(super) fn filtered<O: Raster>(
    device: &Device,
    filter: &dyn Filter,
    input: &impl Raster,
) -> Result<O> {
    let grid = input.grid();
    if grid.samples.is_empty() {
        return Err(Error::bad_input("the input has no samples"));
    }
    let mut result = memory::catch(|| apply(filter, device.inner(), grid))?;
    // Labels have 16 bits if that is enough.
    let dtype = <O::Sample as SampleType>::DTYPE;
    if result.samples.dtype() != dtype {
        result.samples = result.samples.converted(dtype)?;
    }
    Ok(O::from_grid(result))
}
