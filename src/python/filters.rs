//! The call of a filter from an array to an array.

use std::sync::Arc;

use numpy::PyUntypedArrayMethods;
use pyo3::{Bound, PyAny, PyResult, exceptions::PyValueError, types::PyAnyMethods};

use super::{
    arguments::Int,
    array::{Array, Borrowed, as_array, axis_index, bool_as_u8, checked_result, numpy, stored},
    device::{Device, device_for},
    error::exception,
    recorder::Recorder,
};
use crate::{
    data::{
        description::{Description, Kind},
        dtype::Dtype,
        grid::{Grid, GridType, Shape},
        samples::Samples,
    },
    kernels::{chain, filter::Filter},
    util::error::Result,
};

/// The arguments of every filter.
pub(super) struct Call<'a, 'py> {
    pub image: &'a Bound<'py, PyAny>,
    pub channel_axis: Option<Int>,
    pub out: Option<&'a Bound<'py, PyAny>>,
    pub device: Option<&'a Bound<'py, Device>>,
}

impl<'py> Call<'_, 'py> {
    /// Runs the filter that `make` makes for an array with a number of axes. In a chain, records it.
    pub fn run<F: Into<Box<dyn Filter>>>(
        &self,
        make: impl FnOnce(usize) -> Result<F>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(recorder) = self.image.cast::<Recorder>() {
            if self.channel_axis.is_some() || self.out.is_some() || self.device.is_some() {
                return Err(PyValueError::new_err(
                    "chain: channel_axis, out and device are arguments of the chain, not of its steps",
                ));
            }
            let recorder = recorder.get();
            recorder.add(Arc::from(make(recorder.axes).map_err(exception)?.into()));
            return Ok(self.image.clone());
        }
        let array = Array::new(self.image, self.channel_axis)?;
        let filter: Box<dyn Filter> = make(array.layout.axes).map_err(exception)?.into();
        let device = device_for(array.py(), self.device, array.bytes())?;
        let (results, shape) = array.with_grids(|grids| {
            let description = Description::from(grids[0].grid_type());
            let output = filter.describe(description)?.grid;
            checked_result(grids[0].grid_type(), output, grids.len())?;
            let shape = output.shape;
            if shape.samples() == 0 {
                let empty = |_| Samples::zeros(output.dtype, 0);
                return Ok((grids.iter().map(empty).collect::<Result<Vec<_>>>()?, shape));
            }
            let run = |grid: &Borrowed<'_, Grid>| {
                chain::apply(&*filter, &device, grid).map(|result| result.samples)
            };
            Ok((grids.iter().map(run).collect::<Result<Vec<_>>>()?, shape))
        })?;
        stored(array.result(results, shape.dims, shape.channels)?, self.out)
    }

    /// Like [`Call::run`], but removes the axis `axis` of the array. `make` gets the number of axes, and the position of the
    /// axis from x.
    pub fn run_along<F: Into<Box<dyn Filter>>>(
        &self,
        name: &str,
        axis: Int,
        make: impl FnOnce(usize, usize) -> Result<F>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = as_array(self.image)?;
        let axes = array.ndim();
        let axis = axis_index(name, axis, axes)?;
        let channels = self.channel_axis.map(|own| axis_index("channel_axis", own, axes));
        let channels = channels.transpose()?;
        if channels == Some(axis) {
            return Err(PyValueError::new_err("axis: the axis of channels cannot be projected"));
        }
        if array.shape()[axis] == 0 {
            let text = format!("axis: there are no samples along axis {axis}");
            return Err(PyValueError::new_err(text));
        }
        let own = axis - usize::from(channels.is_some_and(|channels| channels < axis));
        let image = &array.into_any();
        let flat = Call { image, out: None, ..*self }.run(|axes| make(axes, axes - 1 - own))?;
        stored(flat.call_method1("squeeze", (axis,))?, self.out)
    }

    /// Like [`Call::run`], but booleans are read as 0 and 1, and masks become booleans, except in a chain.
    pub fn run_classes<F: Into<Box<dyn Filter>>>(
        &self,
        make: impl FnOnce(usize) -> Result<F>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (image, mut is_mask) = (&bool_as_u8(self.image)?, false);
        if image.is_instance_of::<Recorder>() {
            return self.run(make);
        }
        let result = Call { image, out: None, ..*self }.run(|axes| {
            let filter: Box<dyn Filter> = make(axes)?.into();
            let any = GridType { shape: Shape { dims: [1; 3], channels: 1 }, dtype: Dtype::U8 };
            is_mask = filter.describe(any.into())?.kind == Kind::Mask;
            Ok(filter)
        })?;
        let py = result.py();
        stored(
            if is_mask { numpy(py)?.call_method1("not_equal", (result, 0))? } else { result },
            self.out,
        )
    }
}
