"""Every function with arrays of every shape, type and layout, and with arguments of every type: a result, or an exception of
one line that programs can catch."""

import inspect

import numpy as np
import pytest

import gpuproc as gp

KNOWN = (ValueError, TypeError, MemoryError)

# Each function with arguments that suit most arrays.
CALLS = {
    "gaussian": gp.gaussian,
    "uniform_filter": gp.uniform_filter,
    "median": gp.median,
    "erosion": gp.erosion,
    "dilation": gp.dilation,
    "opening": gp.opening,
    "closing": gp.closing,
    "morphological_gradient": gp.morphological_gradient,
    "white_tophat": gp.white_tophat,
    "black_tophat": gp.black_tophat,
    "chain": lambda a: gp.chain(a, gp.median, lambda a: gp.threshold(a, 1), gp.erosion),
    "threshold": lambda a: gp.threshold(a, 1),
    "threshold several": lambda a: gp.threshold(a, [0, 1]),
    "threshold otsu": lambda a: gp.threshold(a, "otsu"),
    "local_threshold": gp.local_threshold,
    "local_threshold sauvola": lambda a: gp.local_threshold(a, method="sauvola"),
    "apply_hysteresis_threshold": lambda a: gp.apply_hysteresis_threshold(a, 0, 1),
    "threshold_otsu": gp.threshold_otsu,
    "resize": lambda a: gp.resize(a, 3),
    "crop": lambda a: gp.crop(a, 1),
    "flip": lambda a: gp.flip(a, "x"),
    "pad": lambda a: gp.pad(a, 2, mode="reflect"),
    "rotate": lambda a: gp.rotate(a, 90),
    "transpose": gp.transpose,
    "reorient": lambda a: gp.reorient(a, "RAS", "LSA"),
    "project": gp.project,
    "project std": lambda a: gp.project(a, -1, method="std"),
    "gradient_magnitude": gp.gradient_magnitude,
    "unsharp_mask": gp.unsharp_mask,
    "convert": lambda a: gp.convert(a, "float32", scale="minmax"),
    "label": gp.label,
    "math": lambda a: gp.math(a, "255 - a"),
    "math mask": lambda a: gp.math(a, "a > 1"),
    "label connected": lambda a: gp.label(a, 1, equal=False, min_size=2),
    "histogram": gp.histogram,
    "histogram channels": lambda a: gp.histogram(a, channel_axis=-1),
    "statistics": lambda a: gp.statistics(a, percentiles=[0, 50, 100]),
    "cumsum": gp.cumsum,
    "cumsum axis": lambda a: gp.cumsum(a, 0, exclusive=True),
    "integral_image": gp.integral_image,
    "sort": gp.sort,
    "sort flat": lambda a: gp.sort(a, None, descending=True),
    "argsort": lambda a: gp.argsort(a, 0),
    "marching_cubes": gp.marching_cubes,
    "marching_cubes closed": lambda a: gp.marching_cubes(a, 0.5, close=True),
    "label_meshes": gp.label_meshes,
    "simplify": lambda a: gp.simplify(a, [[0, 1, 2]], ratio=0.5),
    "simplify faces": lambda a: gp.simplify(np.eye(3), a, ratio=0.5),
    "gaussian channels": lambda a: gp.gaussian(a, channel_axis=-1),
    "resize channels": lambda a: gp.resize(a, 3, channel_axis=0),
    "out": lambda a: gp.gaussian(np.ones((3, 4), np.uint8), out=a),
}
# Functions of no array.
OTHERS = {"Device", "DeviceError", "devices", "set_device", "imread", "imwrite"}

SHAPES = [
    (), (0,), (1,), (3,), (0, 0), (0, 5), (5, 0), (1, 1), (4, 5), (4, 0, 3), (0, 4, 3), (4, 3, 0), (3, 4, 5), (1, 1, 1),
    (2, 3, 4, 5), (0, 1, 1, 3), (2, 1, 2, 1, 2), (1, 1, 2, 2, 2, 2), (0, 0, 0, 0, 0, 0),
]
TYPES = [
    "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "g", "?", "F", "D", "O", "S3", "U2", "M8[s]", "m8[s]",
    ">u2", ">i4", ">f4", ">f8", ">u8", [("a", "u1"), ("b", "f4")], "V3",
]


def arrays():
    for shape in SHAPES:
        for dtype in ["u1", "f4", "i8", "?"]:
            yield f"{shape} {dtype}", np.ones(shape, dtype)
    for dtype in TYPES:
        for shape in [(3, 4), (2, 3, 4), (0, 3)]:
            yield f"{shape} {dtype}", np.zeros(shape, dtype)
    whole = np.arange(4 * 6 * 8, dtype="u2").reshape(4, 6, 8)
    for name, array in {
        "Fortran": np.asfortranarray(whole),
        "negative": whole[::-1, ::-2, ::-1],
        "strided": whole[1::2, :, 3:6],
        "broadcast": np.broadcast_to(np.float32(2), (3, 4, 5)),
        "unaligned": np.frombuffer(bytes(1 + 4 * 60), np.uint8)[1:].view("f4").reshape(3, 4, 5),
        "not finite": np.array([[np.nan, np.inf, -np.inf], [-0.0, 0.0, 1e300]]),
        "NaN": np.full((3, 4, 5), np.nan, "f4"),
        "square": np.eye(3),
        "matrix": np.asmatrix([[1, 2], [3, 4]]),
        "masked": np.ma.masked_array([[1.0, 2.0]], [[True, False]]),
    }.items():
        yield name, array
        frozen = array.copy()
        frozen.flags.writeable = False
        yield f"read-only {name}", frozen
    # More samples than any memory holds, which share one.
    for shape in [(2**50,), (2**25, 2**25), (2**16, 2**17, 2**17), (2**17, 2**16, 2**16, 3)]:
        yield f"huge {shape}", np.broadcast_to(np.uint8(1), shape)


ARRAYS = list(arrays())


def check(error, context):
    """The message is one line, and no failure of gpuproc itself."""
    text = str(error)
    assert isinstance(error, KNOWN), f"{context}: {error!r}"
    assert text and "\n" not in text and "internal error" not in text, f"{context}: {error!r}"


def test_all_functions_are_called():
    names = {name for name in gp.__all__ if not name.startswith("_")}
    assert names - OTHERS == {name.split()[0] for name in CALLS} - {"out"}


@pytest.mark.parametrize("name", CALLS)
def test_every_array_gives_a_result_or_an_exception(name):
    works = 0
    for context, array in ARRAYS:
        before = array.copy() if array.size < 1000 and name != "out" else None
        try:
            CALLS[name](array)
            works += 1
        except Exception as error:
            check(error, f"{name} of {context}")
        if before is not None and array.dtype.kind not in "OV":
            np.testing.assert_array_equal(array, before)
    assert works > 0


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (4, 0, 3), (0, 4, 3), (4, 3, 0)])
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "?"])
def test_empty_arrays_have_empty_results(shape, dtype):
    empty = np.zeros(shape, dtype)
    for function in [
        gp.gaussian, gp.uniform_filter, gp.median, gp.erosion, gp.dilation, gp.opening, gp.closing, gp.white_tophat,
        gp.black_tophat, gp.morphological_gradient, gp.unsharp_mask, gp.sort,
    ]:
        result = function(empty)
        assert (result.shape, result.dtype) == (shape, dtype), function
    for result in [gp.threshold(empty, 3), gp.local_threshold(empty), gp.apply_hysteresis_threshold(empty, 1, 2)]:
        assert (result.shape, result.dtype) == (shape, "?")
    assert gp.gradient_magnitude(empty).shape == shape
    assert (gp.label(empty).shape, gp.label(empty).dtype) == (shape, np.uint16)
    assert gp.argsort(empty).shape == gp.integral_image(empty).shape == shape
    assert gp.chain(empty, gp.median, gp.label).shape == shape
    counts, edges = gp.histogram(empty, 4)
    assert counts.tolist() == [0] * 4 and len(edges) == 5
    for axis in range(len(shape)):
        np.testing.assert_array_equal(gp.cumsum(empty, axis), np.cumsum(empty, axis))
        if shape[axis] > 0:
            assert gp.project(empty, axis).shape == empty.max(axis).shape
        else:
            for method in ["max", "min", "mean", "sum", "std"]:
                with pytest.raises(ValueError, match="axis"):
                    gp.project(empty, axis, method=method)
    for call in [lambda: gp.resize(empty, 3), lambda: gp.statistics(empty), lambda: gp.threshold_otsu(empty)]:
        with pytest.raises(ValueError):
            call()


def test_subclasses_are_read_as_arrays():
    matrix = np.asmatrix(np.arange(6.0).reshape(2, 3))
    for function in [gp.cumsum, lambda a: gp.sort(a, None), lambda a: gp.histogram(a)[0], gp.gaussian]:
        result = function(matrix)
        np.testing.assert_array_equal(result, function(np.asarray(matrix)))
        assert type(result) is np.ndarray


def test_results_that_no_memory_holds_are_refused():
    for shape in [10**8, 2**40, 2**62, 10**30]:
        with pytest.raises((MemoryError, ValueError)):
            gp.resize(np.zeros((8, 9), "u1"), shape)
    with pytest.raises((MemoryError, ValueError)):
        gp.resize(np.zeros((3, 3, 3), "f8"), 10**7)


def test_imread_has_a_memory_limit(tmp_path):
    image = np.zeros((3000, 4000), np.uint8)
    gp.imwrite(tmp_path / "a.png", image)
    for limit in [1_000_000, "1M", 0]:
        with pytest.raises(MemoryError, match="memory"):
            gp.imread(tmp_path / "a.png", max_memory=limit)
    for limit in [None, "1G", 200_000_000]:
        np.testing.assert_array_equal(gp.imread(tmp_path / "a.png", max_memory=limit), image)
    for limit, error in [(-1, ValueError), ("much", ValueError), (1.5, TypeError), ([], TypeError)]:
        with pytest.raises(error, match="max_memory"):
            gp.imread(tmp_path / "a.png", max_memory=limit)
    with pytest.raises(Exception) as caught:
        gp.imread("/dev/zero", max_memory="16M")
    assert isinstance(caught.value, (MemoryError, OSError, ValueError))


WRONG = [object(), "x", "", b"x", 10**400, -(10**400), 2**63, -1, -0.0, 1e400, -1e400, float("nan"), [], [object()], [1, 2, 3, 4], {}, 3 + 4j]
REQUIRED = {
    "threshold": {"value": 1}, "apply_hysteresis_threshold": {"low": 1, "high": 2}, "resize": {"output_shape": 3},
    "simplify": {"faces": [[0, 1, 2]], "ratio": 0.5},
}


@pytest.mark.parametrize("name", sorted(set(gp.__all__) - OTHERS - {"__version__", "chain"}))
def test_every_argument_is_checked(name):
    function = getattr(gp, name)
    parameters = list(inspect.signature(function).parameters)
    image = np.eye(3) if name == "simplify" else np.arange(60, dtype="u1").reshape(3, 4, 5)
    for parameter in parameters[1:]:
        for wrong in WRONG:
            arguments = REQUIRED.get(name, {}) | {parameter: wrong}
            if name == "simplify" and parameter == "triangles":
                del arguments["ratio"]
            try:
                function(image, **arguments)
            except Exception as error:
                check(error, f"{name}({parameter}={wrong!r})")
                # Python adds the name of an argument that is no number as a note.
                text = str(error) + " ".join(getattr(error, "__notes__", []))
                assert not isinstance(error, TypeError) or parameter in text, f"{name}({parameter}={wrong!r}): {error!r}"


def test_arguments_of_files_are_checked(tmp_path):
    image = np.zeros((3, 4), np.uint8)
    gp.imwrite(tmp_path / "a.png", image)
    for parameter in list(inspect.signature(gp.imread).parameters)[1:]:
        for wrong in WRONG:
            try:
                gp.imread(tmp_path / "a.png", **{parameter: wrong})
            except Exception as error:
                check(error, f"imread({parameter}={wrong!r})")
    for parameter in list(inspect.signature(gp.imwrite).parameters)[2:]:
        for wrong in WRONG:
            try:
                gp.imwrite(tmp_path / "b.png", image, **{parameter: wrong})
            except Exception as error:
                check(error, f"imwrite({parameter}={wrong!r})")
    for context, array in ARRAYS:
        for name in ["c.png", "c.nrrd", "c.tif", "c.npy"]:
            try:
                gp.imwrite(tmp_path / name, array)
            except Exception as error:
                assert isinstance(error, (*KNOWN, OSError)) and "\n" not in str(error), f"{name} {context}: {error!r}"
    gp.imwrite(tmp_path / "list.png", [[True, False]])
    assert gp.imread(tmp_path / "list.png").tolist() == [[255, 0]]


def test_zeros_of_both_signs_are_equal_arguments():
    rng = np.random.default_rng(0)
    image = rng.random((9, 8), np.float32) - np.float32(0.5)
    for call in [
        lambda zero: gp.gaussian(image, zero), lambda zero: gp.gaussian(image, 1.0, truncate=zero),
        lambda zero: gp.gradient_magnitude(image, (zero, 1)), lambda zero: gp.unsharp_mask(image, zero),
        lambda zero: gp.unsharp_mask(image, threshold=zero), lambda zero: gp.median(image, percentile=zero),
        lambda zero: gp.threshold(image, zero), lambda zero: gp.local_threshold(image, offset=zero),
        lambda zero: gp.apply_hysteresis_threshold(image, zero, 0.1), lambda zero: gp.marching_cubes(image[None], zero)[0],
        lambda zero: gp.histogram(image, 4, (zero, 1.0))[0],
    ]:
        np.testing.assert_array_equal(call(-0.0), call(0.0))
    signs = np.array([[-0.0, 0.0, 1.0, -0.0], [0.0, -0.0, np.nan, 2.0]], np.float32)
    assert gp.label(signs).tolist() == gp.label(np.abs(signs)).tolist()
    assert gp.threshold(signs, -0.0).tolist() == (signs > 0).tolist() == gp.threshold(signs, 0).tolist()
    statistics = gp.statistics(signs)
    assert statistics["count"] == 7 and statistics["mode"] == 0.0 and str(statistics["mode"]) == "0.0"


@pytest.mark.parametrize("call", [
    lambda: gp.gaussian(np.zeros(3), np.nan), lambda: gp.gaussian(np.zeros(3), 1, truncate=np.nan),
    lambda: gp.gaussian(np.zeros(3), mode="constant", cval=np.nan), lambda: gp.median(np.zeros(3), percentile=np.nan),
    lambda: gp.uniform_filter(np.zeros(3), mode=["constant"], cval=np.inf), lambda: gp.threshold(np.zeros(3), np.nan),
    lambda: gp.unsharp_mask(np.zeros(3), amount=np.nan), lambda: gp.unsharp_mask(np.zeros(3), threshold=np.nan),
    lambda: gp.histogram(np.zeros(3), range=(0, np.nan)), lambda: gp.statistics(np.zeros(3), percentiles=[np.nan]),
    lambda: gp.local_threshold(np.zeros(3), k=np.nan), lambda: gp.apply_hysteresis_threshold(np.zeros(3), np.nan, 1),
    lambda: gp.marching_cubes(np.zeros((3, 3, 3)), np.nan), lambda: gp.simplify(np.eye(3), [[0, 1, 2]], ratio=np.nan),
])
def test_nan_is_no_argument(call):
    with pytest.raises(ValueError):
        call()


def test_balls_on_one_axis_are_lines():
    row = np.random.default_rng(1).integers(0, 255, 60, np.uint8)
    for function in [gp.erosion, gp.dilation, gp.opening, gp.white_tophat]:
        np.testing.assert_array_equal(function(row, 2, shape="ball"), function(row, 2, shape="box"))
    np.testing.assert_array_equal(gp.erosion(row, [3], shape="ball"), gp.erosion(row, 3))


def test_wrong_types_are_one_line_with_the_name():
    image = np.zeros((4, 5), np.uint8)
    for call, message in [
        (lambda: gp.gaussian(image, "x"), "sigma: expected a number or a sequence of them"),
        (lambda: gp.gaussian(image, [1, object()]), "sigma: expected a number or a sequence of them"),
        (lambda: gp.gaussian(image, mode=3), "mode: expected a string or a sequence of them"),
        (lambda: gp.gaussian(image, cval={}), "cval: expected a number"),
        (lambda: gp.erosion(image, 1.5), "radius: expected an int or a sequence of them"),
        (lambda: gp.median(image, channel_axis="x"), "channel_axis: expected an int"),
        (lambda: gp.cumsum(image, 0.0), "axis: expected an int"),
        (lambda: gp.histogram(image, bins="x"), "bins: expected an int"),
        (lambda: gp.histogram(image, range={}), "range: expected a number or a sequence of them"),
        (lambda: gp.threshold(image, {}), 'value: expected a number, a sequence of numbers, or "otsu"'),
        (lambda: gp.imread("a.png", page="x"), "page: expected an int"),
    ]:
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == message
    for call, message in [
        (lambda: gp.erosion(image, -1), "radius is -1, expected 0 to 10000"),
        (lambda: gp.label(image, min_size=-(10**400)), "min_size is -9223372036854775808, expected 0 or more"),
        (lambda: gp.cumsum(image, 10**400), "axis 9223372036854775807 is out of bounds for an array of 2 axes"),
        (lambda: gp.gaussian(image, 10**400), "sigma is inf, expected 0 to 500"),
    ]:
        with pytest.raises(ValueError) as caught:
            call()
        assert str(caught.value) == message
