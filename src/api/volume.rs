//! Volumes in memory.

use std::{marker::PhantomData, sync::Arc};

use super::{
    raster::{Raster, gathered, sealed::Stored},
    sample::Sample,
};
use crate::{
    data::grid::Grid,
    util::error::{Error, Result},
};

/// A volume in memory, with one sample for each voxel.
///
/// ```
/// let volume = gpuproc::Volume::new([2, 1, 1], vec![-3i16, 4])?;
/// assert_eq!((volume.dims(), volume.samples()), ([2, 1, 1], &[-3, 4][..]));
/// # Ok::<(), gpuproc::Error>(())
/// ```
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

    /// Copies a volume from `samples` in another memory layout. `strides` are the distances, in samples, between neighbours
    /// along x, y and z, as for [`Image::from_strided`](crate::Image::from_strided).
    ///
    /// ```
    /// use gpuproc::Volume;
    ///
    /// # fn main() -> gpuproc::Result<()> {
    /// // z fastest.
    /// let volume = Volume::from_strided([2, 1, 2], &[0.0f32, 1.0, 10.0, 11.0], [2, 0, 1])?;
    /// assert_eq!(volume.samples(), [0.0, 10.0, 1.0, 11.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Image::from_strided`](crate::Image::from_strided).
    pub fn from_strided(dims: [usize; 3], samples: &[T], strides: [isize; 3]) -> Result<Self> {
        Self::new(dims, gathered(samples, dims, strides)?)
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
