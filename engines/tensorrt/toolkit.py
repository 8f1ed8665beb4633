"""The two libraries that run an engine: TensorRT's runtime, and ``cuda.core`` for memory, streams and graphs.

Everything of this folder that touches a device takes them from here, as one value: tests hand in another.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from trtc.engines.shared_libraries import shared_library
from trtc.engines.tensorrt.library import open_library
from trtc.profiles import HostError

if TYPE_CHECKING:
    from collections.abc import Mapping

LEAN = "tensorrt_lean"
"""TensorRT's runtime without its builder, for engines that were built version-compatible."""


@dataclass(frozen=True, slots=True)
class Toolkit:
    """The libraries.

    Attributes:
        trt: the module ``tensorrt``, ``tensorrt_rtx`` or ``tensorrt_lean``.
        cuda: the module ``cuda.core``.
    """

    trt: Any
    cuda: Any


def runtime_library(backend: str, options: Mapping[str, str]) -> str:
    """Return the import name of the library that runs an engine, from the backend and the options of its record."""
    return LEAN if options.get("runtime") == "lean" else backend


def open_toolkit(library: str) -> Toolkit:
    """Import the libraries. Neither touches the driver yet.

    Raises:
        HostError: when one is not installed, or does not import here; with the command that installs it. Or when
            bindings are here without their libraries, and the host has none that fit.
    """
    shared_library(library)
    if library == LEAN:
        try:
            trt = import_module(LEAN)
        except ImportError as error:
            raise HostError(f"{LEAN} cannot be imported ({error}); pip install tensorrt-lean-cu13") from error
    else:
        trt = open_library(library)
    try:
        cuda = import_module("cuda.core")
    except ImportError as error:
        raise HostError(f"cuda.core cannot be imported ({error}); pip install cuda-core") from error
    return Toolkit(trt, cuda)
