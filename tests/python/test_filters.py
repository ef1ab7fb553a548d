"""Filters against SciPy and NumPy, for every type of samples, layout and number of axes."""

from functools import partial

import numpy as np
import pytest
import scipy.ndimage as ndi

import gpuproc as gp

TYPES = [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.float32, np.float64]
SHAPES = [(70,), (31, 47), (9, 14, 21)]
MODES = ["nearest", "reflect", "mirror", "wrap", "constant"]


def samples(dtype, shape, seed=0):
    """Noise in most of the range of 8 bits."""
    low, high = (0, 200) if np.dtype(dtype).kind == "u" else (-100, 100)
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


def assert_rounded(result, exact):
    """Integers are the exact result rounded once; floats are within their precision."""
    if result.dtype.kind == "f":
        np.testing.assert_allclose(result, exact, rtol=0, atol=100 * (1e-6 if result.dtype == "f4" else 1e-9))
    else:
        # Weights and the sums between passes are integers, so a value close to a half may be rounded either way.
        assert np.abs(result - exact).max() <= 0.5 + (0.1 if result.dtype.itemsize == 2 else 0.02)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_gaussian(dtype, shape, mode):
    image = samples(dtype, shape)
    sigma = [0.7, 1.5, 2.2][: len(shape)]
    result = gp.gaussian(image, sigma, mode=mode, cval=7)
    assert result.dtype == dtype and result.flags.c_contiguous
    exact = ndi.gaussian_filter(image.astype(float), sigma, mode=mode, cval=7)
    assert_rounded(result, exact)
    near = gp.gaussian(image, 2, truncate=1.5, mode=mode, cval=7)
    assert_rounded(near, ndi.gaussian_filter(image.astype(float), 2, truncate=1.5, mode=mode, cval=7))
    short = gp.gaussian(image, 2, radius=3, mode=mode, cval=7)
    assert_rounded(short, ndi.gaussian_filter(image.astype(float), 2, radius=3, mode=mode, cval=7))


# Odd, even, and above the numbers of taps that are added one by one.
@pytest.mark.parametrize("size", [(3, 5, 7), (2, 4, 6), (41, 5, 33), (70, 12, 34)])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_uniform_filter(dtype, shape, mode, size):
    image = samples(dtype, shape)
    size = size[: len(shape)]
    exact = ndi.uniform_filter(image.astype(float), size, mode=mode, cval=7)
    assert_rounded(gp.uniform_filter(image, size, mode=mode, cval=7), exact)


@pytest.mark.parametrize("size", [2, 3, 40])
@pytest.mark.parametrize("channels", [3, 4])
def test_uniform_filter_of_channels(size, channels):
    image = samples(np.uint8, (40, 50, channels))
    planes = [gp.uniform_filter(image[..., c], size) for c in range(channels)]
    np.testing.assert_array_equal(gp.uniform_filter(image, size, channel_axis=-1), np.stack(planes, -1))


@pytest.mark.parametrize("mode", [("wrap", "nearest", "mirror"), ("constant", "reflect", "wrap"), ("mirror", "constant", "constant")])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_a_mode_for_each_axis(dtype, shape, mode):
    image = samples(dtype, shape)
    mode, wide = mode[: len(shape)], image.astype(float)
    assert_rounded(gp.gaussian(image, 2, mode=mode, cval=7), ndi.gaussian_filter(wide, 2, mode=mode, cval=7))
    for size in (4, 5):
        exact = ndi.uniform_filter(wide, size, mode=mode, cval=7)
        assert_rounded(gp.uniform_filter(image, size, mode=mode, cval=7), exact)
    same = gp.gaussian(image, 2, mode=["wrap"] * len(shape))
    np.testing.assert_array_equal(same, gp.gaussian(image, 2, mode="wrap"))
    both = gp.chain(image, partial(gp.gaussian, sigma=2, mode=mode, cval=7), gp.median)
    np.testing.assert_array_equal(both, gp.median(gp.gaussian(image, 2, mode=mode, cval=7)))


@pytest.mark.parametrize("dtype", [*TYPES, bool])
@pytest.mark.parametrize("shape", SHAPES)
def test_morphology(dtype, shape):
    image = samples(np.uint8, shape) > 100 if dtype is bool else samples(dtype, shape)
    radius = [1, 2, 3][: len(shape)]
    size = [2 * r + 1 for r in radius]
    for ours, theirs in [
        (gp.erosion, ndi.grey_erosion), (gp.dilation, ndi.grey_dilation),
        (gp.opening, ndi.grey_opening), (gp.closing, ndi.grey_closing),
    ]:
        result = ours(image, radius)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, theirs(image, size))
    if dtype is not bool:
        wide = image.astype(float)
        exact = [
            (gp.morphological_gradient, ndi.morphological_gradient(wide, size)),
            (gp.white_tophat, ndi.white_tophat(wide, size)),
            (gp.black_tophat, ndi.black_tophat(wide, size)),
        ]
        for ours, difference in exact:
            if np.dtype(dtype).kind != "f":
                difference = np.clip(difference, np.iinfo(dtype).min, np.iinfo(dtype).max)
            np.testing.assert_allclose(ours(image, radius), difference, rtol=0, atol=1e-5)


def test_elements():
    image = samples(np.uint8, (30, 40))
    y, x = np.mgrid[-3:4, -3:4]
    for shape, footprint in [("cross", (y == 0) | (x == 0)), ("ball", y * y + x * x <= 9)]:
        expected = ndi.grey_dilation(image, footprint=footprint)
        np.testing.assert_array_equal(gp.dilation(image, 3, shape=shape), expected)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
def test_channels(axis, channels):
    planes = [samples(np.uint8, (20, 30), seed) for seed in range(channels)]
    image = np.stack(planes, axis)
    blurred = np.stack([gp.gaussian(plane, 2) for plane in planes], axis)
    np.testing.assert_array_equal(gp.gaussian(image, 2, channel_axis=axis), blurred)
    smaller = np.stack([gp.resize(plane, (7, 9)) for plane in planes], axis)
    np.testing.assert_array_equal(gp.resize(image, (7, 9), channel_axis=axis), smaller)


def test_volumes_of_channels():
    image = samples(np.float32, (5, 6, 7, 3))
    expected = np.stack([gp.gaussian(image[..., c], 1) for c in range(3)], -1)
    np.testing.assert_allclose(gp.gaussian(image, 1, channel_axis=-1), expected, atol=1e-4)


@pytest.mark.parametrize("dtype", TYPES)
def test_layouts(dtype):
    """Strided, Fortran, swapped, unaligned, read-only and nested inputs give the result of a plain copy."""
    plain = samples(dtype, (24, 36))
    for other in [plain[::2, ::-3], np.asfortranarray(plain), plain.T, plain[1:, 2:-3]]:
        expected = gp.gaussian(np.ascontiguousarray(other), 1.2)
        np.testing.assert_array_equal(gp.gaussian(other, 1.2), expected)
    expected = gp.gaussian(plain, 1.2)
    np.testing.assert_array_equal(gp.gaussian(plain.astype(plain.dtype.newbyteorder(">")), 1.2), expected)
    raw = np.zeros(plain.nbytes + 1, np.uint8)
    unaligned = raw[1:].view(dtype).reshape(plain.shape)
    unaligned[:] = plain
    np.testing.assert_array_equal(gp.gaussian(unaligned, 1.2), expected)
    frozen = plain.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(gp.gaussian(frozen, 1.2), expected)
    assert (frozen == plain).all()
    if np.dtype(dtype) == np.float64:
        np.testing.assert_array_equal(gp.gaussian(plain.tolist(), 1.2), expected)


def test_out():
    image = samples(np.uint8, (20, 30))
    expected = gp.gaussian(image, 2)
    out = np.zeros((20, 60), np.uint8)[:, ::2]
    assert gp.gaussian(image, 2, out=out) is out
    np.testing.assert_array_equal(out, expected)
    assert gp.gaussian(image, 2, out=image) is image
    np.testing.assert_array_equal(image, expected)
    with pytest.raises(ValueError, match="out: expected an array of uint8 with the shape"):
        gp.gaussian(image, out=np.zeros((20, 31), np.uint8))
    with pytest.raises(ValueError, match="out: expected an array of uint8"):
        gp.gaussian(image, out=np.zeros((20, 30), np.float32))
    frozen = np.zeros((20, 30), np.uint8)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        gp.gaussian(image, out=frozen)


def test_empty_and_small_arrays():
    assert gp.gaussian(np.zeros((0, 5), np.uint8)).shape == (0, 5)
    np.testing.assert_array_equal(gp.gaussian(np.array([[3]], np.uint8), 50), [[3]])
    assert gp.erosion(np.zeros((3, 0), np.float32)).shape == (3, 0)


@pytest.mark.parametrize("dtype", TYPES)
def test_threshold(dtype):
    image = samples(dtype, (30, 40))
    mask = gp.threshold(image, 20.5)
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, image > 20.5)
    classes = gp.threshold(image, [-10, 20, 50])
    np.testing.assert_array_equal(classes, sum((image > t).astype(int) for t in [-10, 20, 50]))
    assert classes.dtype == np.uint8
    np.testing.assert_array_equal(gp.threshold(image > 20, 0.5), image > 20)


def test_threshold_by_name():
    image = samples(np.uint8, (30, 40))
    np.testing.assert_array_equal(gp.threshold(image, "otsu"), image > gp.threshold_otsu(image)[0])
    with pytest.raises(ValueError, match="unknown method .mean."):
        gp.threshold(image, "mean")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_local_threshold(dtype, shape):
    from skimage.filters import threshold_local, threshold_sauvola
    image = samples(dtype, shape)
    wide, size = image.astype(float), (5, 3, 7)[: len(shape)]
    exact = [wide > threshold_local(wide, size, method, 1.25) for method in ("gaussian", "mean")]
    exact.append(wide > threshold_sauvola(wide, size, 0.3, 90))
    for method, mask in zip(("gaussian", "mean", "sauvola"), exact):
        result = gp.local_threshold(image, size, method, 1.25, k=0.3, r=90)
        assert result.dtype == bool and mask.any() and not mask.all()
        np.testing.assert_array_equal(result, mask)
    with pytest.raises(ValueError, match="block_size is 4, expected an odd number"):
        gp.local_threshold(image, 4)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_hysteresis(dtype, shape):
    from skimage.filters import apply_hysteresis_threshold
    image = samples(dtype, shape)
    expected = apply_hysteresis_threshold(image, 20, 90)
    np.testing.assert_array_equal(gp.apply_hysteresis_threshold(image, 20, 90), expected)
    with pytest.raises(ValueError, match="low is 2"):
        gp.apply_hysteresis_threshold(image, 2, 1)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_chain(dtype, shape):
    image = samples(dtype, shape)
    smaller = tuple(size // 2 for size in shape)
    steps = [partial(gp.gaussian, sigma=1.5), gp.median, partial(gp.resize, output_shape=smaller)]
    expected = image
    for step in steps:
        expected = step(expected)
    np.testing.assert_array_equal(gp.chain(image, *steps), expected)
    # A step may call several filters.
    mask = gp.chain(image, lambda image: gp.threshold(gp.median(image), "otsu"))
    np.testing.assert_array_equal(mask, 255 * gp.threshold(gp.median(image), "otsu").astype(np.uint8))
    labels = gp.chain(image, partial(gp.apply_hysteresis_threshold, low=10, high=60), gp.label)
    np.testing.assert_array_equal(labels, gp.label(gp.apply_hysteresis_threshold(image, 10, 60)))
    local = gp.chain(image, partial(gp.local_threshold, block_size=5))
    np.testing.assert_array_equal(local > 0, gp.local_threshold(image, 5))


def test_chain_of_channels():
    image, out = samples(np.uint8, (20, 30, 3)), np.zeros((20, 30, 3), np.uint8)
    assert gp.chain(image, gp.gaussian, gp.opening, channel_axis=-1, out=out) is out
    blurred = gp.gaussian(image, channel_axis=-1)
    np.testing.assert_array_equal(out, gp.opening(blurred, channel_axis=-1))
    np.testing.assert_array_equal(gp.chain(image[..., 0]), image[..., 0])
    np.testing.assert_array_equal(gp.chain(image > 9, gp.dilation, channel_axis=-1), gp.dilation(image > 9, channel_axis=-1))


def test_refused_steps():
    image = samples(np.uint8, (20, 30))
    for step, message in [
        (lambda image: gp.gaussian(image, out=np.zeros((20, 30), np.uint8)), "arguments of the chain"),
        (gp.project, "cannot be a step"),
        (gp.sort, "cannot be a step"),
        (lambda image: None, "a function that returns the result of a filter"),
        (partial(gp.gaussian, sigma=-1), "sigma is -1"),
    ]:
        with pytest.raises(ValueError, match=message):
            gp.chain(image, step)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.float32])
def test_threshold_otsu_has_the_maximum_variance(dtype):
    """Of few values and of more than 1024, which are divided by bins first."""
    rng = np.random.default_rng(0)
    for values in [rng.normal(60, 9, 900), rng.normal(90, 4, 300), rng.uniform(0, 20000, 3000)]:
        image = np.clip(values, 0, np.iinfo(dtype).max if np.dtype(dtype).kind in "iu" else 1e9).astype(dtype)
        found = gp.threshold_otsu(image)[0]
        levels, counts = np.unique(image, return_counts=True)
        wide = levels.astype(float)
        below, sums = np.cumsum(counts)[:-1], np.cumsum(counts * wide)[:-1]
        variance = (sums * image.size - below * image.astype(float).sum()) ** 2 / (below * (image.size - below))
        best = variance.argmax()
        if np.dtype(dtype).kind == "f":
            # The middle of two neighbours, up to the width of a bin.
            assert abs(found - (wide[best] + wide[best + 1]) / 2) <= np.ptp(wide) / 65535 + wide[best + 1] - wide[best]
        else:
            assert found == (wide[best] + wide[best + 1]) / 2


def test_threshold_otsu_divides_as_scikit_image():
    from skimage.filters import threshold_multiotsu, threshold_otsu
    rng = np.random.default_rng(5)
    image = np.concatenate([rng.normal(60, 8, 900), rng.normal(150, 9, 700), rng.normal(220, 4, 500)])
    image = image.clip(0, 255).astype(np.uint8)
    for classes, theirs in [(2, [threshold_otsu(image)]), (3, threshold_multiotsu(image, 3, nbins=256))]:
        ours = gp.threshold_otsu(image, classes)
        np.testing.assert_array_equal(np.digitize(image, ours, right=True), np.digitize(image, theirs, right=True))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_projections(dtype, shape):
    image = samples(dtype, shape)
    for axis in range(-len(shape), len(shape)):
        np.testing.assert_array_equal(gp.project(image, axis), image.max(axis))
        np.testing.assert_array_equal(gp.project(image, axis, method="min"), image.min(axis))
        wide = image.astype(float)
        np.testing.assert_allclose(gp.project(image, axis, method="sum"), wide.sum(axis), rtol=1e-12)
        np.testing.assert_allclose(gp.project(image, axis, method="mean"), wide.mean(axis), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(gp.project(image, axis, method="std"), wide.std(axis), rtol=1e-5, atol=1e-5)
    colour = samples(dtype, (*shape, 3))
    for axis in range(len(shape)):
        expected = colour.max(axis)
        np.testing.assert_array_equal(gp.project(colour, axis, channel_axis=-1), expected)
        moved = np.moveaxis(colour, -1, 0)
        np.testing.assert_array_equal(gp.project(moved, axis + 1, channel_axis=0), moved.max(axis + 1))


def test_rearrangements():
    image, volume = samples(np.uint8, (12, 20)), samples(np.float32, (4, 6, 8))
    np.testing.assert_array_equal(gp.crop(image, (6, 10)), image[3:9, 5:15])
    np.testing.assert_array_equal(gp.crop(volume, (2, 3, 8)), volume[1:3, 1:4])
    for axis, name in enumerate("zyx"):
        np.testing.assert_array_equal(gp.flip(volume, name), np.flip(volume, axis))
    np.testing.assert_array_equal(gp.rotate(image, 90), np.rot90(image, -1))
    np.testing.assert_array_equal(gp.rotate(volume, 270), np.rot90(volume, 1, (1, 2)))
    np.testing.assert_array_equal(gp.transpose(image), image.T)
    np.testing.assert_array_equal(gp.transpose(volume), volume.T)
    np.testing.assert_array_equal(gp.reorient(volume, "LAS", "RAS"), volume[:, :, ::-1])
    for mode, name in [("constant", "constant"), ("nearest", "edge"), ("reflect", "symmetric"), ("mirror", "reflect"), ("wrap", "wrap")]:
        expected = np.pad(volume, ((1, 1), (2, 2), (3, 3)), mode=name)
        np.testing.assert_array_equal(gp.pad(volume, (1, 2, 3), mode=mode), expected)
    np.testing.assert_array_equal(gp.pad(image, 2, after=0, cval=7), np.pad(image, ((2, 0), (2, 0)), constant_values=7))


def test_resize():
    image = samples(np.uint8, (12, 20))
    np.testing.assert_array_equal(gp.resize(image, (12, 20)), image)
    halves = image.reshape(6, 2, 10, 2).astype(float).mean((1, 3))
    assert np.abs(gp.resize(image, (6, 10), interpolation="area") - halves).max() <= 0.51
    double = gp.resize(image, (24, 40), interpolation="nearest")
    np.testing.assert_array_equal(double, image.repeat(2, 0).repeat(2, 1))
    volume = samples(np.float32, (4, 6, 8))
    eighths = volume.reshape(2, 2, 3, 2, 4, 2).mean((1, 3, 5))
    np.testing.assert_allclose(gp.resize(volume, (2, 3, 4), interpolation="area"), eighths, atol=1e-3)
    light = gp.resize(np.array([[0, 255]], np.uint8), (1, 1), interpolation="area", linear_light=True)
    np.testing.assert_array_equal(light, [[188]])
    line = np.arange(8, dtype=np.float64)
    np.testing.assert_allclose(gp.resize(line, 4, interpolation="area"), [0.5, 2.5, 4.5, 6.5])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_gradient_magnitude(dtype, shape):
    image = samples(dtype, shape)
    wide = image.astype(float)
    exact = np.sqrt(sum(ndi.sobel(wide, axis, mode="nearest") ** 2 for axis in range(len(shape))))
    if len(shape) > 1:
        np.testing.assert_allclose(gp.gradient_magnitude(image), exact, rtol=1e-5, atol=1e-3)
    smooth = ndi.gaussian_gradient_magnitude(wide, 1.5, mode="nearest")
    np.testing.assert_allclose(gp.gradient_magnitude(image, 1.5), smooth, rtol=1e-4, atol=1e-3)


def test_unsharp_mask():
    image = samples(np.uint8, (30, 40))
    wide = image.astype(float)
    for amount in (0.7, -0.4):
        exact = wide + amount * (wide - ndi.gaussian_filter(wide, 2, mode="nearest"))
        assert np.abs(gp.unsharp_mask(image, 2, amount) - exact.clip(0, 255)).max() <= 0.51
    np.testing.assert_array_equal(gp.unsharp_mask(image, 2, threshold=1000), image)


@pytest.mark.parametrize("shape", SHAPES)
def test_label(shape):
    from skimage.measure import label
    image = np.random.default_rng(4).integers(0, 3, shape, np.uint8)
    for connectivity in range(1, len(shape) + 1):
        np.testing.assert_array_equal(gp.label(image, connectivity), label(image, connectivity=connectivity))
        structure = ndi.generate_binary_structure(len(shape), connectivity)
        np.testing.assert_array_equal(gp.label(image > 0, connectivity, equal=False), ndi.label(image, structure)[0])
    sizes = np.bincount(gp.label(image).ravel())
    assert gp.label(image, min_size=3).max() == (sizes[1:] >= 3).sum()


@pytest.mark.parametrize("dtype", [*TYPES, bool])
@pytest.mark.parametrize("shape", SHAPES)
def test_median(dtype, shape):
    image = samples(np.uint8, shape) > 100 if dtype is bool else samples(dtype, shape)
    radius = [1, 2, 1][: len(shape)]
    size = [2 * r + 1 for r in radius]
    for percentile in [0, 20, 50, 100]:
        expected = ndi.percentile_filter(image, percentile, size, mode="nearest")
        np.testing.assert_array_equal(gp.median(image, radius, percentile=percentile), expected)
