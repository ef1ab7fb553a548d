//! Masks and classes by thresholds.

use pyo3::{
    Borrowed, Bound, FromPyObject, PyAny, PyErr, PyResult,
    exceptions::{PyTypeError, PyValueError},
    pyfunction,
    types::PyAnyMethods,
};

use super::{
    arguments::{Argument, Int, PerAxis, Real, sequence},
    array::{Array, bool_as_u8, numpy, stored},
    device::{Device, device_for},
    error::exception,
    filters::Call,
    recorder::Recorder,
};
use crate::kernels::{
    blur::MAX_RADIUS,
    filter::Filter,
    hysteresis::Hysteresis,
    local_threshold::{LocalMethod, LocalThreshold},
    otsu::Otsu,
    threshold::{Classify, Threshold},
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
    let (values, is_mask) = match value {
        Values::Method(method) if method == "otsu" => {
            return mask((image, out, device), Classify::from(Threshold::Otsu(1)));
        }
        Values::Method(method) => {
            return Err(PyValueError::new_err(format!(
                "value: unknown method {method:?}; expected otsu or numbers"
            )));
        }
        Values::One(value) => (vec![value], true),
        Values::Several(values) => (values, false),
    };
    let is_valid = (1..=255).contains(&values.len()) && values.is_sorted_by(|a, b| a < b);
    if !is_valid || values.iter().any(|value| value.is_nan()) {
        return Err(PyValueError::new_err("value: expected 1 to 255 ascending numbers"));
    }
    let is_binary = values.len() == 1;
    let filter = Classify::from(Threshold::Values(values));
    if is_mask {
        return mask((image, out, device), filter);
    }
    let image = &bool_as_u8(image)?;
    let call = Call { image, channel_axis: None, out: if is_binary { None } else { out }, device };
    let classes = call.run(|_| Ok(filter))?;
    if !is_binary || classes.is(image) {
        return Ok(classes);
    }
    let classes = numpy(classes.py())?.call_method1("not_equal", (classes, 0))?;
    stored(classes.call_method1("view", ("uint8",))?, out)
}

/// Image, output and device of a function without channels.
type Arguments<'a, 'py> =
    (&'a Bound<'py, PyAny>, Option<&'a Bound<'py, PyAny>>, Option<&'a Bound<'py, Device>>);

/// The result of `filter`, whose samples are 0 and 255, as booleans; in a chain, the recorder.
fn mask<'py, F: Filter + 'static>(
    (image, out, device): Arguments<'_, 'py>,
    filter: F,
) -> PyResult<Bound<'py, PyAny>> {
    let image = &bool_as_u8(image)?;
    if image.is_instance_of::<Recorder>() {
        return Call { image, channel_axis: None, out, device }.run(|_| Ok(filter));
    }
    let classes = Call { image, channel_axis: None, out: None, device }.run(|_| Ok(filter))?;
    stored(numpy(classes.py())?.call_method1("not_equal", (classes, 0))?, out)
}

/// Local (adaptive) threshold: compares each sample with a threshold that is computed from the samples around it.
///
/// Parameters
/// ----------
/// image : array_like
///     Image or volume of 1 to 3 axes.
/// block_size : int or sequence of int, default 3
///     Width of the window in samples, an odd number, for all axes or for each axis.
/// method : {"gaussian", "mean", "sauvola"}, default "gaussian"
///     The threshold. "gaussian": mean weighted by a Gaussian of standard deviation (block_size - 1) / 6. "mean": mean of the
///     window. "sauvola": m (1 + k (s / r - 1)), with the mean m and the standard deviation s of the window.
/// offset : float, default 0.0
///     Number that is subtracted from the mean. Sauvola's threshold has none.
/// k : float, default 0.2
///     Sauvola's parameter.
/// r : float, optional
///     Range of Sauvola's standard deviation; by default half of the range of integers, and 1 for floats.
/// out : ndarray, optional
///     Array for the result, with its shape and type.
/// device : Device, optional
///     The device; by default that of `set_device`.
///
/// Returns
/// -------
/// ndarray of bool
///     `image > threshold`, with the thresholds of scikit-image's `threshold_local` and `threshold_sauvola`.
///
/// Examples
/// --------
/// >>> import numpy as np, gpuproc as gp
/// >>> gp.local_threshold(np.array([1, 1, 4, 1, 1, 30, 30, 40, 30], np.uint8), 3, "mean")
/// array([False, False,  True, False, False,  True, False,  True, False])
#[pyfunction]
#[pyo3(signature = (image, block_size=PerAxis::One(3), method="gaussian", offset=Real(Ok(0.0)), *, k=Real(Ok(0.2)), r=None, out=None, device=None))]
#[pyo3(
    text_signature = "(image, block_size=3, method='gaussian', offset=0.0, *, k=0.2, r=None, out=None, device=None)"
)]
#[expect(clippy::too_many_arguments, reason = "one for each argument in Python")]
pub(super) fn local_threshold<'py>(
    image: &Bound<'py, PyAny>,
    block_size: PerAxis<i64>,
    method: &str,
    offset: Real,
    k: Real,
    r: Option<Real>,
    out: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, Device>>,
) -> PyResult<Bound<'py, PyAny>> {
    let method = match method {
        "gaussian" => LocalMethod::Gaussian,
        "mean" => LocalMethod::Mean,
        "sauvola" => LocalMethod::Sauvola,
        _ => {
            return Err(PyValueError::new_err(format!(
                "method: unknown method {method:?}; expected gaussian, mean or sauvola"
            )));
        }
    };
    let offset = offset.number("offset").map_err(exception)?;
    let k = k.number("k").map_err(exception)?;
    let r = r.map(|r| r.number("r")).transpose().map_err(exception)?;
    if !(offset.is_finite() && k.is_finite() && r.is_none_or(|r| r.is_finite() && r > 0.0)) {
        return Err(PyValueError::new_err("expected a finite offset and k, and r above 0"));
    }
    let image = &bool_as_u8(image)?;
    let axes = match image.cast::<Recorder>() {
        Ok(recorder) => recorder.get().axes,
        Err(_) => Array::new(image, None)?.layout.axes,
    };
    let sizes = block_size.counts("block_size", axes, 1).map_err(exception)?;
    if let Some(size) = sizes.iter().find(|&&size| size % 2 == 0 || size > 2 * MAX_RADIUS + 1) {
        return Err(PyValueError::new_err(format!(
            "block_size is {size}, expected an odd number from 1 to {}",
            2 * MAX_RADIUS + 1
        )));
    }
    let radius = sizes.map(|size| size / 2);
    let sigma = radius.map(|radius| radius as f64 / 3.0);
    mask((image, out, device), LocalThreshold { method, radius, sigma, offset, k, range: r })
}

/// Hysteresis threshold: samples above a low threshold that are connected to a sample above a high threshold.
///
/// Parameters
/// ----------
/// image : array_like
///     Image or volume of 1 to 3 axes.
/// low, high : float
///     The thresholds.
/// out : ndarray, optional
///     Array for the result, with its shape and type.
/// device : Device, optional
///     The device; by default that of `set_device`.
///
/// Returns
/// -------
/// ndarray of bool
///     True for samples above `low` that are connected to a sample above `high`. As in scikit-image, pixels are connected
///     if they share an edge, voxels if they share a face.
///
/// Examples
/// --------
/// >>> import numpy as np, gpuproc as gp
/// >>> gp.apply_hysteresis_threshold(np.array([2, 2, 9, 0, 2], np.uint8), 1, 5)
/// array([ True,  True,  True, False, False])
#[pyfunction]
#[pyo3(signature = (image, low, high, *, out=None, device=None))]
pub(super) fn apply_hysteresis_threshold<'py>(
    image: &Bound<'py, PyAny>,
    low: Real,
    high: Real,
    out: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, Device>>,
) -> PyResult<Bound<'py, PyAny>> {
    let low = low.number("low").map_err(exception)?;
    let high = high.number("high").map_err(exception)?;
    if low.is_nan() || high.is_nan() || low > high {
        return Err(PyValueError::new_err(format!("low is {low}, expected at most high ({high})")));
    }
    mask((image, out, device), Hysteresis::new([low, high]))
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
    let classes = classes.count("classes").map_err(exception)?;
    if !(2..=16).contains(&classes) {
        return Err(PyValueError::new_err(format!("classes is {classes}, expected 2 to 16")));
    }
    let array = Array::new(image, None)?;
    device_for(array.py(), None, 0)?;
    let thresholds = array.with_pixels(|pixels| {
        let mut otsu = Otsu::new(pixels.samples.dtype());
        if otsu.needs_range() {
            otsu.widen_range(&pixels.samples);
        }
        otsu.count(&pixels.samples, 1);
        Ok(otsu.thresholds(classes - 1))
    })?;
    thresholds.ok_or_else(|| {
        PyValueError::new_err(format!("too few different samples for {} thresholds", classes - 1))
    })
}
