//! Masks and classes by thresholds.

use pyo3::{
    Borrowed, Bound, FromPyObject, PyAny, PyErr, PyResult,
    exceptions::{PyTypeError, PyValueError},
    pyfunction,
    types::PyAnyMethods,
};

use super::{
    arguments::{Argument, Int, sequence},
    array::{Array, stored},
    device::{Device, device_for},
    error::exception,
    filters::Call,
    recorder::Recorder,
};
use crate::{
    api::{Threshold, operation::Operation},
    kernels::otsu::Otsu,
    util::error::check_range,
};

/// One threshold, several, or the name of a method.
pub(super) enum Values {
    Method(String),
    One(f64),
    Several(Vec<f64>),
}

impl<'py> FromPyObject<'_, 'py> for Values {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(method) = value.extract::<String>() {
            return Ok(Self::Method(method));
        }
        if let Ok(one) = f64::read(&value) {
            return Ok(Self::One(one));
        }
        sequence(&value).map(Self::Several).ok_or_else(|| {
            let text = "value: expected a number, a sequence of numbers, or \"otsu\"";
            PyTypeError::new_err(text)
        })
    }
}

/// Samples above a threshold, or the class of each sample among several thresholds.
///
/// Parameters
/// ----------
/// image : array_like
///     Image or volume of 1 to 3 axes.
/// value : float, sequence of float or "otsu"
///     One threshold, 1 to 255 ascending thresholds, or that of `threshold_otsu`.
/// out : ndarray, optional
///     Array for the result, with its shape and type.
/// device : Device, optional
///     The device; by default that of `set_device`.
///
/// Returns
/// -------
/// ndarray of bool or uint8
///     With one threshold, `image > value`. With a sequence, the number of thresholds that a sample exceeds.
///
/// Examples
/// --------
/// >>> import numpy as np, gpuproc as gp
/// >>> gp.threshold(np.array([1, 5, 9], np.uint8), 5)
/// array([False, False,  True])
/// >>> gp.threshold(np.array([1, 5, 9], np.uint8), [1, 8])
/// array([0, 1, 2], dtype=uint8)
#[pyfunction]
#[pyo3(signature = (image, value, *, out=None, device=None))]
pub(super) fn threshold<'py>(
    image: &Bound<'py, PyAny>,
    value: Values,
    out: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, Device>>,
) -> PyResult<Bound<'py, PyAny>> {
    let call = Call { image, channel_axis: None, out, device };
    let (values, is_mask) = match value {
        Values::Method(method) if method == "otsu" => {
            return call.run_classes(|axes| Threshold::otsu(2).kernel(axes));
        }
        Values::Method(method) => {
            return Err(PyValueError::new_err(format!(
                "value: unknown method {method:?}; expected otsu or numbers"
            )));
        }
        Values::One(value) => (vec![value], true),
        Values::Several(values) => (values, false),
    };
    let is_binary = values.len() == 1;
    let make = |axes| Threshold::classes(&values).kernel(axes);
    if is_mask || !is_binary || image.is_instance_of::<Recorder>() {
        return call.run_classes(make);
    }
    let mask = Call { out: None, ..call }.run_classes(make)?;
    stored(mask.call_method1("view", ("uint8",))?, out)
}

/// Thresholds between classes by Otsu's method: those with the largest variance between the means of the classes.
///
/// Parameters
/// ----------
/// image : array_like
///     Array of 1 to 3 axes.
/// classes : int, default 2
///     Number of classes, 2 to 16.
///
/// Returns
/// -------
/// list of float
///     The `classes - 1` thresholds, midway between neighbouring samples of different classes.
///
/// Raises
/// ------
/// ValueError
///     If the array has fewer different samples than classes.
///
/// Examples
/// --------
/// >>> import numpy as np, gpuproc as gp
/// >>> gp.threshold_otsu(np.array([1, 2, 9, 9], np.uint8))
/// [5.5]
#[pyfunction]
#[pyo3(signature = (image, classes=Int(Ok(2))), text_signature = "(image, classes=2)")]
pub(super) fn threshold_otsu(image: &Bound<'_, PyAny>, classes: Int) -> PyResult<Vec<f64>> {
    let classes = classes.number("classes").map_err(exception)?;
    check_range("classes", classes as f64, 2.0..=16.0).map_err(exception)?;
    let count = classes as usize - 1;
    let array = Array::new(image, None)?;
    device_for(array.py(), None, 0)?;
    let thresholds = array.with_pixels(|pixels| {
        let mut otsu = Otsu::new(pixels.samples.dtype());
        if otsu.needs_range() {
            otsu.widen_range(&pixels.samples);
        }
        otsu.count(&pixels.samples, 1);
        Ok(otsu.thresholds(count))
    })?;
    thresholds.ok_or_else(|| {
        PyValueError::new_err(format!("too few different samples for {count} thresholds"))
    })
}
