//! Files of images and volumes.

use std::path::PathBuf;

use numpy::{PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::{
    Borrowed, Bound, FromPyObject, IntoPyObjectExt, Py, PyAny, PyErr, PyResult, Python,
    exceptions::{PyTypeError, PyValueError},
    prelude::PyDictMethods,
    pyfunction,
    types::{PyAnyMethods, PyDict},
};

use super::{
    arguments::{Argument, Int, PerAxis},
    array::{Array, as_array, axis_index, detached, to_array, vector_to_array},
    device::prepare,
    error::exception,
};
use crate::{
    api::{Content, ReadOptions, WriteOptions, writes_volume},
    cli::{free_memory, parse_size},
    io::{Sink, volume::Layout},
};

/// Reads an image or a volume from a file of any format that the program reads.
///
/// Parameters
/// ----------
/// path : str or path-like
///     The file, a folder of slices, or an OME-Zarr.
/// page : int, optional
///     Page of an image file, counted from 0. By default the first page, but a volume if the pages of a TIFF are said to be
///     slices.
/// stack : bool, default False
///     Whether the pages of any TIFF, or the images of a folder, are one volume.
/// volume, channel, time : int, optional
///     Which one of several in a file, counted from 0.
/// level : int, optional
///     Level of resolution of an OME-Zarr; 0 is the finest.
/// return_info : bool, default False
///     Whether to return a dict as well.
/// max_memory : int or str, optional
///     Files whose bytes or samples take more than this number of bytes are refused (MemoryError), such as 500_000_000 or
///     "2G"; by default half of the memory that is available, as in the program.
///
/// Returns
/// -------
/// image : ndarray
///     Axes y, x and, unless there is one channel, channels; those of a volume are z, y, x.
/// info : dict
///     Only with `return_info`: `spacing`, distances of samples in the order of the array; `affine`, the 4 x 4 matrix from
///     the position (x, y, z, 1) of a sample to the world, as in nibabel; `unit` of both; and `space`, "RAS" if the
///     directions of the world are known. What the file does not state is None.
///
/// Examples
/// --------
/// >>> import numpy as np, gpuproc as gp, os, tempfile
/// >>> path = os.path.join(tempfile.mkdtemp(), "volume.nii.gz")
/// >>> gp.imwrite(path, np.zeros((2, 3, 4), np.int16), spacing=(3.0, 1.0, 1.0))
/// >>> volume, info = gp.imread(path, return_info=True)
/// >>> volume.shape, volume.dtype, info["spacing"]
/// ((2, 3, 4), dtype('int16'), (3.0, 1.0, 1.0))
#[pyfunction]
#[pyo3(signature = (path, *, page=None, stack=false, volume=None, channel=None, time=None, level=None, return_info=false, max_memory=None))]
#[expect(clippy::too_many_arguments, reason = "one for each argument in Python")]
pub(super) fn imread(
    py: Python<'_>,
    path: PathBuf,
    page: Option<Int>,
    stack: bool,
    volume: Option<Int>,
    channel: Option<Int>,
    time: Option<Int>,
    level: Option<Int>,
    return_info: bool,
    max_memory: Option<Bytes>,
) -> PyResult<Py<PyAny>> {
    prepare()?;
    let count = |name: &str, value: Option<Int>| {
        value.map(|value| value.count(name)).transpose().map_err(exception)
    };
    let page = count("page", page)?;
    let (volume, channel) = (count("volume", volume)?, count("channel", channel)?);
    let (time, level) = (count("time", time)?, count("level", level)?);
    let max_bytes = Some(max_memory.map_or_else(free_memory, |Bytes(bytes)| bytes));
    let layout = Layout { stack, volume, channel, time, level, ..Layout::default() };
    let options = ReadOptions { layout, page, max_bytes };
    let content = detached(py, usize::MAX, || options.read(path))?;
    let info = return_info.then(|| describe(py, &content)).transpose()?;
    let [x, y, z] = content.dims();
    let shape = match (content.is_volume(), content.channels()) {
        (true, _) => vec![z, y, x],
        (false, 1) => vec![y, x],
        (false, channels) => vec![y, x, channels],
    };
    let image = to_array(py, content.grid.samples, &shape)?;
    match info {
        Some(info) => (image, info).into_py_any(py),
        None => Ok(image.unbind()),
    }
}

/// A number of bytes, or a text such as "2G".
pub(super) struct Bytes(u64);

impl<'py> FromPyObject<'_, 'py> for Bytes {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = value.extract::<String>() {
            let wrong = |error| PyValueError::new_err(format!("max_memory: {error}"));
            return parse_size(&text).map(Self).map_err(wrong);
        }
        let wrong = || PyTypeError::new_err("max_memory: expected a number of bytes, or a string");
        let bytes = i64::read(&value).map_err(|_| wrong())?;
        u64::try_from(bytes).map(Self).map_err(|_| {
            PyValueError::new_err(format!("max_memory is {bytes}, expected 0 or more"))
        })
    }
}

/// The dict of the positions of samples.
fn describe<'py>(py: Python<'py>, content: &Content) -> PyResult<Bound<'py, PyDict>> {
    let info = PyDict::new(py);
    let spacing = content.spacing().map(|[x, y, z]| match content.is_volume() {
        false => (y, x).into_py_any(py),
        true => (z, y, x).into_py_any(py),
    });
    info.set_item("spacing", spacing.transpose()?)?;
    let affine = content.affine().map(|rows| vector_to_array(py, rows.concat(), &[4, 4]));
    info.set_item("affine", affine.transpose()?)?;
    info.set_item("unit", content.unit())?;
    info.set_item("space", content.is_ras().then_some("RAS"))?;
    Ok(info)
}

/// Writes an image or a volume in the format of the name's extension.
///
/// Parameters
/// ----------
/// path : str or path-like
///     The file, or a folder `.zarr`. An existing one is replaced when the new one is complete.
/// image : array_like
///     Axes y, x or z, y, x. An image may have a last axis of 1 to 4 channels: in a format of volumes and images (TIFF),
///     only with `channel_axis`.
/// spacing : float or tuple of float, optional
///     Distances of samples along each axis, without that of channels.
/// affine : array_like, shape (4, 4), optional
///     Matrix from the position (x, y, z, 1) of a sample to the world in RAS directions, as in nibabel. For volumes.
/// unit : str, default "mm"
///     Unit of `spacing` and `affine`.
/// channel_axis : int, optional
///     The axis of channels.
/// quality : int, optional
///     Quality of JPEG and WebP, 1 to 100; by default 90 for JPEG, lossless for WebP.
///
/// Examples
/// --------
/// >>> import numpy as np, gpuproc as gp, os, tempfile
/// >>> path = os.path.join(tempfile.mkdtemp(), "image.png")
/// >>> gp.imwrite(path, np.arange(6, dtype=np.uint8).reshape(2, 3))
/// >>> gp.imread(path)
/// array([[0, 1, 2],
///        [3, 4, 5]], dtype=uint8)
#[pyfunction]
#[pyo3(signature = (path, image, *, spacing=None, affine=None, unit="mm", channel_axis=None, quality=None))]
pub(super) fn imwrite(
    path: PathBuf,
    image: &Bound<'_, PyAny>,
    spacing: Option<PerAxis<f64>>,
    affine: Option<&Bound<'_, PyAny>>,
    unit: &str,
    channel_axis: Option<Int>,
    quality: Option<Int>,
) -> PyResult<()> {
    prepare()?;
    let sink = Sink::File(path);
    let numbers = as_array(image)?;
    let is_array_of_volume = numbers.ndim() == 3 && channel_axis.is_none();
    let is_volume = writes_volume(&sink, if is_array_of_volume { 3 } else { 2 });
    let channel_axis = match channel_axis {
        None if numbers.ndim() == 3 && !is_volume => Some(2),
        axis => axis.map(|axis| axis_index("channel_axis", axis, numbers.ndim())).transpose()?,
    };
    if channel_axis.is_some_and(|axis| is_volume || axis + 1 != numbers.ndim()) {
        return Err(PyValueError::new_err("channel_axis: expected the last axis of an image"));
    }
    let mut array = Array::new(&numbers, channel_axis.map(|axis| Int(Ok(axis as i64))))?;
    if array.is_bool {
        // Masks are 0 and 255, as those of the program.
        let white =
            numbers.call_method1("astype", ("uint8",))?.call_method1("__mul__", (255_u8,))?;
        array = Array::new(&white, channel_axis.map(|axis| Int(Ok(axis as i64))))?;
    }
    let axes = array.layout.axes;
    if array.layout.grids != 1 || axes < 2 || !is_volume && axes > 2 {
        return Err(PyValueError::new_err(format!(
            "{sink}: expected an image of 2 axes and 1 to 4 channels, or a volume of 3 axes"
        )));
    }
    let mut options = WriteOptions::new().unit(unit);
    if let Some(quality) = quality {
        let quality = quality.number("quality").map_err(exception)?;
        let quality = u8::try_from(quality).map_err(|_| {
            PyValueError::new_err(format!("quality is {quality}, expected 1 to 100"))
        })?;
        options = options.quality(quality);
    }
    if let Some(spacing) = spacing {
        options = options.spacing(spacing.expand("spacing", axes, 1.0).map_err(exception)?);
    }
    if let Some(affine) = affine {
        options = options.affine(matrix(affine)?);
    }
    array.with_grids(|grids| options.write_grid(&sink, &grids[0], if is_volume { 3 } else { 2 }))
}

/// The rows of `affine`.
fn matrix(affine: &Bound<'_, PyAny>) -> PyResult<[[f64; 4]; 4]> {
    let wrong = || PyValueError::new_err("affine: expected 4 x 4 numbers that span space");
    let numpy = super::array::numpy(affine.py())?;
    let matrix =
        numpy.call_method1("ascontiguousarray", (affine, "float64")).map_err(|_| wrong())?;
    let matrix: PyReadonlyArray2<'_, f64> = matrix.extract().map_err(|_| wrong())?;
    if matrix.shape() != [4, 4] {
        return Err(wrong());
    }
    Ok(std::array::from_fn(|i| std::array::from_fn(|j| matrix.as_array()[[i, j]])))
}
