//! Volumes in memory.

use std::{marker::PhantomData, sync::Arc};

use super::sample::Sample;
use crate::{
    data::volume,
    util::error::{Error, Result},
};

/// A volume in memory, with one sample for each voxel.
#[derive(Clone, Debug, PartialEq)]
pub struct Volume<T> {
    volume: Arc<volume::Volume>,
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
        let volume = volume::Volume { dims, samples: T::store(samples) };
        Ok(Self::from_inner(volume))
    }

    /// Samples along x, y and z.
    pub fn dims(&self) -> [usize; 3] {
        self.volume.dims
    }

    /// All samples, x fastest.
    pub fn samples(&self) -> &[T] {
        T::read(&self.volume.samples)
    }

    /// Converts the volume into its samples, x fastest, without a copy unless the volume has been cloned.
    pub fn into_samples(self) -> Vec<T> {
        T::take(Arc::unwrap_or_clone(self.volume).samples)
    }

    pub(super) fn from_inner(volume: volume::Volume) -> Self {
        Self { volume: Arc::new(volume), sample: PhantomData }
    }

    pub(super) fn inner(&self) -> &Arc<volume::Volume> {
        &self.volume
    }
}
