"""Sums, sorts, histograms and statistics against NumPy."""

import numpy as np
import pytest

import gpuproc as gp

TYPES = [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64, np.float32, np.float64]
SHAPES = [(4097,), (4096,), (31, 47), (9, 14, 21), (3, 4, 5, 6), (2, 3, 40), (1, 1), (0,), (4, 0)]


def numbers(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return rng.normal(0, 1000, shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [*TYPES, bool])
def test_cumsum(dtype, shape):
    a = numbers(np.uint8, shape) > 99 if dtype is bool else numbers(dtype, shape)
    for axis in [None, *range(-len(shape), len(shape))]:
        expected = np.cumsum(a, axis)
        found = gp.cumsum(a, axis)
        assert found.dtype == expected.dtype and found.shape == expected.shape
        if found.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol=1e-3 if dtype == np.float32 else 1e-9, atol=1)
        else:
            np.testing.assert_array_equal(found, expected)
            before = expected - (a.ravel() if axis is None else a)
            np.testing.assert_array_equal(gp.cumsum(a, axis, exclusive=True), before)


@pytest.mark.parametrize("dtype", [*TYPES[:8], bool])
def test_long_cumsum(dtype):
    """More numbers than a thread takes at a time."""
    a = numbers(np.uint8, 200_001) > 99 if dtype is bool else numbers(dtype, 200_001)
    np.testing.assert_array_equal(gp.cumsum(a), np.cumsum(a))
    np.testing.assert_array_equal(gp.cumsum(a[::-2], exclusive=True), np.cumsum(a[::-2]) - a[::-2])


@pytest.mark.parametrize("shape", [(31, 47), (9, 14, 21), (7,), (2, 3, 4, 5)])
@pytest.mark.parametrize("dtype", TYPES)
def test_integral_image(dtype, shape):
    a = numbers(dtype, shape)
    expected = a.astype(np.float64) if a.dtype.kind == "f" else a
    for axis in range(len(shape)):
        expected = np.cumsum(expected, axis)
    found = gp.integral_image(a)
    assert found.dtype == expected.dtype
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-6)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [*TYPES, bool])
def test_sort(dtype, shape):
    a = numbers(np.uint8, shape) > 99 if dtype is bool else numbers(dtype, shape)
    if np.dtype(dtype).kind == "i":
        a //= 50  # Equal numbers, whose order argsort keeps.
    if np.dtype(dtype).kind == "f" and a.size > 1:
        a.flat[::7] = np.nan
        a.flat[1::11] = -np.inf
    for axis in [None, *range(-len(shape), len(shape))]:
        expected = np.sort(a, axis)
        found = gp.sort(a, axis)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected)
        order = gp.argsort(a, axis)
        np.testing.assert_array_equal(order, np.argsort(a, axis, kind="stable"))
    if dtype is not bool and a.size and np.dtype(dtype).kind != "f":
        np.testing.assert_array_equal(gp.sort(a, None, descending=True), np.sort(a, None)[::-1])


def test_sort_leaves_its_input():
    a = np.array([3, 1, 2], np.uint32)
    gp.sort(a)
    gp.cumsum(a)
    assert a.tolist() == [3, 1, 2]


@pytest.mark.parametrize("dtype", [*TYPES, bool])
@pytest.mark.parametrize("given", [None, (10.0, 90.0)])
@pytest.mark.parametrize("shape", [(40, 50), (100, 110)])
def test_histogram(dtype, given, shape):
    a = numbers(np.uint8, shape) > 99 if dtype is bool else numbers(dtype, shape)
    for bins in [1, 7, 256]:
        counts, edges = gp.histogram(a, bins, given)
        expected, expected_edges = np.histogram(a.astype(np.float64), bins, given)
        np.testing.assert_array_equal(counts, expected)
        np.testing.assert_allclose(edges, expected_edges, rtol=1e-6)
        assert counts.dtype == np.int64 and edges.dtype == np.float64


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_histogram_of_channels(dtype, axis):
    a = numbers(dtype, (4, 5, 6))
    for given in [None, (-50.0, 90.0)]:
        counts, edges = gp.histogram(a, 9, given, channel_axis=axis)
        np.testing.assert_array_equal(edges, gp.histogram(a, 9, given)[1])
        planes = np.moveaxis(a, axis, 0)
        expected = [gp.histogram(plane, 9, (edges[0], edges[-1]))[0] for plane in planes]
        np.testing.assert_array_equal(counts, expected)
        assert counts.dtype == np.int64
    with pytest.raises(ValueError, match="axis"):
        gp.histogram(a, channel_axis=3)


def test_histogram_of_constants_and_nothing():
    for a in [np.full(5, 3, np.uint8), np.full(5, 3.0)]:
        counts, edges = gp.histogram(a, 2)
        np.testing.assert_array_equal(counts, np.histogram(a, 2)[0])
        np.testing.assert_array_equal(edges, np.histogram(a, 2)[1])
    counts, edges = gp.histogram(np.zeros(0), 3)
    assert counts.tolist() == [0, 0, 0] and edges[0] == 0 and edges[-1] == 1
    assert gp.histogram(np.array([1.0, np.nan, np.inf, 2.0]), 2)[0].tolist() == [1, 1]


@pytest.mark.parametrize("shape", [(40, 50), (100, 110)])
@pytest.mark.parametrize("dtype", TYPES)
def test_statistics(dtype, shape):
    a = numbers(dtype, shape)
    if a.dtype.itemsize == 8 and a.dtype.kind != "f":
        a >>= 12  # float64 is exact.
    found = gp.statistics(a, percentiles=[0, 10, 50, 99.5, 100])
    wide = a.astype(np.float64)
    assert found["count"] == a.size
    assert (found["min"], found["max"]) == (wide.min(), wide.max())
    np.testing.assert_allclose([found["mean"], found["std"]], [wide.mean(), wide.std()], rtol=1e-12)
    for p, value in found["percentiles"].items():
        assert value == np.percentile(wide, p, method="inverted_cdf")
    assert found["median"] == found["percentiles"][50]
    values, counts = np.unique(a, return_counts=True)
    assert found["mode"] == float(values[counts.argmax()])
    shares = counts / a.size
    np.testing.assert_allclose(found["entropy"], -(shares * np.log2(shares)).sum(), rtol=1e-12)


def test_statistics_leave_out_what_is_not_finite():
    found = gp.statistics(np.array([1.0, np.nan, np.inf, 3.0], np.float32))
    assert (found["count"], found["mean"]) == (2, 2.0)
    for nothing in [np.zeros(0), np.array([np.nan])]:
        with pytest.raises(ValueError, match="no finite samples"):
            gp.statistics(nothing)
