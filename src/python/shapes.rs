//! Sizes and projections of arrays.

use numpy::PyUntypedArrayMethods;
use pyo3::{Bound, PyAny, PyResult, exceptions::PyValueError, pyfunction, types::PyAnyMethods};

use super::{
    arguments::{Int, PerAxis},
    array::{as_array, axis_index, stored},
    device::Device,
    error::exception,
    filters::Call,
    operations::choice_of,
};
use crate::{
    kernels::{
        project::Projection,
        resize::{Resize, Size},
    },
    util::error::Error,
};

/// Image or volume of another size.
///
/// Parameters
/// ----------
/// image : array_like
///     Image or volume of 1 to 3 axes, and one more with `channel_axis`.
/// output_shape : int or sequence of int
///     Size along each axis, without that of channels.
/// interpolation : {"lanczos3", "nearest", "area", "linear", "cubic"}, default "lanczos3"
///     How samples are weighed. Smaller results are averaged over all samples that they cover (antialiasing).
/// linear_light : bool, default False
///     Whether uint8 and uint16 are taken as sRGB and averaged in linear light.
/// channel_axis : int, optional
///     The axis of channels.
/// out : ndarray, optional
///     Array for the result, with its shape and type.
/// device : Device, optional
///     The device; by default that of `set_device`.
///
/// Returns
/// -------
/// ndarray
///     Array of the type of `image`. The corners of both images coincide.
///
/// Examples
/// --------
/// >>> import numpy as np, gpuproc as gp
/// >>> gp.resize(np.array([[0, 2, 4, 6]], np.float32), (1, 2), interpolation="area")
/// array([[1., 5.]], dtype=float32)
#[pyfunction]
#[pyo3(signature = (image, output_shape, *, interpolation="lanczos3", linear_light=false, channel_axis=None, out=None, device=None))]
pub(super) fn resize<'py>(
    image: &Bound<'py, PyAny>,
    output_shape: PerAxis<i64>,
    interpolation: &str,
    linear_light: bool,
    channel_axis: Option<Int>,
    out: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, Device>>,
) -> PyResult<Bound<'py, PyAny>> {
    Call { image, channel_axis, out, device }.run(|axes| {
        let sizes = output_shape.counts("output_shape", axes, 1)?;
        if sizes.contains(&0) {
            return Err(Error::usage("output_shape: expected sizes above 0"));
        }
        let filter = choice_of("interpolation", interpolation)?;
        let (size, axes) = (Size::Exact(sizes.map(Some)), axes.max(2));
        Ok(Resize { size, axes, filter, linear: linear_light, shrink_on_load: false })
    })
}

/// Projection of an image or volume along an axis.
///
/// Parameters
/// ----------
/// image : array_like
///     Image or volume of 1 to 3 axes, and one more with `channel_axis`.
/// axis : int, default 0
///     The axis that is removed.
/// method : {"max", "min", "mean", "sum", "std"}, default "max"
///     The value that stands for the samples along the axis.
/// channel_axis : int, optional
///     The axis of channels.
/// out : ndarray, optional
///     Array for the result, with its shape and type.
/// device : Device, optional
///     The device; by default that of `set_device`.
///
/// Returns
/// -------
/// ndarray
///     Minimum and maximum have the type of `image`, mean and standard deviation are float32, and sums are float64.
///
/// Examples
/// --------
/// >>> import numpy as np, gpuproc as gp
/// >>> gp.project(np.array([[1, 5], [4, 2]], np.uint8), axis=0)
/// array([4, 5], dtype=uint8)
#[pyfunction]
#[pyo3(signature = (image, axis=Int(Ok(0)), *, method="max", channel_axis=None, out=None, device=None))]
#[pyo3(
    text_signature = "(image, axis=0, *, method='max', channel_axis=None, out=None, device=None)"
)]
pub(super) fn project<'py>(
    image: &Bound<'py, PyAny>,
    axis: Int,
    method: &str,
    channel_axis: Option<Int>,
    out: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, Device>>,
) -> PyResult<Bound<'py, PyAny>> {
    let method = choice_of("method", method).map_err(exception)?;
    let array = as_array(image)?;
    let axes = array.ndim();
    let axis = axis_index("axis", axis, axes)?;
    let channels = channel_axis.map(|channels| axis_index("channel_axis", channels, axes));
    let channels = channels.transpose()?;
    if channels == Some(axis) {
        return Err(PyValueError::new_err("axis: the axis of channels cannot be projected"));
    }
    if array.shape()[axis] == 0 {
        return Err(PyValueError::new_err(format!("axis: there are no samples along axis {axis}")));
    }
    // Position among the axes of the grid, from its last axis, x.
    let own = axis - usize::from(channels.is_some_and(|channels| channels < axis));
    let image = &array.into_any();
    let flat = Call { image, channel_axis, out: None, device }
        .run(|axes| Ok(Projection { method, axis: axes - 1 - own }))?;
    stored(flat.call_method1("squeeze", (axis,))?, out)
}
