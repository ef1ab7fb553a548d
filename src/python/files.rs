//! Files of images and volumes.

use std::path::PathBuf;

use numpy::{PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::{
    Bound, IntoPyObjectExt, Py, PyAny, PyResult, Python,
    exceptions::PyValueError,
    prelude::PyDictMethods,
    pyfunction,
    types::{PyAnyMethods, PyDict},
};

use super::{
    array::{Array, as_array, axis_index, to_array, vector_to_array},
    device::prepare,
    error::exception,
    filters::PerAxis,
};
use crate::{
    data::{
        grid::Grid,
        image::{Density, DensityUnit, Image, Metadata},
        placement::{Placement, Space},
        samples::Samples,
    },
    io::{
        Limits, Sink, Source,
        image::{Encoding, ImageFile, ImageFormat, ImageTarget},
        losses,
        volume::{Endian, Layout, VolumeFile, VolumeFormat, VolumeTarget, is_volume},
    },
    util::{
        error::{Error, Result},
        timings::Timings,
    },
};

/// The samples of a file, and their positions in the world.
struct Content {
    samples: Samples,
    shape: Vec<usize>,
    /// Number of axes without that of channels.
    axes: usize,
    placement: Option<Placement>,
}

fn read(source: &Source, layout: &Layout, page: usize) -> Result<Content> {
    let (limits, timings) = (Limits::from(u64::MAX), Timings::new(false));
    if is_volume(source, layout) {
        let file = VolumeFile::describe(source, layout)?;
        let volume = file.read(limits, &timings)?;
        let [x, y, z] = volume.dims;
        let (samples, placement) = (volume.samples, file.placement.clone());
        return Ok(Content { samples, shape: vec![z, y, x], axes: 3, placement });
    }
    let image = ImageFile::read(source, limits, &timings)?.decode_page(page, &timings)?;
    let mut shape = vec![image.height, image.width];
    if image.channels > 1 {
        shape.push(image.channels);
    }
    let density = image.metadata.density.and_then(|density| density.per(DensityUnit::Centimetre));
    let placement = density.map(|[x, y]| {
        let placement = Placement::axis_aligned([10.0 / x, 10.0 / y, 1.0], [0.0; 3]);
        Placement { unit: Some("mm".into()), ..placement }
    });
    Ok(Content { samples: image.samples, shape, axes: 2, placement })
}

/// Reads an image or a volume from a file of any format that the program reads.
///
/// Parameters
/// ----------
/// path : str or path-like
///     The file, a folder of slices, or an OME-Zarr.
/// page : int, default 0
///     Page of an image file, counted from 0.
/// stack : bool, default False
///     Whether the pages of a TIFF, or the images of a folder, are one volume.
/// volume, channel, time : int, optional
///     Which one of several in a file, counted from 0.
/// level : int, optional
///     Level of resolution of an OME-Zarr; 0 is the finest.
/// return_info : bool, default False
///     Whether to return a dict as well.
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
#[pyo3(signature = (path, *, page=0, stack=false, volume=None, channel=None, time=None, level=None, return_info=false))]
#[expect(clippy::too_many_arguments, reason = "one for each argument in Python")]
pub(super) fn imread(
    py: Python<'_>,
    path: PathBuf,
    page: usize,
    stack: bool,
    volume: Option<usize>,
    channel: Option<usize>,
    time: Option<usize>,
    level: Option<usize>,
    return_info: bool,
) -> PyResult<Py<PyAny>> {
    prepare()?;
    let layout = Layout { stack, volume, channel, time, level, ..Layout::default() };
    let content = py.detach(|| read(&Source::File(path), &layout, page)).map_err(exception)?;
    let image = to_array(py, content.samples, &content.shape)?;
    if !return_info {
        return Ok(image.unbind());
    }
    (image, describe(py, content.placement, content.axes)?).into_py_any(py)
}

/// The dict of the positions of samples.
fn describe(
    py: Python<'_>,
    placement: Option<Placement>,
    axes: usize,
) -> PyResult<Bound<'_, PyDict>> {
    let info = PyDict::new(py);
    let placement = placement.map(|own| own.to(Space::Ras).unwrap_or(own));
    let spacing = placement.as_ref().map(Placement::spacing).map(|[x, y, z]| match axes {
        2 => (y, x).into_py_any(py),
        _ => (z, y, x).into_py_any(py),
    });
    info.set_item("spacing", spacing.transpose()?)?;
    let affine = placement.as_ref().map(|Placement { steps: [x, y, z], first, .. }| {
        let row = |i: usize| [x[i], y[i], z[i], first[i]];
        let rows = [row(0), row(1), row(2), [0.0, 0.0, 0.0, 1.0]];
        vector_to_array(py, rows.concat(), &[4, 4])
    });
    info.set_item("affine", affine.transpose()?)?;
    info.set_item("unit", placement.as_ref().and_then(|placement| placement.unit.clone()))?;
    let space = placement.as_ref().and_then(|placement| placement.space);
    info.set_item("space", space.map(Space::name))?;
    Ok(info)
}

/// Writes an image or a volume in the format of the name's extension.
///
/// Parameters
/// ----------
/// path : str or path-like
///     The file. An existing one is replaced when the new one is complete.
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
    channel_axis: Option<isize>,
    quality: Option<u8>,
) -> PyResult<()> {
    prepare()?;
    if quality.is_some_and(|quality| !(1..=100).contains(&quality)) {
        return Err(PyValueError::new_err("quality: expected 1 to 100"));
    }
    let sink = Sink::File(path);
    let array = as_array(image)?;
    let is_volume_format = matches!(VolumeFormat::for_output(&sink), Ok(Some(_)));
    let is_volume = match (is_volume_format, ImageFormat::for_output(&sink).is_ok()) {
        (true, true) => array.ndim() == 3 && channel_axis.is_none(),
        (is_volume, _) => is_volume,
    };
    let channel_axis = match channel_axis {
        None if array.ndim() == 3 && !is_volume => Some(2),
        axis => axis.map(|axis| axis_index(axis, array.ndim())).transpose()?,
    };
    if channel_axis.is_some_and(|axis| is_volume || axis + 1 != array.ndim()) {
        return Err(PyValueError::new_err("channel_axis: expected the last axis of an image"));
    }
    let mut array = Array::new(&array, channel_axis.map(|axis| axis as isize))?;
    if array.is_bool {
        // Masks are 0 and 255, as those of the program.
        let white = image.call_method1("astype", ("uint8",))?.call_method1("__mul__", (255_u8,))?;
        array = Array::new(&white, channel_axis.map(|axis| axis as isize))?;
    }
    let axes = array.layout.axes;
    if array.layout.grids != 1 || axes < 2 || !is_volume && axes > 2 {
        return Err(PyValueError::new_err(format!(
            "{sink}: expected an image of 2 axes and 1 to 4 channels, or a volume of 3 axes"
        )));
    }
    let placement = placement(spacing, affine, axes)?;
    let placement = placement.map(|own| Placement { unit: Some(unit.to_owned()), ..own });
    array.with_grids(|grids| match is_volume {
        true => write_volume(&sink, &grids[0], placement),
        false => write_image(&sink, &grids[0], placement, quality),
    })
}

/// The placement that the arguments state.
fn placement(
    spacing: Option<PerAxis<f64>>,
    affine: Option<&Bound<'_, PyAny>>,
    axes: usize,
) -> PyResult<Option<Placement>> {
    let wrong = || PyValueError::new_err("affine: expected 4 x 4 numbers that span space");
    let placement = match (spacing, affine) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(PyValueError::new_err("give spacing or affine, not both"));
        }
        (Some(spacing), None) => {
            let spacing = spacing.expand("spacing", axes, 1.0).map_err(exception)?;
            if spacing.iter().any(|v| !(v.is_finite() && *v > 0.0)) {
                return Err(PyValueError::new_err("spacing: expected finite numbers above 0"));
            }
            Placement::axis_aligned(spacing, [0.0; 3])
        }
        (None, Some(affine)) => {
            let numpy = super::array::numpy(affine.py())?;
            let matrix = numpy.call_method1("ascontiguousarray", (affine, "float64"))?;
            let matrix: PyReadonlyArray2<'_, f64> = matrix.extract().map_err(|_| wrong())?;
            if matrix.shape() != [4, 4] {
                return Err(wrong());
            }
            let m = matrix.as_slice()?;
            let column = |j: usize| [m[j], m[4 + j], m[8 + j]];
            let steps = [column(0), column(1), column(2)];
            Placement { steps, first: column(3), space: Some(Space::Ras), unit: None }
        }
    };
    if placement.is_regular() { Ok(Some(placement)) } else { Err(wrong()) }
}

fn write_volume(sink: &Sink, grid: &Grid, placement: Option<Placement>) -> Result<()> {
    let file = VolumeFile::in_memory(grid.dims, grid.samples.dtype(), placement);
    let target = VolumeTarget::new(sink, &file, grid.samples.dtype(), Endian::Little)?;
    if let Some(lost) = target.losses() {
        losses::report(sink, lost, false)?;
    }
    let mut writer = target.create(grid.dims, false)?;
    writer.write(grid.samples.copy()?)?;
    writer.finish()
}

fn write_image(
    sink: &Sink,
    grid: &Grid,
    placement: Option<Placement>,
    quality: Option<u8>,
) -> Result<()> {
    let format = ImageFormat::for_output(sink)?;
    let density = match placement.and_then(|own| own.in_nearest_unit(&["cm"])) {
        Some(own) if own.unit.is_some() => {
            let [x, y, _] = own.spacing();
            Density::new([1.0 / x, 1.0 / y], DensityUnit::Centimetre)
        }
        _ => None,
    };
    let [width, height, depth] = grid.dims;
    if depth != 1 {
        return Err(Error::usage(format_args!("{sink}: this format holds no volumes")));
    }
    let image = Image {
        width,
        height,
        channels: grid.channels,
        samples: grid.samples.copy()?,
        is_linear: false,
        metadata: Metadata { density, ..Metadata::default() },
    };
    let encoding = Encoding { quality, ..Encoding::default() };
    let timings = Timings::new(false);
    ImageTarget::new(sink, format, encoding, &timings).write(&image)
}
