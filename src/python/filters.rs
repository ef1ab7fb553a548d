//! Operations from an array to an array.

use std::sync::Arc;

use pyo3::{Bound, PyAny, PyResult, exceptions::PyValueError, pyfunction, types::PyAnyMethods};

use super::{
    arguments::{Int, PerAxis, Real},
    array::{Array, Borrowed, bool_as_u8, checked_result, numpy, stored},
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
    kernels::{
        blur::{Blur, BlurByAxis, Edge, MAX_RADIUS, MAX_SIGMA, Method, Taps},
        filter::Filter,
    },
    util::error::{Error, Result, check_range},
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
            let output = filter.describe(description.clone())?.grid;
            checked_result(grids[0].grid_type(), output, grids.len())?;
            let shape = output.shape;
            if shape.samples() == 0 {
                let empty = |_| Samples::zeros(output.dtype, 0);
                return Ok((grids.iter().map(empty).collect::<Result<Vec<_>>>()?, shape));
            }
            let run = |grid: &Borrowed<'_, Grid>| {
                let prepared =
                    filter.prepared(&device, &description, &mut |consume| consume(grid))?;
                prepared.as_deref().unwrap_or(&*filter).run(&device, grid)
            };
            Ok((grids.iter().map(run).collect::<Result<Vec<_>>>()?, shape))
        })?;
        stored(array.result(results, shape.dims, shape.channels)?, self.out)
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

/// The edge of the name `mode`, as in SciPy.
fn edge(mode: &str, cval: f64) -> Result<Edge> {
    Ok(match mode {
        "nearest" => Edge::Clamp,
        "reflect" | "grid-mirror" => Edge::Reflect,
        "mirror" => Edge::Mirror,
        "wrap" | "grid-wrap" => Edge::Wrap,
        "constant" | "grid-constant" if cval.is_finite() => Edge::Constant(cval),
        "constant" | "grid-constant" => {
            return Err(Error::usage(format_args!("cval is {cval}, expected a finite number")));
        }
        _ => {
            return Err(Error::usage(format_args!(
                "mode: unknown mode {mode:?}; expected nearest, reflect, mirror, wrap or constant"
            )));
        }
    })
}

/// Runs a blur with the edges of `mode`. `taps` returns the taps along x, y and z for an array with a number of axes.
fn blur<'py>(
    call: &Call<'_, 'py>,
    method: Method,
    (mode, cval): (&PerAxis<String>, f64),
    taps: impl FnOnce(usize) -> Result<[Taps; 3]>,
) -> PyResult<Bound<'py, PyAny>> {
    let blur = |axes, edge| Blur { method, axes, iterations: 1, edge, linear: false };
    let modes = match mode {
        PerAxis::One(mode) => return call.run(|axes| Ok(blur(taps(axes)?, edge(mode, cval)?))),
        PerAxis::Each(modes) => modes,
        PerAxis::Wrong(wrong) => return Err(exception(wrong.of("mode"))),
    };
    call.run(|axes| {
        let edges: Result<Vec<Edge>> = modes.iter().map(|mode| edge(mode, cval)).collect();
        let edges = PerAxis::Each(edges?).expand("mode", axes, Edge::Clamp)?;
        let constant = edges.iter().find(|edge| matches!(edge, Edge::Constant(_)));
        Ok(BlurByAxis { blur: blur(taps(axes)?, *constant.unwrap_or(&edges[0])), edges })
    })
}

/// The taps of each size.
fn each(sizes: [f64; 3], taps: impl Fn(f64) -> Result<Taps>) -> Result<[Taps; 3]> {
    Ok([taps(sizes[0])?, taps(sizes[1])?, taps(sizes[2])?])
}

/// Gaussian blur.
///
/// Parameters
/// ----------
/// image : array_like
///     Image or volume of 1 to 3 axes, and one more with `channel_axis`.
/// sigma : float or sequence of float, default 1.0
///     Standard deviation in samples, 0 to 500, for all axes or for each axis.
/// mode : {"nearest", "reflect", "mirror", "wrap", "constant"} or sequence of them, default "nearest"
///     The samples beyond the border, as in SciPy, for all axes or for each axis.
/// cval : float, default 0.0
///     The samples beyond the border in mode "constant".
/// truncate : float, default 4.0
///     The radius of the window in standard deviations.
/// channel_axis : int, optional
///     The axis of channels, each of which is blurred by itself.
/// out : ndarray, optional
///     Array for the result, with its shape and type.
/// device : Device, optional
///     The device; by default that of `set_device`.
///
/// Returns
/// -------
/// ndarray
///     Array of the shape and type of `image`. Integers are rounded once, at the end.
///
/// Examples
/// --------
/// >>> import numpy as np, gpuproc as gp
/// >>> image = np.zeros((5, 5), np.uint8)
/// >>> image[2, 2] = 255
/// >>> gp.gaussian(image, sigma=1)[2]
/// array([ 5, 25, 41, 25,  5], dtype=uint8)
#[pyfunction]
#[pyo3(signature = (image, sigma=PerAxis::One(1.0), *, mode=PerAxis::One("nearest".into()), cval=Real(Ok(0.0)), truncate=Real(Ok(4.0)), channel_axis=None, out=None, device=None))]
#[pyo3(
    text_signature = "(image, sigma=1.0, *, mode='nearest', cval=0.0, truncate=4.0, channel_axis=None, out=None, device=None)"
)]
#[expect(clippy::too_many_arguments, reason = "one for each argument in Python")]
pub(super) fn gaussian<'py>(
    image: &Bound<'py, PyAny>,
    sigma: PerAxis<f64>,
    mode: PerAxis<String>,
    cval: Real,
    truncate: Real,
    channel_axis: Option<Int>,
    out: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, Device>>,
) -> PyResult<Bound<'py, PyAny>> {
    let cval = cval.number("cval").map_err(exception)?;
    let truncate = truncate.number("truncate").map_err(exception)?;
    if truncate.is_nan() || truncate < 0.0 {
        return Err(PyValueError::new_err(format!("truncate is {truncate}, expected 0 or more")));
    }
    let taps = |sigma: f64| {
        check_range("sigma", sigma, 0.0..=MAX_SIGMA)?;
        let radius = truncate * sigma + 0.5;
        if radius >= (MAX_RADIUS + 1) as f64 {
            return Err(Error::usage(format_args!(
                "the radius is {radius}, expected at most {MAX_RADIUS}"
            )));
        }
        Ok(Taps::gaussian(sigma, radius as usize))
    };
    let call = Call { image, channel_axis, out, device };
    blur(&call, Method::Gaussian, (&mode, cval), |axes| {
        each(sigma.expand("sigma", axes, 0.0)?, taps)
    })
}

/// Mean of the samples in a window.
///
/// Parameters
/// ----------
/// image : array_like
///     Image or volume of 1 to 3 axes, and one more with `channel_axis`.
/// size : int or sequence of int, default 3
///     Width of the window in samples, 1 to 20001, for all axes or for each axis. As in SciPy, a window of even width has
///     one sample more before the centre than after it.
/// mode : {"reflect", "nearest", "mirror", "wrap", "constant"} or sequence of them, default "reflect"
///     The samples beyond the border, as in SciPy, for all axes or for each axis.
/// cval : float, default 0.0
///     The samples beyond the border in mode "constant".
/// channel_axis : int, optional
///     The axis of channels, each of which is filtered by itself.
/// out : ndarray, optional
///     Array for the result, with its shape and type.
/// device : Device, optional
///     The device; by default that of `set_device`.
///
/// Returns
/// -------
/// ndarray
///     Array of the shape and type of `image`. Integers are rounded; SciPy truncates them.
///
/// Examples
/// --------
/// >>> import numpy as np, gpuproc as gp
/// >>> gp.uniform_filter(np.array([0, 0, 9, 0, 0], np.int16), 3)
/// array([0, 3, 3, 3, 0], dtype=int16)
#[pyfunction]
#[pyo3(signature = (image, size=PerAxis::One(3), *, mode=PerAxis::One("reflect".into()), cval=Real(Ok(0.0)), channel_axis=None, out=None, device=None))]
#[pyo3(
    text_signature = "(image, size=3, *, mode='reflect', cval=0.0, channel_axis=None, out=None, device=None)"
)]
pub(super) fn uniform_filter<'py>(
    image: &Bound<'py, PyAny>,
    size: PerAxis<i64>,
    mode: PerAxis<String>,
    cval: Real,
    channel_axis: Option<Int>,
    out: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, Device>>,
) -> PyResult<Bound<'py, PyAny>> {
    const MAX_SIZE: usize = 2 * MAX_RADIUS + 1;
    let taps = |size: f64| match size as usize {
        size if (1..=MAX_SIZE).contains(&size) => Ok(Taps::box_of_size(size)),
        size => Err(Error::usage(format_args!(
            "size is {size}, expected a number from 1 to {MAX_SIZE}"
        ))),
    };
    let call = Call { image, channel_axis, out, device };
    let cval = cval.number("cval").map_err(exception)?;
    blur(&call, Method::Box, (&mode, cval), |axes| {
        each(size.counts("size", axes, 1)?.map(|size| size as f64), taps)
    })
}
