"""Pytest plugin that puts functions of gpuproc in the place of those of SciPy and scikit-image, with their arguments.

Arguments that gpuproc lacks skip the test. Of each test that reaches a function, the outcome is written to the file
PEERS_RESULTS.
"""

import json
import os
import warnings

import numpy as np
import pytest
import scipy.ndimage
import skimage.exposure
import skimage.filters
import skimage.measure
import skimage.transform
from scipy.ndimage import _ni_support
from scipy._lib._array_api import xp_capabilities_table
from skimage import img_as_float

import gpuproc as gp

reached = set()
outcomes = {}
current = None
inside = False


def shim(module, name):
    """Replaces a function of a module."""
    def replace(function):
        original = getattr(module, name)

        def call(*args, **kwargs):
            global inside
            if inside:  # A function of the peer that our own replacement calls.
                return original(*args, **kwargs)
            reached.add(current)
            inside = True
            try:
                return function(*args, **kwargs)
            finally:
                inside = False

        call.__name__ = name
        if original in xp_capabilities_table:
            xp_capabilities_table[call] = xp_capabilities_table[original]
        setattr(module, name, call)
        return call
    return replace


def need(condition, reason):
    if not condition:
        pytest.skip(f"gpuproc: {reason}")


def finish(result, output, dtype):
    """The result in `output`: None, a type, or an array."""
    if isinstance(output, np.ndarray):
        output[...] = result.astype(output.dtype)
        return output
    return result.astype(dtype if output is None else output)


def along(axes, image, values, rest):
    """One of `values` for each axis, `rest` for those that are not among `axes`."""
    if axes is None:
        return values
    axes = _ni_support._check_axes(axes, image.ndim)
    each = [rest] * image.ndim
    for axis, value in zip(axes, _ni_support._normalize_sequence(values, len(axes))):
        each[axis] = value
    return each


def modes(axes, image, mode):
    """One mode, or one for each axis."""
    if isinstance(mode, str):
        return mode
    return along(range(image.ndim) if axes is None else axes, image, mode, "nearest")


def checked(image):
    image = np.asarray(image)
    need(image.dtype.kind in "biuf" and image.dtype.itemsize <= 8, "no complex samples")
    need(image.dtype != np.float16, "no float16")
    need(1 <= image.ndim <= 3, "1 to 3 axes")
    return image


@shim(scipy.ndimage, "gaussian_filter")
def gaussian_filter(input, sigma, order=0, output=None, mode="reflect", cval=0.0, truncate=4.0, *, radius=None, axes=None):
    image = checked(input)
    sigma, mode = along(axes, image, sigma, 0), modes(axes, image, mode)
    need(np.all(np.asarray(order) == 0), "no derivatives")
    need(radius is None, "no radius=")
    wide = image if image.dtype in (np.float32, np.float64) else image.astype(np.float64)
    return finish(gp.gaussian(wide, sigma, mode=mode, cval=cval, truncate=truncate), output, image.dtype)


@shim(scipy.ndimage, "uniform_filter")
def uniform_filter(input, size=3, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    image = checked(input)
    size, mode = along(axes, image, size, 1), modes(axes, image, mode)
    need(np.all(np.asarray(along(axes, image, origin, 0)) == 0), "no origin=")
    need(np.all(np.asarray(size) > 0), "sizes above 0")
    wide = image if image.dtype in (np.float32, np.float64) else image.astype(np.float64)
    return finish(gp.uniform_filter(wide, size, mode=mode, cval=cval), output, image.dtype)


@shim(skimage.filters, "gaussian")
def gaussian(image, sigma=1.0, *, mode="nearest", cval=0, preserve_range=False, truncate=4.0, channel_axis=None, out=None):
    image = np.asarray(image)
    if image.dtype.kind != "f":
        image = image.astype(np.float64) if preserve_range else img_as_float(image)
    need(image.dtype.itemsize >= 4, "no float16")
    return gp.gaussian(image, sigma, mode=mode, cval=cval, truncate=truncate, channel_axis=channel_axis, out=out)


@shim(skimage.measure, "marching_cubes")
def marching_cubes(volume, level=None, *, spacing=(1.0, 1.0, 1.0), gradient_direction="descent", step_size=1,
                   allow_degenerate=True, method="lewiner", mask=None):
    need(mask is None, "no mask=")
    step = int(step_size)
    topology = {"lorensen": "classic", "lewiner": "exact"}.get(method, method)
    volume = np.asarray(volume)[::step, ::step, ::step] if step > 1 else np.asarray(volume)
    verts, faces, normals = gp.marching_cubes(volume, level, spacing=[step * v for v in spacing], topology=topology)
    if gradient_direction == "ascent":
        faces = faces[:, ::-1]
    if not allow_degenerate:
        a, b, c = (verts[faces[:, i]] for i in range(3))
        faces = faces[((a != b).any(1)) & ((b != c).any(1)) & ((c != a).any(1))]
    return verts, faces, normals, np.zeros(len(verts), np.float32)


@shim(skimage.transform, "integral_image")
def integral_image(image, *, dtype=None):
    image = np.asarray(image)
    need(image.dtype.kind != "f" or image.dtype.itemsize >= 4, "no float16")
    need(dtype is None or np.dtype(dtype) == np.float64, "no dtype= but float64")
    return gp.integral_image(image if dtype is None else image.astype(dtype))


@shim(skimage.exposure, "histogram")
def histogram(image, nbins=256, source_range="image", normalize=False, *, channel_axis=None):
    image = np.asarray(image)
    need(image.dtype.kind != "f" or image.dtype.itemsize >= 4, "no float16")
    if image.ndim == 3 and image.shape[-1] < 4 and channel_axis is None:
        warnings.warn("This might be a color image. The histogram will be computed on the flattened image. You can "
                      "instead apply this function to each color channel, or set channel_axis.", stacklevel=3)
    if source_range not in ("image", "dtype"):
        raise ValueError(f"Incorrect value for `source_range` argument: {source_range}")
    if image.dtype.kind in "iu":
        ends = (image.min(), image.max()) if source_range == "image" else (np.iinfo(image.dtype).min, np.iinfo(image.dtype).max)
        low, high = int(ends[0]), int(ends[1])
        counts, edges = gp.histogram(image, high - low + 1, (low - 0.5, high + 0.5), channel_axis=channel_axis)
        centres = np.arange(low, high + 1)
    else:
        given = None if source_range == "image" else (-1.0, 1.0) if image.min() < 0 else (0.0, 1.0)
        range = given if source_range == "image" else (-1.0, 1.0)
        counts, edges = gp.histogram(image, nbins, range, channel_axis=channel_axis)
        centres = ((edges[:-1] + edges[1:]) / 2).astype(image.dtype)
    return (counts / counts.sum(axis=-1, keepdims=True) if normalize else counts), centres


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    global current
    current = item.nodeid


def pytest_runtest_logreport(report):
    name = report.nodeid.split("site-packages/")[-1].split("/", 1)[-1] if "::" not in report.nodeid else report.nodeid
    if report.nodeid in reached or report.skipped and "gpuproc: " in str(report.longrepr):
        text = ""
        if report.skipped:
            text = str(report.longrepr[2]).removeprefix("Skipped: gpuproc: ")
        elif report.failed:
            lines = [line for line in str(report.longrepr).splitlines() if line.startswith("E  ")]
            text = (lines or ["?"])[0][1:].strip()
        if report.when == "call" or report.failed:
            outcomes[name] = (report.outcome, text)


def pytest_sessionfinish(session):
    with open(os.environ["PEERS_RESULTS"], "w") as file:
        json.dump(outcomes, file)
