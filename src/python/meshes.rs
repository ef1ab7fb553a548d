//! Surfaces of volumes.

use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::{
    Bound, PyAny, PyResult, Python,
    exceptions::{PyMemoryError, PyTypeError, PyValueError},
    prelude::PyDictMethods,
    pyfunction,
    types::{PyAnyMethods, PyDict},
};

use super::{
    arguments::{Int, PerAxis, Real},
    array::{Array, as_array, detached, numpy, vector_to_array},
    device::{Device, device_for},
    error::exception,
    operations::choice_of,
};
use crate::{
    data::surface::Surface,
    kernels::{
        mesh::{
            MarchingCubes, Slab,
            labels::{LabelSurfaces, MAX_STEPS, Scratch, SurfaceNets, world_positions},
            post::{Goal, Size, simplify as simplify_surface},
        },
        otsu::extremes,
    },
    util::{
        error::{Error, Result, check_range},
        memory, parallel,
    },
};

/// The array `value`, which must have three axes.
fn volume<'py>(value: &Bound<'py, PyAny>) -> PyResult<Array<'py>> {
    let array = Array::new(value, None)?;
    match array.layout.axes {
        3 => Ok(array),
        axes => {
            Err(PyValueError::new_err(format!("expected a volume of 3 axes, found {axes} axes")))
        }
    }
}

/// The distances along x, y and z.
fn distances(spacing: &PerAxis<f64>) -> PyResult<[f64; 3]> {
    let distances = spacing.expand("spacing", 3, 1.0).map_err(exception)?;
    match distances.iter().find(|v| !(v.is_finite() && **v > 0.0)) {
        Some(v) => {
            Err(PyValueError::new_err(format!("spacing is {v}, expected finite numbers above 0")))
        }
        None => Ok(distances),
    }
}

/// Turns coordinates from x, y, z to the order of the array, z, y, x.
fn turn(surface: &mut Surface) {
    parallel::update(&mut surface.positions, |position| position.reverse());
    parallel::update(&mut surface.normals, |normal| normal.reverse());
}

/// Arrays of the vertices and faces of a surface.
fn vertices_and_faces<'py>(
    py: Python<'py>,
    positions: Vec<[f32; 3]>,
    triangles: Vec<[u32; 3]>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    Ok((rows(py, positions)?, rows(py, triangles)?))
}

/// An array of rows of three numbers.
fn rows<T: numpy::Element>(py: Python<'_>, rows: Vec<[T; 3]>) -> PyResult<Bound<'_, PyAny>> {
    let len = rows.len();
    vector_to_array(py, rows.into_flattened(), &[len, 3])
}

/// Surface of a volume at a level, by marching cubes.
///
/// Parameters
/// ----------
/// volume : array_like
///     Volume of 3 axes.
/// level : float, optional
///     Samples above it are inside; by default the mean of minimum and maximum.
/// spacing : float or tuple of float, default 1.0
///     Distance of samples along each axis of the array.
/// close : bool, default False
///     Whether the surface is closed where it leaves the volume.
/// topology : {"classic", "exact"}, default "classic"
///     How ambiguous cells are resolved: by the table of 256 cases, or as the trilinear interpolation of the samples.
/// device : Device, optional
///     The device; by default that of `set_device`.
///
/// Returns
/// -------
/// verts : ndarray of float32, shape (V, 3)
///     Vertices in the order of the axes of `volume`; sample i lies at `i * spacing`.
/// faces : ndarray of uint32, shape (F, 3)
///     Vertices of each triangle, as in scikit-image: counter-clockwise as seen from outside, if x is the last axis.
/// normals : ndarray of float32, shape (V, 3)
///     Unit vectors that point outwards.
///
/// Examples
/// --------
/// >>> import numpy as np, gpuproc as gp
/// >>> volume = np.zeros((3, 3, 3), np.uint8)
/// >>> volume[1, 1, 1] = 2
/// >>> verts, faces, normals = gp.marching_cubes(volume, 1)
/// >>> verts.shape, faces.shape, verts.mean(axis=0)
/// ((6, 3), (8, 3), array([1., 1., 1.], dtype=float32))
#[pyfunction]
#[pyo3(signature = (volume, level=None, *, spacing=PerAxis::One(1.0), close=false, topology="classic", device=None))]
#[pyo3(
    text_signature = "(volume, level=None, *, spacing=1.0, close=False, topology='classic', device=None)"
)]
pub(super) fn marching_cubes<'py>(
    volume: &Bound<'py, PyAny>,
    level: Option<Real>,
    spacing: PerAxis<f64>,
    close: bool,
    topology: &str,
    device: Option<&Bound<'py, Device>>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let topology = choice_of("topology", topology).map_err(exception)?;
    let level = level.map(|level| level.number("level")).transpose().map_err(exception)?;
    if level.is_some_and(|level| !level.is_finite()) {
        return Err(PyValueError::new_err("level: expected a finite number"));
    }
    let (array, spacing) = (self::volume(volume)?, distances(&spacing)?);
    if array.bytes() == 0 {
        return Err(PyValueError::new_err("the volume has no samples"));
    }
    let py = array.py();
    let device = device_for(py, device, array.bytes())?;
    let surface = array.with_volume(|volume| {
        let middle = || {
            let [low, high] = extremes(&volume.samples);
            if low <= high { f64::midpoint(low, high) } else { 0.0 }
        };
        let iso = level.unwrap_or_else(middle);
        let origin = spacing.map(|v| -0.5 * v);
        let base = MarchingCubes::new(iso);
        let kernel = MarchingCubes { spacing, origin, close, normals: true, topology, ..base };
        let mut surface = device.run(&kernel, &Slab::whole(volume.clone(), &kernel))?;
        turn(&mut surface);
        Ok(surface)
    })?;
    let (verts, faces) = vertices_and_faces(py, surface.positions, surface.triangles)?;
    Ok((verts, faces, rows(py, surface.normals)?))
}

/// Closed surfaces of all labels of a volume.
///
/// Parameters
/// ----------
/// labels : array_like of int
///     Volume of 3 axes; 0 is the background.
/// spacing : float or tuple of float, default 1.0
///     Distance of samples along each axis of the array.
/// smooth : int, default 10
///     Number of smoothing steps, 0 to 1000, in which no vertex moves by more than half a sample; 0 leaves the faces of
///     voxels.
/// device : Device, optional
///     The device; by default that of `set_device`.
///
/// Returns
/// -------
/// dict
///     For each label its vertices (float32) and faces (uint32), as those of `marching_cubes`. Neighbours have the same
///     vertices at their common faces.
///
/// Examples
/// --------
/// >>> import numpy as np, gpuproc as gp
/// >>> labels = np.zeros((2, 2, 4), np.uint8)
/// >>> labels[..., 1] = 1
/// >>> labels[..., 2] = 7
/// >>> meshes = gp.label_meshes(labels, smooth=0)
/// >>> {label: (len(verts), len(faces)) for label, (verts, faces) in meshes.items()}
/// {1: (18, 32), 7: (18, 32)}
#[pyfunction]
#[pyo3(signature = (labels, *, spacing=PerAxis::One(1.0), smooth=Int(Ok(10)), device=None))]
#[pyo3(text_signature = "(labels, *, spacing=1.0, smooth=10, device=None)")]
pub(super) fn label_meshes<'py>(
    labels: &Bound<'py, PyAny>,
    spacing: PerAxis<f64>,
    smooth: Int,
    device: Option<&Bound<'py, Device>>,
) -> PyResult<Bound<'py, PyDict>> {
    let smooth = smooth.number("smooth").map_err(exception)?;
    check_range("smooth", smooth as f64, 0.0..=MAX_STEPS.into()).map_err(exception)?;
    let (array, spacing) = (volume(&unsigned(labels)?)?, distances(&spacing)?);
    let py = array.py();
    let device = device_for(py, device, array.bytes())?;
    let meshes = array.with_volume(|volume| {
        let mesh =
            device.run(&SurfaceNets::new(smooth as u32), &SurfaceNets::whole(volume.clone()))?;
        let place = |at: [f64; 3]| std::array::from_fn(|i| ((at[i] - 0.5) * spacing[i]) as f32);
        let positions = world_positions(&mesh.vertices, place)?;
        let surfaces = LabelSurfaces::new(&mesh, &positions)?;
        let mut scratch = Scratch::default();
        let surface = |(index, label)| {
            let mut surface = surfaces.surface(index, &mut scratch)?;
            turn(&mut surface);
            Ok((label, surface))
        };
        surfaces.labels().enumerate().map(surface).collect::<Result<Vec<_>>>()
    })?;
    let found = PyDict::new(py);
    for (label, surface) in meshes {
        found.set_item(label, vertices_and_faces(py, surface.positions, surface.triangles)?)?;
    }
    Ok(found)
}

/// Labels of signed or 64-bit types as u32.
fn unsigned<'py>(labels: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let array = as_array(labels)?.into_any();
    let dtype = array.getattr("dtype")?;
    let kind: String = dtype.getattr("kind")?.extract()?;
    let size: usize = dtype.getattr("itemsize")?.extract()?;
    if kind == "b" || kind == "u" && size <= 4 {
        return Ok(array);
    }
    if kind != "i" && kind != "u" {
        return Err(PyValueError::new_err(format!("samples of type {dtype} cannot be labels")));
    }
    let is_small = array.getattr("size")?.extract::<usize>()? == 0
        || array.call_method0("min")?.ge(0)? && array.call_method0("max")?.le(u32::MAX)?;
    match is_small {
        true => array.call_method1("astype", ("uint32",)),
        false => Err(PyValueError::new_err(format!("labels: expected 0 to {}", u32::MAX))),
    }
}

/// Reduces the number of triangles of a surface.
///
/// Parameters
/// ----------
/// verts : array_like of float, shape (V, 3)
///     Vertices.
/// faces : array_like of int, shape (F, 3)
///     Vertices of each triangle.
/// ratio : float, optional
///     Share of the triangles to keep, above 0 and at most 1.
/// triangles : int, optional
///     Number of triangles to keep.
/// max_error : float, optional
///     Maximum distance between the surface before and after. Without `ratio` and `triangles`, as few triangles as possible
///     are kept.
///
/// Returns
/// -------
/// verts : ndarray of float32
/// faces : ndarray of uint32
///     Closed surfaces stay closed. More triangles are left if the surface would otherwise tear.
///
/// Examples
/// --------
/// >>> import numpy as np, gpuproc as gp
/// >>> z, y, x = np.mgrid[-10:11, -10:11, -10:11]
/// >>> verts, faces, _ = gp.marching_cubes(8.0 - np.sqrt(x * x + y * y + z * z), 0)
/// >>> fewer = gp.simplify(verts, faces, ratio=0.25)[1]
/// >>> abs(len(fewer) - len(faces) / 4) <= 2
/// True
#[pyfunction]
#[pyo3(signature = (verts, faces, *, ratio=None, triangles=None, max_error=None))]
pub(super) fn simplify<'py>(
    py: Python<'py>,
    verts: &Bound<'py, PyAny>,
    faces: &Bound<'py, PyAny>,
    ratio: Option<Real>,
    triangles: Option<Int>,
    max_error: Option<Real>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let number = |name: &str, value: Option<Real>| {
        value.map(|value| value.number(name)).transpose().map_err(exception)
    };
    let (ratio, max_error) = (number("ratio", ratio)?, number("max_error", max_error)?);
    let triangles =
        triangles.map(|count| count.count("triangles")).transpose().map_err(exception)?;
    let size = match (ratio, triangles) {
        (Some(_), Some(_)) => {
            return Err(PyValueError::new_err("give ratio or triangles, not both"));
        }
        (Some(ratio), None) if !(ratio > 0.0 && ratio <= 1.0) => {
            return Err(PyValueError::new_err(format!("ratio is {ratio}, expected above 0 to 1")));
        }
        (Some(ratio), None) => Size::Share(ratio),
        (None, Some(triangles)) => Size::Triangles(triangles),
        (None, None) if max_error.is_none() => {
            return Err(PyValueError::new_err("give ratio, triangles or max_error"));
        }
        (None, None) => Size::Fewest,
    };
    if let Some(error) = max_error.filter(|error| !(error.is_finite() && *error > 0.0)) {
        return Err(PyValueError::new_err(format!("max_error is {error}, expected above 0")));
    }
    super::device::prepare()?;
    let positions = triples::<f32>("verts", verts, "float32")?;
    let corners = triples::<i64>("faces", faces, "int64")?;
    let goal = Goal { size, max_error, measures: false };
    let simplified = detached(py, usize::MAX, || {
        let mut surface = Surface { positions, ..Surface::default() };
        let count = surface.positions.len() as i64;
        if parallel::any(&corners, |face| face.iter().any(|v| !(0..count).contains(v))) {
            return Err(Error::bad_input(format_args!(
                "faces: a number of a vertex is not in 0 to {}",
                count - 1
            )));
        }
        surface.triangles = parallel::mapped(&corners, |face| face.map(|v| v as u32))?;
        simplify_surface(&mut surface, &goal)?;
        Ok(surface)
    })?;
    vertices_and_faces(py, simplified.positions, simplified.triangles)
}

/// The rows of an array of three columns, converted to `dtype`.
fn triples<T: numpy::Element + bytemuck::Pod>(
    name: &str,
    value: &Bound<'_, PyAny>,
    dtype: &str,
) -> PyResult<Vec<[T; 3]>> {
    let numpy = numpy(value.py())?;
    let array = numpy.call_method1("ascontiguousarray", (value, dtype)).map_err(|error| {
        let (py, text) = (value.py(), format!("{name}: expected an array of numbers"));
        if error.is_instance_of::<PyMemoryError>(py) {
            error
        } else if error.is_instance_of::<PyTypeError>(py) {
            PyTypeError::new_err(text)
        } else {
            PyValueError::new_err(text)
        }
    })?;
    let array = array.cast_into::<PyArrayDyn<T>>()?;
    if array.ndim() != 2 || array.shape()[1] != 3 {
        return Err(PyValueError::new_err(format!(
            "{name}: expected an array of the shape (N, 3), found {:?}",
            array.shape()
        )));
    }
    let array = array.try_readonly()?;
    memory::copied(bytemuck::cast_slice(array.as_slice()?)).map_err(exception)
}
