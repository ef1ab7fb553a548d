"""The module: devices, errors, threads, files, the program, types and examples."""

import concurrent.futures
import doctest
import inspect
import os
import pathlib
import pickle
import subprocess
import sys
import time
import types

import numpy as np
import pytest

import gpuproc as gp


def run(code, **settings):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, **settings)


def test_examples_of_the_documentation():
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for name in gp.__all__:
        value = getattr(gp, name)
        if not callable(value) or isinstance(value, type) and issubclass(value, Exception):
            continue
        assert value.__doc__ and ">>>" in value.__doc__, name
        if not isinstance(value, type):
            assert "device" not in str(inspect.signature(value)).split(",")[0] or name == "set_device"
        runner.run(parser.get_doctest(value.__doc__, {}, name, None, None))
    gp.set_device(os.environ.get("GPUPROC_DEVICE", "auto"))
    assert runner.failures == 0


def test_every_function_has_a_type():
    import ast
    stub = pathlib.Path(gp.__file__).with_suffix(".pyi").read_text()
    names = {node.name for node in ast.parse(stub).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert set(gp.__all__) - {"__version__"} <= names
    functions = [node for node in ast.parse(stub).body if isinstance(node, ast.FunctionDef)]
    for function in functions:
        arguments = [a.arg for a in function.args.args + function.args.kwonlyargs]
        found = inspect.signature(getattr(gp, function.name)).parameters.values()
        found = [argument.name for argument in found if argument.kind != argument.VAR_POSITIONAL]
        assert found[: len(arguments)] == arguments, function.name


def test_stubs_of_declared_operations_are_up_to_date():
    stub = pathlib.Path(gp.__file__).with_suffix(".pyi").read_text()
    expected = gp._gpuproc._stubs().split("def ")[1:]
    assert len(expected) >= 10
    for function in expected:
        assert f"\ndef {function}" in stub, f"write this into __init__.pyi:\n\ndef {function}"


def test_declared_operations_are_plain_functions():
    image = np.array([[1, 9, 2, 2, 3]], np.uint8)
    assert str(inspect.signature(gp.median)) == "(image, radius=1, *, percentile=50.0, channel_axis=None, out=None, device=None)"
    assert gp.median.__module__ == "gpuproc" and pickle.loads(pickle.dumps(gp.median)) is gp.median
    lines = gp.median.__doc__.splitlines()
    assert lines[0] == "Replace each sample by the median or a percentile around it."
    at = lines.index("radius : int or sequence of int, default 1")
    assert lines[at + 1] == "    Radius of the box of neighbours in pixels, 0 to 50, for all axes or for each axis."
    assert "with `sigma`, derivatives" in gp.gradient_magnitude.__doc__ and "float :" not in gp.gradient_magnitude.__doc__
    # Functions of one operation have their own parameters, and defaults that differ from those of the command line.
    for function, signature in [
        (gp.label, "(image, connectivity=None, *, equal=True, min_size=1, out=None, device=None)"),
        (gp.local_threshold, "(image, block_size=3, method='gaussian', offset=0.0, *, k=0.2, r=None, out=None, device=None)"),
        (gp.apply_hysteresis_threshold, "(image, low, high, *, out=None, device=None)"),
    ]:
        assert str(inspect.signature(function)) == signature
    assert "low, high : float\n" in gp.apply_hysteresis_threshold.__doc__
    # The radius of each axis is in the order of the array.
    assert gp.median(image, (0, 1)).tolist() == [[1, 2, 2, 2, 3]]
    assert gp.median(image, (1, 0)).tolist() == image.tolist()
    assert gp.median(image, percentile=100).tolist() == [[9, 9, 9, 3, 3]]
    for error, message, call in [
        (ValueError, "radius is 51, expected 0 to 50", lambda: gp.median(image, 51)),
        (ValueError, "radius is -1, expected 0 to 50", lambda: gp.median(image, -1)),
        (ValueError, "radius has 3 values, but the input has 2 axes: give 1 value or 2", lambda: gp.median(image, (1, 1, 1))),
        (ValueError, "radius has 0 values, but the input has 2 axes", lambda: gp.median(image, ())),
        (ValueError, "sigma: expected a value above 0 along at least one axis", lambda: gp.gradient_magnitude(image, 0)),
        (ValueError, "amount is 101, expected -100 to 100", lambda: gp.unsharp_mask(image, 1, 101)),
        (ValueError, "threshold is -1, expected 0 or more", lambda: gp.unsharp_mask(image, threshold=-1)),
        (ValueError, 'shape: unknown shape "x"; expected box, cross or ball', lambda: gp.erosion(image, shape="x")),
        (TypeError, "shape: expected a string", lambda: gp.erosion(image, shape=1)),
        (TypeError, "radius: expected an int or a sequence of them", lambda: gp.median(image, 1.5)),
        (TypeError, "percentile: expected a number", lambda: gp.median(image, percentile="x")),
        (TypeError, "channel_axis: expected an int", lambda: gp.median(image, channel_axis="x")),
        (TypeError, "missing 1 required positional argument: 'image'", lambda: gp.median()),
        (TypeError, "equal: expected a bool", lambda: gp.label(image, equal="x")),
        (TypeError, "high: expected a number", lambda: gp.apply_hysteresis_threshold(image, 1, "x")),
        (TypeError, "missing 1 required positional argument: 'high'", lambda: gp.apply_hysteresis_threshold(image, 1)),
        (ValueError, "connectivity is 3, expected 1 to 2", lambda: gp.label(image, 3)),
        (ValueError, "connectivity is -1, expected 1 or more", lambda: gp.label(image, -1)),
        (ValueError, "block_size is 4, expected an odd number from 1 to 20001", lambda: gp.local_threshold(image, 4)),
        (ValueError, "r is 0, expected a number above 0", lambda: gp.local_threshold(image, r=0)),
        (ValueError, "k is -inf, expected a finite number", lambda: gp.local_threshold(image, k=-np.inf)),
        (TypeError, "unexpected keyword argument 'float'", lambda: gp.gradient_magnitude(image, float=True)),
    ]:
        with pytest.raises(error) as caught:
            call()
        assert message in str(caught.value)


def test_types_are_consistent(tmp_path):
    pytest.importorskip("mypy")
    file = tmp_path / "use.py"
    file.write_text(
        "import numpy as np\nimport gpuproc as gp\n"
        "image = gp.imread('a.png')\nsoft = gp.gaussian(image, sigma=(1.0, 2.0), out=None)\n"
        "mask: np.ndarray = gp.threshold(soft, 3)\nverts, faces, normals = gp.marching_cubes(soft)\n"
        "gp.gaussian(image, mode='nowhere')  # error\n"
    )
    checked = subprocess.run([sys.executable, "-m", "mypy", str(file)], capture_output=True, text=True, cwd=tmp_path)
    errors = [line for line in checked.stdout.splitlines() if "error:" in line]
    assert len(errors) == 1 and ":7:" in errors[0], checked.stdout


def test_import_is_fast_and_loads_no_numpy():
    code = "import time; t = time.perf_counter(); import gpuproc; t = time.perf_counter() - t; import sys; print(t, 'numpy' in sys.modules)"
    found = [run(code).stdout.split() for _ in range(5)]
    assert all(loaded == "False" for _, loaded in found)
    assert min(float(seconds) for seconds, _ in found) < 0.05


def test_devices():
    rows = gp.devices()
    assert rows[0]["device"] == "cpu" and sum(row["auto"] for row in rows) == 1
    cpu = gp.Device("cpu")
    assert (cpu.name, repr(cpu)) == ("CPU", "<gpuproc.Device CPU>")
    image = np.random.default_rng(0).random((300, 400)).astype(np.float32)
    expected = gp.gaussian(image, 2, device=cpu)
    for row in rows[1:]:
        device = gp.Device(row["device"])
        assert device.name == row["name"]
        np.testing.assert_array_equal(gp.gaussian(image, 2, device=device), expected)
    assert gp.Device().name


def test_errors():
    image = np.zeros((4, 5), np.uint8)
    for error, message, call in [
        (ValueError, "sigma is -1, expected 0 to 500", lambda: gp.gaussian(image, -1)),
        (ValueError, "sigma has 3 values, but the input has 2 axes", lambda: gp.gaussian(image, (1, 2, 3))),
        (ValueError, 'mode: unknown mode "x"; expected nearest, reflect, mirror, wrap or constant', lambda: gp.gaussian(image, mode="x")),
        (ValueError, "mode: unknown mode", lambda: gp.gaussian(image, mode="clamp")),
        (ValueError, "truncate: the radius is 20001, expected at most 10000", lambda: gp.gaussian(image, 500, truncate=40.0015)),
        (ValueError, "truncate is -1, expected 0 or more", lambda: gp.gaussian(image, truncate=-1)),
        (ValueError, "size is 0, expected 1 to 20001", lambda: gp.uniform_filter(image, 0)),
        (ValueError, "mode has 1 values, but the input has 2 axes", lambda: gp.gaussian(image, mode=["wrap"])),
        (ValueError, "mode: unknown mode", lambda: gp.gaussian(image, mode=["wrap", "x"])),
        (ValueError, "expected an array of 1 to 3 axes", lambda: gp.gaussian(np.zeros((2,) * 4))),
        (ValueError, "axis 2 is out of bounds", lambda: gp.cumsum(image, 2)),
        (ValueError, "radius is 101, expected 0 to 100", lambda: gp.erosion(image, 101, shape="ball")),
        (ValueError, "ascending numbers", lambda: gp.threshold(image, [2, 1])),
        (ValueError, "70000 bins: expected 1 to 65536", lambda: gp.histogram(image, 70000)),
        (TypeError, "arrays of complex128 are not supported", lambda: gp.gaussian(image * 1j)),
        (TypeError, "arrays of float16 are not supported", lambda: gp.sort(image.astype(np.float16))),
        (TypeError, "arrays of int64 are not supported", lambda: gp.gaussian(image.astype(int))),
        (gp.DeviceError, "no device 99", lambda: gp.Device(99)),
        (gp.DeviceError, "no device is called `nowhere`", lambda: gp.Device("nowhere")),
        (FileNotFoundError, "cannot read nowhere.png", lambda: gp.imread("nowhere.png")),
        (ValueError, "no image format has the extension `x`", lambda: gp.imwrite("a.x", image)),
    ]:
        with pytest.raises(error, match=message):
            call()


def test_too_little_memory():
    code = """if 1:
        import resource, numpy as np, gpuproc as gp
        image = np.zeros((16384, 16384), np.uint8)
        gp.gaussian(image[:64, :64])
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20),) * 2)
        try:
            gp.gaussian(image, 3)
        except MemoryError as error:
            print(error)
    """
    assert run(code).stdout.startswith("out of memory: cannot allocate")


def test_threads_run_at_once():
    images = [np.random.default_rng(seed).random((400, 500)).astype(np.float32) for seed in range(16)]
    expected = [gp.gaussian(image, 3) for image in images]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            for found, single in zip(pool.map(lambda image: gp.gaussian(image, 3), images), expected):
                np.testing.assert_array_equal(found, single)


def test_other_threads_of_python_run_meanwhile():
    import threading
    image = np.random.default_rng(0).random((1000, 1000))
    count, done = 0, False

    def work():
        nonlocal done
        for _ in range(3):
            gp.gaussian(image, 10)
        done = True

    thread = threading.Thread(target=work)
    thread.start()
    while not done:
        count += 1
        time.sleep(0.001)
    thread.join()
    assert count > 5


def test_a_forked_process_fails_instead_of_waiting_forever():
    code = """if 1:
        import os, numpy as np, gpuproc as gp
        gp.gaussian(np.zeros((300, 300)))
        child = os.fork()
        if child == 0:
            try:
                gp.gaussian(np.zeros((300, 300)))
            except RuntimeError as error:
                print(error, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
    """
    assert "used before this process was forked" in run(code, timeout=60).stdout


def test_warnings_are_logged():
    code = """if 1:
        import logging, numpy as np, gpuproc as gp, os, tempfile
        logging.basicConfig(format="%(name)s %(levelname)s %(message)s")
        gp.imwrite(os.path.join(tempfile.mkdtemp(), "a.jpg"), np.zeros((4, 4, 4), np.uint8))
    """
    assert "gpuproc WARNING" in run(code).stderr and "alpha is dropped" in run(code).stderr


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.webp", "a.bmp"])
def test_images_of_files(tmp_path, name):
    for shape in [(7, 9), (7, 9, 3), (7, 9, 4)][name == "a.webp" :]:  # WebP has no grey images.
        image = np.random.default_rng(1).integers(0, 255, shape, np.uint8)
        if shape[-1] == 4:
            image[..., 3] = 255
        gp.imwrite(tmp_path / name, image, channel_axis=-1 if len(shape) == 3 else None)
        found = gp.imread(str(tmp_path / name))
        np.testing.assert_array_equal(found[..., :3] if len(shape) == 3 else found, image[..., :3] if len(shape) == 3 else image)


def test_spacing_of_images(tmp_path):
    gp.imwrite(tmp_path / "a.png", np.zeros((4, 5), np.uint8), spacing=(0.5, 0.25))
    found, info = gp.imread(tmp_path / "a.png", return_info=True)
    np.testing.assert_allclose(info["spacing"], (0.5, 0.25), rtol=1e-3)
    assert info["unit"] == "mm" and info["space"] is None


@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz", "a.nrrd", "a.mha", "a.npy", "a.tif"])
def test_volumes_of_files(tmp_path, name):
    volume = np.random.default_rng(1).integers(-99, 99, (4, 5, 6), np.int16)
    spacing = None if name in ("a.npy", "a.tif") else (3.0, 0.5, 2.0)
    gp.imwrite(tmp_path / name, volume, spacing=spacing)
    found, info = gp.imread(tmp_path / name, return_info=True, stack=name == "a.tif")
    np.testing.assert_array_equal(found, volume)
    assert info["spacing"] == spacing or spacing is None
    if name == "a.npy":
        np.testing.assert_array_equal(np.load(tmp_path / name), volume)


def test_affines_are_those_of_nibabel(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    affine = np.array([[0, -2, 0, 10], [0, 0, 3, -20], [1, 0, 0, 5], [0, 0, 0, 1]], float)
    volume = np.random.default_rng(1).integers(0, 99, (4, 5, 6), np.int16)
    gp.imwrite(tmp_path / "a.nii.gz", volume, affine=affine)
    theirs = nibabel.load(tmp_path / "a.nii.gz")
    np.testing.assert_allclose(theirs.affine, affine, atol=1e-5)
    np.testing.assert_array_equal(np.asarray(theirs.dataobj).T, volume)
    found, info = gp.imread(tmp_path / "a.nii.gz", return_info=True)
    np.testing.assert_allclose(info["affine"], affine, atol=1e-5)
    assert info["space"] == "RAS" and info["spacing"] == (3.0, 2.0, 1.0)
    nibabel.save(nibabel.Nifti1Image(volume.T, affine), tmp_path / "b.nii")
    found, info = gp.imread(tmp_path / "b.nii", return_info=True)
    np.testing.assert_allclose(info["affine"], affine, atol=1e-5)
    np.testing.assert_array_equal(found, volume)


def test_the_program(tmp_path):
    program = pathlib.Path(sys.executable).with_name("gpuproc")
    commands = [[sys.executable, "-m", "gpuproc"], *([[str(program)]] if program.exists() else [])]
    image = np.random.default_rng(1).integers(0, 255, (40, 50), np.uint8)
    gp.imwrite(tmp_path / "a.png", image)
    for command in commands:
        version = subprocess.run([*command, "--version"], capture_output=True, text=True)
        assert version.stdout.split()[:2] == ["gpuproc", gp.__version__]
        blurred = subprocess.run([*command, "blur", "a.png", "b.png", "--sigma", "2"], cwd=tmp_path, capture_output=True, text=True)
        assert (blurred.returncode, blurred.stderr) == (0, "")
        np.testing.assert_array_equal(gp.imread(tmp_path / "b.png"), gp.gaussian(image, 2, truncate=3))
        missing = subprocess.run([*command, "blur", "none.png", "b.png"], cwd=tmp_path, capture_output=True, text=True)
        assert missing.returncode == 7 and missing.stderr.startswith("error: ")
        job = b'{"arguments": ["blur", "a.png", "c.png"]}\n'
        served = subprocess.run([*command, "serve"], input=job, cwd=tmp_path, capture_output=True)
        assert b'"code":0' in served.stdout.replace(b" ", b"") and (tmp_path / "c.png").exists()


def test_the_program_ends_on_signals(tmp_path):
    import signal
    child = subprocess.Popen([sys.executable, "-m", "gpuproc", "scan", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    assert child.wait(10) == -signal.SIGINT


def test_blocks_of_dask():
    da = pytest.importorskip("dask.array")
    image = np.random.default_rng(1).integers(0, 255, (200, 300), np.uint8)
    lazy = da.from_array(image, chunks=(64, 100))
    blurred = lazy.map_overlap(gp.gaussian, depth=8, boundary="nearest", sigma=2.0, dtype=np.uint8)
    np.testing.assert_array_equal(blurred.compute(), gp.gaussian(image, 2))
    mask = lazy.map_blocks(gp.threshold, 100, dtype=bool)
    np.testing.assert_array_equal(mask.compute(), image > 100)


def test_small_arrays_take_little_time():
    """No call has a fixed cost such as large tables or waiting for other threads."""
    rng = np.random.default_rng(0)
    for image in [rng.integers(0, 60000, (64, 64)).astype(np.uint16), rng.random((64, 64)).astype(np.float32)]:
        for call in [
            gp.gaussian, gp.uniform_filter, gp.median, gp.erosion, gp.gradient_magnitude, gp.unsharp_mask, gp.sort,
            gp.argsort, gp.cumsum, gp.integral_image, gp.histogram, gp.label, gp.local_threshold, gp.threshold_otsu,
            lambda image: gp.resize(image, (32, 32)), lambda image: gp.apply_hysteresis_threshold(image, 0.2, 0.8),
        ]:
            seconds = []
            for _ in range(30):
                start = time.perf_counter()
                call(image)
                seconds.append(time.perf_counter() - start)
            assert min(seconds) < 400e-6, (call, image.dtype, min(seconds))


def test_examples_of_the_guide(tmp_path, monkeypatch):
    root = pathlib.Path(os.environ.get("GPUPROC_GUIDE", ".")).resolve()
    text = (root / "python.md").read_text()
    blocks = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    assert len(blocks) == 4
    # A viewer that checks its surface, and a volume for it.
    shown = []
    monkeypatch.setitem(sys.modules, "napari", types.SimpleNamespace(view_surface=shown.append, run=lambda: None))
    monkeypatch.chdir(tmp_path)
    volume = np.random.default_rng(0).integers(0, 200, (5, 6, 7), np.uint8)
    gp.imwrite("head.nii.gz", volume, spacing=(3.0, 0.5, 2.0))
    values = {}
    for block in blocks:
        exec(block, values)
    np.testing.assert_array_equal(values["blurred"], gp.gaussian(values["image"][..., 0], 2))
    [(verts, faces)] = shown
    assert verts.dtype == np.float32 and verts.shape[1] == faces.shape[1] == 3
    assert faces.dtype.kind == "u" and faces.max() == len(verts) - 1
    assert (verts.max(axis=0) <= np.array([4, 5, 6]) * (3.0, 0.5, 2.0)).all() and verts[:, 0].max() > 8
