//! Histograms and statistics.

use numpy::{PyArray1, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::{
    Bound, PyAny, PyResult,
    exceptions::PyValueError,
    prelude::PyDictMethods,
    pyfunction,
    types::{PyAnyMethods, PyDict},
};

use super::{
    arguments::{Int, PerAxis},
    array::{Array, as_array, axis_index, check_copy, numpy, vector_to_array},
    device::{Device, device_for},
    error::exception,
};
use crate::{
    device,
    kernels::{
        histogram::{
            Bins, Component, Counts, Histogram, Pixels, Statistics, count_values, type_range,
        },
        otsu::extremes,
    },
    util::error::{Result, check_range},
};

/// `value` as one row of samples. Integers of 64 bits and small arrays of 16 bits become f64.
fn row<'py>(value: &Bound<'py, PyAny>) -> PyResult<Array<'py>> {
    /// Maximum number of samples of 16 bits that take less time than their 65,536 levels.
    const FEW: usize = 1 << 13;
    let array = as_array(value)?;
    check_copy(&array)?;
    let mut array = array.call_method1("reshape", (-1,))?;
    let dtype = array.cast::<PyUntypedArray>()?.dtype();
    let is_small = dtype.itemsize() == 2 && array.len()? <= FEW;
    if matches!(dtype.kind(), b'i' | b'u') && (dtype.itemsize() == 8 || is_small) {
        array = array.call_method1("astype", ("float64",))?;
    }
    Array::new(&array, None)
}

/// Counts `pixels` in one pass if their type has at most 16 bits, whose levels are then counted, else in the range of the
/// data.
fn count(
    device: &device::Device,
    pixels: &Pixels,
    bins: usize,
    range: Option<(f64, f64)>,
) -> Result<(Counts, Bins)> {
    let dtype = pixels.samples.dtype();
    let run = |bins| -> Result<Counts> {
        let components = vec![Component::Channel(0)];
        let kernel = Histogram { components, bins, weighted: false };
        Ok(device.run(&kernel, pixels)?.swap_remove(0))
    };
    let levels = match (range, type_range(dtype).filter(|_| dtype.size() <= 2)) {
        (None, Some((low, high))) => Some(run(Bins::new(1, low, high, dtype)?)?),
        _ => None,
    };
    let data_range = || match &levels {
        Some(counts) => counts.level_range(dtype),
        None => Some(extremes(&pixels.samples)).filter(|[low, high]| low <= high),
    };
    let (low, high) = range.or_else(|| data_range().map(Into::into)).unwrap_or((0.0, 1.0));
    let bins = Bins::new(bins, low, high, dtype)?;
    Ok((
        levels.and_then(|levels| levels.in_bins(dtype, &bins)).map_or_else(|| run(bins), Ok)?,
        bins,
    ))
}

/// Histogram of all samples of an array.
///
/// Parameters
/// ----------
/// image : array_like
///     Array of any shape. Integers of 64 bits are counted as float64.
/// bins : int, default 10
///     Number of bins of equal width, 1 to 65536.
/// range : tuple of float, optional
///     The lower edge of the first bin and the upper edge of the last one; by default the range of the data. Other samples
///     and NaN are not counted.
/// channel_axis : int, optional
///     The axis of channels, each of which is counted by itself, in the same bins.
/// device : Device, optional
///     The device; by default that of `set_device`.
///
/// Returns
/// -------
/// counts : ndarray of int64
///     Number of samples in each bin. The last bin includes its upper edge. With `channel_axis`, a row for each channel.
/// edges : ndarray of float64
///     The edges of the bins.
///
/// Examples
/// --------
/// >>> import numpy as np, gpuproc as gp
/// >>> counts, edges = gp.histogram(np.array([0, 1, 1, 3], np.uint8), 3)
/// >>> counts, edges
/// (array([1, 2, 1]), array([0., 1., 2., 3.]))
#[pyfunction]
#[pyo3(signature = (image, bins=Int(Ok(10)), range=None, *, channel_axis=None, device=None))]
#[pyo3(text_signature = "(image, bins=10, range=None, *, channel_axis=None, device=None)")]
pub(super) fn histogram<'py>(
    image: &Bound<'py, PyAny>,
    bins: Int,
    range: Option<PerAxis<f64>>,
    channel_axis: Option<Int>,
    device: Option<&Bound<'py, Device>>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let bins = bins.count("bins").map_err(exception)?;
    let range = match range {
        None => None,
        Some(range) => match range.list("range").map_err(exception)?[..] {
            [low, high] => Some((low, high)),
            _ => return Err(PyValueError::new_err("range: expected two numbers")),
        },
    };
    let array = row(image)?;
    let py = array.py();
    let device = device_for(py, device, array.bytes())?;
    let (all, bins) = array.with_pixels(|pixels| count(&device, pixels, bins, range))?;
    let (mut counts, mut shape) = (all.bins, vec![bins.count]);
    if let Some(axis) = channel_axis {
        let image = as_array(image)?;
        let axis = axis_index("channel_axis", axis, image.ndim())?;
        let channels = numpy(py)?.call_method1("moveaxis", (image, axis, 0))?;
        shape.insert(0, channels.len()?);
        counts.clear();
        for channel in channels.try_iter()? {
            let range = Some((bins.low, bins.high));
            let one = |pixels: &Pixels| count(&device, pixels, bins.count, range);
            counts.extend(row(&channel?)?.with_pixels(one)?.0.bins);
        }
    }
    let counts = counts.into_iter().map(|count| count as i64).collect();
    let edges = (0..=bins.count).map(|at| bins.edge(at)).collect();
    Ok((vector_to_array(py, counts, &shape)?, PyArray1::from_vec(py, edges).into_any()))
}

/// Statistics of all samples of an array.
///
/// Parameters
/// ----------
/// image : array_like
///     Array of any shape. Integers of 64 bits are read as float64.
/// percentiles : sequence of float, default ()
///     Percentages, 0 to 100.
/// device : Device, optional
///     The device; by default that of `set_device`.
///
/// Returns
/// -------
/// dict
///     `count`, `min`, `max`, `mean`, `std`, `median`, `mode`, `entropy` (in bits), and `percentiles`, a dict of the
///     percentile of each percentage (nearest-rank method, NumPy's "inverted_cdf"). Infinite samples and NaN are left
///     out. Sums are exact before they are rounded once.
///
/// Raises
/// ------
/// ValueError
///     If no sample is finite.
///
/// Examples
/// --------
/// >>> import numpy as np, gpuproc as gp
/// >>> found = gp.statistics(np.array([1, 2, 2, 7], np.uint8), percentiles=[75])
/// >>> found["mean"], found["median"], found["percentiles"]
/// (3.0, 2.0, {75.0: 2.0})
#[pyfunction]
#[pyo3(signature = (image, *, percentiles=PerAxis::Each(Vec::new()), device=None))]
#[pyo3(text_signature = "(image, *, percentiles=(), device=None)")]
pub(super) fn statistics<'py>(
    image: &Bound<'py, PyAny>,
    percentiles: PerAxis<f64>,
    device: Option<&Bound<'py, Device>>,
) -> PyResult<Bound<'py, PyDict>> {
    let percentiles = percentiles.list("percentiles").map_err(exception)?;
    let check = |&own: &f64| check_range("percentiles", own, 0.0..=100.0);
    percentiles.iter().try_for_each(check).map_err(exception)?;
    let array = row(image)?;
    let py = array.py();
    let device = device_for(py, device, array.bytes())?;
    let found = array.with_pixels(|pixels| measure(&device, pixels, &percentiles))?;
    let found = found.ok_or_else(|| PyValueError::new_err("the array has no finite samples"))?;
    let statistics = PyDict::new(py);
    statistics.set_item("count", found.count as u64)?;
    for (name, value) in [
        ("min", found.min),
        ("max", found.max),
        ("mean", found.mean),
        ("std", found.deviation),
        ("median", found.median),
        ("mode", found.mode),
        ("entropy", found.entropy),
    ] {
        statistics.set_item(name, value)?;
    }
    let values = PyDict::new(py);
    found.percentiles.iter().try_for_each(|(p, value)| values.set_item(p, value))?;
    statistics.set_item("percentiles", values)?;
    Ok(statistics)
}

fn measure(
    device: &device::Device,
    pixels: &Pixels,
    percentiles: &[f64],
) -> Result<Option<Statistics>> {
    let dtype = pixels.samples.dtype();
    if let Some((low, high)) = type_range(dtype).filter(|_| dtype.size() <= 2) {
        let (counts, bins) = count(device, pixels, 1, Some((low, high)))?;
        return Ok(Statistics::new(&counts, &bins, dtype, None, false, percentiles));
    }
    let [low, high] = extremes(&pixels.samples);
    if low > high {
        return Ok(None);
    }
    let bins = Bins::new(1, low, high, dtype)?;
    let counts = Counts { bins: vec![pixels.len() as u64], ..Counts::default() };
    let values = count_values(pixels, Component::Channel(0), [low, high], false);
    Ok(Statistics::new(&counts, &bins, dtype, Some(values), false, percentiles))
}
