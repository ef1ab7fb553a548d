from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, TypeAlias, TypedDict, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

Array: TypeAlias = NDArray[Any]
Path: TypeAlias = str | PathLike[str]

class DeviceRow(TypedDict):
    device: str | int
    name: str
    kind: str
    backend: str
    driver: str
    auto: bool

class Statistics(TypedDict):
    count: int
    min: float
    max: float
    mean: float
    std: float
    median: float
    mode: float
    entropy: float
    percentiles: dict[float, float]

class Info(TypedDict):
    spacing: tuple[float, ...] | None
    affine: NDArray[np.float64] | None
    unit: str | None
    space: str | None

__version__: str
__all__: list[str]

class DeviceError(RuntimeError): ...

class Device:
    def __new__(cls, device: str | int = "auto") -> Device: ...
    @property
    def name(self) -> str: ...

def devices() -> list[DeviceRow]: ...
def set_device(device: Device | str | int) -> None: ...
def gaussian(
    image: ArrayLike, sigma: float | Sequence[float] = 1.0, *, radius: int | Sequence[int] | None = None, truncate: float = 4.0, mode: Literal["nearest", "reflect", "grid-mirror", "mirror", "wrap", "grid-wrap", "constant", "grid-constant"] | Sequence[Literal["nearest", "reflect", "grid-mirror", "mirror", "wrap", "grid-wrap", "constant", "grid-constant"]] = "nearest", cval: float = 0.0, linear_light: bool = False,
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def uniform_filter(
    image: ArrayLike, size: int | Sequence[int] = 3, *, mode: Literal["nearest", "reflect", "grid-mirror", "mirror", "wrap", "grid-wrap", "constant", "grid-constant"] | Sequence[Literal["nearest", "reflect", "grid-mirror", "mirror", "wrap", "grid-wrap", "constant", "grid-constant"]] = "reflect", cval: float = 0.0,
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def convert(
    image: ArrayLike, dtype: DTypeLike | None = None, *, scale: Literal["minmax", "percentile", "full"] | tuple[float, float] | None = None,
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def median(
    image: ArrayLike, radius: int | Sequence[int] = 1, *, percentile: float = 50.0,
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def erosion(
    image: ArrayLike, radius: int | Sequence[int] = 1, *, shape: Literal["box", "cross", "ball"] = "box",
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def dilation(
    image: ArrayLike, radius: int | Sequence[int] = 1, *, shape: Literal["box", "cross", "ball"] = "box",
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def opening(
    image: ArrayLike, radius: int | Sequence[int] = 1, *, shape: Literal["box", "cross", "ball"] = "box",
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def closing(
    image: ArrayLike, radius: int | Sequence[int] = 1, *, shape: Literal["box", "cross", "ball"] = "box",
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def morphological_gradient(
    image: ArrayLike, radius: int | Sequence[int] = 1, *, shape: Literal["box", "cross", "ball"] = "box",
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def white_tophat(
    image: ArrayLike, radius: int | Sequence[int] = 1, *, shape: Literal["box", "cross", "ball"] = "box",
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def black_tophat(
    image: ArrayLike, radius: int | Sequence[int] = 1, *, shape: Literal["box", "cross", "ball"] = "box",
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def chain(
    image: ArrayLike, *steps: Callable[[Any], Any], channel_axis: int | None = None,
    out: Array | None = None, device: Device | None = None,
) -> Array: ...
@overload
def threshold(
    image: ArrayLike, value: float | Literal["otsu"], *, out: NDArray[np.bool_] | None = None,
    device: Device | None = None,
) -> NDArray[np.bool_]: ...
@overload
def threshold(
    image: ArrayLike, value: Sequence[float], *, out: NDArray[np.uint8] | None = None,
    device: Device | None = None,
) -> NDArray[np.uint8]: ...
def local_threshold(
    image: ArrayLike, block_size: int | Sequence[int] = 3, method: Literal["mean", "gaussian", "sauvola"] = "gaussian", offset: float = 0.0, *, k: float = 0.2, r: float | None = None,
    out: NDArray[np.bool_] | None = None, device: Device | None = None,
) -> NDArray[np.bool_]: ...
def apply_hysteresis_threshold(
    image: ArrayLike, low: float, high: float, *,
    out: NDArray[np.bool_] | None = None, device: Device | None = None,
) -> NDArray[np.bool_]: ...
def threshold_otsu(image: ArrayLike, classes: int = 2) -> list[float]: ...
def resize(
    image: ArrayLike, output_shape: int | Sequence[int], *, interpolation: Literal["nearest", "area", "linear", "cubic", "lanczos3"] = "lanczos3", linear_light: bool = False,
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def crop(
    image: ArrayLike, output_shape: int | Sequence[int], *,
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def flip(
    image: ArrayLike, axis: Literal["x", "y", "z"], *,
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def pad(
    image: ArrayLike, pad_width: int | Sequence[int], *, after: int | Sequence[int] | None = None, mode: Literal["nearest", "reflect", "grid-mirror", "mirror", "wrap", "grid-wrap", "constant", "grid-constant"] | Sequence[Literal["nearest", "reflect", "grid-mirror", "mirror", "wrap", "grid-wrap", "constant", "grid-constant"]] = "constant", cval: float = 0.0,
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def reorient(
    image: ArrayLike, to: Literal["RAS", "RAI", "RPS", "RPI", "LAS", "LAI", "LPS", "LPI", "RSA", "RSP", "RIA", "RIP", "LSA", "LSP", "LIA", "LIP", "ARS", "ARI", "ALS", "ALI", "PRS", "PRI", "PLS", "PLI", "ASR", "ASL", "AIR", "AIL", "PSR", "PSL", "PIR", "PIL", "SRA", "SRP", "SLA", "SLP", "IRA", "IRP", "ILA", "ILP", "SAR", "SAL", "SPR", "SPL", "IAR", "IAL", "IPR", "IPL"], orientation: Literal["RAS", "RAI", "RPS", "RPI", "LAS", "LAI", "LPS", "LPI", "RSA", "RSP", "RIA", "RIP", "LSA", "LSP", "LIA", "LIP", "ARS", "ARI", "ALS", "ALI", "PRS", "PRI", "PLS", "PLI", "ASR", "ASL", "AIR", "AIL", "PSR", "PSL", "PIR", "PIL", "SRA", "SRP", "SLA", "SLP", "IRA", "IRP", "ILA", "ILP", "SAR", "SAL", "SPR", "SPL", "IAR", "IAL", "IPR", "IPL"] | None = None, *,
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def rotate(
    image: ArrayLike, angle: int, *, axis: Literal["x", "y", "z"] = "z",
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def transpose(
    image: ArrayLike, axes: Literal["yx", "zyx", "xzy", "yxz", "yzx", "zxy", "xy", "xyz"] | None = None, *,
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def project(
    image: ArrayLike, axis: int = 0, *, method: Literal["max", "min", "mean", "sum", "std"] = "max",
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def gradient_magnitude(
    image: ArrayLike, sigma: float | Sequence[float] | None = None, *,
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def unsharp_mask(
    image: ArrayLike, sigma: float | Sequence[float] = 1.0, amount: float = 1.0, *, threshold: float = 0.0,
    channel_axis: int | None = None, out: Array | None = None, device: Device | None = None,
) -> Array: ...
def label(
    image: ArrayLike, connectivity: int | None = None, *, equal: bool = True, min_size: int = 1,
    out: Array | None = None, device: Device | None = None,
) -> Array: ...
def math(
    image: ArrayLike, expression: str, *, dtype: Literal["uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64"] | None = None,
    out: Array | None = None, device: Device | None = None,
) -> Array: ...
def histogram(
    image: ArrayLike, bins: int = 10, range: tuple[float, float] | None = None, *,
    channel_axis: int | None = None, device: Device | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
def statistics(
    image: ArrayLike, *, percentiles: Sequence[float] = (), device: Device | None = None,
) -> Statistics: ...
def cumsum(
    a: ArrayLike, axis: int | None = None, *, exclusive: bool = False,
    device: Device | None = None,
) -> Array: ...
def integral_image(image: ArrayLike, *, device: Device | None = None) -> Array: ...
def sort(
    a: ArrayLike, axis: int | None = -1, *, descending: bool = False,
    device: Device | None = None,
) -> Array: ...
def argsort(
    a: ArrayLike, axis: int | None = -1, *, descending: bool = False,
    device: Device | None = None,
) -> NDArray[np.int64]: ...
def marching_cubes(
    volume: ArrayLike, level: float | None = None, *, spacing: float | Sequence[float] = 1.0,
    close: bool = False, topology: Literal["classic", "exact"] = "classic",
    device: Device | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.uint32], NDArray[np.float32]]: ...
def label_meshes(
    labels: ArrayLike, *, spacing: float | Sequence[float] = 1.0, smooth: int = 10,
    device: Device | None = None,
) -> dict[int, tuple[NDArray[np.float32], NDArray[np.uint32]]]: ...
def simplify(
    verts: ArrayLike, faces: ArrayLike, *, ratio: float | None = None,
    triangles: int | None = None, max_error: float | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.uint32]]: ...
@overload
def imread(
    path: Path, *, page: int | None = None, stack: bool = False, volume: int | None = None,
    channel: int | None = None, time: int | None = None, level: int | None = None,
    return_info: Literal[False] = False, max_memory: int | str | None = None,
) -> Array: ...
@overload
def imread(
    path: Path, *, page: int | None = None, stack: bool = False, volume: int | None = None,
    channel: int | None = None, time: int | None = None, level: int | None = None,
    return_info: Literal[True], max_memory: int | str | None = None,
) -> tuple[Array, Info]: ...
def imwrite(
    path: Path, image: ArrayLike, *, spacing: float | Sequence[float] | None = None,
    affine: ArrayLike | None = None, unit: str = "mm", channel_axis: int | None = None,
    quality: int | None = None,
) -> None: ...
