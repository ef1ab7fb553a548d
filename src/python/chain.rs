//! Filters that run one after another.

use pyo3::{Bound, PyAny, PyResult, exceptions::PyValueError, pyfunction, types::PyAnyMethods};

use super::{
    arguments::Int,
    array::{Array, bool_as_u8},
    device::Device,
    filters::Call,
    recorder::Recorder,
};
use crate::kernels::chain::Chain;

/// Filters one after another, without intermediate arrays.
///
/// Parameters
/// ----------
/// image : array_like
///     Image or volume of 1 to 3 axes, and one more with `channel_axis`. Booleans are read as uint8.
/// *steps : callable
///     Functions of an image that call one filter of gpuproc or several and return the result of the last, such as
///     ``functools.partial(gp.gaussian, sigma=2)`` or ``lambda image: gp.erosion(image, 3)``. They are called with a
///     placeholder of the image. Each filter from an array to an array can be a step, except `project`.
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
///     The result of the last step. Masks are uint8 with the samples 0 and 255.
///
/// Examples
/// --------
/// >>> import numpy as np, gpuproc as gp
/// >>> from functools import partial
/// >>> image = np.array([1, 1, 9, 1, 1, 9, 9, 9], np.uint8)
/// >>> gp.chain(image, gp.median, partial(gp.threshold, value=5))
/// array([  0,   0,   0,   0,   0, 255, 255, 255], dtype=uint8)
#[pyfunction]
#[pyo3(signature = (image, *steps, channel_axis=None, out=None, device=None))]
pub(super) fn chain<'py>(
    image: &Bound<'py, PyAny>,
    steps: Vec<Bound<'py, PyAny>>,
    channel_axis: Option<Int>,
    out: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, Device>>,
) -> PyResult<Bound<'py, PyAny>> {
    let image = &bool_as_u8(image)?;
    let axes = Array::new(image, channel_axis)?.layout.axes;
    let recorder = Bound::new(image.py(), Recorder::new(axes))?;
    for step in steps {
        if !step.call1((&recorder,))?.is(&recorder) {
            return Err(PyValueError::new_err(format!(
                "chain: expected a function that returns the result of a filter, found {step}"
            )));
        }
    }
    let steps = recorder.get().take();
    Call { image, channel_axis, out, device }.run(|_| Ok(Chain { steps, before: None }))
}
