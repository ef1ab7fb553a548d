//! The placeholder of an image in a chain.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use pyo3::pyclass;

use crate::kernels::filter::Filter;

/// The argument of the steps of a chain, in place of an image. The functions that a step calls add their filters to it.
#[pyclass(frozen, module = "gpuproc")]
pub(super) struct Recorder {
    /// Number of axes of the image.
    pub axes: usize,
    filters: Mutex<Vec<Arc<dyn Filter>>>,
}

impl Recorder {
    /// A recorder of filters for an image with `axes` axes.
    pub fn new(axes: usize) -> Self {
        Self { axes, filters: Mutex::default() }
    }

    /// Adds a filter.
    pub fn add(&self, filter: Arc<dyn Filter>) {
        self.filters.lock().unwrap_or_else(PoisonError::into_inner).push(filter);
    }

    /// Takes all filters.
    pub fn take(&self) -> Vec<Arc<dyn Filter>> {
        mem::take(&mut *self.filters.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
