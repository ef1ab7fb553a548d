//! Volumes in memory.

use std::{marker::PhantomData, sync::Arc};

use super::{
    raster::{Raster, sealed::Stored},
    sample::Sample,
};
use crate::{
    data::grid::Grid,
    util::error::{Error, Result},
};

/// A volume in memory, with one sample for each voxel.
#[derive(Clone, Debug, PartialEq)]
pub struct Volume<T> {
    grid: Arc<Grid>,
    sample: PhantomData<T>,
}

impl<T: Sample> Volume<T> {
    /// Creates a volume of `dims[0] * dims[1] * dims[2]` samples along x, y and z, x fastest.
    ///
    /// # Errors
    /// [`ErrorKind::BadInput`](crate::ErrorKind::BadInput) when the number of samples differs from that.
    pub fn new(dims: [usize; 3], samples: Vec<T>) -> Result<Self> {
        let expected = dims.iter().try_fold(1usize, |product, &n| product.checked_mul(n));
        if expected != Some(samples.len()) {
            let ([x, y, z], found) = (dims, samples.len());
            let message = format_args!("expected {x} x {y} x {z} samples, found {found}");
            return Err(Error::bad_input(message));
        }
        Ok(Self::from_grid(Grid::volume(dims, T::store(samples))))
    }

    /// Samples along x, y and z.
    pub fn dims(&self) -> [usize; 3] {
        self.grid.dims
    }

    /// All samples, x fastest.
    pub fn samples(&self) -> &[T] {
        T::read(&self.grid.samples)
    }

    /// Converts the volume into its samples, x fastest, without a copy unless the volume has been cloned.
    pub fn into_samples(self) -> Vec<T> {
        T::take(Arc::unwrap_or_clone(self.grid).samples)
    }

    /// The samples, shared with the kernels that keep them while they run.
    pub(super) fn shared(&self) -> Arc<Grid> {
        self.grid.clone()
    }
}

impl<T: Sample> Raster for Volume<T> {
    type Sample = T;
    type Of<U: Sample> = Volume<U>;
}

impl<T: Sample> Stored for Volume<T> {
    const AXES: usize = 3;

    fn grid(&self) -> &Grid {
        &self.grid
    }

    fn from_grid(grid: Grid) -> Self {
        Self { grid: Arc::new(grid), sample: PhantomData }
    }
}
