"""Image and volume processing on the GPU, and on the CPU with the same results."""

from ._gpuproc import *  # noqa: F403
from ._gpuproc import __version__

__all__ = ["__version__"] + [name for name in dir() if not name.startswith("_") and name != "main"]
